"""The request-independence audit of one group and year: rates, accuracies and differences over queries.

A query's value is a mean over targets (or pairs of base labels), then variants, within each scenario, then
over scenarios; the estimate is the mean over queries, all equal, and queries are drawn anew within the year.
Source: STATISTICS JEV rows 2 to 9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import Final, Literal

import numpy as np

from audits.statistics import clusters, critical, exact, intervals, kernel
from audits.statistics import jev_outcomes as outcomes
from audits.statistics.cohort import Cohort, Progress
from audits.statistics.draws import SEED
from audits.statistics.estimate import Estimate, Reason
from audits.statistics.jev_outcomes import Outcome, Pairs
from audits.statistics.moments import Mean
from audits.statistics.query_cohort import QueryCohort
from audits.statistics.vectors import Vector, combine

RESAMPLES: Final = 5_000
THRESHOLD: Final = 0.5
Intervention = Literal["questions", "evidence", "candidates"]

EVENTS: Final = ("strict_flip", "tie", "action_change", "preference_flip")
"""Rates of events: when no query shows one, a bound takes the place of the interval."""
DIFFERENCES: Final = ("binary_accuracy_difference", "action_accuracy_difference")


@dataclass(frozen=True, eq=False)
class Answers:
    """What the pairs of a group show, by name, and the counts a reader asks for first."""

    outcomes: Mapping[str, Outcome]
    counts: Mapping[str, int]
    actions_changed_without_flip: int


def answers(pairs: Pairs, intervention: Intervention | None = None, threshold: float = THRESHOLD) -> Answers:
    """Every outcome of the pairs. Added candidates are judged on preferences and renormalised accuracy."""
    expanded = intervention == "candidates"
    if not expanded and not bool(pairs.base.all()):
        raise ValueError("only added candidates may change the labels of a pair")
    if not 0 <= threshold <= 1:
        raise ValueError(f"a threshold lies in [0, 1], got {threshold}")
    rows = len(pairs.query)
    compared = outcomes.by_preference(pairs) if expanded else outcomes.by_target(pairs)
    flips = compared.per_pair(compared.flips, rows)
    everywhere = np.ones(len(pairs.before), dtype=np.bool_)
    before = outcomes.actions(pairs, pairs.before, pairs.base, threshold)
    after = outcomes.actions(pairs, pairs.after, everywhere, threshold)
    arms = (pairs.before, pairs.after)
    if expanded:
        arms = (outcomes.renormalised(pairs, pairs.before), outcomes.renormalised(pairs, pairs.after))
    binary = [outcomes.binary_correct(pairs, arm, threshold) for arm in arms]
    right = [outcomes.action_correct(pairs, chosen).astype(np.int64) for chosen in (before, after)]
    changed = before != after
    one, targets = np.ones(rows, dtype=np.int64), pairs.count(pairs.base)
    found = {
        "preference_flip" if expanded else "strict_flip": flips,
        "tie": compared.per_pair(compared.ties, rows),
        "action_change": Outcome(changed.astype(np.int64), one),
        "binary_accuracy_before": Outcome(binary[0], targets),
        "binary_accuracy_after": Outcome(binary[1], targets),
        "binary_accuracy_difference": Outcome(binary[1] - binary[0], targets),
        "action_accuracy_before": Outcome(right[0], one),
        "action_accuracy_after": Outcome(right[1], one),
        "action_accuracy_difference": Outcome(right[1] - right[0], one),
    }
    counts: dict[str, int] = {name: int(found[name].events.sum()) for name in EVENTS if name in found}
    return Answers(found, counts, int(np.count_nonzero(changed & (flips.events == 0))))


class Queries:
    """How pairs lie in scenarios and queries: what turns an outcome into one exact number per query.

    Refused: the same (query, scenario, variant) twice, a query that lacks a scenario others have, query
    numbers that are not 0 to C-1.
    """

    def __init__(self, pairs: Pairs) -> None:
        scenario, variant = (np.unique(x, return_inverse=True)[1] for x in (pairs.scenario, pairs.variant))
        self.queries = len(np.unique(pairs.query))
        self.scenarios = int(scenario.max(initial=-1)) + 1
        if self.queries and not (int(pairs.query.min()) == 0 and int(pairs.query.max()) == self.queries - 1):
            raise ValueError(f"queries are numbered 0 to {self.queries - 1}")
        scene = pairs.query.astype(np.int64) * self.scenarios + scenario
        cell = np.sort(scene * (int(variant.max(initial=0)) + 1) + variant)
        if bool(np.any(cell[1:] == cell[:-1])):
            raise ValueError("a query has each scenario and variant once")
        held = np.bincount(scene, minlength=self.queries * self.scenarios)
        if not held.all():
            raise ValueError("every query has every scenario")
        self._variants = held[scene]
        self._order = np.argsort(pairs.query, kind="stable")
        self._starts = np.searchsorted(pairs.query[self._order], np.arange(self.queries))

    def values(self, outcome: Outcome) -> Vector:
        """The mean over scenarios of the mean over variants of events by units, for each query."""
        if len(outcome.units) and int(outcome.units.min()) < 1:
            raise ValueError("every pair has at least one unit")
        kinds, kind = np.unique(outcome.units * self._variants, return_inverse=True)
        common = lcm(*kinds.tolist())
        weights = exact.integers(np.array([common // part for part in kinds.tolist()], dtype=object))
        terms = exact.times(weights[kind.reshape(-1)], outcome.events)
        return Vector(exact.run_sums(terms[self._order], self._starts), common * max(self.scenarios, 1))


def year_cohort(queries: int, year: int, seed: int = SEED, resamples: int = RESAMPLES) -> Cohort:
    """The queries of one year, each its own cluster; the year is the stream of the draws."""
    clusters = np.arange(queries, dtype=np.int32)
    return QueryCohort(clusters, queries, seed=seed, stream=year, resamples=resamples)


def evaluate(
    queries: Queries,
    found: Answers,
    cohort: Cohort,
    *,
    batch: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Estimate]:
    """The estimates of every outcome, by name, on the draws of the year's queries."""
    vectors = {name: queries.values(outcome) for name, outcome in found.outcomes.items()}
    estimates = cohort.evaluate(
        {name: Mean(vector, signed=name in DIFFERENCES) for name, vector in vectors.items()},
        batch=batch,
        progress=progress,
    )
    return {
        name: (
            estimate
            if name in DIFFERENCES
            else rate(cohort, vectors[name], estimate, int(found.outcomes[name].units.sum()), name in EVENTS)
        )
        for name, estimate in estimates.items()
    }


