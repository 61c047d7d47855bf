"""Median and trimmed mean of the drawn rows, without sorting any replicate.

The rows are sorted once and cut into blocks. How many drawn rows lie in the blocks below each block is one
exact matrix product per batch of replicates; only the block a wanted rank falls in is looked at row by row,
and the sum of everything below it is one product of the draws with a cumulative table.
Source: STATISTICS transport row 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from audits.statistics import exact
from audits.statistics.cohort import Batch, Cohort, Statistic
from audits.statistics.vectors import Vector

_SINGLE = 1 << 24  # whole numbers below this are exact as float32
_CELLS = 1 << 16  # replicates times clusters worked on at once: they stay in the processor's cache
_TABLE_CELLS = 1 << 22  # the most cells of a cumulative table, blocks times clusters


class Ordered:
    """The rows of a vector in ascending order, with what each cluster has below each block of them."""

    def __init__(self, cohort: Cohort, vector: Vector) -> None:
        rows, groups = cohort.rows, cohort.clusters
        if len(vector) != rows:
            raise ValueError(f"the cohort has {rows} rows, the vector {len(vector)}")
        if rows == 0:
            raise ValueError("an empty cohort has no order statistics")
        self.denominator = vector.denominator
        order = np.argsort(vector.numerators, kind="stable")
        values, cluster = vector.numerators[order], cohort.cluster[order].astype(np.int64)
        # a block costs C per replicate in the product, a row of the wanted block costs several times more
        blocks = min(rows, max(1, min(ceil(20 * sqrt(rows / groups)), _TABLE_CELLS // groups)))
        size = ceil(rows / blocks)
        self._blocks = blocks = ceil(rows / size)
        place = np.arange(rows) // size
        # the last block is filled up behind its rows, where no rank ever falls
        self._values = np.resize(values, blocks * size).reshape(blocks, size)
        self._cluster = np.resize(cluster, blocks * size).reshape(blocks, size)
        largest = groups * int(cohort.sizes.max())
        held = np.bincount(cluster * blocks + place, minlength=groups * blocks).reshape(groups, blocks)
        self._float: type[np.floating] = np.float32 if largest < _SINGLE else np.float64
        self._below = np.asarray(np.cumsum(held, axis=1) - held, dtype=self._float)
        self._limbs = exact.limbs(self._values, 62 - largest.bit_length())
        self._sum_bound = (self._limbs.bound + (2 << self._limbs.width)) * largest
        self._sums = []
        for part in self._limbs.parts:
            table = np.zeros((blocks, groups), dtype=np.int64)
            np.add.at(table, (place, cluster), part.ravel()[:rows])
            self._sums.append(np.cumsum(table, axis=0) - table)

    def select(self, batch: Batch, rank: npt.NDArray[np.int64]) -> exact.Integers:
        """The numerator of the drawn row of that rank, counted from 0, in each replicate: Integers[b]."""
        return self._pick(self._locate(batch, rank), rank)

    def middle(self, batch: Batch) -> exact.Integers:
        """Twice the median's numerator in each replicate: the two middle rows, or the middle one twice."""
        low, high = (batch.rows - 1) // 2, batch.rows // 2
        found = self._locate(batch, low)
        # the upper one mostly lies in the same block, which need not be looked up again
        within = bool(np.all(high - found.before < found.upto[:, -1]))
        upper = self._pick(found, high) if within else self.select(batch, high)
        return exact.add(self._pick(found, low), upper)

    def _pick(self, found: _Found, rank: npt.NDArray[np.int64]) -> exact.Integers:
        within = np.count_nonzero(found.upto <= (rank - found.before)[:, None], axis=1)
        picked: exact.Integers = self._values[found.block, within]
        return picked

    def head(self, batch: Batch, count: npt.NDArray[np.int64]) -> exact.Integers:
        """The sum of the `count` smallest drawn numerators in each replicate: Integers[b]."""
        found = self._locate(batch, np.maximum(count - 1, 0))
        wanted = (count - found.before)[:, None]
        taken = np.clip(wanted - (found.upto - found.drawn), 0, found.drawn)
        taken[count == 0] = 0
        sums = []
        for part, table in zip(self._limbs.parts, self._sums, strict=True):
            inside = np.einsum("bk,bk->b", taken, part[found.block])
            sums.append(_row_products(batch.counts, table, found.block) + inside)
        result = exact.join(sums, self._limbs.width, self._sum_bound)
        return np.where(count == 0, 0, result)

    def _locate(self, batch: Batch, rank: npt.NDArray[np.int64]) -> _Found:
        below = batch.once((self, "below"), lambda: self._drawn_below(batch))
        block = np.count_nonzero(below <= rank[:, None].astype(self._float), axis=1) - 1
        before = below[np.arange(len(block)), block].astype(np.int64)
        # one flat look-up, far faster than numpy's along an axis
        place = self._cluster[block]
        place += np.arange(0, batch.counts.size, batch.counts.shape[1])[:, None]
        drawn = batch.counts.ravel().take(place)
        return _Found(block, before, drawn, np.cumsum(drawn, axis=1))

    def _drawn_below(self, batch: Batch) -> npt.NDArray[Any]:
        """How many drawn rows lie below each block: whole numbers [b, blocks], exact in their type."""
        return exact.product(batch.drawn, self._below)


def _row_products(
    counts: npt.NDArray[np.int64], table: npt.NDArray[np.int64], row: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The product of each row of `counts` with that row of a table: int64[b]."""
    found = np.empty(len(counts), dtype=np.int64)
    step = max(1, _CELLS // max(table.shape[1], 1))
    for start in range(0, len(counts), step):
        part = slice(start, start + step)
        np.einsum("bc,bc->b", counts[part], table[row[part]], out=found[part])
    return found


@dataclass(frozen=True)
class _Found:
    """The block a rank falls in, and for its rows how often each was drawn, alone and cumulated."""

    block: npt.NDArray[np.int64]
    before: npt.NDArray[np.int64]
    drawn: npt.NDArray[np.int64]
    upto: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Median(Statistic):
    """The middle drawn row, or the mean of the two middle ones."""

    ordered: Ordered

    def values(self, batch: Batch, sums: Sequence[exact.Integers]) -> exact.Replicates:
        del sums
        twice = np.full(len(batch.rows), 2, dtype=np.int64)
        return exact.divide(self.ordered.middle(batch), twice, self.ordered.denominator)


@dataclass(frozen=True, eq=False)
class Trimmed(Statistic):
    """The mean without floor(n/10) drawn rows from each end, n the replicate's own number of rows."""

    ordered: Ordered

    def values(self, batch: Batch, sums: Sequence[exact.Integers]) -> exact.Replicates:
        del sums
        cut = batch.rows // 10
        kept = exact.add(
            self.ordered.head(batch, batch.rows - cut),
            exact.times(self.ordered.head(batch, cut), -1),
        )
        return exact.divide(kept, batch.rows - 2 * cut, self.ordered.denominator)
