"""A rational number per transition: gains G, interactions Ω, diagonals, and any contrast of them.

Margins arrive as integers on the 2^-40 grid; sums over layouts and acquisitions stay integers and the
number of cells goes into the denominator, so a contrast of vectors is exact and 0 means 0.
Sources: STATISTICS transport rows 2, 3, 10, 11, 16, 17.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
import numpy.typing as npt

from audits.statistics import exact
from audits.statistics.kernel import GRID_BITS

BEFORE, AFTER = 0, 1


@dataclass(frozen=True)
class Vector:
    """One rational per row: `numerators` (Integers[n]) over one positive `denominator`."""

    numerators: exact.Integers
    denominator: int

    def __len__(self) -> int:
        return len(self.numerators)

    @property
    def signs(self) -> npt.NDArray[np.int8]:
        """-1, 0 or 1 per row, exactly."""
        return np.sign(self.numerators).astype(np.int8)

    @property
    def total(self) -> Fraction:
        """The exact sum over rows."""
        return Fraction(exact.total(self.numerators), self.denominator)

    @property
    def mean(self) -> Fraction | None:
        """The exact mean over rows; None for no rows."""
        return self.total / len(self) if len(self) else None

    def take(self, rows: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> Vector:
        """The same numbers for some of the rows (a mask or places)."""
        return Vector(self.numerators[rows], self.denominator)

    def floats(self) -> npt.NDArray[np.float64]:
        """Each rational rounded once, for drawing and showing; no statistic is computed from them."""
        ones = np.ones(len(self), dtype=np.int64)
        return exact.divide(self.numerators, ones, self.denominator).values


def combine(*terms: tuple[int | Fraction, Vector]) -> Vector:
    """The linear combination sum of coefficient * vector over one common denominator."""
    if not terms:
        raise ValueError("a combination needs at least one term")
    if len({len(vector) for _, vector in terms}) != 1:
        raise ValueError("vectors of one combination have the same rows")
    weights = [Fraction(coefficient) / vector.denominator for coefficient, vector in terms]
    common = lcm(*(weight.denominator for weight in weights))
    result = exact.times(terms[0][1].numerators, int(weights[0] * common))
    for weight, (_, vector) in zip(weights[1:], terms[1:], strict=True):
        result = exact.add(result, exact.times(vector.numerators, int(weight * common)))
    return Vector(result, common)


def cells(margins: npt.NDArray[np.int64]) -> Vector:
    """The mean margin over the last two axes, layouts and acquisitions: int64[n, L, A] in grid units."""
    rows, layouts, acquisitions = margins.shape
    count = layouts * acquisitions
    if count == 0:
        raise ValueError("a mean margin needs at least one layout and one acquisition")
    wide = exact.room(margins, exact.bound(margins) * count)
    return Vector(wide.reshape(rows, count).sum(axis=1), count << GRID_BITS)


def corner(margins: npt.NDArray[np.int64], endpoint: int) -> Vector:
    """The mean margin at one endpoint (0 before, 1 after) of margins int64[n, 2, L, A]."""
    return cells(margins[:, endpoint])


def gain(margins: npt.NDArray[np.int64]) -> Vector:
    """G: the mean over layouts and acquisitions of F(after) - F(before); margins int64[n, 2, L, A]."""
    return combine((1, corner(margins, AFTER)), (-1, corner(margins, BEFORE)))


def layout_gains(margins: npt.NDArray[np.int64]) -> tuple[Vector, ...]:
    """G of each layout alone; their mean is G exactly."""
    return tuple(gain(margins[:, :, place : place + 1]) for place in range(margins.shape[2]))


def acquisition_gains(margins: npt.NDArray[np.int64]) -> tuple[Vector, ...]:
    """G of each acquisition alone, over all layouts; their mean is G exactly."""
    return tuple(gain(margins[:, :, :, place : place + 1]) for place in range(margins.shape[3]))


def interaction(ref: Vector, alt: Vector) -> Vector:
    """Ω = G_alt - G_ref."""
    return combine((1, alt), (-1, ref))


@dataclass(frozen=True)
class Diagonal:
    """F_alt(after) - F_ref(before) and its three parts, which add up to it exactly."""

    diagonal: Vector
    reference_gain: Vector
    baseline_shift: Vector
    interaction: Vector


def diagonal(ref: npt.NDArray[np.int64], alt: npt.NDArray[np.int64]) -> Diagonal:
    """The change of channel and endpoint at once, split; margins int64[n, 2, L, A] of each arm."""
    own = gain(ref)
    return Diagonal(
        diagonal=combine((1, corner(alt, AFTER)), (-1, corner(ref, BEFORE))),
        reference_gain=own,
        baseline_shift=combine((1, corner(alt, BEFORE)), (-1, corner(ref, BEFORE))),
        interaction=interaction(own, gain(alt)),
    )


@dataclass(frozen=True)
class TwoFactor:
    """A face of endpoint and view: the Shapley shares, both paths of each, and the whole change."""

    state: Vector
    view: Vector
    diagonal: Vector
    state_view_before: Vector
    state_view_after: Vector
    view_state_before: Vector
    view_state_after: Vector


def shapley(f00: Vector, f01: Vector, f10: Vector, f11: Vector) -> TwoFactor:
    """Split F11 - F00 between state and view; first index: the endpoint, second: whose view is shown.

    state = [(F10 - F00) + (F11 - F01)]/2, view = [(F01 - F00) + (F11 - F10)]/2.
    """
    paths = [
        combine((1, later), (-1, earlier))
        for later, earlier in ((f10, f00), (f11, f01), (f01, f00), (f11, f10))
    ]
    half = Fraction(1, 2)
    return TwoFactor(
        combine((half, paths[0]), (half, paths[1])),
        combine((half, paths[2]), (half, paths[3])),
        combine((1, f11), (-1, f00)),
        *paths,
    )


def mean_of(vectors: Sequence[Vector]) -> Vector:
    """The mean of several vectors, row by row."""
    return combine(*((Fraction(1, len(vectors)), vector) for vector in vectors))
