"""Percentiles at exact positions, verdicts at zero, Wilson, and what another seed could do."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from audits.statistics import exact, intervals
from audits.statistics.estimate import Verdict

P = Fraction(1, 40)


class TestValidation:
    def test_tails(self) -> None:
        assert intervals.tails(intervals.LEVEL95) == (Fraction(1, 40), Fraction(39, 40))
        assert intervals.tails(intervals.LEVEL90) == (Fraction(1, 20), Fraction(19, 20))


class TestTheory:
    def test_quantile_by_hand(self) -> None:
        assert intervals.quantile7(np.array([1.0, 2.0, 3.0, 4.0]), Fraction(1, 2)) == 2.5
        assert intervals.quantile7(np.array([1.0, 2.0]), Fraction(1, 10)) == 1.1
        assert intervals.quantile7(np.arange(41.0), P) == 1.0

    def test_verdict_at_zero(self) -> None:
        tiny = 5e-324
        assert intervals.verdict((tiny, 1.0)) == Verdict.POSITIVE
        assert intervals.verdict((-1.0, -tiny)) == Verdict.NEGATIVE
        for interval in ((0.0, 1.0), (-1.0, 0.0), (-0.0, 0.0), (-1.0, 1.0)):
            assert intervals.verdict(interval) == Verdict.UNRESOLVED

    def test_student_interval(self) -> None:
        low, high = intervals.student(2.0, 0.5, 100, intervals.LEVEL95)
        assert (low, high) == (2.0 - 1.984216952 * 0.5, 2.0 + 1.984216952 * 0.5)


class TestScipy:
    @pytest.mark.parametrize("size", [1, 2, 3, 39, 40, 41, 5000, 9999])
    def test_quantile7(self, size: int) -> None:
        x = np.sort(np.random.default_rng(size).normal(size=size))
        for p in (P, 1 - P, Fraction(1, 20), Fraction(1, 2), Fraction(0), Fraction(1)):
            want = float(np.quantile(x, float(p), method="linear"))
            assert intervals.quantile7(x, p) == pytest.approx(want, abs=1e-12)

    @pytest.mark.parametrize(("hits", "trials"), [(0, 9), (3, 9), (32, 351), (9, 9)])
    def test_wilson(self, hits: int, trials: int) -> None:
        want = stats.binomtest(hits, trials).proportion_ci(0.95, method="wilson")
        found = intervals.wilson(hits / trials, trials, 1.959963985)
        assert found == pytest.approx((want.low, want.high), abs=1e-9)


class TestItself:
    def test_percentile_is_its_two_quantiles(self) -> None:
        x = np.sort(np.random.default_rng(1).normal(size=777))
        assert intervals.percentile(x, intervals.LEVEL95) == (
            intervals.quantile7(x, P),
            intervals.quantile7(x, 1 - P),
        )

    def test_seed_sensitivity_follows_the_rank_range(self) -> None:
        # B = 1000, p = 1/40: ranks 24.975 - 9.68 to 24.975 + 9.68, so order statistics 15 to 35
        x = np.arange(1000.0)
        inside = [edge for edge in range(60) if intervals.monte_carlo_sensitive(x, P, float(edge))]
        assert inside == list(range(15, 36))


class TestDegenerate:
    def test_undefined_replicates_are_left_out(self) -> None:
        found = exact.Replicates(np.array([3.0, 0.0, 1.0]), np.array([True, False, True]))
        assert intervals.ascending(found).tolist() == [1.0, 3.0]

    def test_one_value(self) -> None:
        assert intervals.percentile(np.array([4.0]), intervals.LEVEL95) == (4.0, 4.0)

    def test_a_constant_is_sensitive_to_nothing(self) -> None:
        assert not intervals.monte_carlo_sensitive(np.zeros(500), P, 0.0)

    def test_an_edge_at_the_end_of_the_range_counts(self) -> None:
        x = np.concatenate([np.zeros(25), np.ones(975)])
        assert intervals.monte_carlo_sensitive(x, P, 0.0)
        assert intervals.monte_carlo_sensitive(x, P, 1.0)

    def test_wilson_stays_in_the_unit_interval(self) -> None:
        assert intervals.wilson(0.0, 5.0, 1.96)[0] == 0.0
        assert intervals.wilson(1.0, 5.0, 1.96)[1] == 1.0
