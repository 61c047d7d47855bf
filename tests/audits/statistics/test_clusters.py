"""CR1, design effect, leaving trajectories out, and planning figures."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from scipy import stats

from audits.statistics import clusters
from audits.statistics.cohort import Cohort
from audits.statistics.moments import Mean
from audits.statistics.vectors import Vector

ONE = 1 << 40


def setting(seed: int = 0, rows: int = 80, groups: int = 15) -> tuple[Cohort, Vector]:
    rng = np.random.default_rng(seed)
    cluster = np.concatenate([np.arange(groups), rng.integers(0, groups, rows - groups)]).astype(np.int32)
    values = rng.normal(size=rows) + rng.normal(size=groups)[cluster]
    return Cohort(cluster, groups), Vector(np.rint(values * ONE).astype(np.int64), ONE)


class TestValidation:
    def test_figures_that_do_not_exist(self) -> None:
        assert clusters.clusters_to_resolve((-1.0, 1.0), 0.0, 20) is None
        assert clusters.clusters_for_band((-1.0, 1.0), 0.3, 20, 0.3) is None
        assert clusters.clusters_for_band((-1.0, 1.0), -0.4, 20, 0.3) is None


class TestTheory:
    def test_cr1_by_its_formula(self) -> None:
        cohort, vector = setting()
        x = vector.numerators / ONE
        residuals = [float((x[cohort.cluster == c] - x.mean()).sum()) for c in range(15)]
        want = sqrt(15 / 14 * sum(r * r for r in residuals)) / 80
        assert clusters.cr1(cohort, vector) == pytest.approx(want, rel=1e-12)

    def test_leave_one_out_by_leaving_out(self) -> None:
        cohort, vector = setting()
        values = vector.numerators.tolist()
        means = []
        for left_out in range(15):
            rest = [v for v, c in zip(values, cohort.cluster.tolist(), strict=True) if c != left_out]
            exact = Fraction(sum(rest), len(rest) * ONE)
            means.append(exact.numerator / exact.denominator)
        found = clusters.leave_one_out(cohort, vector)
        assert found is not None
        assert (found.min, found.max) == (min(means), max(means))
        assert (found.min_without, found.max_without) == (means.index(min(means)), means.index(max(means)))

    def test_the_sign_is_lost_when_one_trajectory_carries_it(self) -> None:
        cohort = Cohort(np.arange(4, dtype=np.int32), 4)
        for values, kept in (([-1, -1, -1, 9], False), ([1, 2, 3, 4], True), ([3, -1, -1, -1], False)):
            found = clusters.leave_one_out(cohort, Vector(np.array(values), 1))
            assert found is not None
            assert found.sign_kept is kept

    def test_planning_figures(self) -> None:
        assert clusters.clusters_to_resolve((0.5, 2.5), 0.5, 10) == 40
        assert clusters.clusters_to_resolve((0.5, 2.5), -0.75, 9) == 16
        assert clusters.clusters_for_band((-0.5, 0.5), 0.0, 10, 0.25) == 40
        assert clusters.clusters_for_band((-0.25, 0.75), 0.25, 10, 1.25) == 3


class TestScipy:
    def test_single_rows(self) -> None:
        rng = np.random.default_rng(2)
        x = rng.normal(size=40)
        cohort = Cohort(np.arange(40, dtype=np.int32), 40)
        vector = Vector(np.rint(x * ONE).astype(np.int64), ONE)
        assert clusters.cr1(cohort, vector) == pytest.approx(float(stats.sem(x)), rel=1e-9)

    def test_the_interval_of_single_rows_is_students(self) -> None:
        x = np.random.default_rng(3).normal(size=25)
        want = stats.ttest_1samp(x, 0).confidence_interval(0.95)
        cohort = Cohort(np.arange(25, dtype=np.int32), 25, resamples=50)
        found = cohort.evaluate({"m": Mean(Vector(np.rint(x * ONE).astype(np.int64), ONE))})["m"]
        assert found.ci95_t == pytest.approx((want.low, want.high), abs=1e-9)


class TestItself:
    def test_single_rows_have_no_design_effect(self) -> None:
        cohort = Cohort(np.arange(20, dtype=np.int32), 20)
        assert clusters.design_effect(cohort, Vector(np.arange(20) ** 2, 1)) == 1.0

    def test_copied_rows_have_that_of_their_number(self) -> None:
        rows = np.repeat(np.arange(30), 5)
        effect = clusters.design_effect(Cohort(rows.astype(np.int32), 30), Vector(rows**2, 1))
        assert effect == pytest.approx(5 * 149 / 150 * 30 / 29, rel=1e-12)

    def test_a_shift_changes_no_spread(self) -> None:
        cohort, vector = setting()
        moved = Vector(vector.numerators + 7 * ONE, ONE)
        assert clusters.cr1(cohort, moved) == clusters.cr1(cohort, vector)
        assert clusters.design_effect(cohort, moved) == clusters.design_effect(cohort, vector)


class TestDegenerate:
    def test_one_cluster(self) -> None:
        cohort, vector = Cohort(np.zeros(3, dtype=np.int32), 1), Vector(np.array([1, 2, 4]), 1)
        assert clusters.cr1(cohort, vector) is None
        assert clusters.design_effect(cohort, vector) is None
        assert clusters.leave_one_out(cohort, vector) is None

    def test_constant(self) -> None:
        cohort, _ = setting()
        for value, sign_kept in ((3, True), (0, True)):
            constant = Vector(np.full(80, value), 1)
            assert clusters.cr1(cohort, constant) == 0.0
            assert clusters.design_effect(cohort, constant) is None
            assert clusters.leave_one_out(cohort, constant) == clusters.LeaveOneOut(
                float(value), 0, float(value), 0, sign_kept
            )

    def test_numbers_beyond_int64(self) -> None:
        cohort, vector = setting()
        huge = Vector(vector.numerators.astype(object) * 2**50, ONE << 50)
        assert clusters.cr1(cohort, huge) == clusters.cr1(cohort, vector)
        assert clusters.leave_one_out(cohort, huge) == clusters.leave_one_out(cohort, vector)
