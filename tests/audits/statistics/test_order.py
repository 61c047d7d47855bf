"""Median and trimmed mean of the drawn rows, against sorting every replicate."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from audits.statistics import order
from audits.statistics.cohort import Cohort
from audits.statistics.order import Median, Ordered, Trimmed
from audits.statistics.vectors import Vector


def setting(seed: int, rows: int, clusters: int, spread: int) -> tuple[Cohort, Vector]:
    rng = np.random.default_rng(seed)
    cluster = np.concatenate([np.arange(clusters), rng.integers(0, clusters, rows - clusters)]).astype(
        np.int32
    )
    values = rng.integers(-spread, spread + 1, rows)
    return Cohort(cluster, clusters, seed=seed, resamples=40), Vector(values, 3)


def sorted_replicates(cohort: Cohort, vector: Vector) -> tuple[list[float], list[float]]:
    medians, trimmed = [], []
    for batch in cohort.batches(lambda batch: batch, 1):
        drawn = sorted(np.repeat(vector.numerators, batch.counts[0][cohort.cluster]).tolist())
        size = len(drawn)
        middle = Fraction(drawn[(size - 1) // 2] + drawn[size // 2], 2 * vector.denominator)
        kept = drawn[size // 10 : size - size // 10]
        mean = Fraction(sum(kept), len(kept) * vector.denominator)
        medians.append(middle.numerator / middle.denominator)
        trimmed.append(mean.numerator / mean.denominator)
    return medians, trimmed


def check(cohort: Cohort, vector: Vector) -> None:
    ordered = Ordered(cohort, vector)
    found = cohort.replicates({"median": Median(ordered), "trimmed": Trimmed(ordered)})
    medians, trimmed = sorted_replicates(cohort, vector)
    assert found["median"].values.tolist() == medians
    assert found["trimmed"].values.tolist() == trimmed


class TestValidation:
    def test_another_number_of_rows(self) -> None:
        cohort, _ = setting(0, 10, 3, 5)
        with pytest.raises(ValueError, match="10 rows"):
            Ordered(cohort, Vector(np.zeros(9, dtype=np.int64), 1))

    def test_no_rows(self) -> None:
        with pytest.raises(ValueError, match="empty"):
            Ordered(Cohort(np.zeros(0, dtype=np.int32), 0), Vector(np.zeros(0, dtype=np.int64), 1))


class TestTheory:
    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 10_000), st.integers(1, 12), st.integers(0, 60), st.sampled_from([0, 1, 3, 10**6]))
    def test_every_replicate_sorted(self, seed: int, clusters: int, more: int, spread: int) -> None:
        check(*setting(seed, clusters + more, clusters, spread))

    def test_more_rows_than_one_block(self) -> None:
        check(*setting(1, 3000, 40, 50))
        check(*setting(2, 3000, 40, 10**9))

    def test_median_by_hand(self) -> None:
        one = Cohort(np.zeros(3, dtype=np.int32), 1)
        two = Cohort(np.zeros(4, dtype=np.int32), 1)
        assert one.point(Median(Ordered(one, Vector(np.array([3, 1, 2]), 1)))) == 2.0
        assert two.point(Median(Ordered(two, Vector(np.array([1, 2, 3, 4]), 1)))) == 2.5

    def test_trimming_drops_a_tenth_from_each_end(self) -> None:
        values = np.array([-1000, *range(1, 19), 2000])
        cohort = Cohort(np.zeros(20, dtype=np.int32), 1)
        found = cohort.point(Trimmed(Ordered(cohort, Vector(values, 1))))
        assert found == sum(range(2, 18)) / 16


class TestScipy:
    def test_points(self) -> None:
        for rows in (7, 10, 19, 20, 1004):
            cohort, vector = setting(rows, rows, 5, 10**6)
            x, ordered = vector.numerators / 3, Ordered(cohort, vector)
            assert cohort.point(Median(ordered)) == pytest.approx(float(np.median(x)), rel=1e-12)
            assert cohort.point(Trimmed(ordered)) == pytest.approx(float(stats.trim_mean(x, 0.1)), rel=1e-9)


class TestItself:
    def test_blocks_of_any_size_give_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cohort, vector = setting(3, 500, 20, 40)
        usual = cohort.replicates(
            {"m": Median(Ordered(cohort, vector)), "t": Trimmed(Ordered(cohort, vector))}
        )
        for cells in (1, 60, 20 * 500):
            monkeypatch.setattr(order, "_TABLE_CELLS", cells)
            ordered = Ordered(cohort, vector)
            found = cohort.replicates({"m": Median(ordered), "t": Trimmed(ordered)})
            assert found["m"].values.tolist() == usual["m"].values.tolist()
            assert found["t"].values.tolist() == usual["t"].values.tolist()

    def test_counts_too_large_for_single_precision(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(order, "_SINGLE", 1)
        check(*setting(4, 200, 9, 40))

    def test_mirrored_values_mirror_the_statistics(self) -> None:
        cohort, vector = setting(5, 300, 15, 1000)
        mirrored = Vector(-vector.numerators, 3)
        for statistic in (Median, Trimmed):
            plain = cohort.replicates({"x": statistic(Ordered(cohort, vector))})["x"].values
            assert (
                cohort.replicates({"x": statistic(Ordered(cohort, mirrored))})["x"].values.tolist()
                == (-plain).tolist()
            )


class TestDegenerate:
    def test_all_ties(self) -> None:
        check(*setting(6, 100, 10, 0))

    def test_one_row(self) -> None:
        check(*setting(7, 1, 1, 5))

    def test_numbers_beyond_int64(self) -> None:
        cohort, vector = setting(8, 120, 10, 10**6)
        check(cohort, Vector(vector.numerators.astype(object) * 2**60 + 1, 7))
        check(cohort, Vector(vector.numerators * 2**41, 1 << 40))
