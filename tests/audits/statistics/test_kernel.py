"""exp, log and margins: within 1 ulp, the same bits everywhere, refusals by name."""

from __future__ import annotations

import hashlib
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.special import logsumexp as scipy_logsumexp

from audits.statistics import kernel


def worst_ulp(got: np.ndarray, exact: list[Decimal]) -> float:
    """The largest error in units of the last place of what was returned."""
    pairs = zip(got.tolist(), exact, strict=True)
    return max(float(abs(Decimal(a) - b) / Decimal(math.ulp(a))) for a, b in pairs)


def exact_exp(values: np.ndarray) -> list[Decimal]:
    with localcontext() as context:
        context.prec = 60
        return [Decimal(x).exp() for x in values.tolist()]


def exact_log(values: np.ndarray) -> list[Decimal]:
    with localcontext() as context:
        context.prec = 60
        return [Decimal(x).ln() for x in values.tolist()]


class TestValidation:
    def test_no_competitor(self) -> None:
        with pytest.raises(ValueError, match="competitor"):
            kernel.margins(np.zeros((3, 1)), np.zeros(3, dtype=np.int64))

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_energies_that_are_not_finite(self, bad: float) -> None:
        with pytest.raises(ValueError, match="finite"):
            kernel.margins(np.array([[0.0, 1.0], [bad, 0.0]]), np.array([1, 1]))

    @pytest.mark.parametrize("target", [-1, 2])
    def test_a_target_outside(self, target: int) -> None:
        with pytest.raises(ValueError, match="below 2"):
            kernel.margins(np.zeros((1, 2)), np.array([target]))

    def test_shapes_and_types(self) -> None:
        with pytest.raises(ValueError, match="shape"):
            kernel.margins(np.zeros((2, 2)), np.zeros(3, dtype=np.int64))
        with pytest.raises(ValueError, match="column numbers"):
            kernel.margins(np.zeros((1, 2)), np.zeros(1))

    def test_a_margin_off_the_grid(self) -> None:
        at_limit = np.array([[2.0**22, 0.0]])
        with pytest.raises(ValueError, match="2\\^22"):
            kernel.margins(at_limit, np.array([0]))
        with pytest.raises(ValueError, match="2\\^22"):
            kernel.margins(at_limit, np.array([1]))
        below = np.array([[2.0**22 - 2.0**-30, 0.0]])
        assert kernel.margins(below, np.array([0])).tolist() == [2**62 - 2**10]

    def test_domains(self) -> None:
        for bad in (710.0, np.nan):
            with pytest.raises(ValueError, match="709"):
                kernel.exp(bad)
        for bad in (0.0, -1.0, np.inf, np.nan):
            with pytest.raises(ValueError, match="positive"):
                kernel.log(bad)
        for bad_list in ([], [np.nan], [np.inf], [0.0, np.nan]):
            with pytest.raises(ValueError, match="logsumexp"):
                kernel.logsumexp(bad_list)


class TestTheory:
    """Against exact arithmetic with 60 digits."""

    def test_exp_within_one_ulp(self) -> None:
        rng = np.random.default_rng(11)
        x = np.concatenate(
            [
                rng.uniform(-1, 1, 1500),
                rng.uniform(-40, 0, 1500),
                rng.uniform(-745, 709, 800),
                rng.uniform(-745, -708, 400),  # results below 2^-1022
                -np.geomspace(1e-300, 700, 300),
                (np.arange(-1000, 1000) + 0.5)[::7] * math.log(2),  # where the reduction changes its integer
            ]
        )
        assert worst_ulp(kernel.exp(x), exact_exp(x)) <= 1.0

    def test_log_within_one_ulp(self) -> None:
        rng = np.random.default_rng(12)
        x = np.concatenate(
            [
                rng.uniform(1, 4, 2000),
                1 + np.geomspace(1e-16, 1, 800),
                1 - np.geomspace(2e-16, 0.6, 800),
                np.exp(rng.uniform(-700, 700, 500)),
                np.array([5e-324, 2.0**-1022, 1.7e308]),
            ]
        )
        assert worst_ulp(kernel.log(x), exact_log(x)) <= 1.0

    @pytest.mark.sweep
    def test_many_more_arguments(self) -> None:
        rng = np.random.default_rng(13)
        x = np.concatenate([rng.uniform(-745, 709, 30_000), rng.uniform(-3, 0, 30_000)])
        assert worst_ulp(kernel.exp(x), exact_exp(x)) <= 1.0
        y = np.concatenate([rng.uniform(0.4, 2.5, 30_000), np.exp(rng.uniform(-700, 700, 30_000))])
        assert worst_ulp(kernel.log(y), exact_log(y)) <= 1.0

    def test_below_the_last_exponent(self) -> None:
        x = [-745.0, np.nextafter(-745.0, -800), -746.0, -1e300, -np.inf, 0.0, -0.0]
        assert kernel.exp(x).tolist() == [5e-324, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]

    def test_margin_by_hand(self) -> None:
        found = kernel.margins(np.array([[2.0, 0.0, 0.0, 0.0]]), np.array([0]))
        with localcontext() as context:
            context.prec = 60
            exact = (2 - Decimal(3).ln()) * 2**40
        assert found.tolist() == [int(exact.to_integral_value())]

    def test_rounding_is_half_to_even(self) -> None:
        halves = np.array([[k + 0.5, 0.0] for k in range(-4, 4)]) * 2.0**-40
        assert kernel.margins(halves, np.zeros(8, dtype=np.int64)).tolist() == [-4, -2, -2, 0, 0, 2, 2, 4]

    def test_margins_against_exact_arithmetic(self) -> None:
        rng = np.random.default_rng(14)
        energies, target = rng.normal(size=(300, 5)) * 8, rng.integers(0, 5, 300)
        found = kernel.margins(energies, target)
        with localcontext() as context:
            context.prec = 60
            for row, own, margin in zip(energies.tolist(), target.tolist(), found.tolist(), strict=True):
                rivals = sum((Decimal(e).exp() for j, e in enumerate(row) if j != own), Decimal(0))
                assert abs((Decimal(row[own]) - rivals.ln()) * 2**40 - margin) < Decimal("0.6")


