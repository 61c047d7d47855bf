"""Whether two views give the same margins: energy distance and Kolmogorov-Smirnov, by permutation.

The views are swapped within whole trajectories, which keeps everything but the name of the view. With
D(z) = #(X <= z) - #(Y <= z) over the pooled values, the energy distance
2E|X-Y| - E|X-X'| - E|Y-Y'| (all ordered pairs) is 2 Σ D^2 (gap to the next value) / n^2, and
KS = max |D| / n, so both are integers until one division.
Sources: STATISTICS transport row 26; Székely & Rizzo (2013); Phipson & Smyth (2010) for p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm
from typing import Final

import numpy as np
import numpy.typing as npt

from audits.statistics import draws, exact
from audits.statistics.cohort import Cohort, Progress
from audits.statistics.estimate import Reason
from audits.statistics.vectors import Vector

ALPHA: Final = 0.05
_BATCH_CELLS = 1 << 20
_SUM_BITS = 62  # a sum of squares times digits stays below 2^62


@dataclass(frozen=True)
class Distance:
    """One distance, its permutation p = (1 + #{>= observed}) / (1 + B), and whether p <= 0.05."""

    value: float
    p: float
    departure_detected: bool


@dataclass(frozen=True)
class Redundancy:
    """Both distances at one endpoint; no departure detected is no support for redundancy."""

    energy: Distance | None
    ks: Distance | None
    permutations: int
    n: int
    clusters: int
    reason: Reason | None = None


def redundancy(
    cohort: Cohort, x: Vector, y: Vector, *, batch: int | None = None, progress: Progress | None = None
) -> Redundancy:
    """Compare the margins of two views, one value per transition each, over `cohort.resamples` swaps.

    Swap b exchanges the views of cluster c where the top bit of value c of replicate b of stream 2^63 is 1.
    Undefined with a reason for no rows or one cluster (whose swap changes no distance).
    """
    if len(x) != cohort.rows or len(y) != cohort.rows:
        raise ValueError(f"the cohort has {cohort.rows} rows, the views {len(x)} and {len(y)}")
    if cohort.clusters < 2:
        reason = Reason.ONE_CLUSTER if cohort.rows else Reason.EMPTY_COHORT
        return Redundancy(None, None, 0, cohort.rows, cohort.clusters, reason)
    pooled = _Pooled(cohort, x, y)
    energy, ks = pooled.distances(np.ones((1, cohort.clusters), dtype=np.int64))
    observed = int(energy[0]), int(ks[0])
    larger, step = [0, 0], batch or max(1, _BATCH_CELLS // (2 * cohort.rows))
    for start in range(0, cohort.resamples, step):
        stop = min(start + step, cohort.resamples)
        bits = draws.raw(cohort.seed, draws.PERMUTATION_STREAM, cohort.clusters, start, stop) >> np.uint64(63)
        swapped = pooled.distances(1 - 2 * bits.astype(np.int64))
        for place, values in enumerate(swapped):
            larger[place] += int(np.count_nonzero(values >= observed[place]))
        if progress is not None:
            progress(stop, cohort.resamples)
    ps = [(1 + count) / (1 + cohort.resamples) for count in larger]
    return Redundancy(
        energy=Distance(2 * observed[0] / (cohort.rows**2 * pooled.denominator), ps[0], ps[0] <= ALPHA),
        ks=Distance(observed[1] / cohort.rows, ps[1], ps[1] <= ALPHA),
        permutations=cohort.resamples,
        n=cohort.rows,
        clusters=cohort.clusters,
    )


class _Pooled:
    """The values of both views in ascending order, with the view and cluster of each."""

    def __init__(self, cohort: Cohort, x: Vector, y: Vector) -> None:
        self.denominator = lcm(x.denominator, y.denominator)
        values = exact.integers(
            np.concatenate([exact.times(v.numerators, self.denominator // v.denominator) for v in (x, y)])
        )
        order = np.argsort(values, kind="stable")
        values = values[order]
        gaps = exact.add(values[1:], exact.times(values[:-1], -1))
        self._cluster = np.concatenate([cohort.cluster, cohort.cluster])[order][:-1]
        self._view = np.repeat(np.array([1, -1], dtype=np.int64), cohort.rows)[order][:-1]
        # D is read where a value ends: inside a run of equal values the gap is 0
        self._ends = np.flatnonzero(gaps != 0)
        self._gaps = gaps[self._ends]
        self._span = exact.total(gaps)

    def distances(self, signs: npt.NDArray[np.int64]) -> Sequence[exact.Integers]:
        """Σ D^2 gap and max |D| for swaps given as a sign per cluster, int64[b, C]: Integers[b] each."""
        difference = np.cumsum(signs[:, self._cluster] * self._view, axis=1)[:, self._ends]
        squared = difference * difference
        largest = np.abs(difference).max(axis=1, initial=0)
        square = int(largest.max()) ** 2
        # digits of the gaps narrow enough for what this batch adds up
        width = _SUM_BITS - len(self._gaps).bit_length() - square.bit_length()
        if width < 1:
            return squared.astype(object) @ self._gaps.astype(object), largest
        cut = exact.limbs(self._gaps, width)
        parts = [squared @ part for part in cut.parts]
        return exact.join(parts, width, square * (self._span + (2 << width) * len(self._gaps))), largest
