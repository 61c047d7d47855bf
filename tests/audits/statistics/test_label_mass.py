"""Conditional probabilities and label mass from logits and from the best k."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.special import softmax

from audits.statistics import label_mass
from audits.statistics.label_mass import MassKind, MassTable, Readout

INFINITY = float("inf")


class TestValidation:
    @pytest.mark.parametrize("labels", [[], [0, 0], [-1], [4]])
    def test_labels(self, labels: list[int]) -> None:
        with pytest.raises(ValueError, match="labels"):
            label_mass.from_logits([0.0, 1.0, 2.0, 3.0], labels)

    @pytest.mark.parametrize("bad", [[np.nan, 0.0], [INFINITY, 0.0], [-INFINITY, -INFINITY]])
    def test_logits(self, bad: list[float]) -> None:
        with pytest.raises(ValueError, match=r"logsumexp|finite"):
            label_mass.from_logits(bad, [0])

    def test_nothing_to_read(self) -> None:
        with pytest.raises(ValueError, match="at least one"):
            label_mass.from_top([])

    def test_tables(self) -> None:
        with pytest.raises(ValueError, match=r"\[0, 1\]"):
            label_mass.table([0.5, 1.5])
        with pytest.raises(ValueError, match="as many kinds"):
            label_mass.table([0.5, 0.5], [MassKind.EXACT])


class TestTheory:
    def test_against_exact_arithmetic(self) -> None:
        logits = np.random.default_rng(1).normal(size=60) * 10
        found = label_mass.from_logits(logits, [3, 7, 11])
        with localcontext() as context:
            context.prec = 50
            parts = [Decimal(float(z)).exp() for z in logits]
            own = parts[3] + parts[7] + parts[11]
            assert found.mass == pytest.approx(float(own / sum(parts)), rel=1e-13)
            assert found.probabilities == pytest.approx(
                [float(parts[i] / own) for i in (3, 7, 11)], rel=1e-13
            )

    def test_preferences(self) -> None:
        assert label_mass.preference(0.25, 0.75) == 0.25
        assert label_mass.preference(0.0, 0.0) is None
        assert label_mass.preference_of_logits(3.0, 3.0) == 0.5
        assert label_mass.preference_of_logits(0.0, 5000.0) == 0.0
        assert label_mass.preference_of_logits(5000.0, 0.0) == 1.0
        assert label_mass.preference_of_logits(-1.0, 1.0) == pytest.approx(1 / (1 + np.exp(2.0)), rel=1e-15)


class TestScipy:
    def test_softmax(self) -> None:
        logits = np.random.default_rng(2).normal(size=500) * 4
        found, whole = label_mass.from_logits(logits, [1, 2, 3]), softmax(logits)
        assert found.mass == pytest.approx(float(whole[1:4].sum()), rel=1e-12)
        assert found.probabilities == pytest.approx(whole[1:4] / whole[1:4].sum(), rel=1e-12)


class TestItself:
    def test_a_shift_of_all_logits_changes_nothing_that_shows(self) -> None:
        logits = np.random.default_rng(3).normal(size=40)
        near, far = (label_mass.from_logits(logits + shift, [0, 5]) for shift in (0.0, 1024.0))
        assert near.mass == pytest.approx(far.mass, rel=1e-11)

    def test_the_order_of_the_vocabulary_changes_nothing(self) -> None:
        logits = np.random.default_rng(4).normal(size=40)
        assert label_mass.from_logits(logits[::-1], [39, 34]) == label_mass.from_logits(logits, [0, 5])

    def test_the_whole_vocabulary_has_all_the_mass(self) -> None:
        assert label_mass.from_logits([1.0, 2.0, 5.0], [0, 1, 2]).mass == 1.0

    def test_the_best_k_give_a_bound(self) -> None:
        logits = np.random.default_rng(5).normal(size=40) * 3
        whole = label_mass.from_logits(logits, [0, 1])
        logprobs = np.log(softmax(logits))
        both = label_mass.from_top([float(logprobs[0]), float(logprobs[1])])
        one = label_mass.from_top([float(logprobs[0]), None])
        assert both.kind == one.kind == MassKind.LOWER_BOUND
        assert whole.mass is not None
        assert both.mass == pytest.approx(whole.mass, rel=1e-12)
        assert both.probabilities == pytest.approx(whole.probabilities, rel=1e-12)
        assert one.mass is not None
        assert one.mass < whole.mass
        assert one.probabilities is None

    def test_tables_never_average_bounds(self) -> None:
        kinds = [MassKind.EXACT, MassKind.LOWER_BOUND, MassKind.EXACT, MassKind.UNAVAILABLE, MassKind.EXACT]
        found = label_mass.table([0.2, 0.01, 0.9, np.nan, 0.4], kinds)
        assert found == MassTable(
            n=5, unavailable=1, lower_bounds=1, min=0.2, median=0.4, share_below_half=2 / 3
        )


class TestDegenerate:
    def test_all_labels_at_minus_infinity(self) -> None:
        found = label_mass.from_logits([-INFINITY, -INFINITY, 2.0], [0, 1])
        assert found == Readout(None, 0.0, MassKind.EXACT)

    def test_one_label_at_minus_infinity(self) -> None:
        found = label_mass.from_logits([-INFINITY, 2.0, 2.0], [0, 1])
        assert found.probabilities == (0.0, 1.0)
        assert found.mass == pytest.approx(0.5, rel=1e-15)

    def test_no_label_among_the_best(self) -> None:
        assert label_mass.from_top([None, None]) == Readout(None, None, MassKind.UNAVAILABLE)
        assert label_mass.from_top([-INFINITY]) == Readout(None, 0.0, MassKind.LOWER_BOUND)

    def test_a_bound_never_claims_all_the_mass(self) -> None:
        for logprob in (0.0, 1e-9):
            found = label_mass.from_top([logprob])
            assert found.mass == np.nextafter(1.0, 0.0)

    def test_empty_tables(self) -> None:
        assert label_mass.table([]) == MassTable(0, 0, 0, None, None, None)
        assert label_mass.table([np.nan]) == MassTable(1, 1, 0, None, None, None)
