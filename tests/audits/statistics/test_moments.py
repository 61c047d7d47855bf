"""Means, shares and means over target types."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from audits.statistics.cohort import Cohort
from audits.statistics.moments import Mean, TypeCount, TypeMean, Types, share, type_counts
from audits.statistics.vectors import Vector

ONE = 1 << 40


def setting(
    seed: int = 0, rows: int = 60, clusters: int = 12, types: int = 3
) -> tuple[Cohort, Vector, Types]:
    rng = np.random.default_rng(seed)
    cluster = np.concatenate([np.arange(clusters), rng.integers(0, clusters, rows - clusters)]).astype(
        np.int32
    )
    vector = Vector(np.rint(rng.normal(size=rows) * ONE).astype(np.int64), ONE)
    codes = np.concatenate([np.arange(types), rng.integers(0, types, rows - types)]).astype(np.int32)
    return (
        Cohort(cluster, clusters, resamples=200),
        vector,
        Types(codes, tuple("abcdefghijklmnopqrstuvwxyz"[:types])),
    )


def typed_by_hand(values: list[Fraction], codes: list[int], weights: list[Fraction]) -> Fraction:
    means = []
    for code, _ in enumerate(weights):
        own = [v for v, c in zip(values, codes, strict=True) if c == code]
        means.append(sum(own, Fraction(0)) / len(own))
    return sum((w * m for w, m in zip(weights, means, strict=True)), Fraction(0)) / sum(weights)


class TestValidation:
    def test_codes(self) -> None:
        with pytest.raises(ValueError, match="codes"):
            Types(np.array([0, 2], dtype=np.int32), ("a", "b"))
        with pytest.raises(ValueError, match="codes"):
            Types(np.array([-1], dtype=np.int32), ("a", "b"))

    @pytest.mark.parametrize("weights", [[1, 1], [1, 1, -1], [0, 0, 0]])
    def test_weights(self, weights: list[int]) -> None:
        _, vector, types = setting()
        with pytest.raises(ValueError, match="weights"):
            TypeMean(vector, types, weights)


class TestTheory:
    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 30), st.lists(st.integers(1, 9), min_size=3, max_size=3))
    def test_weighted_means_by_hand(self, seed: int, weights: list[int]) -> None:
        cohort, vector, types = setting(seed)
        values = [Fraction(x, ONE) for x in vector.numerators.tolist()]
        parts = [Fraction(w, 7) for w in weights]
        want = typed_by_hand(values, types.codes.tolist(), parts)
        assert cohort.point(TypeMean(vector, types, parts)) == want.numerator / want.denominator

    def test_equal_weights_are_the_default(self) -> None:
        cohort, vector, types = setting(types=5)
        equal = cohort.replicates({"a": TypeMean(vector, types), "b": TypeMean(vector, types, [4] * 5)})
        assert equal["a"].values.tolist() == equal["b"].values.tolist()

    def test_weights_in_proportion_to_the_rows_give_the_plain_mean(self) -> None:
        cohort, vector, types = setting()
        counts = np.bincount(types.codes).tolist()
        assert cohort.point(TypeMean(vector, types, counts)) == cohort.point(Mean(vector))

    def test_replicates_by_hand(self) -> None:
        cohort, vector, types = setting()
        found = cohort.replicates({"t": TypeMean(vector, types)})["t"]
        batch = next(cohort.batches(lambda batch: batch, 20))
        for b in range(20):
            drawn = np.repeat(np.arange(60), batch.counts[b][cohort.cluster])
            values = [Fraction(x, ONE) for x in vector.numerators[drawn].tolist()]
            want = typed_by_hand(values, types.codes[drawn].tolist(), [Fraction(1)] * 3)
            assert found.values[b] == want.numerator / want.denominator


class TestScipy:
    def test_the_standard_error_of_single_rows_is_scipys(self) -> None:
        x = np.random.default_rng(4).normal(size=50)
        vector = Vector(np.rint(x * ONE).astype(np.int64), ONE)
        cohort = Cohort(np.arange(50, dtype=np.int32), 50)
        assert Mean(vector).standard_error(cohort) == pytest.approx(float(stats.sem(x)), rel=1e-9)


class TestItself:
    def test_a_share_is_the_mean_of_its_mask(self) -> None:
        cohort, vector, _ = setting()
        mask = vector.numerators > 0
        assert cohort.point(share(mask)) == np.count_nonzero(mask) / 60

    def test_twenty_types(self) -> None:
        cohort, vector, types = setting(rows=400, types=20)
        assert not types.too_many
        assert cohort.point(TypeMean(vector, types)) is not None
        assert Types(np.zeros(1, dtype=np.int32), tuple(map(str, range(21)))).too_many

    def test_counts(self) -> None:
        cohort = Cohort(np.array([0, 0, 1, 1, 2], dtype=np.int32), 3)
        types = Types(np.array([0, 0, 0, 1, 1], dtype=np.int32), ("a", "b", "never"))
        assert type_counts(cohort, types) == (
            TypeCount("a", 3, 2, few=True),
            TypeCount("b", 2, 2, few=True),
            TypeCount("never", 0, 0, few=True),
        )


class TestDegenerate:
    def test_a_declared_type_without_rows_is_undefined(self) -> None:
        cohort, vector, types = setting()
        wider = Types(types.codes, (*types.names, "never"))
        assert cohort.point(TypeMean(vector, wider)) is None

    def test_no_types_and_no_rows(self) -> None:
        nothing = Vector(np.zeros(0, dtype=np.int64), 1)
        typed = TypeMean(nothing, Types(np.zeros(0, dtype=np.int32), ()))
        found = Cohort(np.zeros(0, dtype=np.int32), 0).evaluate({"t": typed})["t"]
        assert (found.value, found.reason) == (None, "empty_cohort")

    def test_a_type_of_weight_zero_may_be_empty(self) -> None:
        cohort, vector, types = setting()
        wider = Types(types.codes, (*types.names, "never"))
        weighted = TypeMean(vector, wider, [1, 1, 1, 0])
        assert cohort.point(weighted) == cohort.point(TypeMean(vector, types))

    def test_one_type_is_the_plain_mean(self) -> None:
        cohort, vector, _ = setting()
        alone = Types(np.zeros(60, dtype=np.int32), ("a",))
        found = cohort.replicates({"t": TypeMean(vector, alone), "m": Mean(vector)})
        assert found["t"].values.tolist() == found["m"].values.tolist()

    def test_numbers_beyond_int64(self) -> None:
        cohort, vector, types = setting()
        huge = Vector(vector.numerators.astype(object) * 2**50, ONE)
        for statistic, plain in (
            (Mean(huge), Mean(vector)),
            (TypeMean(huge, types), TypeMean(vector, types)),
        ):
            found, want = cohort.replicates({"x": statistic}), cohort.replicates({"x": plain})
            assert found["x"].values.tolist() == (want["x"].values * 2.0**50).tolist()
