"""Means over very many clusters, drawn by class: clusters alike in every sum need not be told apart.

A year of a large study has hundreds of thousands of queries, but their values are small fractions and take
few combinations. How often a replicate draws each combination is all that a mean needs to know, so a draw
costs a look-up and a count, and no replicate is ever held cluster by cluster. Numbers are those of `Cohort`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from audits.statistics import draws, exact
from audits.statistics.cohort import Batch, Cohort, Progress
from audits.statistics.moments import Mean

FEWEST: Final = 4096  # clusters; with fewer, counting each of them is fast enough
MOST_CLASSES: Final = 1 << 12
PARALLEL: Final = 1 << 29  # draws above which other processes are worth their start
_TURN: Final = 50  # replicates a process makes before it reports

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class QueryCohort(Cohort):
    """A cohort whose statistics are all means. `workers` processes draw, None for one on each processor."""

    workers: int | None = None

    def replicates(
        self,
        statistics: Mapping[str, Any],
        *,
        batch: int | None = None,
        progress: Progress | None = None,
    ) -> dict[str, exact.Replicates]:
        """The values of all means over all replicates, on the same draws: [B] each."""
        if self.clusters < FEWEST or not all(isinstance(each, Mean) for each in statistics.values()):
            return super().replicates(statistics, batch=batch, progress=progress)
        distinct = {id(each.vector.numerators): each.vector.numerators for each in statistics.values()}
        sums = [self.sums(x) for x in distinct.values()]
        classes, first = _classes([self.sizes, *sums])
        if len(first) > MOST_CLASSES:
            return super().replicates(statistics, batch=batch, progress=progress)
        table = exact.SumTable([x[first] for x in sums], self.clusters)
        place = {key: index for index, key in enumerate(distinct)}
        parts: dict[str, list[exact.Replicates]] = {name: [] for name in statistics}
        done = 0
        for counts in self._counts(classes, len(first), batch or _TURN):
            drawn = Batch(counts, self.sizes[first])
            found = table.weighted(drawn.weights)
            for name, each in statistics.items():
                parts[name].append(each.values(drawn, [found[place[id(each.vector.numerators)]]]))
            done += len(counts)
            if progress is not None:
                progress(done, self.resamples)
        return {name: exact.concatenate(found) for name, found in parts.items()}

    def _counts(self, classes: npt.NDArray[np.uint16], number: int, turn: int) -> Iterator[Ints]:
        """How often each class is drawn, all replicates in order, a turn at a time."""
        turns = [
            (self.seed, self.stream, number, start, min(start + turn, self.resamples))
            for start in range(0, self.resamples, turn)
        ]
        workers = self.workers or os.cpu_count() or 1
        done = 0
        if workers > 1 and self.clusters * self.resamples >= PARALLEL:
            for counts in _elsewhere(classes, turns, workers):
                done += 1
                yield counts
        for each in turns[done:]:
            yield class_counts(classes, *each)


def class_counts(
    classes: npt.NDArray[np.uint16], seed: int, stream: int, number: int, start: int, stop: int
) -> Ints:
    """How often replicates [start, stop) draw each of `number` classes: int64[stop - start, number].

    `classes` has the class of each cluster.
    """
    found = np.zeros((stop - start, number), dtype=np.int64)
    for row, replicate in enumerate(range(start, stop)):
        for drawn in draws.in_pieces(seed, stream, len(classes), replicate):
            found[row] += np.bincount(classes.take(drawn), minlength=number)
    return found


def _classes(columns: list[exact.Integers]) -> tuple[npt.NDArray[np.uint16], Ints]:
    """The class of each cluster, alike in every column, and the first cluster of each class."""
    number = np.zeros(len(columns[0]), dtype=np.int64)
    first = np.zeros(1, dtype=np.int64)
    for column in columns:
        values, value = np.unique(column, return_inverse=True)
        _, first, number = np.unique(
            number * len(values) + value.reshape(-1), return_index=True, return_inverse=True
        )
        if len(first) > MOST_CLASSES:
            break
    return number.reshape(-1).astype(np.uint16), first


_held: list[npt.NDArray[np.uint16]] = []


def _hold(classes: npt.NDArray[np.uint16]) -> None:
    """What a worker process counts by, sent to it once."""
    _held[:] = [classes]


def _turn(turn: tuple[int, int, int, int, int]) -> Ints:
    return class_counts(_held[0], *turn)


def _elsewhere(
    classes: npt.NDArray[np.uint16], turns: list[tuple[int, int, int, int, int]], workers: int
) -> Iterator[Ints]:
    """The turns made by other processes, in order; it ends early where there can be none."""
    try:
        pool = ProcessPoolExecutor(
            workers, mp_context=get_context("spawn"), initializer=_hold, initargs=(classes,)
        )
    except (OSError, NotImplementedError):
        return
    with pool:
        waiting: list[Future[Ints]] = []
        try:
            waiting = [pool.submit(_turn, turn) for turn in turns]
            for future in waiting:
                yield future.result()
        except (OSError, BrokenProcessPool):
            return
        finally:
            for future in waiting:
                future.cancel()
