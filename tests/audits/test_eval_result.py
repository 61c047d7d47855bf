"""The eval-result form of a record: every required part, digests over what they name, claims that follow."""

from __future__ import annotations

import base64
import copy
import hashlib
from pathlib import Path
from typing import Any

import pytest

from audits.eval_result import PREDICATE, eval_result
from audits.record import statement
from audits.transport import transport
from contracts.errors import CannotAnswerError
from ledger.statement import Statement, parse
from tests.audits.cohorts import new_ledger, noisy, rows

RECORD = "sha256:" + "ab" * 32
REQUIRED = {
    "evaluator", "evaluatedAt", "suite", "claims", "sampleSize", "model", "dataset", "assuranceLevel",
    "subjectProfile",
}  # fmt: skip


@pytest.fixture(scope="module")
def stated(tmp_path_factory: pytest.TempPathFactory) -> Statement:
    folder: Path = tmp_path_factory.mktemp("eval")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        ledger = new_ledger(folder)
        ledger.ingest(rows(noisy(12, 1)))
        audit = transport(ledger.snapshot(), "direct", "generated", resamples=100).audit
    return statement(audit, versions={"evaluator-ledger": "0.1.0"}, time="2026-01-01T00:00:00Z")


def made(stated: Statement, **wanted: bool | float) -> dict[str, Any]:
    found = eval_result(stated, record=RECORD, event=5, signer="00" * 32, wanted=wanted)
    again = parse(found.to_bytes())
    assert again.predicate_type == PREDICATE
    assert [dict(s.digest) for s in again.subjects] == [{"sha256": "ab" * 32}]
    return dict(again.predicate)


def test_every_required_part_is_there_and_digests_are_of_what_they_name(stated: Statement) -> None:
    found = made(stated)
    assert set(found) >= REQUIRED
    assert "commitments" not in found
    for name in ("model", "dataset"):
        content = base64.b64decode(found[name]["content"])
        assert found[name]["digest"]["sha256"] == hashlib.sha256(content).hexdigest()
    assert found["sampleSize"] == 12
    assert found["evidence"][0]["digest"]["sha256"] == "ab" * 32
    assert found["evidence"][0]["uri"].endswith(":event:5")
    assert "preRegistration" not in found
    assert found["harness"] == {"name": "evaluator-ledger", "version": "0.1.0"}


def test_claims_are_the_gates_with_thresholds_as_text(stated: Statement) -> None:
    claims = made(stated, max_flip_share=0.125, min_complete_share=1, no_strict_reversal=True)["claims"]
    assert [(c["metric"], c["comparator"], c["threshold"]) for c in claims] == [
        ("strict_mean_reversal.supported", "<=", "0"),
        ("flip_share", "<=", "0.125"),
        ("complete_share", ">=", "1"),
    ]
    assert claims[2]["passed"] is True
    assert claims[1]["passed"] is False


def test_without_gates_the_verdicts_are_claimed(stated: Statement) -> None:
    (claim,) = made(stated)["claims"]
    assert claim["metric"] == "strict_mean_reversal.supported"
    result = copy.deepcopy(dict(stated.predicate["result"]))  # type: ignore[call-overload]
    result["verdicts"] = {"flips": {"2019": "none_seen", "2020": "seen"}}
    flips = Statement(stated.subjects, stated.predicate_type, {**stated.predicate, "result": result})
    assert [(c["metric"], c["passed"]) for c in made(flips)["claims"]] == [
        ("2019.strict_flip", True),
        ("2020.strict_flip", False),
    ]
    result["verdicts"] = {}
    silent = Statement(stated.subjects, stated.predicate_type, {**stated.predicate, "result": result})
    with pytest.raises(CannotAnswerError):
        made(silent)


def test_a_plan_that_came_first_is_the_pre_registration(stated: Statement) -> None:
    result = copy.deepcopy(dict(stated.predicate["result"]))  # type: ignore[call-overload]
    result["provenance"]["prespecification"] = {"prespecified": True, "plan": "sha256:" + "cd" * 32}
    planned = Statement(stated.subjects, stated.predicate_type, {**stated.predicate, "result": result})
    assert made(planned)["preRegistration"] == {"alg": "sha256", "value": "cd" * 32}
