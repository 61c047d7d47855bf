"""What a request-independence audit does not show, beside the limits every audit has."""

from __future__ import annotations

from collections.abc import Sequence

from audits.limits import COMMON, GOLD_ISOLATION, Limit

EQUAL_SCENARIOS = Limit(
    "equal-scenario-weights", "Equal scenario weights are not the distribution of production traffic."
)
PRECISION = Limit(
    "precision-flips",
    "A flip that vanishes at higher precision is not evidence of semantic dependence.",
)
NO_EVENTS = Limit(
    "zero-events",
    "Where no event was seen the bound is on the chance that such a query shows one; it guarantees nothing.",
)
CLAIMED_MASS = Limit(
    "claimed-label-mass", "Label masses given as numbers are the file's word; no logits were there to read."
)
JEV = (*COMMON, GOLD_ISOLATION, EQUAL_SCENARIOS)


def few_queries(years: Sequence[tuple[str, int]]) -> Limit:
    """The warning that goes with percentile intervals from few queries."""
    listed = ", ".join(f"{count} in {name}" for name, count in years)
    return Limit(
        "few-queries",
        f"Percentile intervals are too short with few queries ({listed}); read the second interval.",
    )


def not_compared(pairs: Sequence[tuple[str, str]], why: str) -> Limit:
    """The note of differences that are not given."""
    listed = "; ".join(f"{first} and {second}" for first, second in pairs[:3])
    more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
    return Limit(f"absent:difference:{why.replace(' ', '-')}", f"Not compared, {why}: {listed}{more}.")
