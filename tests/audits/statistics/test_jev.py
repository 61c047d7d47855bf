"""The request-independence audit: weights, rates, bounds, and groups compared."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from audits.statistics import critical, intervals, jev
from audits.statistics.estimate import Estimate, Reason
from audits.statistics.jev_outcomes import Outcome
from tests.audits.statistics.cohorts import pairs_of

SCENARIOS = ("zero", "one")


def predictions(seed: int, queries: int = 12, variants: int = 1, flip: float = 0.3) -> list[dict[str, Any]]:
    """Rows with one to four targets each; `flip` is how far probabilities may move."""
    rng = np.random.default_rng(seed)
    rows = []
    for q in range(queries):
        for scenario in SCENARIOS:
            for variant in range(variants):
                names = [f"t{i}" for i in range(int(rng.integers(1, 5)))]
                before = {n: round(float(rng.uniform()), 2) for n in names}
                after = {
                    n: round(float(np.clip(p + rng.normal() * flip, 0, 1)), 2) for n, p in before.items()
                }
                positive = [n for n in names if rng.uniform() < 0.4]
                rows.append(
                    {
                        "query_id": f"q{q:02}", "scenario": scenario, "variant": str(variant),
                        "before": before, "after": after, "positive_labels": positive,
                    }
                )  # fmt: skip
    return rows


def audit(rows: list[dict[str, Any]], year: int = 2019, **options: Any) -> dict[str, Estimate]:
    pairs = pairs_of(rows)
    queries = jev.Queries(pairs)
    cohort = jev.year_cohort(queries.queries, year, resamples=300)
    return jev.evaluate(queries, jev.answers(pairs, **options), cohort)


def by_hand(rows: list[dict[str, Any]]) -> Fraction:
    """The strict flip rate as nested means."""

    def mean(values: list[Fraction]) -> Fraction:
        return sum(values, Fraction(0)) / len(values)

    def opposite(a: float, b: float) -> bool:
        return (a > 0.5 > b) or (a < 0.5 < b)

    names = {key: sorted({row[key] for row in rows}) for key in ("query_id", "scenario", "variant")}
    per_query = []
    for query in names["query_id"]:
        scenarios = []
        for scenario in names["scenario"]:
            some = [r for r in rows if (r["query_id"], r["scenario"]) == (query, scenario)]
            scenarios.append(
                mean(
                    [
                        mean([Fraction(opposite(r["before"][t], r["after"][t])) for t in r["before"]])
                        for r in some
                    ]
                )
            )
        per_query.append(mean(scenarios))
    return mean(per_query)


class TestValidation:
    def test_the_same_pair_twice(self) -> None:
        rows = predictions(1)
        with pytest.raises(ValueError, match="once"):
            jev.Queries(pairs_of([*rows, rows[0]]))

    def test_a_missing_scenario(self) -> None:
        with pytest.raises(ValueError, match="every scenario"):
            jev.Queries(pairs_of(predictions(1)[1:]))

    def test_queries_without_gaps(self) -> None:
        pairs = pairs_of(predictions(1, queries=2))
        with pytest.raises(ValueError, match="numbered"):
            jev.Queries(replace(pairs, query=pairs.query + 1))

    def test_labels_may_only_be_added_by_candidates(self) -> None:
        rows = [{"query_id": "q", "scenario": "s", "before": {"a": 0.5}, "after": {"a": 0.5, "b": 0.1},
                 "positive_labels": []}]  # fmt: skip
        with pytest.raises(ValueError, match="added candidates"):
            jev.answers(pairs_of(rows), "questions")

    def test_thresholds(self) -> None:
        for threshold in (-0.1, 1.1, float("nan")):
            with pytest.raises(ValueError, match="threshold"):
                jev.answers(pairs_of(predictions(1)), threshold=threshold)

    def test_a_pair_without_units(self) -> None:
        queries = jev.Queries(pairs_of(predictions(1, queries=1)))
        nothing = np.zeros(2, dtype=np.int64)
        with pytest.raises(ValueError, match="unit"):
            queries.values(Outcome(nothing, nothing))

    def test_groups_to_compare(self) -> None:
        pairs, other = pairs_of(predictions(1)), pairs_of(predictions(2))
        with pytest.raises(ValueError, match="same pairs"):
            jev.vanishing(pairs, other)


class TestTheory:
    @settings(max_examples=25, deadline=None)
    @given(st.integers(0, 1000), st.integers(1, 3))
    def test_nested_means(self, seed: int, variants: int) -> None:
        rows = predictions(seed, 5, variants)
        pairs = pairs_of(rows)
        found = jev.Queries(pairs).values(jev.answers(pairs).outcomes["strict_flip"])
        assert found.mean == by_hand(rows)

    def test_variants_weigh_as_one(self) -> None:
        rows = predictions(3, 4, 1)
        copied = [*rows, *({**row, "variant": "copy"} for row in rows[:1])]
        assert by_hand(copied) == by_hand(rows)
        pairs = pairs_of(copied)
        found = jev.Queries(pairs).values(jev.answers(pairs).outcomes["strict_flip"])
        assert found.mean == by_hand(rows)

    def test_wilson_by_its_formula(self) -> None:
        rows = predictions(4)
        pairs = pairs_of(rows)
        x = jev.Queries(pairs).values(jev.answers(pairs).outcomes["strict_flip"]).floats()
        m, size, units = x.mean(), len(x), len(pairs.before)
        v = ((x - m) ** 2).sum() / (size * (size - 1))
        z, t = critical.normal(0.975), critical.student(0.975, size - 1)
        trials = min(max(m * (1 - m) / v, 1), units) * (z / t) ** 2
        centre = (m + z * z / (2 * trials)) / (1 + z * z / trials)
        half = z * np.sqrt(m * (1 - m) / trials + z * z / (4 * trials**2)) / (1 + z * z / trials)
        found = audit(rows)["strict_flip"]
        assert found.ci95_wilson == pytest.approx((centre - half, centre + half), abs=1e-12)

    def test_zero_events(self) -> None:
        assert jev.zero_event_upper95(39) == pytest.approx(0.0739376, abs=5e-8)
        assert jev.zero_event_upper95(53) == pytest.approx(0.0549555, abs=5e-8)
        assert jev.zero_event_upper95(1) == pytest.approx(0.95, abs=1e-15)

    def test_threshold_of_actions_leaves_flips_alone(self) -> None:
        rows = predictions(5)
        low, high = audit(rows, threshold=0.2), audit(rows, threshold=0.8)
        assert low["strict_flip"] == high["strict_flip"]
        assert low["action_accuracy_before"] != high["action_accuracy_before"]

    def test_candidates_are_judged_on_preferences(self) -> None:
        rows = [
            {"query_id": f"q{i:02}", "scenario": "s", "before": {"a": 0.6, "b": 0.4},
             "after": {"a": 0.2, "b": 0.3, "new": 0.5}, "positive_labels": ["b"]}
            for i in range(12)
        ]  # fmt: skip
        found = audit(rows, intervention="candidates")
        assert "strict_flip" not in found
        assert found["preference_flip"].value == 1.0
        # renormalised: 0.2/0.5 and 0.3/0.5 after, so both labels turn right
        assert (found["binary_accuracy_before"].value, found["binary_accuracy_after"].value) == (0.0, 1.0)
        # the action is on every label that is shown: nothing passes one half afterwards
        assert (found["action_change"].value, found["action_accuracy_after"].value) == (1.0, 0.0)


class TestScipy:
    def test_independent_queries_get_their_binomial_interval(self) -> None:
        rows = [
            {"query_id": f"q{i:03}", "scenario": "s", "before": {"a": 0.4},
             "after": {"a": 0.6 if i < 60 else 0.4}, "positive_labels": []}
            for i in range(200)
        ]  # fmt: skip
        found = audit(rows)["strict_flip"]
        want = stats.binomtest(60, 200).proportion_ci(0.95, method="wilson")
        assert found.ci95_wilson == pytest.approx((want.low, want.high), abs=0.002)

    def test_the_bound_is_clopper_pearsons_one_sided(self) -> None:
        want = stats.binomtest(0, 39, alternative="less").proportion_ci(0.95, method="exact").high
        assert jev.zero_event_upper95(39) == pytest.approx(float(want), rel=1e-12)


class TestItself:
    def test_the_order_of_rows_and_keys_changes_nothing(self) -> None:
        rows = predictions(6, variants=2)
        mixed = [
            {
                **row,
                "before": dict(reversed(row["before"].items())),
                "after": dict(reversed(row["after"].items())),
            }
            for row in reversed(rows)
        ]
        assert audit(mixed) == audit(rows)

    def test_differences_are_after_minus_before(self) -> None:
        found = audit(predictions(7))
        for kind in ("binary", "action"):
            before, after = (found[f"{kind}_accuracy_{arm}"].value for arm in ("before", "after"))
            assert before is not None
            assert after is not None
            assert found[f"{kind}_accuracy_difference"].value == pytest.approx(after - before, abs=1e-15)

    def test_only_differences_have_verdicts(self) -> None:
        found = audit(predictions(8))
        assert {name for name, e in found.items() if e.verdict is not None} == set(jev.DIFFERENCES)
        assert {name for name, e in found.items() if e.ci95_t is not None} == set(jev.DIFFERENCES)

    def test_years_have_their_own_draws(self) -> None:
        rows = predictions(9)
        assert audit(rows, 2019)["strict_flip"].ci95 != audit(rows, 2020)["strict_flip"].ci95

    def test_two_groups(self) -> None:
        rows = predictions(10)
        calm = [{**row, "after": row["before"]} for row in rows]
        first, second = pairs_of(rows), pairs_of(calm)
        found = jev.vanishing(first, second)
        total = jev.answers(first).counts["strict_flip"]
        assert found == jev.Vanishing(both=0, vanish=total, appear=0)
        assert jev.vanishing(second, first) == jev.Vanishing(both=0, vanish=0, appear=total)
        queries = jev.Queries(first)
        a, b = (queries.values(jev.answers(pairs).outcomes["strict_flip"]) for pairs in (first, second))
        cohort = jev.year_cohort(queries.queries, 2019, resamples=300)
        difference = cohort.evaluate({"d": jev.paired_difference(a, b)})["d"]
        assert difference.value == audit(rows)["strict_flip"].value
        assert difference.ci95 == audit(rows)["strict_flip"].ci95
        assert difference.verdict == "positive"

    def test_actions_that_change_without_a_flip(self) -> None:
        rows = [
            {"query_id": "q", "scenario": "s", "before": {"a": 0.7, "b": 0.6}, "after": {"a": 0.6, "b": 0.7},
             "positive_labels": ["a"]},
            {"query_id": "q", "scenario": "t", "before": {"a": 0.7, "b": 0.6}, "after": {"a": 0.4, "b": 0.7},
             "positive_labels": ["a"]},
        ]  # fmt: skip
        assert jev.answers(pairs_of(rows)).actions_changed_without_flip == 1


class TestDegenerate:
    def test_no_events_at_all(self) -> None:
        rows = [{**row, "after": row["before"]} for row in predictions(11, queries=39)]
        found = audit(rows)
        for name in ("strict_flip", "action_change"):
            estimate = found[name]
            assert (estimate.value, estimate.ci95, estimate.ci95_wilson) == (0.0, None, None)
            assert estimate.reason == Reason.ZERO_EVENTS
            assert estimate.zero_event_upper95 == jev.zero_event_upper95(39)
        assert found["binary_accuracy_difference"].ci95 == (0.0, 0.0)
        assert found["binary_accuracy_difference"].verdict == "unresolved"

    def test_an_endpoint_of_zero_is_zero(self) -> None:
        rows = [{**row, "after": row["before"]} for row in predictions(12, queries=30)]
        rows[0]["after"] = {name: 1 - p for name, p in rows[0]["before"].items()}
        estimate = audit(rows)["strict_flip"]
        assert estimate.ci95 is not None
        assert estimate.ci95[0] == 0.0

    def test_a_rate_of_one(self) -> None:
        rows = [
            {"query_id": f"q{i:02}", "scenario": "s", "before": {"a": 0.4, "b": 0.3},
             "after": {"a": 0.6, "b": 0.7}, "positive_labels": []}
            for i in range(12)
        ]  # fmt: skip
        estimate = audit(rows)["strict_flip"]
        assert (estimate.value, estimate.ci95) == (1.0, (1.0, 1.0))
        trials = 24 * (critical.normal(0.975) / critical.student(0.975, 11)) ** 2
        assert estimate.ci95_wilson == intervals.wilson(1.0, trials, critical.normal(0.975))

    def test_one_query(self) -> None:
        rows = predictions(13, queries=1)
        for row in rows:
            row["before"], row["after"] = {"a": 0.4}, {"a": 0.6}
        estimate = audit(rows)["strict_flip"]
        assert (estimate.value, estimate.ci95, estimate.ci95_wilson) == (1.0, None, None)
        assert estimate.reason == Reason.ONE_CLUSTER

    def test_few_queries(self) -> None:
        found = audit(predictions(14, queries=9))
        for name in jev.DIFFERENCES:
            assert (found[name].verdict, found[name].reason) == (None, Reason.TOO_FEW_CLUSTERS)

    def test_no_rows(self) -> None:
        found = audit([])
        assert {e.reason for e in found.values()} == {Reason.EMPTY_COHORT}

    def test_target_counts_with_a_huge_common_multiple(self) -> None:
        rng = np.random.default_rng(15)
        rows = [
            {"query_id": f"q{i:03}", "scenario": "s", "positive_labels": [],
             "before": {f"t{j}": 0.4 for j in range(i + 1)},
             "after": {f"t{j}": float(rng.choice([0.4, 0.6])) for j in range(i + 1)}}
            for i in range(80)
        ]  # fmt: skip
        rows = [{**row, "variant": ""} for row in rows]
        pairs = pairs_of(rows)
        found = jev.Queries(pairs).values(jev.answers(pairs).outcomes["strict_flip"])
        assert found.denominator > 2**63
        assert found.mean == by_hand(rows)
        assert audit(rows)["strict_flip"].ci95 is not None
