"""Flips, ties, preferences, actions and accuracies of single pairs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.statistics import jev_outcomes as outcomes
from audits.statistics.jev_outcomes import ABSTAIN
from tests.audits.statistics.cohorts import pairs_of

PROBABILITY = st.sampled_from([0.0, 0.2, 0.5, float(np.nextafter(0.5, 1)), 0.7, 1.0])


def row(
    before: dict[str, float], after: dict[str, float] | None = None, positive: tuple[str, ...] = ()
) -> dict[str, Any]:
    return {
        "query_id": "q",
        "scenario": "s",
        "before": before,
        "after": before if after is None else after,
        "positive_labels": list(positive),
    }


def chosen(before: dict[str, float], threshold: float = 0.5) -> int:
    pairs = pairs_of([row(before)])
    return int(outcomes.actions(pairs, pairs.before, pairs.base, threshold)[0])


class TestValidation:
    def pairs(self, **parts: Any) -> outcomes.Pairs:
        whole: dict[str, Any] = {
            "query": [0], "scenario": [0], "variant": [0], "start": [0, 2], "before": [0.1, 0.2],
            "after": [0.1, 0.2], "positive": [True, False], "order": [0, 1], "base": [True, True],
        }  # fmt: skip
        return outcomes.Pairs(**{name: np.array(value) for name, value in (whole | parts).items()})

    @pytest.mark.parametrize(
        ("parts", "message"),
        [
            ({"scenario": [0, 1]}, "one value per pair"),
            ({"order": [0]}, "one value per label"),
            ({"start": [0, 1]}, "start"),
            ({"start": [1, 2]}, "start"),
            (
                {"query": [0, 0], "scenario": [0, 0], "variant": [0, 0], "start": [0, 0, 2]},
                "every pair has a label",
            ),
            ({"after": [0.1, 1.2]}, r"\[0, 1\]"),
            ({"before": [np.nan, 0.2]}, r"\[0, 1\]"),
            ({"base": [False, False]}, "both arms"),
            ({"order": [3, 3]}, "distinct"),
        ],
    )
    def test_refusals(self, parts: dict[str, Any], message: str) -> None:
        self.pairs()
        with pytest.raises(ValueError, match=message):
            self.pairs(**parts)

    def test_a_probability_that_is_not_shown_is_not_judged(self) -> None:
        assert self.pairs(base=[True, False], before=[0.1, np.nan]).count(
            np.array([True, True])
        ).tolist() == [2]

    def test_preferences(self) -> None:
        with pytest.raises(ValueError, match="two base labels"):
            outcomes.by_preference(pairs_of([row({"a": 0.4}, {"a": 0.4, "b": 0.6})]))
        with pytest.raises(ValueError, match="above 0"):
            outcomes.by_preference(pairs_of([row({"a": 0.0, "b": 0.0, "c": 1.0})]))
        pairs = pairs_of([row({"a": 0.0})])
        with pytest.raises(ValueError, match="add up to 0"):
            outcomes.renormalised(pairs, pairs.before)


class TestTheory:
    @pytest.mark.parametrize(
        ("before", "after", "flip", "tie"),
        [
            (0.4, 0.6, True, False),
            (0.6, 0.4, True, False),
            (0.6, 0.7, False, False),
            (0.5, 0.7, False, True),
            (0.3, 0.5, False, True),
            (0.5, 0.5, False, True),
            (np.nextafter(0.5, 0), np.nextafter(0.5, 1), True, False),
        ],
    )
    def test_flips_and_ties(self, before: float, after: float, flip: bool, tie: bool) -> None:
        found = outcomes.by_target(pairs_of([row({"a": before}, {"a": after})]))
        assert (found.flips.tolist(), found.ties.tolist()) == ([flip], [tie])

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.tuples(PROBABILITY, PROBABILITY), min_size=2, max_size=6))
    def test_preferences_by_hand(self, values: list[tuple[float, float]]) -> None:
        values = [(a + 1e-9, b + 1e-9) for a, b in values]
        names = [f"l{i}" for i in range(len(values))]
        before, after = ({n: min(v[arm], 1.0) for n, v in zip(names, values, strict=True)} for arm in (0, 1))
        found = outcomes.by_preference(pairs_of([row(before, {**after, "added": 1.0})]))
        flips = ties = 0
        for j, second in enumerate(names):
            for first in names[:j]:
                sides = [(arm[first] > arm[second]) - (arm[first] < arm[second]) for arm in (before, after)]
                flips += sides[0] * sides[1] == -1
                ties += 0 in sides
        assert (int(found.flips.sum()), int(found.ties.sum())) == (flips, ties)
        assert len(found.row) == len(names) * (len(names) - 1) // 2

    def test_the_action_is_the_highest_above_the_threshold(self) -> None:
        assert chosen({"a": 0.6, "b": 0.9, "c": 0.7}) == 1
        assert chosen({"a": 0.5, "b": 0.4}) == ABSTAIN
        assert chosen({"a": 0.5, "b": 0.4}, threshold=0.45) == 0
        assert chosen({"a": 0.9, "b": 0.9}, threshold=0.9) == ABSTAIN

    def test_ties_go_by_the_label_order(self) -> None:
        assert chosen({"b": 0.8, "a": 0.8, "c": 0.8}) == 0
        pairs = pairs_of([row({"a": 0.8, "b": 0.8, "c": 0.8})])
        reordered = replace(pairs, order=np.array([2, 1, 0]))
        assert outcomes.actions(reordered, reordered.before, reordered.base, 0.5).tolist() == [0]
        hit = outcomes.action_correct(
            replace(reordered, positive=np.array([False, False, True])), np.array([0])
        )
        assert hit.tolist() == [True]

    @pytest.mark.parametrize(
        ("before", "positive", "correct"),
        [
            ({"a": 0.9, "b": 0.1}, ("a",), True),
            ({"a": 0.9, "b": 0.1}, ("b",), False),
            ({"a": 0.9, "b": 0.8}, ("a", "b"), True),
            ({"a": 0.1, "b": 0.1}, (), True),
            ({"a": 0.1, "b": 0.1}, ("a",), False),
            ({"a": 0.9, "b": 0.1}, (), False),
        ],
    )
    def test_the_right_action(
        self, before: dict[str, float], positive: tuple[str, ...], correct: bool
    ) -> None:
        pairs = pairs_of([row(before, positive=positive)])
        action = outcomes.actions(pairs, pairs.before, pairs.base, 0.5)
        assert outcomes.action_correct(pairs, action).tolist() == [correct]

    def test_binary_answers(self) -> None:
        pairs = pairs_of([row({"a": 0.9, "b": 0.5, "c": 0.2}, positive=("a", "c"))])
        assert outcomes.binary_correct(pairs, pairs.before, 0.5).tolist() == [2]
        assert outcomes.binary_correct(pairs, pairs.before, 0.4).tolist() == [1]

    def test_renormalised_over_the_base(self) -> None:
        pairs = pairs_of([row({"a": 0.2, "b": 0.6}, {"a": 0.1, "b": 0.3, "new": 0.6})])
        assert outcomes.renormalised(pairs, pairs.before).tolist() == pytest.approx([0.25, 0.75, 0.0])
        assert outcomes.renormalised(pairs, pairs.after).tolist() == pytest.approx([0.25, 0.75, 0.0])


class TestItself:
    def test_the_order_of_labels_changes_no_bit(self) -> None:
        rng = np.random.default_rng(1)
        names = [f"l{i}" for i in range(9)]
        before = {n: float(p) for n, p in zip(names, rng.uniform(size=9), strict=True)}
        first = pairs_of([row(before)])
        order = rng.permutation(9)
        moved = outcomes.Pairs(
            first.query, first.scenario, first.variant, first.start, first.before[order], first.after[order],
            first.positive[order], first.order[order], first.base[order],
        )  # fmt: skip
        want = outcomes.renormalised(first, first.before)[order]
        assert outcomes.renormalised(moved, moved.before).tolist() == want.tolist()
        assert outcomes.actions(moved, moved.before, moved.base, 0.1).tolist() == (
            outcomes.actions(first, first.before, first.base, 0.1).tolist()
        )

    def test_two_base_labels_are_the_preference_of_the_pair(self) -> None:
        pairs = pairs_of([row({"a": 0.3, "b": 0.6}, {"a": 0.5, "b": 0.4, "c": 0.1})])
        found = outcomes.by_preference(pairs)
        assert found.flips.tolist() == [True]


class TestDegenerate:
    def test_nothing(self) -> None:
        pairs = pairs_of([])
        assert outcomes.by_target(pairs).per_pair(np.zeros(0, dtype=np.bool_), 0).units.tolist() == []
        assert outcomes.by_preference(pairs).row.tolist() == []
        assert outcomes.actions(pairs, pairs.before, pairs.base, 0.5).tolist() == []
        assert outcomes.renormalised(pairs, pairs.before).tolist() == []

    def test_one_target(self) -> None:
        assert chosen({"only": 0.51}) == 0
