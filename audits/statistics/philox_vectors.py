"""Philox-4x64-10 on several counters at once, as LLVM instructions that numba puts into its loops.

One 64-bit product of the scalar kind is used up by each of ten dependent rounds, so a processor waits more
than it works. Here eight counters are the lanes of a vector and two such vectors are under way; a product is
put together of 32-bit halves, which every vector unit multiplies. Where a processor has narrower vectors
LLVM takes several for one.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

import numpy as np
import numpy.typing as npt

LANES: Final = 8  # counters in a vector
VECTORS: Final = 2  # under way at once
_ROUNDS: Final = 10
_MULTIPLIERS: Final = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_WEYL: Final = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_LOWER: Final = (1 << 32) - 1


def places() -> npt.NDArray[np.uint64]:
    """The place in the counter stream of each draw that `fill` writes: uint64[4 * LANES * VECTORS]."""
    counters = np.arange(LANES * VECTORS, dtype=np.uint64).reshape(VECTORS, 1, LANES)
    words = np.arange(4, dtype=np.uint64)[:, None]
    return (np.uint64(4) * counters + words).ravel()


def fill(numba: Any) -> Any:
    """`fill(address, counter, seed, stream, clusters)`: writes the clusters that the next counters draw."""
    ir = importlib.import_module("llvmlite.ir")
    extending = importlib.import_module("numba.extending")

    @extending.intrinsic
    def made(_context, address, counter, seed, stream, clusters):  # type: ignore[no-untyped-def]
        def code(backend, builder, _signature, values):  # type: ignore[no-untyped-def]
            _Vectors(ir, builder).fill(*values)
            return backend.get_dummy_value()

        return numba.types.void(address, counter, seed, stream, clusters), code

    return made


class _Vectors:
    """Writes instructions on vectors of 64-bit integers."""

    def __init__(self, ir: Any, builder: Any) -> None:
        self._ir, self._do = ir, builder
        self._word, self._short = ir.IntType(64), ir.IntType(32)
        self._type = ir.VectorType(self._word, LANES)
        self._lower, self._half = self._same(_LOWER), self._same(32)

    def fill(self, address: Any, counter: Any, seed: Any, stream: Any, clusters: Any) -> None:
        """The clusters that LANES * VECTORS counters draw, 4 each, vector by vector and word by word."""
        do, zero = self._do, self._same(0)
        states = []
        for first in range(0, LANES * VECTORS, LANES):
            lanes = self._ir.Constant(self._type, [*range(first, first + LANES)])
            states.append((do.add(self._spread(counter), lanes), zero, zero, zero))
        for number in range(_ROUNDS):
            keys = [
                self._spread(do.add(key, self._ir.Constant(self._word, step * number % (1 << 64))))
                for key, step in zip((seed, stream), _WEYL, strict=True)
            ]
            states = [self._round(state, keys) for state in states]
        target, wide = do.inttoptr(address, self._type.as_pointer()), self._spread(clusters)
        for place, word in enumerate(word for state in states for word in state):
            drawn = self._drawn(word, wide)
            do.store(drawn, do.gep(target, [self._ir.Constant(self._short, place)]), align=8)

    def _round(self, state: tuple[Any, ...], keys: list[Any]) -> tuple[Any, ...]:
        do = self._do
        high0, low0 = self._product(state[0], _MULTIPLIERS[0])
        high1, low1 = self._product(state[2], _MULTIPLIERS[1])
        return (
            do.xor(do.xor(high1, state[1]), keys[0]),
            low1,
            do.xor(do.xor(high0, state[3]), keys[1]),
            low0,
        )

    def _product(self, x: Any, by: int) -> tuple[Any, Any]:
        """The upper and lower 64 bits of x * by, from four products of halves."""
        do, lower, half = self._do, self._lower, self._half
        low, high = do.and_(x, lower), do.lshr(x, half)
        by_low, by_high = self._same(by & _LOWER), self._same(by >> 32)
        least = do.mul(low, by_low)
        middle = do.add(do.mul(high, by_low), do.lshr(least, half))
        other = do.add(do.mul(low, by_high), do.and_(middle, lower))
        most = do.add(do.mul(high, by_high), do.lshr(middle, half))
        return (
            do.add(most, do.lshr(other, half)),
            do.or_(do.shl(other, half), do.and_(least, lower)),
        )

    def _drawn(self, u: Any, clusters: Any) -> Any:
        """floor(u * clusters / 2^64), with fewer than 2^31 clusters."""
        do, half = self._do, self._half
        low = do.lshr(do.mul(do.and_(u, self._lower), clusters), half)
        return do.lshr(do.add(do.mul(do.lshr(u, half), clusters), low), half)

    def _same(self, number: int) -> Any:
        return self._ir.Constant(self._type, [number] * LANES)

    def _spread(self, value: Any) -> Any:
        """A vector that holds the value in each lane."""
        nothing = self._ir.Constant(self._type, self._ir.Undefined)
        first = self._do.insert_element(nothing, value, self._ir.Constant(self._short, 0))
        mask = self._ir.Constant(self._ir.VectorType(self._short, LANES), [0] * LANES)
        return self._do.shuffle_vector(first, nothing, mask)