def rate(cohort: Cohort, vector: Vector, estimate: Estimate, units: int, event: bool) -> Estimate:
    """The estimate of a rate with Wilson's interval beside it, or with the bound for no event at all.

    The trials behind the interval are n_e = min(max(m(1-m)/v, 1), units) (z / t(C-1))^2, with v the variance
    of the mean over queries: as many as the spread between queries is worth, never more than the units.
    """
    mean = vector.mean
    if mean is None:
        return estimate
    if event and mean == 0:
        return replace(
            estimate,
            ci95=None,
            ci95_t=None,
            zero_event_upper95=zero_event_upper95(cohort.clusters),
            reason=Reason.ZERO_EVENTS,
        )
    estimate = replace(estimate, ci95_t=None)  # Wilson's is the second interval of a rate
    variance = clusters.squared_error(cohort, vector)
    if variance is None:
        return estimate
    worth = max(mean * (1 - mean) / variance, Fraction(1)) if variance else Fraction(units)
    z, t = critical.normal(0.975), critical.student(0.975, cohort.clusters - 1)
    size = exact.rounded(min(worth, Fraction(units))) * (z / t) ** 2
    return replace(estimate, ci95_wilson=intervals.wilson(exact.rounded(mean), size, z))


def zero_event_upper95(queries: int) -> float:
    """1 - 0.05^(1/n): with no event in n queries, an upper 95 % bound on a query's chance to show one."""
    return 1.0 - float(kernel.exp(kernel.log(0.05) / queries))


@dataclass(frozen=True)
class Vanishing:
    """Flips of the same units in two groups: in both, only in the first (they vanish), only in the second."""

    both: int
    vanish: int
    appear: int


def vanishing(first: Pairs, second: Pairs, intervention: Intervention | None = None) -> Vanishing:
    """Which flips of the first group are no flips in the second, unit by unit.

    Both hold the same pairs and labels in the same order. A flip that vanishes at higher precision is no
    evidence that one request depends on another.
    """
    same = all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("query", "scenario", "variant", "start", "order", "base")
    )
    if not same:
        raise ValueError("the two groups hold the same pairs and labels in the same order")
    judge = outcomes.by_preference if intervention == "candidates" else outcomes.by_target
    one, two = judge(first).flips, judge(second).flips
    return Vanishing(
        both=int(np.count_nonzero(one & two)),
        vanish=int(np.count_nonzero(one & ~two)),
        appear=int(np.count_nonzero(~one & two)),
    )


def paired_difference(first: Vector, second: Vector) -> Mean:
    """The first group minus the second, both on the same queries in the same order (`Vector.take` picks)."""
    return Mean(combine((1, first), (-1, second)))
