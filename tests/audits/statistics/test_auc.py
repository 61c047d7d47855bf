"""The paired AUC gap: pairs counted by hand, Mann-Whitney, DeLong, and one class only."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from audits.statistics import auc
from audits.statistics.cohort import Cohort
from audits.statistics.estimate import Reason
from audits.statistics.vectors import Vector


def setting(
    seed: int, clusters: int, more: int, spread: int = 4
) -> tuple[Cohort, Vector, Vector, np.ndarray]:
    rng = np.random.default_rng(seed)
    cluster = np.concatenate([np.arange(clusters), rng.integers(0, clusters, more)]).astype(np.int32)
    ref, alt = (Vector(rng.integers(-spread, spread + 1, len(cluster)), 3) for _ in range(2))
    success = rng.integers(0, 2, clusters).astype(np.int8)
    success[:2] = [0, 1]
    return Cohort(cluster, clusters, seed=seed, resamples=30), ref, alt, success[cluster]


def scores(cohort: Cohort, vector: Vector) -> list[Fraction]:
    """The mean gain of each cluster."""
    return [
        Fraction(sum(own), len(own))
        for c in range(cohort.clusters)
        for own in [vector.numerators[cohort.cluster == c].tolist()]
    ]


def area(points: list[Fraction], outcome: list[int]) -> Fraction | None:
    up = [s for s, y in zip(points, outcome, strict=True) if y == 1]
    down = [s for s, y in zip(points, outcome, strict=True) if y == 0]
    if not up or not down:
        return None
    wins = sum((Fraction(a > b) + Fraction(a == b, 2) for a in up for b in down), Fraction(0))
    return wins / (len(up) * len(down))


def outcomes(cohort: Cohort, success: np.ndarray) -> list[int]:
    return [int(success[cohort.cluster == c][0]) for c in range(cohort.clusters)]


class TestValidation:
    def test_success_is_constant_in_a_trajectory(self) -> None:
        cohort = Cohort(np.array([0, 0, 1], dtype=np.int32), 2)
        vector = Vector(np.arange(3), 1)
        for bad, message in (([1, 0, 0], "constant"), ([1, 1], "expected 3, got 2")):
            with pytest.raises(ValueError, match=message):
                auc.paired(cohort, vector, vector, np.array(bad, dtype=np.int8))


class TestTheory:
    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 500), st.integers(2, 15), st.integers(0, 20))
    def test_every_pair_counted(self, seed: int, clusters: int, more: int) -> None:
        cohort, ref, alt, success = setting(seed, clusters, more)
        found = auc.paired(cohort, ref, alt, success)
        outcome = outcomes(cohort, success)
        a, b = area(scores(cohort, ref), outcome), area(scores(cohort, alt), outcome)
        assert a is not None
        assert b is not None
        assert (found.ref.value, found.alt.value, found.gap.value) == tuple(
            x.numerator / x.denominator for x in (a, b, a - b)
        )

    def test_replicates_are_trajectories_drawn_again(self) -> None:
        cohort, ref, alt, success = setting(3, 14, 20)
        outcome, first, second = outcomes(cohort, success), scores(cohort, ref), scores(cohort, alt)
        gaps = []
        for batch in cohort.batches(lambda batch: batch, 1):
            drawn = np.repeat(np.arange(14), batch.counts[0]).tolist()
            a = area([first[c] for c in drawn], [outcome[c] for c in drawn])
            b = area([second[c] for c in drawn], [outcome[c] for c in drawn])
            if a is not None and b is not None:
                gaps.append(float(a - b))
        found = auc.paired(cohort, ref, alt, success).gap
        assert found.ci95 == pytest.approx(tuple(np.quantile(gaps, [0.025, 0.975])), abs=1e-12)
        assert found.undefined_replicates == 30 - len(gaps)

    def test_delong_by_its_placements(self) -> None:
        cohort, ref, alt, success = setting(5, 30, 50)
        outcome = outcomes(cohort, success)
        differences = []
        for vector in (ref, alt):
            points = scores(cohort, vector)
            up = [s for s, y in zip(points, outcome, strict=True) if y]
            down = [s for s, y in zip(points, outcome, strict=True) if not y]
            over = [float(np.mean([(a > b) + 0.5 * (a == b) for b in down])) for a in up]
            under = [float(np.mean([(a > b) + 0.5 * (a == b) for a in up])) for b in down]
            differences.append((np.array(over), np.array(under)))
        over, under = differences[0][0] - differences[1][0], differences[0][1] - differences[1][1]
        want = sqrt(over.var(ddof=1) / len(over) + under.var(ddof=1) / len(under))
        assert auc.paired(cohort, ref, alt, success).delong_se == pytest.approx(want, rel=1e-12)


class TestScipy:
    def test_mann_whitney(self) -> None:
        cohort, ref, _, success = setting(7, 60, 0, spread=10)
        found = auc.paired(cohort, ref, ref, success)
        up, down = (ref.numerators[success == y] for y in (1, 0))
        want = stats.mannwhitneyu(up, down).statistic / (len(up) * len(down))
        assert found.ref.value == pytest.approx(float(want), rel=1e-14)


class TestItself:
    def test_swapped_channels_turn_the_gap(self) -> None:
        cohort, ref, alt, success = setting(9, 25, 30)
        there, back = auc.paired(cohort, ref, alt, success), auc.paired(cohort, alt, ref, success)
        assert (there.gap.value, there.ref.value) == (-(back.gap.value or 0.0), back.alt.value)
        assert there.delong_se == back.delong_se

    def test_only_the_order_of_scores_counts(self) -> None:
        cohort, ref, alt, success = setting(9, 25, 30)
        stretched = Vector(ref.numerators.astype(object) * 2**70, 11)
        assert auc.paired(cohort, stretched, alt, success) == auc.paired(cohort, ref, alt, success)

    def test_batches_change_nothing(self) -> None:
        cohort, ref, alt, success = setting(10, 25, 30)
        assert auc.paired(cohort, ref, alt, success, batch=7) == auc.paired(cohort, ref, alt, success)

    def test_trajectories_without_success_leave_and_the_rest_is_numbered_anew(self) -> None:
        cohort, ref, alt, success = setting(11, 25, 30)
        left = np.isin(cohort.cluster, (0, 7, 24))
        found = auc.paired(cohort, ref, alt, np.where(left, -1, success))
        kept = np.unique(cohort.cluster[~left], return_inverse=True)[1].astype(np.int32)
        alone = Cohort(kept, 22, seed=cohort.seed, resamples=cohort.resamples)
        want = auc.paired(alone, ref.take(~left), alt.take(~left), success[~left])
        assert found.without_success == 3
        assert (found.gap, found.ref, found.positives, found.negatives) == (
            want.gap,
            want.ref,
            want.positives,
            want.negatives,
        )


class TestDegenerate:
    def test_one_class_is_undefined(self) -> None:
        cohort, ref, alt, success = setting(1, 12, 0)
        found = auc.paired(cohort, ref, alt, np.ones_like(success))
        assert (found.gap.value, found.gap.reason, found.delong_se) == (None, Reason.ONE_CLASS, None)
        assert (found.positives, found.negatives) == (12, 0)

    def test_no_success_at_all(self) -> None:
        cohort, ref, alt, success = setting(1, 12, 0)
        found = auc.paired(cohort, ref, alt, np.full_like(success, -1))
        assert (found.gap.value, found.gap.reason, found.without_success) == (None, Reason.EMPTY_COHORT, 12)

    def test_all_ties(self) -> None:
        cohort, _, _, success = setting(2, 40, 0)
        flat = Vector(np.zeros(40, dtype=np.int64), 1)
        found = auc.paired(cohort, flat, flat, success)
        assert (found.ref.value, found.gap.value, found.gap.ci95) == (0.5, 0.0, (0.0, 0.0))
        assert found.delong_se == 0.0

    def test_few_of_a_class_have_no_verdict(self) -> None:
        cohort = Cohort(np.arange(40, dtype=np.int32), 40, resamples=200)
        ref, alt = Vector(np.arange(40), 1), Vector(-np.arange(40), 1)
        for positives, verdict in ((9, None), (10, "positive")):
            success = (np.arange(40) >= 40 - positives).astype(np.int8)
            found = auc.paired(cohort, ref, alt, success)
            assert found.gap.value == 1.0
            assert found.gap.verdict == verdict
            assert found.gap.reason == (Reason.FEW_OF_A_CLASS if verdict is None else None)
            assert found.gap.ci95 is not None
            assert found.ref.verdict is None

    def test_replicates_of_one_class_are_counted(self) -> None:
        cohort = Cohort(np.arange(5, dtype=np.int32), 5, resamples=400)
        vector = Vector(np.arange(5), 1)
        found = auc.paired(cohort, vector, vector, np.array([1, 0, 0, 0, 0], dtype=np.int8))
        assert found.gap.undefined_replicates > 4
        assert found.gap.reason == Reason.UNDEFINED_REPLICATES
