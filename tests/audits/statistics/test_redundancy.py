"""Distances between two views' margins, and the swap of whole trajectories."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from audits.statistics import draws, redundancy
from audits.statistics.cohort import Cohort
from audits.statistics.estimate import Reason
from audits.statistics.vectors import Vector


def setting(seed: int, rows: int, clusters: int, spread: int = 5) -> tuple[Cohort, Vector, Vector]:
    rng = np.random.default_rng(seed)
    cluster = np.concatenate([np.arange(clusters), rng.integers(0, clusters, rows - clusters)]).astype(
        np.int32
    )
    x, y = rng.integers(-spread, spread + 1, rows), rng.integers(-spread, spread + 1, rows) + spread // 3
    return Cohort(cluster, clusters, seed=seed, resamples=40), Vector(x, 3), Vector(y, 3)


def by_hand(x: list[int], y: list[int], denominator: int) -> tuple[Fraction, Fraction]:
    """Energy distance over all ordered pairs, and the largest gap of the two distribution functions."""
    size = len(x)

    def mean(a: list[int], b: list[int]) -> Fraction:
        return Fraction(sum(abs(p - q) for p in a for q in b), size * size * denominator)

    def below(values: list[int], cut: int) -> int:
        return sum(v <= cut for v in values)

    ks = max((abs(below(x, z) - below(y, z)) for z in [*x, *y]), default=0)
    return 2 * mean(x, y) - mean(x, x) - mean(y, y), Fraction(ks, size)


class TestValidation:
    def test_another_number_of_rows(self) -> None:
        cohort, x, _ = setting(0, 10, 4)
        with pytest.raises(ValueError, match="10 rows"):
            redundancy.redundancy(cohort, x, Vector(np.zeros(9, dtype=np.int64), 1))


class TestTheory:
    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 1000), st.integers(2, 8), st.integers(0, 15), st.sampled_from([1, 4, 10**9]))
    def test_distances_and_p_by_hand(self, seed: int, clusters: int, more: int, spread: int) -> None:
        cohort, x, y = setting(seed, clusters + more, clusters, spread)
        a, b = x.numerators, y.numerators
        observed = by_hand(a.tolist(), b.tolist(), 3)
        bits = draws.raw(seed, 1 << 63, clusters, 0, 40) >> np.uint64(63)
        larger = [0, 0]
        for row in bits:
            swap = row[cohort.cluster] == 1
            swapped = by_hand(np.where(swap, b, a).tolist(), np.where(swap, a, b).tolist(), 3)
            for i in range(2):
                larger[i] += swapped[i] >= observed[i]
        found = redundancy.redundancy(cohort, x, y)
        for distance, want, count in zip((found.energy, found.ks), observed, larger, strict=True):
            assert distance is not None
            assert distance.value == want.numerator / want.denominator
            assert distance.p == (1 + count) / 41
            assert distance.departure_detected is (distance.p <= 0.05)

    def test_views_with_other_denominators(self) -> None:
        cohort, x, y = setting(4, 20, 6)
        finer = Vector(y.numerators * 5, 15)
        assert redundancy.redundancy(cohort, x, finer) == redundancy.redundancy(cohort, x, y)

    def test_the_p_value_is_uniform_when_nothing_differs(self) -> None:
        ps = []
        for seed in range(120):
            rng = np.random.default_rng(seed)
            cohort = Cohort(np.arange(15, dtype=np.int32), 15, seed=seed, resamples=99)
            x, y = (Vector(rng.integers(-(10**6), 10**6, 15), 1) for _ in range(2))
            found = redundancy.redundancy(cohort, x, y)
            assert found.energy is not None
            ps.append(found.energy.p)
        assert stats.kstest(ps, "uniform").pvalue > 1e-3


class TestScipy:
    def test_distances(self) -> None:
        cohort, x, y = setting(2, 300, 30, 1000)
        found = redundancy.redundancy(cohort, x, y)
        a, b = x.floats(), y.floats()
        assert found.energy is not None
        assert found.ks is not None
        assert found.energy.value == pytest.approx(float(stats.energy_distance(a, b)) ** 2, rel=1e-9)
        assert found.ks.value == pytest.approx(float(stats.ks_2samp(a, b).statistic), rel=1e-12)


class TestItself:
    def test_batches_and_progress(self) -> None:
        cohort, x, y = setting(3, 60, 9)
        told: list[tuple[int, int]] = []
        found = redundancy.redundancy(cohort, x, y, batch=15, progress=lambda *done: told.append(done))
        assert found == redundancy.redundancy(cohort, x, y)
        assert told == [(15, 40), (30, 40), (40, 40)]

    def test_exchanged_views_change_nothing(self) -> None:
        cohort, x, y = setting(3, 60, 9)
        assert redundancy.redundancy(cohort, x, y) == redundancy.redundancy(cohort, y, x)

    @pytest.mark.parametrize("bits", [23, 30, 40])
    def test_narrow_digits_give_the_same(self, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
        cohort, x, y = setting(5, 50, 9, 10**9)
        want = redundancy.redundancy(cohort, x, y)
        monkeypatch.setattr(redundancy, "_FLOAT_BITS", bits)
        assert redundancy.redundancy(cohort, x, y) == want
        monkeypatch.setattr(redundancy, "_FLOAT_BITS", 20)
        with pytest.raises(ValueError, match="50 transitions do not fit"):
            redundancy.redundancy(cohort, x, y)

    @pytest.mark.parametrize("block", [1, 3, 1000])
    def test_blocks_change_nothing(self, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
        cohort, x, y = setting(6, 50, 9)
        want = redundancy.redundancy(cohort, x, y)
        monkeypatch.setattr(redundancy, "_BLOCK", block)
        assert redundancy.redundancy(cohort, x, y) == want


class TestDegenerate:
    def test_one_cluster_and_none(self) -> None:
        one = Cohort(np.zeros(3, dtype=np.int32), 1)
        x = Vector(np.arange(3), 1)
        found = redundancy.redundancy(one, x, x)
        assert (found.energy, found.ks, found.reason) == (None, None, Reason.ONE_CLUSTER)
        none = Cohort(np.zeros(0, dtype=np.int32), 0)
        nothing = Vector(np.zeros(0, dtype=np.int64), 1)
        assert redundancy.redundancy(none, nothing, nothing).reason == Reason.EMPTY_COHORT

    def test_equal_views(self) -> None:
        cohort, x, _ = setting(6, 30, 10)
        for view in (x, Vector(np.zeros(30, dtype=np.int64), 1)):
            found = redundancy.redundancy(cohort, view, view)
            assert found.energy is not None
            assert found.ks is not None
            assert (found.energy.value, found.ks.value) == (0.0, 0.0)
            assert found.energy.p > 0.05

    def test_views_that_never_meet(self) -> None:
        cohort, x, _ = setting(7, 30, 10)
        away = Vector(x.numerators + 1000, 3)
        found = redundancy.redundancy(cohort, x, away)
        assert found.ks is not None
        assert found.ks.value == 1.0
