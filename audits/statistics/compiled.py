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

from audits.statistics import draws

WORTHWHILE: Final = 1 << 29
"""Draws below which numpy is done before numba has been imported and has compiled, in a second or two."""
_TRIAL: Final = 103  # clusters, no multiple of 4


@dataclass(frozen=True)
class Kernels:
    """`each(found, seed, stream, first, wide)` and `of_class(found, classes, seed, stream, first)`.

    Both add the draws of replicates `first` on to `found`, a row a replicate. `each` counts clusters in
    uint8 and says how often a count passed 255, `of_class` counts classes in int64.
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
    """Philox-4x64-10 and the choice of a cluster, both by the upper half of a 128-bit product."""
    high = _upper_half(numba)
    u64 = np.uint64
    multipliers = u64(0xD2E7470EE14C6C93), u64(0xCA5A826395121157)
    weyl = u64(0x9E3779B97F4A7C15), u64(0xBB67AE8584CAA73B)
    first_multiplier, second_multiplier = multipliers
    first_weyl, second_weyl = weyl
    zero, one, three, four, byte = u64(0), u64(1), u64(3), u64(4), u64(8)

    @numba.njit(inline="always")
    def block(counter, a, b):  # type: ignore[no-untyped-def]
        x0, x1, x2, x3 = counter, zero, zero, zero
        for _ in range(10):
            high0, low0 = high(first_multiplier, x0), first_multiplier * x0
            high1, low1 = high(second_multiplier, x2), second_multiplier * x2
            x0, x1, x2, x3 = high1 ^ x1 ^ a, low1, high0 ^ x3 ^ b, low0
            a += first_weyl
            b += second_weyl
        return x0, x1, x2, x3

    @numba.njit("uint64(uint8[:, ::1], uint64, uint64, uint64)", nogil=True)
    def each(found, seed, stream, first):  # type: ignore[no-untyped-def]
        clusters = u64(found.shape[1])
        blocks = (clusters + three) // four
        full = zero
        for place in range(found.shape[0]):
            row = found[place]
            start = (first + u64(place)) * blocks + one  # numpy steps its counter before the first block
            left = clusters
            for step in range(blocks):
                for u in block(start + u64(step), seed, stream):
                    if left > zero:
                        drawn = high(u, clusters)
                        value = u64(row[drawn]) + one
                        row[drawn] = value
                        full += value >> byte
                        left -= one
        return full

    @numba.njit("void(int64[:, ::1], uint16[::1], uint64, uint64, uint64)", nogil=True)
    def of_class(found, classes, seed, stream, first):  # type: ignore[no-untyped-def]
        clusters = u64(len(classes))
        blocks = (clusters + three) // four
        for place in range(found.shape[0]):
            row = found[place]
            start = (first + u64(place)) * blocks + one
            left = clusters
            for step in range(blocks):
                for u in block(start + u64(step), seed, stream):
                    if left > zero:
                        row[classes[high(u, clusters)]] += 1
                        left -= one

    return Kernels(each, of_class)


def _upper_half(numba: Any) -> Any:
    """floor(a*b / 2^64) of two uint64, one instruction on a 64-bit processor."""
    ir = importlib.import_module("llvmlite.ir")
    extending = importlib.import_module("numba.extending")
    u64 = numba.types.uint64

    @extending.intrinsic
    def high(_context, a, b):  # type: ignore[no-untyped-def]
        def code(_backend, builder, _signature, values):  # type: ignore[no-untyped-def]
            wide = ir.IntType(128)
            product = builder.mul(*(builder.zext(value, wide) for value in values))
            return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

        return u64(u64, u64), code

    return high
