"""A request-independence audit in a sentence for each year and series that claims no more than its numbers.

Input is the `result` of a record, so a stored record reads as it did when it was made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from audits.jev_limits import PRECISION
from audits.wording import number

Fields = Mapping[str, Any]
NAMES = {"strict_flip": "strict flips", "preference_flip": "preference flips"}
LISTED = 2


def sentence(result: Fields) -> str:
    """What the audit found, with what a zero does not show and what precision says about flips."""
    said = list(_said(result["estimates"], result["tables"]))
    if not said:
        return "Nothing can be said about request independence."
    more = len(said) - LISTED
    text = "; ".join(said[:LISTED]) + (f"; and {more} more in --verbose" if more > 0 else "") + "."
    precision = result["tables"].get("precision")
    if precision:
        vanish = sum(row["vanish"] for row in precision.values())
        of = sum(row["flips"]["first"] for row in precision.values())
        text += f" {vanish:,} of {of:,} flips of the first channel vanish in the second. {PRECISION.text}"
    return text


def _said(estimates: Fields, tables: Fields) -> Iterator[str]:
    for prefix, counts in tables.get("counts", {}).items():
        name = next(name for name in NAMES if name in counts)
        fields = estimates[f"{prefix}.{name}"]
        where = f"{prefix}: {counts[name]:,} of {counts['units']:,} answers are {NAMES[name]}"
        silent = counts["actions_changed_without_flip"]
        actions = "1 action" if silent == 1 else f"{silent:,} actions"
        moved = f", {actions} changed without any flip" if silent else ""
        yield f"{where}, {rate(fields)}{moved}"


def rate(fields: Fields) -> str:
    """A rate of queries with its interval, its bound where nothing was seen, or why it has none."""
    from audits.wording import interval, reason

    bound = fields.get("zero_event_upper95")
    if bound is not None:
        return f"none seen in {fields['clusters']:,} queries (95 % bound {number(bound, signed=False)})"
    value = f"rate {number(fields['value'], signed=False)}"
    if fields["ci95"] is not None:
        return f"{value} {interval(fields['ci95'], signed=False)}"
    return f"{value} (interval undefined: {REASONS.get(fields['reason'], reason(fields['reason']))})"


REASONS = {
    "one_cluster": "one query has no spread to resample",
    "too_few_clusters": "fewer than 10 queries",
    "zero_events": "no event was seen",
    "empty_cohort": "no query",
}
