"""Integer arithmetic that never wraps, and quotients that are rounded once.

An `Integers` array is int64 where a proven bound allows it and an object array of Python integers where it
does not, so sums are the same in any order, batch, thread or engine. Sums over drawn clusters are products
of two matrices of small integers held in float64: every partial sum stays below 2^53, so it is exact
whatever order, fused or not, the linear algebra library adds in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[Any]
"""int64, or object holding Python integers."""
Float = npt.NDArray[np.float64]

EXACT_FLOAT: Final = 1 << 53
_INT64: Final = 1 << 63
_SLICE: Final = 1 << 18  # multiplications in one call: OpenBLAS shares out more than that
_THINNEST: Final = 32  # clusters of a slice, so that the calls themselves cost little
_SHORTEST: Final = 64  # replicates of a slice
_WIDENED: Final = 1 << 14  # counts widened at a time: in the cache, and in memory that is used again


def bound(x: Integers) -> int:
    """The largest absolute value, 0 for an empty array, as a Python integer."""
    return max(-int(x.min()), int(x.max()), 0) if x.size else 0


def integers(x: npt.ArrayLike) -> Integers:
    """The same whole numbers as int64, or as Python integers where int64 is too small; floats are refused."""
    array = np.asarray(x)
    if array.size == 0:
        return np.zeros(array.shape, dtype=np.int64)
    if array.dtype.kind == "b" or (array.dtype.kind in "iu" and array.dtype != np.uint64):
        return array.astype(np.int64, copy=False)
    if array.dtype.kind not in "uO":
        raise ValueError(f"whole numbers are expected, got {array.dtype}")
    wide = array.astype(object)
    return wide.astype(np.int64) if bound(wide) < _INT64 else wide


def room(x: Integers, limit: int) -> Integers:
    """`x` in a form that stays right up to `limit` in size: int64 below 2^63, else Python integers."""
    return x if limit < _INT64 else x.astype(object)


def add(a: Integers, b: Integers) -> Integers:
    """a + b, elementwise."""
    limit = bound(a) + bound(b)
    return room(a, limit) + room(b, limit)


def times(a: Integers, b: Integers | int) -> Integers:
    """a * b, elementwise, with an array or an integer."""
    limit = bound(a) * (abs(b) if isinstance(b, int) else bound(b))
    return room(a, limit) * (b if isinstance(b, int) else room(b, limit))


def total(x: Integers) -> int:
    """The sum of all elements as a Python integer."""
    if x.dtype == object:
        return sum(x.ravel().tolist())
    if bound(x) * max(x.size, 1) < _INT64:
        return int(x.sum())
    # halves of 32 bits add up below 2^63 for any array that fits a memory
    return (int((x >> 32).sum()) << 32) + int((x & 0xFFFFFFFF).sum())


def dot(a: Integers, b: Integers) -> int:
    """The sum of a * b over all elements as a Python integer."""
    if bound(a) * bound(b) * len(a) < _INT64:
        return int(np.dot(a, b))
    width = (62 - len(a).bit_length()) // 2  # so that digits times digits add up below 2^63
    first, second = limbs(a, width), limbs(b, width)
    return sum(
        int(np.dot(x, y)) << width * (i + j)
        for i, x in enumerate(first.parts)
        for j, y in enumerate(second.parts)
    )


def run_sums(x: Integers, starts: npt.NDArray[np.int64]) -> Integers:
    """Sums over the runs of `x` that begin at `starts` (ascending; no run is empty)."""
    if not len(starts):
        return np.zeros(0, dtype=np.int64)
    longest = int(np.diff(starts, append=len(x)).max())
    return np.asarray(np.add.reduceat(room(x, bound(x) * longest), starts))


@dataclass(frozen=True)
class Limbs:
    """Whole numbers cut into digits of `width` bits: x = sum over k of parts[k] * 2^(width * k)."""

    parts: tuple[npt.NDArray[np.int64], ...]
    width: int
    bound: int


def limbs(x: Integers, width: int) -> Limbs:
    """Cut into digits that are below 2^width in size; only the highest carries the sign."""
    size, rest, parts = bound(x), x, []
    left = size
    while left >= 1 << width:
        low = rest & ((1 << width) - 1)
        parts.append(low.astype(np.int64))
        rest = rest >> width
        left = (left >> width) + 1  # an arithmetic shift rounds down, so a negative part may be one larger
    parts.append(rest.astype(np.int64))
    return Limbs(tuple(parts), width, size)


def join(parts: Sequence[Integers], width: int, limit: int) -> Integers:
    """Put digits of any size together again; neither result nor partial result is above `limit` in size."""
    result = room(parts[-1], limit)
    for part in parts[-2::-1]:
        result = (result << width) + room(part, limit)
    return result


def product(counts: npt.NDArray[Any], matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """`counts` [b, C] times a matrix [C, k] of whole numbers, in its type, which must hold every sum.

    In slices too small for the linear algebra library to start threads of its own, which wait by spinning and
    take the processors from the threads that draw; and few enough counts for the cache as they are widened,
    in one place.
    """
    rows, columns = len(counts), matrix.shape[1]
    result = np.zeros((rows, columns), dtype=matrix.dtype)
    if not result.size or not len(matrix):
        return result
    some = min(rows, max(_WIDENED // len(matrix), _SHORTEST), max(_SLICE // (_THINNEST * columns), 1))
    step = max(min(_SLICE // (some * columns), _WIDENED // some), _THINNEST)
    room = np.empty(some * min(step, len(matrix)), dtype=matrix.dtype)
    for top in range(0, rows, some):
        for start in range(0, len(matrix), step):
            narrow, part = counts[top : top + some, start : start + step], matrix[start : start + step]
            wide = room[: narrow.size].reshape(narrow.shape)
            np.copyto(wide, narrow, casting="unsafe")
            result[top : top + some] += wide @ part
    return result


class SumTable:
    """Cluster sums of several row vectors, ready to be weighted by how often each cluster was drawn."""

    def __init__(self, columns: Sequence[Integers], clusters: int) -> None:
        """`columns`: cluster sums, Integers[C] each. A replicate's multiplicities add up to at most C."""
        self._width = 53 - int(clusters).bit_length()
        self._clusters = clusters
        self._cut = [limbs(column, self._width) for column in columns]
        flat = [part for column in self._cut for part in column.parts]
        self._matrix = (
            np.stack(flat, axis=1).astype(np.float64) if flat else np.zeros((clusters, 0), dtype=np.float64)
        )

    def weighted(self, counts: npt.NDArray[Any]) -> list[Integers]:
        """For each column the sums over clusters of count times cluster sum: Integers[b] each.

        `counts`: whole numbers [b, C] of any type, not negative, each row adding up to at most C.
        """
        products = product(counts, self._matrix).astype(np.int64)
        results, place = [], 0
        for column in self._cut:
            parts = [products[:, place + i] for i in range(len(column.parts))]
            # cutting rounds a negative number down, so a partial sum may exceed the sum by C * 2^width
            results.append(join(parts, self._width, (column.bound + (2 << self._width)) * self._clusters))
            place += len(parts)
        return results


