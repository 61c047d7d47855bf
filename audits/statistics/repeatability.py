"""Agreement of one channel with itself over acquisitions: within SD, ICC(1) and the share of steady signs.

With x_ia the gain of transition i in acquisition a, k of them: MSW = mean over i of the variance over a,
MSB = k times the variance over i of the mean over a (both ddof 1).
Sources: STATISTICS transport row 22; Shrout & Fleiss (1979), case 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from audits.statistics import exact
from audits.statistics.cohort import Batch, Cohort, Progress, Statistic
from audits.statistics.estimate import Estimate, Reason
from audits.statistics.moments import share
from audits.statistics.vectors import Vector


@dataclass(frozen=True)
class Repeatability:
    """The three numbers of one channel; none of them is evidence of transport."""

    within_sd: Estimate
    icc1: Estimate
    sign_agreement: Estimate
    acquisitions: int


def repeatability(
    cohort: Cohort, gains: Sequence[Vector], *, batch: int | None = None, progress: Progress | None = None
) -> Repeatability:
    """The repeatability of gains, one vector per acquisition, over the transitions that have all of them.

    Undefined with a reason: fewer than two acquisitions; icc1 also where nothing varies.
    """
    if len({gain.denominator for gain in gains}) > 1:
        raise ValueError("the gains of one channel have one denominator")
    if len(gains) < 2:
        none = Estimate(None, cohort.rows, cohort.clusters, reason=Reason.ONE_ACQUISITION)
        return Repeatability(none, none, none, len(gains))
    squares = _Squares(gains)
    statistics: dict[str, Statistic] = {
        "within_sd": _WithinSd(squares),
        "icc1": _Icc1(squares),
        "sign_agreement": share(steady(gains)),
    }
    found = cohort.evaluate(statistics, batch=batch, progress=progress)
    return Repeatability(found["within_sd"], found["icc1"], found["sign_agreement"], len(gains))


def steady(gains: Sequence[Vector]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Where all acquisitions give one strict sign: bool[n]."""
    first = gains[0].signs
    return np.asarray(np.logical_and.reduce([gain.signs == first for gain in gains]) & (first != 0))


class _Squares:
    """Per transition: k Σ x^2 - (Σ x)^2, Σ x and (Σ x)^2 over the k acquisitions, as integers."""

    def __init__(self, gains: Sequence[Vector]) -> None:
        self.k = len(gains)
        self.denominator = gains[0].denominator
        self.sum: exact.Integers = np.zeros(len(gains[0]), dtype=np.int64)
        squares: exact.Integers = self.sum
        for gain in gains:
            self.sum = exact.add(self.sum, gain.numerators)
            squares = exact.add(squares, exact.times(gain.numerators, gain.numerators))
        self.squared = exact.times(self.sum, self.sum)
        self.within = exact.add(exact.times(squares, self.k), exact.times(self.squared, -1))


@dataclass(frozen=True, eq=False)
class _WithinSd(Statistic):
    """sqrt(MSW)."""

    squares: _Squares
    signed: bool = False

    def columns(self) -> Sequence[exact.Integers]:
        return (self.squares.within,)

    def values(self, batch: Batch, sums: Sequence[exact.Integers]) -> exact.Replicates:
        k = self.squares.k
        within = exact.divide(sums[0], batch.rows, k * (k - 1) * self.squares.denominator**2)
        return exact.Replicates(np.sqrt(within.values), within.defined)


@dataclass(frozen=True, eq=False)
class _Icc1(Statistic):
    """(MSB - MSW) / (MSB + (k-1) MSW)."""

    squares: _Squares
    signed: bool = False
    undefined: Reason = Reason.ZERO_DENOMINATOR

    def columns(self) -> Sequence[exact.Integers]:
        return (self.squares.within, self.squares.sum, self.squares.squared)

    def values(self, batch: Batch, sums: Sequence[exact.Integers]) -> exact.Replicates:
        within, plain, squared = sums
        rows, k = batch.rows, self.squares.k
        # both mean squares times n (n-1) k (k-1): the common factor cancels
        spread = exact.add(exact.times(squared, rows), exact.times(exact.times(plain, plain), -1))
        between = exact.times(spread, k - 1)
        error = exact.times(within, rows - 1)
        numerator = exact.add(between, exact.times(error, -1))
        return exact.divide(numerator, exact.add(between, exact.times(error, k - 1)))
