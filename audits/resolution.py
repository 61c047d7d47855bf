"""How finely an audit can see: what clustering costs, which trajectory carries most, how many would do.

Planning figures at the spread that was measured; they are no evidence for or against anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from audits.statistics import clusters, intervals
from audits.statistics.cohort import Cohort
from audits.statistics.estimate import Estimate, Reason
from audits.statistics.vectors import Vector

Table = dict[str, Any]
STATUS = "planning figures, not evidence"
FIGURES = ("se_cr1", "design_effect", "row_ci95", "carries_most", "trajectories_to_resolve")
FOR_BAND = "trajectories_for_band"
ZERO_MEAN = "the_mean_is_zero"
OUTSIDE_BAND = "the_mean_is_not_inside_the_band"


def resolution(
    cohort: Cohort,
    vector: Vector,
    estimate: Estimate,
    trajectories: Sequence[str],
    *,
    of: str,
    band: float | None = None,
) -> Table:
    """The figures of one mean with its estimate; `trajectories` names the clusters of a cohort with rows.

    `row_ci95` is the t interval if transitions were independent, to hold against `ci95_t`. `carries_most`
    is the trajectory without which the mean moves farthest. With a declared `band` the estimate has its
    90 % intervals.
    """
    groups = cohort.clusters
    found: Table = {
        "se_cr1": clusters.cr1(cohort, vector),
        "design_effect": clusters.design_effect(cohort, vector),
        "row_ci95": _row_interval(vector, estimate),
        "carries_most": _carries_most(cohort, vector, estimate, trajectories),
        "trajectories_to_resolve": None,
    }
    spread = Reason.ONE_CLUSTER.value if groups < 2 else Reason.ZERO_DENOMINATOR.value
    why = dict.fromkeys(found, spread)
    if estimate.ci95 is not None and estimate.value is not None:
        found["trajectories_to_resolve"] = clusters.clusters_to_resolve(estimate.ci95, estimate.value, groups)
        why["trajectories_to_resolve"] = ZERO_MEAN
    elif estimate.reason is not None:
        why["trajectories_to_resolve"] = estimate.reason.value
    if band is not None:
        found[FOR_BAND], why[FOR_BAND] = None, spread
        if estimate.ci90 is not None and estimate.value is not None:
            found[FOR_BAND] = clusters.clusters_for_band(estimate.ci90, estimate.value, groups, band)
            why[FOR_BAND] = OUTSIDE_BAND
    return _stated(of, found, why)


def no_resolution(of: str, reason: Reason) -> Table:
    """The figures of a cohort that has none."""
    return _stated(of, dict.fromkeys(FIGURES), dict.fromkeys(FIGURES, reason.value))


def _stated(of: str, found: Table, why: dict[str, str]) -> Table:
    reasons = {name: why[name] for name, value in found.items() if value is None}
    return {"of": of, "status": STATUS} | found | ({"reasons": reasons} if reasons else {})


def _row_interval(vector: Vector, estimate: Estimate) -> list[float] | None:
    error = clusters.row_error(vector)
    if error is None or estimate.value is None:
        return None
    return list(intervals.student(estimate.value, error, len(vector), intervals.LEVEL95))


def _carries_most(
    cohort: Cohort, vector: Vector, estimate: Estimate, trajectories: Sequence[str]
) -> Table | None:
    """The first of the trajectories that, left out, moves the mean farthest, and the mean without it."""
    left, whole = clusters.leave_one_out(cohort, vector), estimate.value
    if left is None or whole is None:
        return None
    ends = ((left.min, left.min_without), (left.max, left.max_without))
    mean, place = max(ends, key=lambda end: (abs(end[0] - whole), -end[1]))
    return {"trajectory": trajectories[place], "mean_without": mean, "sign_kept": left.sign_kept}
