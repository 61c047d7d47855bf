"""What happens to one request when others join it: flips, ties, actions and accuracies of a pair of arms.

A pair is one (query, scenario, variant) answered before and after an intervention; its units are targets,
or pairs of base labels where candidates were added. Every comparison is of float64 probabilities as they
were stored, without rounding.
Source: STATISTICS JEV rows 2 to 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
ABSTAIN = -1


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of one group and year, labels side by side.

    `query`, `scenario`, `variant`: integer codes [r], queries numbered 0 to C-1 by the UTF-8 order of their
    ids, all of them present. The labels of pair i lie at [start[i], start[i+1]); for each label `before` and
    `after` float64[t] in [0, 1], `positive` bool[t], `order` int[t] its place in the label order (distinct in
    a pair). `base` bool[t], False for a label that only the `after` arm has (`before` is not read there).
    """

    query: npt.NDArray[np.integer]
    scenario: npt.NDArray[np.integer]
    variant: npt.NDArray[np.integer]
    start: npt.NDArray[np.integer]
    before: Floats
    after: Floats
    positive: Mask
    order: npt.NDArray[np.integer]
    base: Mask

    def __post_init__(self) -> None:
        rows, labels = len(self.query), len(self.before)
        if {len(self.scenario), len(self.variant), len(self.start) - 1} != {rows}:
            raise ValueError("query, scenario and variant have one value per pair, start one more")
        if {len(self.after), len(self.positive), len(self.order), len(self.base)} != {labels}:
            raise ValueError("before, after, positive, order and base have one value per label")
        if int(self.start[0]) != 0 or int(self.start[-1]) != labels or bool(np.any(np.diff(self.start) < 1)):
            raise ValueError("start begins at 0, ends at the number of labels, and every pair has a label")
        shown = np.concatenate([self.before[self.base], self.after])
        if not bool(np.all((shown >= 0) & (shown <= 1))):
            raise ValueError("probabilities lie in [0, 1]")
        if rows and not bool(np.logical_or.reduceat(self.base, self.start[:-1]).all()):
            raise ValueError("every pair has a label that both arms show")
        if labels:
            places = self.order.astype(np.int64) - int(self.order.min())
            taken = np.sort(self.row * (int(places.max()) + 1) + places)
            if bool(np.any(taken[1:] == taken[:-1])):
                raise ValueError("the labels of a pair have distinct places in the label order")

    @cached_property
    def row(self) -> npt.NDArray[np.int64]:
        """The pair of each label: int64[t]."""
        return np.repeat(np.arange(len(self.query), dtype=np.int64), np.diff(self.start))

    def count(self, mask: Mask) -> npt.NDArray[np.int64]:
        """How many labels of each pair are in the mask: int64[r]."""
        return np.add.reduceat(mask.astype(np.int64), self.start[:-1]) if len(self.query) else _none()


@dataclass(frozen=True, eq=False)
class Outcome:
    """Per pair, `events` of `units`: int64[r] each. A difference of accuracies may be negative."""

    events: npt.NDArray[np.int64]
    units: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Comparisons:
    """For each unit the side of 1/2 it is on, -1, 0 or 1, before and after: int8[u]; `row` is its pair."""

    before: npt.NDArray[np.int8]
    after: npt.NDArray[np.int8]
    row: npt.NDArray[np.int64]

    @property
    def flips(self) -> Mask:
        """Strictly opposite sides."""
        return np.asarray((self.before != self.after) & ~self.ties)

    @property
    def ties(self) -> Mask:
        """Exactly 1/2 in either arm; never a flip."""
        return np.asarray((self.before == 0) | (self.after == 0))

    def per_pair(self, events: Mask, pairs: int) -> Outcome:
        """The events of each pair among its units."""
        return Outcome(
            np.bincount(self.row[events], minlength=pairs).astype(np.int64),
            np.bincount(self.row, minlength=pairs).astype(np.int64),
        )


def by_target(pairs: Pairs) -> Comparisons:
    """Each target's p against 1/2, whatever the threshold of actions."""
    kept = pairs.base
    return Comparisons(_side(pairs.before[kept], 0.5), _side(pairs.after[kept], 0.5), pairs.row[kept])


