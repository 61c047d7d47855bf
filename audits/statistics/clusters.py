"""What single clusters do to a mean: leaving each out, the CR1 error, and how many a question would need.

Source: STATISTICS transport rows 7, 23 and 27.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt

import numpy as np

from audits.statistics import exact
from audits.statistics.cohort import Cohort
from audits.statistics.estimate import Interval
from audits.statistics.vectors import Vector


@dataclass(frozen=True)
class LeaveOneOut:
    """The smallest and largest mean, the cluster left out for each, and whether no sign changes."""

    min: float
    min_without: int
    max: float
    max_without: int
    sign_kept: bool


def leave_one_out(cohort: Cohort, vector: Vector) -> LeaveOneOut | None:
    """The range of the mean without each cluster in turn; None below two clusters.

    Of several clusters with the same effect the first is named. The sign is kept when every such mean has
    the strict sign of the whole, or when all of them are 0 as it is.
    """
    if cohort.clusters < 2:
        return None
    whole = exact.total(vector.numerators)
    rest = exact.add(
        np.full(cohort.clusters, whole, dtype=np.int64 if abs(whole) < 1 << 62 else object),
        exact.times(cohort.sums(vector.numerators), -1),
    )
    means = exact.divide(rest, cohort.rows - cohort.sizes, vector.denominator).values
    low, high = int(np.argmin(means)), int(np.argmax(means))
    sign = (whole > 0) - (whole < 0)
    return LeaveOneOut(
        min=float(means[low]),
        min_without=low,
        max=float(means[high]),
        max_without=high,
        sign_kept=bool(np.all(np.sign(rest) == sign)),
    )


def squared_error(cohort: Cohort, vector: Vector) -> Fraction | None:
    """CR1 squared, exactly: C/(C-1) sum_c (sum_{i in c} (x_i - m))^2 / n^2; None below two clusters."""
    if cohort.clusters < 2:
        return None
    rows, groups = cohort.rows, cohort.clusters
    whole = exact.total(vector.numerators)
    sums, sizes = cohort.sums(vector.numerators), cohort.sizes
    # (n s_c - n_c S)^2, multiplied out so that no cluster needs an integer of its own
    squares = (
        rows**2 * exact.dot(sums, sums)
        - 2 * rows * whole * exact.dot(sums, sizes)
        + whole**2 * exact.dot(sizes, sizes)
    )
    return Fraction(groups * squares, (groups - 1) * rows**4 * vector.denominator**2)


def cr1(cohort: Cohort, vector: Vector) -> float | None:
    """The CR1 standard error of the mean over rows; None below two clusters."""
    squared = squared_error(cohort, vector)
    return None if squared is None else sqrt(exact.rounded(squared))


def _squared_row_error(vector: Vector) -> Fraction:
    """SD^2 / n with ddof 1, exactly; at least two rows."""
    values, rows = vector.numerators, len(vector)
    whole = exact.total(values)
    spread = rows * exact.dot(values, values) - whole * whole
    return Fraction(spread, rows * (rows - 1) * rows * vector.denominator**2)


def row_error(vector: Vector) -> float | None:
    """SD / sqrt n, ddof 1: the standard error if every row were its own cluster; None below two rows."""
    return sqrt(exact.rounded(_squared_row_error(vector))) if len(vector) > 1 else None


def design_effect(cohort: Cohort, vector: Vector) -> float | None:
    """(CR1 / (SD / sqrt n))^2, SD with ddof 1: what clustering does to the variance of the mean.

    None below two clusters or where all rows are equal.
    """
    squared = squared_error(cohort, vector)
    if squared is None:
        return None
    iid = _squared_row_error(vector)
    return exact.rounded(squared / iid) if iid else None


def clusters_to_resolve(interval: Interval, value: float, clusters: int) -> int | None:
    """ceil(C (half-width / |m|)^2): clusters that would bring the interval off 0 at the present spread.

    A planning figure; None for a mean of exactly 0.
    """
    if value == 0:
        return None
    half = (Fraction(interval[1]) - Fraction(interval[0])) / 2
    return ceil(clusters * (half / abs(Fraction(value))) ** 2)


def clusters_for_band(interval: Interval, value: float, clusters: int, band: float) -> int | None:
    """ceil(C (half-width / (d - |m|))^2): clusters that would bring the interval inside (-d, d).

    A planning figure; None where the mean itself is not inside the band.
    """
    distance = Fraction(band) - abs(Fraction(value))
    if distance <= 0:
        return None
    half = (Fraction(interval[1]) - Fraction(interval[0])) / 2
    return ceil(clusters * (half / distance) ** 2)