@dataclass(frozen=True)
class Replicates:
    """Values of a statistic over replicates: float64[b], and where they are defined: bool[b]."""

    values: Float
    defined: npt.NDArray[np.bool_]


def concatenate(parts: Sequence[Replicates]) -> Replicates:
    """Runs of replicates put one after another."""
    return Replicates(np.concatenate([p.values for p in parts]), np.concatenate([p.defined for p in parts]))


def divide(numerator: Integers, denominator: Integers, scale: int = 1) -> Replicates:
    """numerator / (denominator * scale), each value rounded once, half to even; undefined where it is / 0.

    Denominators are not negative, `scale` is positive. When both numbers are below 2^53 they are exact as
    float64 and IEEE division rounds their quotient correctly; otherwise Python's int / int does. Powers of
    two are taken out of `scale` first and put back by an exact scaling.
    """
    defined = np.asarray(denominator != 0, dtype=np.bool_)
    shift = (scale & -scale).bit_length() - 1
    lower = times(np.where(defined, denominator, 1), scale >> shift)
    if bound(numerator) <= EXACT_FLOAT and bound(lower) <= EXACT_FLOAT:
        values = numerator.astype(np.float64) / lower.astype(np.float64)
    else:
        pairs = zip(numerator.tolist(), lower.tolist(), strict=True)
        values = np.array([a / b for a, b in pairs], dtype=np.float64)
    values = np.ldexp(values, -shift)
    values[~defined] = 0.0
    return Replicates(values, defined)


def rounded(x: Fraction) -> float:
    """The float64 nearest to a rational number, half to even."""
    return x.numerator / x.denominator
