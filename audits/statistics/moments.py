"""Means over transitions, shares, and means under other weights of the target types.

Source: STATISTICS transport rows 5, 8 and 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Final

import numpy as np
import numpy.typing as npt

from audits.statistics import clusters, exact
from audits.statistics.cohort import Batch, Cohort, Statistic
from audits.statistics.estimate import Reason
from audits.statistics.intervals import FEWEST_CLUSTERS
from audits.statistics.vectors import Vector

MOST_TYPES: Final = 20
"""With more target types than this, equal-target weights are not computed."""


@dataclass(frozen=True, eq=False)
class Mean(Statistic):
    """The mean over transitions: in a replicate, the sum over the drawn rows by their number."""

    vector: Vector
    signed: bool = True

    def columns(self) -> Sequence[exact.Integers]:
        return (self.vector.numerators,)

    def values(self, batch: Batch, sums: Sequence[exact.Integers]) -> exact.Replicates:
        return exact.divide(sums[0], batch.rows, self.vector.denominator)

    def standard_error(self, cohort: Cohort) -> float | None:
        return clusters.cr1(cohort, self.vector)


def share(mask: npt.NDArray[np.bool_]) -> Mean:
    """The share of rows where the mask holds; a rate, so it has no verdict."""
    return Mean(Vector(mask.astype(np.int64), 1), signed=False)


@dataclass(frozen=True, eq=False)
class Types:
    """Target types of the rows: `codes` int32[n] into `names`, which may hold declared types without rows."""

    codes: npt.NDArray[np.int32]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.codes) and not (int(self.codes.min()) >= 0 and int(self.codes.max()) < len(self.names)):
            raise ValueError(f"type codes lie between 0 and {len(self.names) - 1}")

    @cached_property
    def members(self) -> tuple[npt.NDArray[np.int64], ...]:
        """For each type 1 where a row is of it, else 0: int64[n] each."""
        return tuple((self.codes == code).astype(np.int64) for code in range(len(self.names)))

    @property
    def too_many(self) -> bool:
        """Whether there are more types than equal-target weights are computed for."""
        return len(self.names) > MOST_TYPES


@dataclass(frozen=True)
class TypeCount:
    """How many transitions and clusters stand behind one target type; `few` below 10 clusters."""

    name: str
    transitions: int
    clusters: int
    few: bool


def type_counts(cohort: Cohort, types: Types) -> tuple[TypeCount, ...]:
    """The rows and clusters of every type, in the order of their names."""
    rows = []
    for name, member in zip(types.names, types.members, strict=True):
        groups = int(np.count_nonzero(cohort.sums(member)))
        rows.append(TypeCount(name, int(member.sum()), groups, groups < FEWEST_CLUSTERS))
    return tuple(rows)


class TypeMean(Statistic):
    """The mean over target types of the mean over the transitions of each: sum_t w_t mean_t, with sum w = 1.

    Equal weights unless `weights` gives one per type, not negative and not all 0. A type of weight 0 may be
    empty; a replicate in which another one is empty is undefined.
    """

    undefined = Reason.EMPTY_TYPE

    def __init__(self, vector: Vector, types: Types, weights: Sequence[Fraction | int] | None = None) -> None:
        given = [Fraction(w) for w in weights] if weights is not None else [Fraction(1)] * len(types.names)
        if len(given) != len(types.names) or (given and (min(given) < 0 or not any(given))):
            raise ValueError("weights are one number per type, not negative, not all zero")
        common = lcm(*(w.denominator for w in given))
        self._weights = [int(w * common) for w in given]
        self._denominator = vector.denominator * max(sum(self._weights), 1)
        used = [i for i, w in enumerate(self._weights) if w]
        self._weights = [self._weights[i] for i in used]
        self._members = [types.members[i] for i in used]
        self._parts = [np.where(member != 0, vector.numerators, 0) for member in self._members]

    def columns(self) -> Sequence[exact.Integers]:
        return (*self._parts, *self._members)

    def values(self, batch: Batch, sums: Sequence[exact.Integers]) -> exact.Replicates:
        types = len(self._parts)
        numerator: exact.Integers = np.zeros(len(batch), dtype=np.int64)
        denominator: exact.Integers = np.ones(len(batch), dtype=np.int64)
        for weight, value, count in zip(self._weights, sums[:types], sums[types:], strict=True):
            # a/b + w s/n = (a n + w s b) / (b n); an empty type makes the denominator 0 for good
            numerator = exact.add(
                exact.times(numerator, count), exact.times(exact.times(value, weight), denominator)
            )
            denominator = exact.times(denominator, count)
        return exact.divide(numerator, denominator, self._denominator)
