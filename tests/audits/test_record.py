"""The shape of an audit record: what is signed, what is compared, and what must not stand in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from audits.design import METHOD, parse
from audits.record import PARTS, AuditResult, statement
from audits.transport import transport
from contracts.canonical import canonical
from ledger.statement import AUDIT, Statement
from tests.audits.cohorts import Face, Ledger, new_ledger, noisy, rows

TIME = "2026-02-03T04:05:06Z"
VERSIONS = {"evaluator-ledger": "9.8.7"}
ESTIMATES = {
    "gain.ref", "gain.alt", "interaction", "gain.ref@equal-target", "gain.alt@equal-target",
    "interaction@equal-target", "interaction.median", "interaction.trimmed10", "interaction.layout.0",
    "interaction.layout.1", "interaction.negative_share", "flip_share", "flip_direction_difference",
    "diagonal", "baseline_shift", "auc.ref", "auc.alt", "auc_gap",
}  # fmt: skip
RATES = {"flip_share", "interaction.negative_share", "auc.ref", "auc.alt"}
FIELDS = {
    "value", "ci95", "ci95_t", "verdict", "fragile", "mc_sensitive", "role", "n", "clusters",
    "undefined_replicates", "reason",
}  # fmt: skip


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    folder = tmp_path_factory.mktemp("record")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        made = new_ledger(folder, hosted=True)
        made.ingest(rows(_faces()))
    return made


def _faces() -> dict[tuple[str, int], Face]:
    return {
        key: Face(face.ref, face.alt, extra={"success": key[0] < "t015"})
        for key, face in noisy(30, 2).items()
    }


@pytest.fixture(autouse=True)
def _own_config(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of keys and pins in which this module's ledger was made."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(ledger.folder / "config"))


@pytest.fixture
def audit(ledger: Ledger) -> AuditResult:
    return transport(ledger.snapshot(), "direct", "generated", resamples=200).audit


@pytest.fixture
def made(audit: AuditResult) -> Statement:
    return statement(audit, versions=VERSIONS, time=TIME)


def keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield name
            yield from keys(part)
    elif isinstance(value, list):
        for part in value:
            yield from keys(part)


def texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)


def test_the_predicate_has_its_four_parts_and_the_result_its_seven(made: Statement) -> None:
    assert made.predicate_type == AUDIT
    assert set(made.predicate) == {"audit", "schema", "result", "environment"}
    assert made.predicate["audit"] == "transport"
    result = made.predicate["result"]
    assert isinstance(result, dict)
    assert set(result) == set(PARTS)


def test_every_estimate_is_there_with_the_fields_of_its_kind(audit: AuditResult) -> None:
    estimates = audit.result["estimates"]
    assert set(estimates) == ESTIMATES
    for name, fields in estimates.items():
        assert {"value", "ci95", "role", "n", "clusters", "undefined_replicates"} <= set(fields) <= FIELDS
        assert fields["role"] == ("primary" if name == "interaction" else "secondary")
        if name in RATES:
            assert "verdict" not in fields
        else:
            assert fields["verdict"] in ("positive", "negative", "unresolved")
    assert METHOD["multiplicity"] == "one-primary-others-secondary-unadjusted"


def test_subjects_are_the_tree_head_and_the_segments_read(ledger: Ledger, made: Statement) -> None:
    snapshot = ledger.snapshot()
    (segment,) = snapshot.segments
    head, read = made.subjects
    assert head.name == f"{snapshot.origin}@{snapshot.size}"
    assert head.digest == {"sha256": snapshot.root.removeprefix("sha256:")}
    root = segment.root.removeprefix("sha256:")
    assert read.name == f"segment:{root[:16]}"
    assert read.digest == {"blake3": segment.file.removeprefix("blake3:"), "sha256": root}


def test_the_result_knows_no_time_version_path_head_or_channel_name(
    ledger: Ledger, audit: AuditResult, made: Statement
) -> None:
    result = made.predicate["result"]
    snapshot = ledger.snapshot()
    for secret in (
        TIME,
        "9.8.7",
        str(ledger.folder),
        snapshot.origin,
        snapshot.root[7:],
        "direct",
        "generated",
    ):
        assert not any(secret in text for text in texts(result)), secret
    environment: Any = made.predicate["environment"]
    assert environment["time"] == TIME
    assert environment["versions"] == VERSIONS
    assert environment["head"] == {"origin": snapshot.origin, "size": snapshot.size, "root": snapshot.root}
    assert environment["channels"]["ref"]["name"] == "direct"
    assert audit.result["design"]["arms"][0]["channel"] == environment["channels"]["ref"]["fingerprint"]


def test_the_result_is_canonical_and_reads_back(audit: AuditResult, made: Statement) -> None:
    assert audit.result_bytes == canonical(json.loads(audit.result_bytes))
    assert canonical(json.loads(made.to_bytes())["predicate"]["result"]) == audit.result_bytes


def test_names_that_programs_search_for_stand_once(audit: AuditResult) -> None:
    found = list(keys(json.loads(audit.result_bytes)))
    for name in (
        "flips", "flow", "estimates", "interaction_signs", "se_cr1", "design_effect", "pooled_sign_threshold",
        "strict_mean_reversal", "leave_one_trajectory_out", "location_agrees", "verdicts", "provenance",
    ):  # fmt: skip
        assert found.count(name) == 1, name


def test_a_design_reads_back_as_itself(ledger: Ledger, audit: AuditResult) -> None:
    stored = json.loads(canonical(audit.result["design"]))
    read = parse(stored, ledger.snapshot().book)
    assert read is not None
    assert read.as_json() == stored


def test_what_no_hash_can_prove_is_written_down(ledger: Ledger, audit: AuditResult) -> None:
    claims = {row["id"] for row in audit.result["provenance"]["non_claims"]}
    assert claims == {"gold-isolation", "hosted-weights", "no-collector-signature"}
    counted = audit.result["provenance"]
    assert counted["entries_in"] == counted["entries_kept"] == 960
    assert counted["level"] == "bound"
    assert not any(counted["entries_out"].values())
    limits = [row["id"] for row in audit.result["limits"]]
    assert len(limits) == len(set(limits))
    assert limits[:3] == ["not-causal-credit", "not-a-mechanism", "not-repeatability"]


def test_a_result_without_one_of_its_parts_is_a_bug(audit: AuditResult) -> None:
    rest = {name: part for name, part in audit.result.items() if name != "limits"}
    with pytest.raises(AssertionError):
        AuditResult(audit.audit, audit.schema, rest, audit.head, audit.segments, audit.channels)


def test_weights_only_choose_what_is_quoted(ledger: Ledger, audit: AuditResult) -> None:
    other = transport(
        ledger.snapshot(), "direct", "generated", resamples=200, weights="equal-target"
    ).audit.result
    assert other["estimates"] == audit.result["estimates"]
    assert other["verdicts"] == audit.result["verdicts"]
    assert other["design"] != audit.result["design"]


def test_channel_names_are_aliases(ledger: Ledger, audit: AuditResult) -> None:
    fingerprint = audit.channels["ref"].fingerprint
    again = transport(ledger.snapshot(), fingerprint[:30], "generated@1", resamples=200).audit
    assert again.result_bytes == audit.result_bytes
