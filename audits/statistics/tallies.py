"""How often each cluster, or each class of clusters, is drawn: all replicates in order, on all processors.

A replicate is addressed by its number, so any thread can make any of them; numpy lets others run while it
draws. What comes out depends neither on the number of threads nor on whether a compiler took part.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, partial
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from audits.statistics import compiled, draws

PARALLEL: Final = 1 << 24
"""Draws below which a second thread is not worth its start."""

Counts = npt.NDArray[np.integer]
T = TypeVar("T")


def of_clusters(
    seed: int,
    stream: int,
    clusters: int,
    resamples: int,
    step: int,
    then: Callable[[Counts], T],
    workers: int | None = None,
) -> Iterator[T]:
    """What `then` makes of the counts of `step` replicates at a time: whole numbers [step, clusters].

    It is called by the thread that drew them.
    """
    kernels = _kernels(clusters * resamples)
    if kernels is None:
        make: Callable[[int, int], Counts] = partial(draws.counts, seed, stream, clusters)
    else:
        make = partial(compiled.counts, kernels, seed, stream, clusters)
    return _in_turn(
        lambda start, stop: then(make(start, stop)), resamples, step, _workers(clusters * resamples, workers)
    )


def of_classes(
    classes: npt.NDArray[np.uint16],
    number: int,
    seed: int,
    stream: int,
    resamples: int,
    step: int,
    workers: int | None = None,
) -> Iterator[npt.NDArray[np.int64]]:
    """The counts of `number` classes, `step` replicates at a time; `classes` has that of each cluster."""
    cells = len(classes) * resamples
    kernels = _kernels(cells)
    if kernels is None:
        make = partial(draws.class_counts, classes, number, seed, stream)
    else:
        make = partial(compiled.class_counts, kernels, classes, number, seed, stream)
    return _in_turn(make, resamples, step, _workers(cells, workers))


def _kernels(cells: int) -> compiled.Kernels | None:
    return compiled.kernels() if cells >= compiled.WORTHWHILE else None


def _workers(cells: int, wanted: int | None) -> int:
    """How many threads draw: as many as asked for, else one on each processor where there is much to do."""
    if wanted is not None:
        return wanted
    return (os.cpu_count() or 1) if cells >= PARALLEL else 1


def _in_turn(make: Callable[[int, int], T], resamples: int, step: int, workers: int) -> Iterator[T]:
    """What `make` gives for one run of replicates after another; only a few are waiting at any time."""
    turns = [(start, min(start + step, resamples)) for start in range(0, resamples, step)]
    if workers < 2 or len(turns) < 2:
        yield from (make(*turn) for turn in turns)
        return
    waiting: deque[Future[T]] = deque()
    try:
        for turn in turns:
            waiting.append(_threads(workers).submit(make, *turn))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        wait([future for future in waiting if not future.cancel()])


@cache
def _threads(workers: int) -> ThreadPoolExecutor:
    """Threads that stay: new ones would each be given memory of their own, which is not given back."""
    return ThreadPoolExecutor(workers, "draws")


os.register_at_fork(after_in_child=_threads.cache_clear)  # threads are not there in a child
