"""Signs of two gains of the same transition: the 3 x 3 table, flips, and the signs of the interaction.

Signs are compared, never multiplied gains, and a gain of 0 on the grid has no sign.
Source: STATISTICS transport row 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

import numpy as np
import numpy.typing as npt

from audits.statistics import exact
from audits.statistics.moments import Mean, share
from audits.statistics.vectors import Vector


@dataclass(frozen=True)
class FlipTable:
    """`cells[i][j]`: transitions with sign i of ref and j of alt, in the order -, 0, +."""

    cells: tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]

    @property
    def pos_to_neg(self) -> int:
        return self.cells[2][0]

    @property
    def neg_to_pos(self) -> int:
        return self.cells[0][2]

    @property
    def both_pos(self) -> int:
        return self.cells[2][2]

    @property
    def both_neg(self) -> int:
        return self.cells[0][0]

    @property
    def strict_flips(self) -> int:
        return self.pos_to_neg + self.neg_to_pos

    @property
    def total(self) -> int:
        return sum(map(sum, self.cells))

    @property
    def zero_involved(self) -> int:
        return self.total - self.strict_flips - self.both_pos - self.both_neg

    def as_dict(self) -> dict[str, int]:
        """The five counts of a record; they add up to the transitions."""
        names = ("pos_to_neg", "neg_to_pos", "both_pos", "both_neg", "zero_involved")
        return {name: getattr(self, name) for name in names}


def table(ref: Vector, alt: Vector) -> FlipTable:
    """The sign table of two gain vectors."""
    place = (ref.signs + 1) * 3 + (alt.signs + 1)
    a, b, c, d, e, f, g, h, i = np.bincount(place, minlength=9).tolist()
    return FlipTable(((a, b, c), (d, e, f), (g, h, i)))


def strict(ref: Vector, alt: Vector) -> npt.NDArray[np.bool_]:
    """Where the signs are strictly opposite: bool[n]."""
    first, second = ref.signs, alt.signs
    return np.asarray((first != second) & (first != 0) & (second != 0))


def flip_share(ref: Vector, alt: Vector) -> Mean:
    """The share of transitions with strictly opposite signs."""
    return share(strict(ref, alt))


def direction_difference(ref: Vector, alt: Vector) -> Mean:
    """The share of (+, -) minus the share of (-, +)."""
    direction = np.where(strict(ref, alt), ref.signs, 0).astype(np.int64)
    return Mean(Vector(direction, 1))


@dataclass(frozen=True)
class FlipQuartile:
    """Transitions whose smaller gain size lies in one quartile, up to `upto`, and their strict flips."""

    quartile: int
    upto: float
    transitions: int
    pos_to_neg: int
    neg_to_pos: int


def by_quartile(ref: Vector, alt: Vector) -> tuple[FlipQuartile, ...]:
    """Flips by quartile of min(abs(G_ref), abs(G_alt)); empty for no rows.

    Quartile q ends at the smallest size that at least q/4 of the transitions do not exceed, so equal sizes
    share a quartile (one may stay empty) and the order of rows does not matter.
    """
    rows = len(ref)
    if rows == 0:
        return ()
    common = lcm(ref.denominator, alt.denominator)
    own = exact.times(np.abs(ref.numerators), common // ref.denominator)
    other = exact.times(np.abs(alt.numerators), common // alt.denominator)
    size = np.where(own <= other, own, other)
    ordered = np.sort(size)
    cuts = [ordered[-(-rows * q // 4) - 1] for q in (1, 2, 3, 4)]
    flipped = np.where(strict(ref, alt), ref.signs, 0)
    result, below = [], np.zeros(rows, dtype=np.bool_)
    for quartile, cut in enumerate(cuts, 1):
        inside = (size <= cut) & ~below
        below |= inside
        result.append(
            FlipQuartile(
                quartile=quartile,
                upto=int(cut) / common,
                transitions=int(np.count_nonzero(inside)),
                pos_to_neg=int(np.count_nonzero(inside & (flipped > 0))),
                neg_to_pos=int(np.count_nonzero(inside & (flipped < 0))),
            )
        )
    return tuple(result)


@dataclass(frozen=True)
class Signs:
    """How many transitions have a negative, a zero and a positive value."""

    negative: int
    zero: int
    positive: int


def signs(vector: Vector) -> Signs:
    """The signs of a vector counted."""
    negative, zero, positive = np.bincount(vector.signs + 1, minlength=3).tolist()
    return Signs(negative, zero, positive)