def by_preference(pairs: Pairs) -> Comparisons:
    """Each unordered pair of base labels: q = pA/(pA+pB) against 1/2, which is pA against pB.

    Refused: fewer than two base labels, or pA + pB = 0 in either arm.
    """
    a, b, row = _base_pairs(pairs)
    for arm in (pairs.before, pairs.after):
        if bool(np.any((arm[a] == 0) & (arm[b] == 0))):
            raise ValueError("a preference needs pA + pB above 0")
    return Comparisons(_side(pairs.before[a], pairs.before[b]), _side(pairs.after[a], pairs.after[b]), row)


def preferences(pairs: Pairs) -> tuple[Floats, Floats]:
    """q = pA/(pA+pB) before and after, one for each unit of `by_preference`; for drawing only."""
    a, b, _ = _base_pairs(pairs)
    before, after = (arm[a] / (arm[a] + arm[b]) for arm in (pairs.before, pairs.after))
    return before, after


def _base_pairs(pairs: Pairs) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The places of both labels of each unordered pair of base labels, and the pair they are of."""
    kept = np.flatnonzero(pairs.base)
    row = pairs.row[kept]
    held = np.bincount(row, minlength=len(pairs.query))
    if len(held) and int(held.min()) < 2:
        raise ValueError("added candidates need two base labels to compare")
    first_of = np.cumsum(held) - held
    # label j of a pair meets each label before it
    ahead = np.arange(len(kept)) - first_of[row]
    second = np.repeat(np.arange(len(kept)), ahead)
    step = np.arange(len(second)) - np.repeat(np.cumsum(ahead) - ahead, ahead)
    first = first_of[row[second]] + step
    return kept[first], kept[second], row[second]


def actions(pairs: Pairs, probability: Floats, shown: Mask, threshold: float) -> npt.NDArray[np.int64]:
    """The place in the label order that each pair chooses, or -1 for abstaining: int64[r].

    Chosen is the highest shown p strictly above the threshold; of equal ones the first in the label order.
    """
    if not len(pairs.query):
        return _none()
    visible = np.where(shown, probability, -1.0)
    highest = np.maximum.reduceat(visible, pairs.start[:-1])[pairs.row]
    best = (visible == highest) & (visible > threshold)
    beyond = np.iinfo(np.int64).max
    chosen = np.minimum.reduceat(np.where(best, pairs.order.astype(np.int64), beyond), pairs.start[:-1])
    return np.where(chosen == beyond, ABSTAIN, chosen)


def action_correct(pairs: Pairs, chosen: npt.NDArray[np.int64]) -> Mask:
    """Whether each pair chose a positive label, or abstained when it has none: bool[r]."""
    hit = pairs.count((pairs.order == chosen[pairs.row]) & pairs.positive) > 0
    return np.where(chosen == ABSTAIN, pairs.count(pairs.positive) == 0, hit)


def binary_correct(pairs: Pairs, probability: Floats, threshold: float) -> npt.NDArray[np.int64]:
    """How many base labels of each pair have (p > threshold) equal to being positive: int64[r]."""
    return pairs.count(pairs.base & ((probability > threshold) == pairs.positive))


def renormalised(pairs: Pairs, probability: Floats) -> Floats:
    """p divided by its sum over the base labels of its pair; labels outside the base keep a 0.

    Sums add in ascending order, so the order of labels does not matter. Refused: a sum of 0.
    """
    kept = np.flatnonzero(pairs.base)
    row = pairs.row[kept]
    ascending = kept[np.lexsort((probability[kept], row))]
    held = np.bincount(row, minlength=len(pairs.query))
    first_of = np.cumsum(held) - held
    sums = np.zeros(len(pairs.query))
    for place in range(int(held.max()) if len(held) else 0):
        some = held > place
        sums[some] += probability[ascending[first_of[some] + place]]
    if bool(np.any(sums == 0)):
        raise ValueError("the probabilities of the base labels add up to 0")
    result = np.zeros(len(probability))
    result[kept] = probability[kept] / sums[row]
    return result


def _side(value: Floats, cut: Floats | float) -> npt.NDArray[np.int8]:
    return (value > cut).astype(np.int8) - (value < cut).astype(np.int8)


def _none() -> npt.NDArray[np.int64]:
    return np.zeros(0, dtype=np.int64)
