"""Plans: what a file may declare, whether it came before the data, and what it did not name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from audits import plan, prespecified
from audits.plan import Plan
from audits.recompute import recompute
from audits.record import statement
from audits.transport import transport
from contracts.errors import ContractError, MalformedError, TamperError, UsageError
from ledger import plans
from ledger.snapshot import Level
from ledger.statement import Statement
from tests.audits.cohorts import Ledger, new_ledger, noisy, rows

DOCUMENT: dict[str, Any] = {
    "name": "main",
    "audit": "transport",
    "ref": "direct",
    "alt": "generated",
    "estimands": ["gain.ref", "flip_*"],
    "resamples": 100,
    "band": 0.25,
    "target_types": ["A"],
}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return new_ledger(tmp_path)


def declare(ledger: Ledger, **changes: Any) -> Plan:
    made = plan.read(DOCUMENT | changes, ledger.snapshot())
    plans.add(ledger.home, ledger.key, made.name, made.as_json())
    return made


def follow(ledger: Ledger, name: str = "main") -> dict[str, Any]:
    snapshot = ledger.snapshot()
    return dict(prespecified.run(snapshot, plans.find(snapshot.plans, name)).result)


def test_a_plan_before_the_scores_is_prespecified_and_names_what_is_post_hoc(ledger: Ledger) -> None:
    declare(ledger)
    ledger.ingest(rows(noisy(12, 1)))
    result = follow(ledger)
    said = result["provenance"]["prespecification"]
    assert (said["event"], said["first_entry_event"], said["late_by"]) == (3, 5, None)
    assert (said["prespecified"], said["weights"]) == (True, True)
    roles = {name: fields["role"] for name, fields in result["estimates"].items()}
    named = {name for name in roles if name in ("interaction", "gain.ref") or name.startswith("flip_")}
    assert {name for name, role in roles.items() if role != "post_hoc"} == named
    assert roles["interaction"] == "primary"
    assert set(said["post_hoc"]) == roles.keys() - named
    assert result["verdicts"]["equivalence"]["prespecified"] is True
    assert "post-hoc-weights" not in {limit["id"] for limit in result["limits"]}
    assert prespecified.clause(result) == "By plan main, declared 2 events before the first entry: "


def test_a_late_plan_says_by_how_many_events(ledger: Ledger) -> None:
    ledger.ingest(rows(noisy(12, 1)))
    declare(ledger)
    result = follow(ledger)
    said = result["provenance"]["prespecification"]
    assert (said["prespecified"], said["late_by"], said["weights"]) == (False, 1, False)
    assert result["verdicts"]["equivalence"]["prespecified"] is False
    assert "post-hoc-weights" in {limit["id"] for limit in result["limits"]}
    assert "came 1 event late" in prespecified.clause(result)


def test_numbers_are_those_of_the_same_audit_without_a_plan(ledger: Ledger) -> None:
    declare(ledger, estimands=["*"])
    ledger.ingest(rows(noisy(12, 1)))
    plain = transport(
        ledger.snapshot(), "direct", "generated", resamples=100, target_types=["A"]
    ).audit.result["estimates"]
    planned = follow(ledger)["estimates"]
    for name, fields in plain.items():
        assert [planned[name][part] for part in ("value", "ci95")] == [fields["value"], fields["ci95"]], name


def test_a_plan_without_entries_claims_nothing(ledger: Ledger) -> None:
    declare(ledger)
    said = follow(ledger)["provenance"]["prespecification"]
    assert (said["prespecified"], said["late_by"], said["first_entry_event"]) == (None, None, None)


def test_a_record_of_a_plan_is_computed_again_with_it(ledger: Ledger) -> None:
    declare(ledger)
    ledger.ingest(rows(noisy(12, 1)))
    snapshot = ledger.snapshot()
    found = prespecified.run(snapshot, snapshot.plans[0])
    made = statement(found, versions={}, time="2026-01-01T00:00:00Z")
    assert recompute(snapshot, made) == found.result_bytes

    def changed(**design: object) -> Statement:
        result = {**found.result, "design": {**found.result["design"], **design}}
        return Statement(made.subjects, made.predicate_type, {**made.predicate, "result": result})

    with pytest.raises(TamperError, match="does not have"):
        recompute(snapshot, changed(plan="sha256:" + "0" * 64))
    with pytest.raises(TamperError, match="another design"):
        recompute(snapshot, changed(seed=1))


def test_a_plan_reads_back_as_the_log_holds_it(ledger: Ledger) -> None:
    made = declare(ledger, acquisitions=["later", ["direct", "run-9"]], where={"step_kind": ["b", "a"]})
    snapshot = ledger.snapshot()
    (row,) = snapshot.plans
    assert plan.parse("main", row.plan, snapshot.book) == made
    scope = made.design.scope
    assert scope.require is Level.BOUND
    assert {name for _, name in scope.acquisitions} == {"later", "run-9"}
    for broken in ({}, {**row.plan, "more": 1}, {**row.plan, "estimands": []}, {**row.plan, "gates": []}):
        with pytest.raises(MalformedError):
            plan.parse("main", broken, snapshot.book)


@pytest.mark.parametrize("audit", ["contrast", "face", "repeatability", "jev"])
def test_other_kinds_of_audits_can_be_declared(ledger: Ledger, audit: str) -> None:
    arms: dict[str, dict[str, Any]] = {
        "contrast": {"ref": "direct", "alt": "generated"},
        "face": {"channel": "direct"},
        "repeatability": {"channel": "direct"},
        "jev": {"interventions": ["questions"], "threshold": 0.4},
    }
    document = {"name": "x", "audit": audit, "estimands": ["gain.ref"], **arms[audit]}
    made = plan.read(document, ledger.snapshot())
    assert made.audit == audit
    assert plan.parse("x", made.as_json(), ledger.snapshot().book) == made


def test_the_design_of_a_record_is_a_plan_of_any_kind(ledger: Ledger) -> None:
    ledger.ingest(rows(noisy(12, 1)))
    design = transport(ledger.snapshot(), "direct", "generated", resamples=100).audit.result["design"]
    document = {"name": "x", "audit": "transport", "design": design, "estimands": ["gain.ref"]}
    assert plan.read(document, ledger.snapshot()).estimands == ("interaction", "gain.ref")
    with pytest.raises(UsageError, match="another kind"):
        plan.read({**document, "audit": "cube"}, ledger.snapshot())


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"name": ""}, "name"),
        ({"audit": "weather"}, "audit"),
        ({"colour": "red"}, "colour"),
        ({"estimands": ["interactoin"]}, "estimands"),
        ({"estimands": "interaction"}, "estimands"),
        ({"completeness": "any"}, "completeness"),
        ({"primary": "gain.ref"}, "primary"),
        ({"require": "strong"}, "require"),
        ({"band": -1}, "--band"),
        ({"band": "wide"}, "band"),
        ({"resamples": 3.5}, "resamples"),
        ({"resamples": 3}, "--resamples"),
        ({"acquisitions": [1]}, "acquisitions"),
        ({"gates": 3}, "gates"),
        ({"where": {"energy": ["1"]}}, "--where"),
    ],
)
def test_a_wrong_key_is_named(ledger: Ledger, changes: dict[str, Any], where: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan.read(DOCUMENT | changes, ledger.snapshot())
    assert caught.value.where == where


def test_a_plan_is_never_changed_and_the_same_one_changes_nothing(ledger: Ledger) -> None:
    made = declare(ledger)
    again = plans.add(ledger.home, ledger.key, "main", made.as_json())
    assert (again.existed, again.event) == (True, 3)
    with pytest.raises(ContractError, match="never changed"):
        plans.add(ledger.home, ledger.key, "main", {**made.as_json(), "gates": {"equivalence": True}})
    rows_ = ledger.snapshot().plans
    assert len(rows_) == 1
    assert plans.find(rows_, rows_[0].digest[7:17]) == plans.find(rows_, "plan:main") == rows_[0]
    with pytest.raises(UsageError, match="unknown plan"):
        plans.find(rows_, "other")
    with pytest.raises(UsageError, match="not a plan name"):
        plans.add(ledger.home, ledger.key, "a b", made.as_json())
