"""The numbers of a request-independence audit: every series of a year on one set of draws.

Series with the same queries share a cohort, so that a difference between two of them is paired draw by draw;
a difference of series with other queries is over those both have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from audits.jev_series import Ints, Series, YearPairs
from audits.statistics import jev
from audits.statistics.cohort import Cohort
from audits.statistics.estimate import Estimate
from audits.statistics.jev_outcomes import Outcome
from audits.statistics.moments import Mean
from audits.statistics.vectors import Vector
from contracts.errors import CannotAnswerError

PRIMARY = ("strict_flip", "preference_flip")
Progress = Callable[[int, int], None]
_INTERVENTIONS: Mapping[str, jev.Intervention] = {
    "questions": "questions",
    "evidence": "evidence",
    "candidates": "candidates",
}


@dataclass(frozen=True, eq=False)
class Judged:
    """The pairs of one series and year with what they show; `prefix` begins the ids of its estimates."""

    series: Series
    part: YearPairs
    prefix: str
    answers: jev.Answers
    vectors: Mapping[str, Vector]

    @property
    def queries(self) -> Ints:
        return self.part.queries


@dataclass(frozen=True)
class Skipped:
    """A difference that is not given, and why."""

    first: str
    second: str
    why: str


@dataclass
class _OnOneCohort:
    """Statistics over the same queries of a year, under their ids; those that are rates with their units."""

    cohort: Cohort
    means: dict[str, Mean] = field(default_factory=dict)
    rates: dict[str, tuple[Vector, int, bool]] = field(default_factory=dict)

    def evaluate(self, progress: Progress | None) -> dict[str, Estimate]:
        found = self.cohort.evaluate(self.means, progress=progress)
        for name, (vector, units, event) in self.rates.items():
            found[name] = jev.rate(self.cohort, vector, found[name], units, event)
        return found


def judge(series: Series, part: YearPairs, prefix: str, threshold: float) -> Judged:
    """What the pairs of a series and year show; CannotAnswerError where its queries differ in scenarios."""
    try:
        queries = jev.Queries(part.pairs)
    except ValueError as error:
        raise CannotAnswerError(
            "queries of one series have different scenarios across its variants",
            code="scenarios-uneven",
            where=f"{series.label}, {part.year}",
            next_step="name the scenarios all of them have with --scenarios",
        ) from error
    answers = jev.answers(part.pairs, intervention(series), threshold)
    vectors = {name: queries.values(outcome) for name, outcome in answers.outcomes.items()}
    return Judged(series, part, prefix, answers, vectors)


def intervention(series: Series) -> jev.Intervention | None:
    """The intervention as the statistics know it."""
    return _INTERVENTIONS.get(series.intervention or "")


def estimates(
    judged: Sequence[Judged], *, seed: int, resamples: int, progress: Progress | None = None
) -> tuple[dict[str, Estimate], list[Skipped]]:
    """All estimates by id, and the differences that are not given."""
    found: dict[str, Estimate] = {}
    skipped: list[Skipped] = []
    for year in sorted({each.part.year for each in judged}):
        mine = [each for each in judged if each.part.year == year]
        cohorts: dict[bytes, _OnOneCohort] = {}

        def on(queries: Ints, year: int = year, held: dict[bytes, _OnOneCohort] = cohorts) -> _OnOneCohort:
            cohort = jev.year_cohort(len(queries), year, seed, resamples)
            return held.setdefault(queries.tobytes(), _OnOneCohort(cohort))

        for each in mine:
            together = on(each.queries)
            for name, outcome in each.answers.outcomes.items():
                signed, metric = name in jev.DIFFERENCES, f"{each.prefix}.{name}"
                together.means[metric] = Mean(each.vectors[name], signed=signed)
                if not signed:
                    together.rates[metric] = (each.vectors[name], _units(outcome), name in jev.EVENTS)
        for first, second in combinations(mine, 2):
            why = _incomparable(first, second)
            if why is not None:
                skipped.append(Skipped(f"{year}/{first.series.label}", f"{year}/{second.series.label}", why))
                continue
            common = np.intersect1d(first.queries, second.queries, assume_unique=True)
            on(common).means.update(_differences(first, second, common))
        for together in cohorts.values():
            found |= together.evaluate(progress)
    return found, skipped


def _units(outcome: Outcome) -> int:
    return int(outcome.units.sum())


def _incomparable(first: Judged, second: Judged) -> str | None:
    """Why two series of a year are not compared, if they are not."""
    one, two = first.series, second.series
    if None in (one.channel, two.channel) and (one.channel, one.acquisitions) != (
        two.channel,
        two.acquisitions,
    ):
        return "an undeclared channel is compared with no other"
    if first.part.scenarios != second.part.scenarios:
        return "their scenarios differ"
    if not len(np.intersect1d(first.queries, second.queries, assume_unique=True)):
        return "they have no query in common"
    return None


def _differences(first: Judged, second: Judged, common: Ints) -> Iterator[tuple[str, Mean]]:
    """First minus second on the queries of both, for every outcome of both."""
    rows = [np.searchsorted(each.queries, common) for each in (first, second)]
    for name in first.vectors:
        if name in second.vectors:
            pair = [each.vectors[name].take(at) for each, at in zip((first, second), rows, strict=True)]
            yield difference_id(first, second, name), jev.paired_difference(*pair)


def difference_id(first: Judged, second: Judged, name: str) -> str:
    """The id of a paired difference, first minus second."""
    return f"{first.part.year}.difference.{first.series.label}-{second.series.label}.{name}"
