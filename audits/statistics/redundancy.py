"""Whether two views give the same margins: energy distance and Kolmogorov-Smirnov, by permutation.

The views are swapped within whole trajectories, which keeps everything but the name of the view. With
D(z) = #(X <= z) - #(Y <= z) over the pooled values, the energy distance
2E|X-Y| - E|X-X'| - E|Y-Y'| (all ordered pairs) is 2 Σ D^2 (gap to the next value) / n^2, and
KS = max |D| / n, so both are integers until one division.
Sources: STATISTICS transport row 26; Székely & Rizzo (2013); Phipson & Smyth (2010) for p.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import Final

import numpy as np

from audits.statistics import draws, exact
from audits.statistics.cohort import Cohort, Progress
from audits.statistics.estimate import Reason
from audits.statistics.vectors import Vector

ALPHA: Final = 0.05
_SWAPS = 256  # swaps worked on at once
_BLOCK = 256  # values worked on at once; with the swaps, 512 kB
_FLOAT_BITS = 53  # whole numbers below 2^53 are exact as float64


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
    energy, ks = pooled.distances(np.ones((cohort.clusters, 1)))
    observed = int(energy[0]), int(ks[0])
    larger, step = [0, 0], batch or _SWAPS
    for start in range(0, cohort.resamples, step):
        stop = min(start + step, cohort.resamples)
        bits = draws.raw(cohort.seed, draws.PERMUTATION_STREAM, cohort.clusters, start, stop) >> np.uint64(63)
        swapped = pooled.distances(1.0 - 2.0 * np.ascontiguousarray(bits.T))
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
        # row c of the signs raises D where x's value of cluster c is passed, row C + c where y's is
        signed = np.concatenate([cohort.cluster, cohort.cluster + cohort.clusters])
        self._row = signed[order][:-1]
        # D is read where a value ends: inside a run of equal values the gap is 0
        self._ends = gaps != 0
        reach = cohort.rows**2
        width = _FLOAT_BITS - _BLOCK.bit_length() - reach.bit_length()
        if width < 1:
            raise ValueError(f"the distances of {cohort.rows} transitions do not fit exact arithmetic")
        self._gaps = exact.limbs(gaps, width)
        self._digits = np.array(self._gaps.parts, dtype=np.float64)
        self._part_limit = (len(gaps) * reach) << width
        self._limit = reach * (exact.total(gaps) + (len(gaps) << (width + 1)))

    def distances(self, signs: exact.Float) -> tuple[exact.Integers, exact.Integers]:
        """Σ D^2 gap and max |D| for swaps given as 1 or -1 per cluster, float64[C, b]: Integers[b] each.

        Everything is whole and below 2^53 in float64, products with the digits of the gaps included.
        """
        both = np.concatenate([signs, -signs])
        carried, largest = np.zeros(signs.shape[1]), np.zeros(signs.shape[1])
        sums = [exact.room(np.zeros(signs.shape[1], dtype=np.int64), self._part_limit) for _ in self._digits]
        for start in range(0, len(self._row), _BLOCK):
            part = slice(start, start + _BLOCK)
            difference = both[self._row[part]]
            difference[0] += carried
            np.cumsum(difference, axis=0, out=difference)
            carried = difference[-1].copy()
            ends = self._ends[part]
            read = difference if bool(ends.all()) else difference[ends]
            if not len(read):
                continue
            largest = np.maximum(largest, np.abs(read).max(axis=0))
            found = self._digits[:, part][:, ends] @ (read * read)
            sums = [total + some.astype(np.int64) for total, some in zip(sums, found, strict=True)]
        return exact.join(sums, self._gaps.width, self._limit), largest.astype(np.int64)
