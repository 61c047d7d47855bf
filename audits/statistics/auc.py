"""How well trajectory scores tell stored successes from failures, and the paired gap between two channels.

AUC = P(s+ > s-) + 1/2 P(s+ = s-), one score per trajectory: its mean gain. Each trajectory is its own
cluster, numbered anew among those that have a stored success.
Sources: STATISTICS transport row 20; DeLong, DeLong & Clarke-Pearson (1988) for the standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from audits.statistics import exact
from audits.statistics.cohort import Batch, Cohort, Progress, Statistic
from audits.statistics.estimate import Estimate, Reason
from audits.statistics.vectors import Vector

ABSENT: Final = -1
FEWEST_OF_A_CLASS: Final = 10
"""With fewer successes or fewer failures an AUC carries no verdict."""
_CELLS: Final = 1 << 16  # replicates times clusters worked on at once: they stay in the processor's cache


@dataclass(frozen=True)
class Auc:
    """The AUC of each channel and their gap (ref minus alt); `delong_se` of the gap is a diagnostic."""

    ref: Estimate
    alt: Estimate
    gap: Estimate
    positives: int
    negatives: int
    without_success: int
    delong_se: float | None


def paired(
    cohort: Cohort,
    ref: Vector,
    alt: Vector,
    success: npt.NDArray[np.integer],
    *,
    batch: int | None = None,
    progress: Progress | None = None,
) -> Auc:
    """The AUCs of two channels on the same trajectories, from their own draws of trajectories.

    `success`: 1, 0 or -1 (absent) per row, constant in a cluster. Trajectories without it are left out and
    counted in `without_success`. A cohort, or a replicate, with one class only has no AUC.
    """
    if len(success) != cohort.rows:
        raise ValueError(f"success holds one value per row, expected {cohort.rows}, got {len(success)}")
    outcome = np.full(cohort.clusters, ABSENT, dtype=np.int64)
    outcome[cohort.cluster] = success
    if bool(np.any(outcome[cohort.cluster] != success)):
        raise ValueError("success is constant in a cluster")
    kept = np.flatnonzero(outcome != ABSENT)
    own = Cohort(
        np.arange(len(kept), dtype=np.int32), len(kept), cohort.seed, cohort.stream, cohort.resamples
    )
    positive = outcome[kept] > 0
    first, second = (_Ranking(_scores(cohort, vector, kept), positive) for vector in (ref, alt))
    few = min(first.positives, first.negatives) < FEWEST_OF_A_CLASS
    found = own.evaluate(
        {
            "ref": _Area(first),
            "alt": _Area(second),
            "gap": _Area(first, second, Reason.FEW_OF_A_CLASS if few else None),
        },
        batch=batch,
        progress=progress,
    )
    return Auc(
        ref=found["ref"],
        alt=found["alt"],
        gap=found["gap"],
        positives=first.positives,
        negatives=first.negatives,
        without_success=cohort.clusters - len(kept),
        delong_se=_delong(first, second),
    )


def _scores(cohort: Cohort, vector: Vector, kept: npt.NDArray[np.integer]) -> exact.Integers:
    """The mean of each kept cluster on one common integer scale, so that equal means are equal numbers."""
    if not len(kept):
        return np.zeros(0, dtype=np.int64)
    sizes = cohort.sizes[kept]
    common = lcm(*set(sizes.tolist()))
    scale = exact.integers(np.array([common // size for size in sizes.tolist()], dtype=object))
    return exact.times(cohort.sums(vector.numerators)[kept], scale)


class _Ranking:
    """Where each success stands among the failures, by score."""

    def __init__(self, scores: exact.Integers, positive: npt.NDArray[np.bool_]) -> None:
        self.successes = positive.astype(np.int64)
        ranks = np.unique(scores, return_inverse=True)[1].reshape(-1)
        up, down = np.flatnonzero(positive), np.flatnonzero(~positive)
        # sorted by score, so that both look-ups below walk forward through memory
        self.up = up[np.argsort(ranks[up], kind="stable")]
        self.down = down[np.argsort(ranks[down], kind="stable")]
        self.positives, self.negatives = len(up), len(down)
        self.below = np.searchsorted(ranks[self.down], ranks[self.up], side="left")
        self.upto = np.searchsorted(ranks[self.down], ranks[self.up], side="right")
        self.tied = not np.array_equal(self.below, self.upto)
        below = np.searchsorted(ranks[self.up], ranks[self.down], side="left")
        upto = np.searchsorted(ranks[self.up], ranks[self.down], side="right")
        # by cluster, unweighted and doubled: failures beaten (ties half) and successes that beat
        self.placement_up = np.empty(len(up), dtype=np.int64)
        self.placement_up[np.argsort(self.up, kind="stable").argsort(kind="stable")] = self.below + self.upto
        self.placement_down = np.empty(len(down), dtype=np.int64)
        place = np.argsort(self.down, kind="stable").argsort(kind="stable")
        self.placement_down[place] = 2 * len(up) - below - upto

    def wins(self, batch: Batch) -> npt.NDArray[np.int64]:
        """Twice the number of drawn pairs a success wins, ties counted half: int64[b]."""
        won = np.empty(len(batch), dtype=np.int64)
        step = max(1, _CELLS // max(self.positives + self.negatives, 1))
        for start in range(0, len(batch), step):
            counts = batch.counts[start : start + step]
            drawn = np.zeros((len(counts), self.negatives + 1), dtype=np.int64)
            np.cumsum(counts.take(self.down, axis=1), axis=1, out=drawn[:, 1:])
            beaten = drawn.take(self.below, axis=1)
            beaten += drawn.take(self.upto, axis=1) if self.tied else beaten
            np.einsum("bp,bp->b", counts.take(self.up, axis=1), beaten, out=won[start : start + step])
        return won


@dataclass(frozen=True, eq=False)
class _Area(Statistic):
    """The AUC of one ranking, or of one minus another."""

    ranking: _Ranking
    other: _Ranking | None = None
    withheld: Reason | None = None

    @property
    def undefined(self) -> Reason:
        return Reason.ONE_CLASS

    @property
    def signed(self) -> bool:
        return self.other is not None

    def columns(self) -> Sequence[exact.Integers]:
        return (self.ranking.successes,)

    def values(self, batch: Batch, sums: Sequence[exact.Integers]) -> exact.Replicates:
        wins = batch.once(self.ranking, lambda: self.ranking.wins(batch))
        if self.other is not None:
            other = self.other
            wins = wins - batch.once(other, lambda: other.wins(batch))
        successes = sums[0]
        return exact.divide(wins, successes * (batch.rows - successes), 2)


def _delong(first: _Ranking, second: _Ranking) -> float | None:
    """sqrt(var(V10)/n+ + var(V01)/n-) of the placement differences, ddof 1; None below two of either."""
    if min(first.positives, first.negatives) < 2:
        return None
    up = _variance(first.placement_up - second.placement_up) / (2 * first.negatives) ** 2
    down = _variance(first.placement_down - second.placement_down) / (2 * first.positives) ** 2
    return sqrt(exact.rounded(up / first.positives + down / first.negatives))


def _variance(x: npt.NDArray[np.int64]) -> Fraction:
    values = x.tolist()
    size, whole = len(values), sum(values)
    return Fraction(size * sum(v * v for v in values) - whole * whole, size * (size - 1))
