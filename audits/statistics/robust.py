"""How far the mean moves when any one trajectory is left out.

Source: STATISTICS transport row 7. A range, never an interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audits.statistics import exact
from audits.statistics.cohort import Cohort
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
