"""Within SD, ICC(1) and steady signs over acquisitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from audits.statistics.cohort import Cohort
from audits.statistics.estimate import Reason
from audits.statistics.repeatability import repeatability, steady
from audits.statistics.vectors import Vector

ONE = 1 << 40


def setting(seed: int = 0, rows: int = 40, times: int = 3) -> tuple[Cohort, np.ndarray, list[Vector]]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 1)) + rng.normal(size=(rows, times)) * 0.3
    grid = np.rint(x * ONE).astype(np.int64)
    cohort = Cohort(np.arange(rows, dtype=np.int32) // 2, (rows + 1) // 2, resamples=60)
    return cohort, grid / ONE, [Vector(grid[:, a], ONE) for a in range(times)]


class TestValidation:
    def test_one_denominator(self) -> None:
        cohort, _, gains = setting()
        with pytest.raises(ValueError, match="one denominator"):
            repeatability(cohort, [gains[0], Vector(gains[1].numerators, 3)])


class TestTheory:
    @pytest.mark.parametrize("times", [2, 3, 5])
    def test_mean_squares_by_their_formulas(self, times: int) -> None:
        cohort, x, gains = setting(times=times)
        msw, msb = x.var(axis=1, ddof=1).mean(), times * x.mean(axis=1).var(ddof=1)
        found = repeatability(cohort, gains)
        assert found.within_sd.value == pytest.approx(np.sqrt(msw), rel=1e-12)
        assert found.icc1.value == pytest.approx((msb - msw) / (msb + (times - 1) * msw), rel=1e-12)
        signs = np.sign(x)
        assert found.sign_agreement.value == np.mean(np.abs(signs.sum(axis=1)) == times)
        assert found.acquisitions == times

    def test_replicates_are_the_drawn_rows(self) -> None:
        cohort, x, gains = setting()
        within, icc = [], []
        for batch in cohort.batches(lambda batch: batch, 1):
            rows = x[np.repeat(np.arange(40), batch.counts[0][cohort.cluster])]
            msw, msb = rows.var(axis=1, ddof=1).mean(), 3 * rows.mean(axis=1).var(ddof=1)
            within.append(np.sqrt(msw))
            icc.append((msb - msw) / (msb + 2 * msw))
        found = repeatability(cohort, gains)
        assert found.within_sd.ci95 == pytest.approx(tuple(np.quantile(within, [0.025, 0.975])), rel=1e-9)
        assert found.icc1.ci95 == pytest.approx(tuple(np.quantile(icc, [0.025, 0.975])), rel=1e-9)


class TestScipy:
    def test_icc_from_the_f_statistic(self) -> None:
        cohort, x, gains = setting(times=4)
        f = stats.f_oneway(*x).statistic
        assert repeatability(cohort, gains).icc1.value == pytest.approx((f - 1) / (f + 3), rel=1e-9)


class TestItself:
    def test_the_order_of_acquisitions_changes_nothing(self) -> None:
        cohort, _, gains = setting(times=4)
        assert repeatability(cohort, gains[::-1]) == repeatability(cohort, gains)

    def test_batches_change_nothing(self) -> None:
        cohort, _, gains = setting()
        assert repeatability(cohort, gains, batch=7) == repeatability(cohort, gains)

    def test_none_of_them_has_a_verdict(self) -> None:
        cohort, _, gains = setting()
        found = repeatability(cohort, gains)
        assert {e.verdict for e in (found.within_sd, found.icc1, found.sign_agreement)} == {None}


class TestDegenerate:
    @pytest.mark.parametrize("times", [0, 1])
    def test_fewer_than_two_acquisitions(self, times: int) -> None:
        cohort, _, gains = setting()
        found = repeatability(cohort, gains[:times])
        for estimate in (found.within_sd, found.icc1, found.sign_agreement):
            assert (estimate.value, estimate.reason) == (None, Reason.ONE_ACQUISITION)

    def test_nothing_varies(self) -> None:
        cohort, _, _ = setting()
        found = repeatability(cohort, [Vector(np.full(40, 5), 1)] * 3)
        assert (found.within_sd.value, found.icc1.value) == (0.0, None)
        assert found.icc1.reason == Reason.ZERO_DENOMINATOR
        assert found.sign_agreement.value == 1.0

    def test_acquisitions_that_agree_exactly(self) -> None:
        cohort, _, gains = setting()
        found = repeatability(cohort, [gains[0]] * 3)
        assert (found.within_sd.value, found.icc1.value) == (0.0, 1.0)

    def test_zero_is_no_steady_sign(self) -> None:
        zeros = [Vector(np.array([0, 0, 1, -1]), 1), Vector(np.array([0, 1, 1, -1]), 1)]
        assert steady(zeros).tolist() == [False, False, True, True]

    def test_no_rows(self) -> None:
        empty = Cohort(np.zeros(0, dtype=np.int32), 0)
        nothing = Vector(np.zeros(0, dtype=np.int64), 1)
        assert repeatability(empty, [nothing, nothing]).icc1.reason == Reason.EMPTY_COHORT
