"""Sign tables, flips by quartile, and shares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from audits.statistics import flips
from audits.statistics.cohort import Cohort
from audits.statistics.vectors import Vector

GAINS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=40)


def vectors_of(pairs: list[tuple[int, int]], first: int = 1, second: int = 1) -> tuple[Vector, Vector]:
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Vector(array[:, 0], first), Vector(array[:, 1], second)


class TestValidation:
    def test_rows_must_match(self) -> None:
        with pytest.raises(ValueError, match=r"shape|broadcast"):
            flips.table(Vector(np.zeros(2, dtype=np.int64), 1), Vector(np.zeros(3, dtype=np.int64), 1))


class TestTheory:
    @settings(max_examples=40, deadline=None)
    @given(GAINS)
    def test_counts_by_hand(self, pairs: list[tuple[int, int]]) -> None:
        ref, alt = vectors_of(pairs)
        table = flips.table(ref, alt)
        assert table.as_dict() == {
            "pos_to_neg": sum(a > 0 > b for a, b in pairs),
            "neg_to_pos": sum(a < 0 < b for a, b in pairs),
            "both_pos": sum(a > 0 and b > 0 for a, b in pairs),
            "both_neg": sum(a < 0 and b < 0 for a, b in pairs),
            "zero_involved": sum(a == 0 or b == 0 for a, b in pairs),
        }
        assert flips.strict(ref, alt).tolist() == [a * b < 0 for a, b in pairs]
        assert table.total == len(pairs)

    def test_products_that_would_wrap_or_vanish(self) -> None:
        ref, alt = vectors_of([(2**62, -(2**62)), (1, -1)], 1 << 40, 1 << 40)
        assert flips.table(ref, alt).pos_to_neg == 2

    def test_quartiles_by_hand(self) -> None:
        ref, alt = vectors_of([(1, 9), (-2, 9), (9, 3), (9, -4), (5, 9), (9, 6), (-7, 7), (8, -8)])
        found = flips.by_quartile(ref, alt)
        assert [(q.quartile, q.upto, q.transitions, q.pos_to_neg, q.neg_to_pos) for q in found] == [
            (1, 2.0, 2, 0, 1),
            (2, 4.0, 2, 1, 0),
            (3, 6.0, 2, 0, 0),
            (4, 8.0, 2, 1, 1),
        ]

    def test_quartiles_compare_the_gains_and_not_their_numerators(self) -> None:
        ref, alt = vectors_of([(1, 30), (2, 30), (3, 30), (4, 30)], 1, 10)
        assert [q.upto for q in flips.by_quartile(ref, alt)] == [1.0, 2.0, 3.0, 3.0]


class TestScipy:
    def test_the_share_of_single_rows_against_its_binomial_spread(self) -> None:
        rng = np.random.default_rng(1)
        ref, alt = Vector(rng.integers(-5, 6, 400), 1), Vector(rng.integers(-5, 6, 400), 1)
        cohort = Cohort(np.arange(400, dtype=np.int32), 400)
        found = cohort.evaluate({"share": flips.flip_share(ref, alt)})["share"]
        hits = flips.table(ref, alt).strict_flips
        want = stats.binomtest(hits, 400).proportion_ci(0.95, method="wilson")
        assert found.ci95 == pytest.approx((want.low, want.high), abs=0.006)


class TestItself:
    @settings(max_examples=40, deadline=None)
    @given(GAINS)
    def test_swapped_channels_transpose_the_table(self, pairs: list[tuple[int, int]]) -> None:
        ref, alt = vectors_of(pairs)
        there, back = flips.table(ref, alt), flips.table(alt, ref)
        assert there.cells == tuple(zip(*back.cells, strict=True))

    @settings(max_examples=40, deadline=None)
    @given(GAINS, st.randoms())
    def test_quartiles_hold_every_row_once_in_any_order(
        self, pairs: list[tuple[int, int]], random: object
    ) -> None:
        found = flips.by_quartile(*vectors_of(pairs))
        assert sum(q.transitions for q in found) == len(pairs)
        shuffled = list(pairs)
        random.shuffle(shuffled)  # type: ignore[attr-defined]
        assert flips.by_quartile(*vectors_of(shuffled)) == found
        table = flips.table(*vectors_of(pairs))
        assert sum(q.pos_to_neg for q in found) == table.pos_to_neg
        assert sum(q.neg_to_pos for q in found) == table.neg_to_pos

    def test_direction_difference_is_the_two_shares(self) -> None:
        ref, alt = vectors_of([(1, -1), (1, -1), (-1, 1), (1, 1), (0, 1)])
        cohort = Cohort(np.zeros(5, dtype=np.int32), 1)
        assert cohort.point(flips.direction_difference(ref, alt)) == 1 / 5
        assert cohort.point(flips.flip_share(ref, alt)) == 3 / 5


class TestDegenerate:
    def test_all_zero(self) -> None:
        ref, alt = vectors_of([(0, 0)] * 5)
        assert flips.table(ref, alt).zero_involved == 5
        assert [q.transitions for q in flips.by_quartile(ref, alt)] == [5, 0, 0, 0]
        assert flips.signs(ref) == flips.Signs(0, 5, 0)

    def test_no_rows(self) -> None:
        ref, alt = vectors_of([])
        assert flips.table(ref, alt).total == 0
        assert flips.by_quartile(ref, alt) == ()
        assert flips.signs(ref) == flips.Signs(0, 0, 0)
