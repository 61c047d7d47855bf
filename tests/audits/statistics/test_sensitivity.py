"""What turns a sign: pooling, recalibration, the excluded, an unseen corner."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from audits.statistics import sensitivity
from audits.statistics.estimate import Estimate, Verdict
from audits.statistics.sensitivity import Corner, PooledSign
from audits.statistics.vectors import Vector, combine

MEANS = st.fractions(-5, 5, max_denominator=60)


def estimate(value: float, verdict: Verdict | None) -> Estimate:
    return Estimate(value, 100, 20, ci95=(value - 1, value + 1), verdict=verdict)


class TestValidation:
    def test_corners(self) -> None:
        two: dict[Corner, Fraction] = {("ref", "before"): Fraction(1), ("ref", "after"): Fraction(1)}
        with pytest.raises(ValueError, match="three known corners"):
            sensitivity.missing_corner(two, ("alt", "after"), Fraction(0), Fraction(1))
        three: dict[Corner, Fraction] = {**two, ("alt", "before"): Fraction(1)}
        with pytest.raises(ValueError, match="three known corners"):
            sensitivity.missing_corner(three, ("alt", "before"), Fraction(0), Fraction(1))
        with pytest.raises(ValueError, match="empty"):
            sensitivity.missing_corner(three, ("alt", "after"), Fraction(2), Fraction(1))

    def test_components(self) -> None:
        with pytest.raises(ValueError, match="component"):
            sensitivity.sign_map([], [])
        with pytest.raises(ValueError, match="component"):
            sensitivity.sign_map([Fraction(1)], [])


class TestTheory:
    @settings(max_examples=40, deadline=None)
    @given(MEANS, MEANS)
    def test_the_pooled_mean_turns_at_the_threshold(self, ref: Fraction, alt: Fraction) -> None:
        w = sensitivity.pooled_sign_threshold(ref, alt)
        opposed = (ref > 0 > alt) or (ref < 0 < alt)
        assert (w is not None) is opposed
        if w is not None:
            assert 0 < w < 1
            assert (1 - w) * ref + w * alt == 0

    @settings(max_examples=40, deadline=None)
    @given(MEANS, MEANS)
    def test_recalibration_turns_the_interaction_at_the_ratio(self, ref: Fraction, alt: Fraction) -> None:
        ratio = sensitivity.recalibration_ratio(ref, alt)
        assert (ratio is not None) is ((ref > 0 and alt > 0) or (ref < 0 and alt < 0))
        if ratio is not None:
            assert ratio > 0
            assert ratio * alt - ref == 0

    def test_a_positive_slope_keeps_gains_and_reversals(self) -> None:
        ref, alt = Vector(np.array([3, -2, 1]), 4), Vector(np.array([-1, 5, 1]), 4)
        for slope in (Fraction(1, 8), Fraction(2), Fraction(16)):
            for vector in (ref, alt):
                assert combine((slope, vector)).signs.tolist() == vector.signs.tolist()

    def test_the_missing_corner_by_hand(self) -> None:
        known: dict[Corner, Fraction] = {
            ("ref", "before"): Fraction(1),
            ("ref", "after"): Fraction(3, 2),
            ("alt", "before"): Fraction(2),
        }
        found = sensitivity.missing_corner(known, ("alt", "after"), Fraction(0), Fraction(3))
        assert found == (Fraction(-5, 2), Fraction(1, 2))

    @settings(max_examples=40, deadline=None)
    @given(st.lists(MEANS, min_size=4, max_size=4), st.integers(0, 3), MEANS, MEANS)
    def test_the_interaction_lies_in_the_identified_interval(
        self, margins: list[Fraction], place: int, a: Fraction, b: Fraction
    ) -> None:
        corners: list[Corner] = list(sensitivity.CORNER_SIGNS)
        every = dict(zip(corners, margins, strict=True))
        omega = (every["alt", "after"] - every["alt", "before"]) - (
            every["ref", "after"] - every["ref", "before"]
        )
        missing = corners[place]
        known = {name: value for name, value in every.items() if name != missing}
        low, high = min(a, b, every[missing]), max(a, b, every[missing])
        found = sensitivity.missing_corner(known, missing, low, high)
        assert found[0] <= omega <= found[1]
        assert found[1] - found[0] == high - low

    def test_tipping_mean(self) -> None:
        assert sensitivity.tipping_mean(Fraction(-12), 4) == 3
        assert sensitivity.tipping_mean(Fraction(5, 2), 5) == Fraction(-1, 2)


class TestScipy:
    def test_the_threshold_is_the_root(self) -> None:
        root = optimize.brentq(lambda w: (1 - w) * 0.163 + w * -0.16, 0, 1)
        found = sensitivity.pooled_sign_threshold(Fraction("0.163"), Fraction("-0.16"))
        assert found is not None
        assert float(found) == pytest.approx(root, abs=1e-12)


class TestItself:
    def test_sign_map(self) -> None:
        means = [Fraction(1), Fraction(2), Fraction(-1)]
        found = sensitivity.sign_map(
            means,
            [
                estimate(1.0, Verdict.POSITIVE),
                estimate(2.0, Verdict.POSITIVE),
                estimate(-1.0, Verdict.NEGATIVE),
            ],
        )
        assert found.vertices == (PooledSign.POSITIVE, PooledSign.POSITIVE, PooledSign.NEGATIVE)
        assert [(e.first, e.second, e.turns_at, e.sign) for e in found.edges] == [
            (0, 1, None, PooledSign.POSITIVE),
            (0, 2, Fraction(1, 2), PooledSign.DEPENDS),
            (1, 2, Fraction(2, 3), PooledSign.DEPENDS),
        ]
        assert found.whole == PooledSign.DEPENDS

    def test_all_negative(self) -> None:
        found = sensitivity.sign_map([Fraction(-1)] * 2, [estimate(-1.0, Verdict.NEGATIVE)] * 2)
        assert found.whole == PooledSign.NEGATIVE

    @pytest.mark.parametrize("verdict", [Verdict.UNRESOLVED, None])
    def test_an_interval_that_holds_zero_makes_the_sign_depend(self, verdict: Verdict | None) -> None:
        found = sensitivity.sign_map(
            [Fraction(1), Fraction(1)], [estimate(1.0, Verdict.POSITIVE), estimate(1.0, verdict)]
        )
        assert found.whole == PooledSign.DEPENDS
        assert found.edges[0].turns_at is None


class TestDegenerate:
    def test_zero_means_turn_nowhere(self) -> None:
        assert sensitivity.pooled_sign_threshold(Fraction(0), Fraction(-1)) is None
        assert sensitivity.recalibration_ratio(Fraction(0), Fraction(0)) is None

    def test_nothing_excluded(self) -> None:
        assert sensitivity.tipping_mean(Fraction(1), 0) is None
