"""Critical values to 10 significant digits."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

from audits.statistics import critical


def digits(x: float) -> float:
    return float(f"{x:.9e}")


class TestValidation:
    def test_domains(self) -> None:
        with pytest.raises(ValueError, match="degrees"):
            critical.student(0.975, 0)
        for p in (0.5, 1.0, 0.3, float("nan")):
            with pytest.raises(ValueError, match="between"):
                critical.student(p, 5)


class TestTheory:
    def test_one_and_two_degrees_in_closed_form(self) -> None:
        for p in (0.6, 0.95, 0.975, 0.999):
            assert critical.student(p, 1) == digits(np.tan(np.pi * (p - 0.5)))
            a = 2 * p - 1
            assert critical.student(p, 2) == digits(a * np.sqrt(2 / (1 - a * a)))

    def test_many_degrees_come_down_to_the_normal(self) -> None:
        values = [critical.student(0.975, dof) for dof in (5, 50, 500, 1999, 2000, 5000, 10**6, 10**9)]
        assert values == sorted(values, reverse=True)
        assert values[-1] == pytest.approx(critical.normal(0.975), abs=1e-8)


class TestScipy:
    @pytest.mark.parametrize("p", [0.6, 0.9, 0.95, 0.975, 0.995])
    def test_student(self, p: float) -> None:
        for dof in [*range(1, 220), 499, 500, 1998, 1999, 2000, 2001, 10_000, 123_457]:
            assert critical.student(p, dof) == pytest.approx(float(stats.t.ppf(p, dof)), rel=5.1e-10), dof

    def test_normal(self) -> None:
        for p in (0.005, 0.5, 0.95, 0.975, 0.9999):
            assert critical.normal(p) == pytest.approx(float(stats.norm.ppf(p)), rel=5.1e-10)


class TestItself:
    def test_ten_digits(self) -> None:
        assert critical.normal(0.975) == 1.959963985
        assert critical.student(0.975, 99) == 1.984216952
        assert critical.ten_digits(0.0) == 0.0


class TestDegenerate:
    def test_the_expansion_meets_the_finite_sum(self) -> None:
        for p in (0.95, 0.975, 0.995):
            z = NormalDist().inv_cdf(p)
            low = critical._solve(2 * p - 1, z, 1999)
            assert critical._expansion(z, 1999) == pytest.approx(low, rel=1e-12)
