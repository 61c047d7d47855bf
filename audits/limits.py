"""What an audit does not show: the sentences printed with every result and kept in its record.

A limit has a stable id, which reads as its short form, and a text. The order is part of the record.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """One thing a reader might conclude and must not."""

    id: str
    text: str


NOT_REPEATABILITY = Limit(
    "not-repeatability", "Agreement or disagreement between channels is not repeatability of either."
)
COMMON = (
    Limit("not-causal-credit", "A gain is a change of score, not the causal credit of a step."),
    Limit("not-a-mechanism", "Nothing here says why an evaluator answers as it does."),
    NOT_REPEATABILITY,
    Limit("one-layout-orbit", "Layouts are one cyclic orbit of the labels, not every way to present them."),
    Limit(
        "these-evaluators-only",
        "It holds for trajectories like these, this actor and these evaluators; no provider-wide invariance.",
    ),
    Limit(
        "success-is-internal",
        "Stored success is a criterion of the same corpus, not an outside judgment of the step.",
    ),
    Limit("views-may-differ-more", "Two views may differ in more than the one detail they are named after."),
    Limit(
        "new-faces-needed",
        "New tasks, actors, views, candidate contracts and criteria need faces of their own.",
    ),
    Limit(
        "needs-human-review",
        "Consequential use needs source evidence, disclosure, channel sensitivity and human review.",
    ),
)
COMPLETE_CASES = Limit(
    "complete-cases-only", "Complete transitions are a selection; the flow says what was left out and why."
)
GOLD_ISOLATION = Limit(
    "gold-isolation", "No digest shows that the evaluator never saw which candidate is right."
)
HOSTED_WEIGHTS = Limit(
    "hosted-weights", "A hosted model's weights are the provider's word; the channel only names them."
)
UNDIGESTED = Limit(
    "undigested-inputs", "Entries without digests are taken at the word of whoever ingested them."
)
UNATTESTED = Limit("no-collector-signature", "At this level no signature of a collector was asked for.")
POST_HOC_WEIGHTS = Limit(
    "post-hoc-weights", "Equal target weights are post hoc: no plan declared them before the scores."
)

REFUSED_READINGS = Limit(
    "refused-readings",
    "The interval for a missing corner rests on readings of refused sides and on the declared range.",
)

# Between the fewest clusters that carry a verdict and this many, percentile intervals are too short.
FEW_CLUSTERS = 20


def of_cohort(clusters: int) -> list[Limit]:
    """The limits of every transport-family audit of a cohort of so many trajectories."""
    few = [few_clusters(clusters)] if 1 < clusters < FEW_CLUSTERS else []
    return [*COMMON, COMPLETE_CASES, *few]


def unbalanced(status: str) -> Limit:
    """The warning that places and layouts are mixed up in the numbers, or may be."""
    return Limit(
        "layouts-" + status.replace(" ", "-"),
        f"The layouts are {status}: a preference for a place may be part of every margin.",
    )


def few_clusters(clusters: int) -> Limit:
    """The warning that goes with percentile intervals from few trajectories (measured coverage)."""
    return Limit(
        "few-clusters",
        f"Percentile intervals are too short with {clusters} "
        f"{'trajectory' if clusters == 1 else 'trajectories'} "
        "(coverage 0.91 at 20, 0.83 at 5); read the t intervals beside them.",
    )


def fewer_trajectories(what: str, without: int) -> Limit:
    """The note of a statistic with a smaller cohort than the others."""
    return Limit(f"own-cohort:{what}", f"{what} leave out {without} trajectories without stored success.")


def absent(what: str, why: str) -> Limit:
    """The note that stands for estimates this cohort cannot have: which, and why."""
    return Limit(f"absent:{what}", f"Absent: {what}; {why}.")


def as_json(limits: Iterable[Limit]) -> list[dict[str, str]]:
    """Limits as they stand in a record."""
    return [{"id": limit.id, "text": limit.text} for limit in limits]
