"""Exact rationals per transition, from margins int64[n, 2, L, A]."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.statistics import vectors
from audits.statistics.vectors import Vector

ONE = 1 << 40


def random_margins(rows: int, layouts: int, acquisitions: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.rint(rng.normal(size=(rows, 2, layouts, acquisitions)) * ONE).astype(np.int64)


def fractions(v: Vector) -> list[Fraction]:
    return [Fraction(x, v.denominator) for x in v.numerators.tolist()]


class TestValidation:
    def test_combinations(self) -> None:
        with pytest.raises(ValueError, match="at least one"):
            vectors.combine()
        with pytest.raises(ValueError, match="same rows"):
            vectors.combine(
                (1, Vector(np.zeros(2, dtype=np.int64), 1)), (1, Vector(np.zeros(3, dtype=np.int64), 1))
            )

    def test_a_mean_of_no_cells(self) -> None:
        with pytest.raises(ValueError, match="at least one layout"):
            vectors.gain(np.zeros((3, 2, 0, 1), dtype=np.int64))


class TestTheory:
    def test_gain_by_hand(self) -> None:
        m = np.zeros((1, 2, 2, 1), dtype=np.int64)
        m[0, 1, :, 0] = [3 * ONE, 4 * ONE]
        m[0, 0, :, 0] = [1 * ONE, 1 * ONE]
        assert fractions(vectors.gain(m)) == [Fraction(5, 2)]

    def test_arms_with_other_numbers_of_acquisitions(self) -> None:
        ref, alt = random_margins(7, 4, 3), random_margins(7, 4, 2, 1)
        want = [
            Fraction(int(b[1].sum() - b[0].sum()), 8 * ONE) - Fraction(int(a[1].sum() - a[0].sum()), 12 * ONE)
            for a, b in zip(ref, alt, strict=True)
        ]
        assert fractions(vectors.interaction(vectors.gain(ref), vectors.gain(alt))) == want

    def test_a_rotation_of_layouts_and_offsets_cancel(self) -> None:
        m = random_margins(5, 4, 1)
        assert fractions(vectors.gain(np.roll(m, 1, axis=2))) == fractions(vectors.gain(m))
        assert fractions(vectors.gain(m + 12345)) == fractions(vectors.gain(m))

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 50), st.sampled_from([Fraction(1, 4), Fraction(1, 2), Fraction(2), Fraction(8)]))
    def test_a_dyadic_gain_scales_and_keeps_signs(self, seed: int, slope: Fraction) -> None:
        v = vectors.gain(random_margins(20, 4, 1, seed))
        scaled = vectors.combine((slope, v))
        assert fractions(scaled) == [slope * x for x in fractions(v)]
        assert scaled.signs.tolist() == v.signs.tolist()

    def test_shapley(self) -> None:
        corners = [vectors.corner(random_margins(9, 4, 2, seed), 0) for seed in range(4)]
        f00, f01, f10, f11 = map(fractions, corners)
        face = vectors.shapley(*corners)
        half = Fraction(1, 2)
        assert fractions(face.state) == [
            half * ((c - a) + (d - b)) for a, b, c, d in zip(f00, f01, f10, f11, strict=True)
        ]
        assert fractions(face.view) == [
            half * ((b - a) + (d - c)) for a, b, c, d in zip(f00, f01, f10, f11, strict=True)
        ]
        total = vectors.combine((1, face.state), (1, face.view))
        assert fractions(total) == fractions(face.diagonal)
        for first, second in (
            ("state_view_before", "view_state_after"),
            ("view_state_before", "state_view_after"),
        ):
            path = vectors.combine((1, getattr(face, first)), (1, getattr(face, second)))
            assert fractions(path) == fractions(face.diagonal)


class TestItself:
    def test_layouts_and_acquisitions_average_to_the_gain(self) -> None:
        m = random_margins(11, 4, 3)
        for parts in (vectors.layout_gains(m), vectors.acquisition_gains(m)):
            assert fractions(vectors.mean_of(parts)) == fractions(vectors.gain(m))

    def test_the_diagonal_is_the_sum_of_its_parts(self) -> None:
        parts = vectors.diagonal(random_margins(11, 4, 1), random_margins(11, 4, 3, 1))
        total = vectors.combine((1, parts.reference_gain), (1, parts.baseline_shift), (1, parts.interaction))
        assert fractions(total) == fractions(parts.diagonal)

    def test_floats_are_the_nearest(self) -> None:
        v = vectors.gain(random_margins(30, 3, 1))
        assert v.floats().tolist() == [x.numerator / x.denominator for x in fractions(v)]


class TestDegenerate:
    def test_sums_beyond_int64(self) -> None:
        m = np.zeros((2, 2, 4, 2), dtype=np.int64)
        m[:, 1] = 2**62 - 1
        m[:, 0] = -(2**62 - 1)
        assert fractions(vectors.gain(m)) == [Fraction(2 * (2**62 - 1), ONE)] * 2

    def test_minus_zero_has_no_sign(self) -> None:
        v = Vector(np.array([-1, 0, 1], dtype=np.int64), ONE)
        assert v.signs.tolist() == [-1, 0, 1]
        assert str(vectors.combine((-1, v)).floats()[1]) == "0.0"

    def test_no_rows(self) -> None:
        v = vectors.gain(np.zeros((0, 2, 4, 1), dtype=np.int64))
        assert len(v) == 0
        assert v.mean is None
        assert v.total == 0

    def test_some_rows(self) -> None:
        v = vectors.gain(random_margins(5, 2, 1))
        assert fractions(v.take(np.array([3, 1]))) == [fractions(v)[3], fractions(v)[1]]