class TestScipy:
    def test_margins(self) -> None:
        rng = np.random.default_rng(15)
        energies, target = rng.normal(size=(2000, 4)) * 5, rng.integers(0, 4, 2000)
        rows = np.arange(2000)
        hidden = energies.copy()
        hidden[rows, target] = -np.inf
        want = energies[rows, target] - scipy_logsumexp(hidden, axis=1)
        np.testing.assert_allclose(kernel.margins(energies, target) / 2.0**40, want, rtol=0, atol=1e-11)

    def test_logsumexp(self) -> None:
        x = np.random.default_rng(16).normal(size=500) * 20
        assert kernel.logsumexp(x) == pytest.approx(float(scipy_logsumexp(x)), abs=1e-12)


class TestItself:
    @pytest.mark.parametrize("width", [2, 3, 4, 9, 10, 14])
    def test_relabelled_candidates_give_the_same_bits(self, width: int) -> None:
        rng = np.random.default_rng(width)
        energies, target = np.round(rng.normal(size=(400, width)), 1), rng.integers(0, width, 400)
        first = kernel.margins(energies, target)
        order = rng.permutation(width)
        assert np.array_equal(kernel.margins(energies[:, order], np.argsort(order)[target]), first)

    def test_rows_do_not_depend_on_their_neighbours(self) -> None:
        rng = np.random.default_rng(17)
        energies, target = rng.normal(size=(40_000, 3)), rng.integers(0, 3, 40_000)
        whole = kernel.margins(energies, target)
        parts = [kernel.margins(energies[i : i + 777], target[i : i + 777]) for i in range(0, 40_000, 777)]
        assert np.array_equal(np.concatenate(parts), whole)
        assert np.array_equal(kernel.margins(np.asfortranarray(energies), target), whole)

    def test_logsumexp_in_any_order(self) -> None:
        rng = np.random.default_rng(18)
        x = rng.normal(size=200) * 9
        assert {kernel.logsumexp(rng.permutation(x)) for _ in range(20)} == {kernel.logsumexp(x)}

    def test_the_bits_are_pinned(self) -> None:
        steps = np.arange(0, 745 * 8) / 8.0
        bits = kernel.exp(-steps).tobytes() + kernel.log(1.0 + steps).tobytes()
        assert hashlib.sha256(bits).hexdigest() == (
            "b91c7e93f3444d3d08a0cb0026be96d5244a013fd9277b4e038ce69e306fbcbf"
        )

    def test_plain_python_floats_give_the_same_bits(self) -> None:
        """No vector unit, no fused operation: the same steps one number at a time."""

        def one(x: float) -> float:
            power = round(x * float.fromhex("0x1.71547652b82fep+0"))
            high, low = x - power * kernel._LN2_HIGH, power * kernel._LN2_LOW
            r = high - low
            t, total = r * r, 0.0
            for coefficient in reversed(kernel._EXP):
                total = total * t + coefficient
            c = r - t * total
            return math.ldexp(1.0 - ((low - (r * c) / (2.0 - c)) - high), power)

        x = np.random.default_rng(19).uniform(-740, 1, 4000)
        assert kernel.exp(x).tolist() == [one(value) for value in x.tolist()]


class TestDegenerate:
    def test_no_rows(self) -> None:
        assert kernel.margins(np.zeros((0, 4)), np.zeros(0, dtype=np.int32)).shape == (0,)

    def test_all_energies_equal(self) -> None:
        found = kernel.margins(np.full((1, 2), -3.7), np.array([1]))
        assert found.tolist() == [0]

    def test_minus_zero_is_zero(self) -> None:
        found = kernel.margins(np.array([[0.0, -0.0], [-0.0, 0.0]]), np.array([1, 1]))
        assert found.tolist() == [0, 0]

    def test_far_apart_competitors(self) -> None:
        found = kernel.margins(np.array([[1.0, -(2.0**20), 2.0**20]]), np.array([0]))
        assert found.tolist() == [(1 - 2**20) * 2**40]

    def test_logsumexp_of_nothing_but_minus_infinity(self) -> None:
        assert kernel.logsumexp([-np.inf, -np.inf]) == -np.inf
        assert kernel.logsumexp([-np.inf, 3.0]) == 3.0

    def test_shapes_are_kept(self) -> None:
        assert kernel.exp(np.zeros((2, 3))).shape == (2, 3)
        assert kernel.log(1.0).shape == ()
