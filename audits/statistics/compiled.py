"""The draws in machine code, where numba is installed: the same whole numbers several times as fast.

Optional, and never imported for work that is done before a compiler has started. Whatever is compiled has to
repeat numpy's own draws before it is used, so an audit gives the same bytes with and without it.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from audits.statistics import draws, philox_vectors

WORTHWHILE: Final = 1 << 29
"""Draws below which numpy is done before numba has been imported and has compiled, in a second or two."""
_TRIAL: Final = 487  # clusters: some steps of the machine code and part of one, no multiple of 4


@dataclass(frozen=True)
class Kernels:
    """`each(found, seed, stream, first)` and `of_class(found, classes, seed, stream, first)`.

    Both add the draws of replicates `first` on to `found`, a row a replicate. `each` counts clusters in
    uint8 and says in how many rows one passed 255, `of_class` counts classes in int64.
    """

    each: Callable[..., int]
    of_class: Callable[..., None]


def counts(
    kernels: Kernels, seed: int, stream: int, clusters: int, start: int, stop: int
) -> npt.NDArray[np.integer]:
    """As `draws.counts`, a byte a count where no count needs more."""
    draws.check(seed, stream, clusters, start, stop)
    found = np.zeros((stop - start, clusters), dtype=np.uint8)
    if kernels.each(found, *map(np.uint64, (seed, stream, start))):
        return draws.counts(seed, stream, clusters, start, stop)
    return found


def class_counts(
    kernels: Kernels,
    classes: npt.NDArray[np.uint16],
    number: int,
    seed: int,
    stream: int,
    start: int,
    stop: int,
) -> npt.NDArray[np.int64]:
    """As `draws.class_counts`."""
    draws.check(seed, stream, len(classes), start, stop)
    found = np.zeros((stop - start, number), dtype=np.int64)
    kernels.of_class(found, classes, *map(np.uint64, (seed, stream, start)))
    return found


@cache
def kernels() -> Kernels | None:
    """The compiled draws; None where numba is absent, switched off, or does not draw as numpy does."""
    if importlib.util.find_spec("numba") is None:
        return None
    try:
        numba = importlib.import_module("numba")
    except ImportError:  # a numba that does not go with this numpy
        return None
    if numba.config.DISABLE_JIT:
        return None
    made = _compile(numba)
    classes = np.arange(_TRIAL, dtype=np.uint16) % np.uint16(7)
    trial = (draws.SEED, draws.PERMUTATION_STREAM)
    same = np.array_equal(
        counts(made, *trial, _TRIAL, 5, 12), draws.counts(*trial, _TRIAL, 5, 12)
    ) and np.array_equal(
        class_counts(made, classes, 7, *trial, 5, 12), draws.class_counts(classes, 7, *trial, 5, 12)
    )
    return made if same else None


def _compile(numba: Any) -> Kernels:
    """The two counts around blocks of draws; in which order a replicate is drawn does not matter to them."""
    fill = philox_vectors.fill(numba)
    place = philox_vectors.places()
    many = len(place)
    u64 = np.uint64
    one, three, four, width = u64(1), u64(3), u64(4), u64(many // 4)

    @numba.njit("uint64(uint8[:, ::1], uint64, uint64, uint64)", nogil=True)
    def each(found, seed, stream, first):  # type: ignore[no-untyped-def]
        clusters = u64(found.shape[1])
        blocks = (clusters + three) // four
        drawn = np.empty(many, dtype=np.uint64)
        full = u64(0)
        for replicate in range(found.shape[0]):
            row = found[replicate]
            start = (first + u64(replicate)) * blocks + one  # numpy steps its counter before the first block
            for step in range(u64(0), blocks, width):
                fill(drawn.ctypes.data, start + u64(step), seed, stream, clusters)
                left = clusters - u64(step) * four
                if left >= u64(many):
                    for i in range(many):
                        row[drawn[i]] += 1
                else:
                    for i in range(many):
                        if place[i] < left:
                            row[drawn[i]] += 1
            counted = u64(0)
            for i in range(clusters):
                counted += u64(row[i])
            full += u64(counted != clusters)
        return full

    @numba.njit("void(int64[:, ::1], uint16[::1], uint64, uint64, uint64)", nogil=True)
    def of_class(found, classes, seed, stream, first):  # type: ignore[no-untyped-def]
        clusters = u64(len(classes))
        blocks = (clusters + three) // four
        drawn = np.empty(many, dtype=np.uint64)
        for replicate in range(found.shape[0]):
            row = found[replicate]
            start = (first + u64(replicate)) * blocks + one
            for step in range(u64(0), blocks, width):
                fill(drawn.ctypes.data, start + u64(step), seed, stream, clusters)
                left = clusters - u64(step) * four
                if left >= u64(many):
                    for i in range(many):
                        row[classes[drawn[i]]] += 1
                else:
                    for i in range(many):
                        if place[i] < left:
                            row[classes[drawn[i]]] += 1

    return Kernels(each, of_class)
