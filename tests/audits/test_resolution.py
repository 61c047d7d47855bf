"""Planning figures: what clustering costs, who carries most, and how many trajectories would do."""

from __future__ import annotations

from math import ceil, sqrt

import numpy as np
import pytest
from scipy import stats

from audits.resolution import no_resolution, resolution
from audits.statistics import clusters
from audits.statistics.cohort import Cohort
from audits.statistics.estimate import Reason
from audits.statistics.moments import Mean
from audits.statistics.vectors import Vector

ONE = 1 << 40


def setting(values: list[float], groups: int) -> tuple[Cohort, Vector, list[str]]:
    """Rows dealt out to trajectories in turn."""
    cluster = np.arange(len(values), dtype=np.int32) % groups
    cohort = Cohort(cluster, groups, resamples=400)
    return (
        cohort,
        Vector(np.rint(np.array(values) * ONE).astype(np.int64), ONE),
        [f"t{i}" for i in range(groups)],
    )


def varied(rows: int = 60) -> list[float]:
    return [0.25 + ((i * 7) % 11 - 5) / 8 for i in range(rows)]


def test_the_row_interval_is_students_on_rows_taken_as_independent() -> None:
    cohort, vector, names = setting(varied(), 12)
    estimate = cohort.evaluate({"m": Mean(vector)})["m"]
    found = resolution(cohort, vector, estimate, names, of="m")
    x = vector.floats()
    want = stats.t.interval(0.95, 59, loc=x.mean(), scale=x.std(ddof=1) / sqrt(60))
    assert found["row_ci95"] == pytest.approx(want, rel=1e-9)
    assert clusters.row_error(vector) == pytest.approx(x.std(ddof=1) / sqrt(60), rel=1e-12)
    assert found["design_effect"] == pytest.approx((found["se_cr1"] / clusters.row_error(vector)) ** 2)


def test_the_trajectory_that_carries_most_moves_the_mean_farthest() -> None:
    values = [0.5] * 48
    for place in range(5, 48, 12):
        values[place] = -4.0
    cohort, vector, names = setting(values, 12)
    estimate = cohort.evaluate({"m": Mean(vector)})["m"]
    carries = resolution(cohort, vector, estimate, names, of="m")["carries_most"]
    assert carries == {"trajectory": "t5", "mean_without": 0.5, "sign_kept": True}


def test_more_trajectories_are_planned_from_the_measured_spread() -> None:
    cohort, vector, names = setting(varied(), 12)
    estimate = cohort.evaluate({"m": Mean(vector)}, bands={"m": 1.0})["m"]
    found = resolution(cohort, vector, estimate, names, of="m", band=1.0)
    assert estimate.ci95 is not None
    assert estimate.ci90 is not None
    half = (estimate.ci95[1] - estimate.ci95[0]) / 2
    assert found["trajectories_to_resolve"] == ceil(12 * (half / abs(estimate.value or 0)) ** 2)
    half = (estimate.ci90[1] - estimate.ci90[0]) / 2
    assert found["trajectories_for_band"] == ceil(12 * (half / (1.0 - abs(estimate.value or 0))) ** 2)
    assert found["status"] == "planning figures, not evidence"
    assert "reasons" not in found


def test_what_has_no_number_says_why() -> None:
    cohort, vector, names = setting([1.0, 1.0, 1.0], 1)
    estimate = cohort.evaluate({"m": Mean(vector)})["m"]
    one = resolution(cohort, vector, estimate, names, of="m")
    assert one["carries_most"] is one["trajectories_to_resolve"] is one["design_effect"] is None
    assert one["reasons"]["carries_most"] == "one_cluster"

    cohort, vector, names = setting([1.0, -1.0] * 12, 12)
    estimate = cohort.evaluate({"m": Mean(vector)}, bands={"m": 0.5})["m"]
    zero = resolution(cohort, vector, estimate, names, of="m", band=0.5)
    assert estimate.value == 0.0
    assert zero["reasons"]["trajectories_to_resolve"] == "the_mean_is_zero"
    assert zero["trajectories_for_band"] > 0

    cohort, vector, names = setting(varied(), 12)
    estimate = cohort.evaluate({"m": Mean(vector)}, bands={"m": 0.1})["m"]
    assert resolution(cohort, vector, estimate, names, of="m", band=0.1)["reasons"] == {
        "trajectories_for_band": "the_mean_is_not_inside_the_band"
    }
    assert set(no_resolution("m", Reason.EMPTY_COHORT)["reasons"].values()) == {"empty_cohort"}
