"""Integers that never wrap and quotients rounded once, against Python's integers and fractions."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from audits.statistics import exact

INT64 = st.integers(-(2**63), 2**63 - 1)
HUGE = st.integers(-(2**90), 2**90)


def column(values: list[int]) -> exact.Integers:
    return exact.integers(np.array(values, dtype=object))


class TestValidation:
    def test_floats_are_no_integers(self) -> None:
        with pytest.raises(ValueError, match="whole numbers"):
            exact.integers(np.array([1.0, 2.0]))

    def test_the_narrowest_form(self) -> None:
        assert exact.integers([True, False]).dtype == np.int64
        assert exact.integers(np.array([2**63], dtype=np.uint64)).dtype == object
        assert column([2**62]).dtype == np.int64
        assert column([2**63]).dtype == object


class TestTheory:
    """Python's integers are the theory here."""

    @settings(max_examples=40, deadline=None)
    @given(st.lists(HUGE, min_size=1, max_size=20), st.lists(HUGE, min_size=1, max_size=20))
    def test_sums_and_products(self, a: list[int], b: list[int]) -> None:
        size = min(len(a), len(b))
        x, y = column(a[:size]), column(b[:size])
        pairs = list(zip(a, b, strict=False))
        assert exact.add(x, y).tolist() == [p + q for p, q in pairs]
        assert exact.times(x, y).tolist() == [p * q for p, q in pairs]
        assert exact.times(x, -3).tolist() == [p * -3 for p, _ in pairs]
        assert exact.total(x) == sum(a[:size])

    @settings(max_examples=40, deadline=None)
    @given(hnp.arrays(np.int64, 12, elements=INT64))
    def test_runs(self, x: np.ndarray) -> None:
        want = [sum(x.tolist()[i:j]) for i, j in ((0, 5), (5, 6), (6, 12))]
        assert exact.run_sums(x, np.array([0, 5, 6])).tolist() == want

    @settings(max_examples=40, deadline=None)
    @given(st.lists(HUGE, min_size=1, max_size=8), st.integers(3, 61))
    def test_digits_come_together_again(self, values: list[int], width: int) -> None:
        cut = exact.limbs(column(values), width)
        assert all(exact.bound(part) < 2**width for part in cut.parts)
        limit = (cut.bound + 2**width) * 2
        assert exact.join(cut.parts, width, limit).tolist() == values

    @settings(max_examples=40, deadline=None)
    @given(
        st.lists(st.lists(st.integers(-(2**80), 2**80), min_size=6, max_size=6), min_size=1, max_size=3),
        st.integers(0, 1000),
    )
    def test_weighted_sums(self, columns: list[list[int]], seed: int) -> None:
        counts = np.random.default_rng(seed).multinomial(6, [1 / 6] * 6, size=5)
        table = exact.SumTable([column(values) for values in columns], 6)
        found = table.weighted(counts.astype(np.float64))
        for values, sums in zip(columns, found, strict=True):
            assert sums.tolist() == [
                sum(w * v for w, v in zip(row, values, strict=True)) for row in counts.tolist()
            ]

    @settings(max_examples=40, deadline=None)
    @given(
        st.lists(st.tuples(HUGE, st.integers(1, 2**70)), min_size=1, max_size=10),
        st.integers(1, 2**50),
    )
    def test_quotients_are_rounded_once(self, pairs: list[tuple[int, int]], scale: int) -> None:
        found = exact.divide(column([n for n, _ in pairs]), column([d for _, d in pairs]), scale)
        for (n, d), value in zip(pairs, found.values.tolist(), strict=True):
            nearest = Fraction(n, d * scale)
            assert value == nearest.numerator / nearest.denominator

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.tuples(st.integers(-(2**53), 2**53), st.integers(1, 2**20)), min_size=1, max_size=10))
    def test_the_fast_path_rounds_as_well(self, pairs: list[tuple[int, int]]) -> None:
        found = exact.divide(column([n for n, _ in pairs]), column([d for _, d in pairs]), 3 << 40)
        want = [n / (d * (3 << 40)) for n, d in pairs]
        assert found.values.tolist() == want

    @pytest.mark.parametrize("size", [1, 40, 62, 63, 70, 140])
    def test_dot_products_of_any_size(self, size: int) -> None:
        draw = random.Random(size)
        a, b = ([draw.randrange(-(1 << size), 1 << size) for _ in range(300)] for _ in range(2))
        assert exact.dot(column(a), column(b)) == sum(x * y for x, y in zip(a, b, strict=True))


class TestItself:
    def test_grouping_of_the_product_does_not_matter(self) -> None:
        rng = np.random.default_rng(3)
        columns = [rng.integers(-(2**60), 2**60, 500) for _ in range(4)]
        weights = rng.multinomial(500, [1 / 500] * 500, size=40).astype(np.float64)
        table = exact.SumTable(columns, 500)
        whole = table.weighted(weights)
        for place in range(40):
            alone = table.weighted(weights[place : place + 1])
            assert [int(x[0]) for x in alone] == [int(x[place]) for x in whole]
        order = rng.permutation(500)
        mixed = exact.SumTable([x[order] for x in columns], 500).weighted(weights[:, order])
        assert all(np.array_equal(a, b) for a, b in zip(whole, mixed, strict=True))

    @pytest.mark.parametrize(
        ("rows", "groups"), [(1, 3), (63, 257), (65, 256), (130, 1000), (300, 7), (2, 40_000)]
    )
    @pytest.mark.parametrize("kind", [np.uint8, np.int64])
    def test_slices_of_the_product_have_no_edges(self, rows: int, groups: int, kind: type) -> None:
        draw = np.random.default_rng(rows)
        counts = draw.integers(0, 256, (rows, groups)).astype(kind)
        matrix = draw.integers(-(1 << 29), 1 << 29, (groups, 3))
        found = exact.product(counts, matrix.astype(np.float64))
        assert np.array_equal(found.astype(np.int64), counts.astype(np.int64) @ matrix)

    def test_products_of_nothing(self) -> None:
        assert exact.product(np.zeros((0, 4), dtype=np.uint8), np.ones((4, 2))).shape == (0, 2)
        assert exact.product(np.zeros((3, 0), dtype=np.uint8), np.ones((0, 2))).tolist() == [[0, 0]] * 3
        assert exact.product(np.ones((3, 4), dtype=np.uint8), np.ones((4, 0))).shape == (3, 0)


class TestDegenerate:
    def test_division_by_zero_is_undefined(self) -> None:
        found = exact.divide(column([1, 0, 5]), column([0, 0, 2]))
        assert found.defined.tolist() == [False, False, True]
        assert found.values.tolist() == [0.0, 0.0, 2.5]

    def test_zero_has_no_sign(self) -> None:
        found = exact.divide(column([0]), column([7]), 5)
        assert str(found.values[0]) == "0.0"

    def test_nothing(self) -> None:
        nothing = np.zeros(0, dtype=np.int64)
        assert exact.bound(nothing) == 0
        assert exact.total(nothing) == 0
        assert exact.run_sums(nothing, nothing).tolist() == []
        assert exact.integers([]).tolist() == []

    def test_the_smallest_int64(self) -> None:
        x = np.array([-(2**63)], dtype=np.int64)
        assert exact.bound(x) == 2**63
        assert exact.times(x, -1).tolist() == [2**63]
        assert exact.add(x, x).tolist() == [-(2**64)]
