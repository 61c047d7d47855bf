"""The next step that is named after a refusal fits what was found."""

from __future__ import annotations

import pytest

from contracts.advice import LISTING, next_step
from contracts.errors import ContractError
from contracts.findings import Finding, Findings
from contracts.kinds import decide
from contracts.reporting import to_lines


def _found(*codes: str) -> Findings:
    findings = Findings()
    for code in codes:
        findings.add(Finding(code, "side" if code.startswith("cell") else "file", code))
    return findings


def test_nothing_found_needs_no_step() -> None:
    assert next_step(Findings()) is None


@pytest.mark.parametrize(
    ("code", "step"),
    [
        ("missing-column", "--template transport"),
        ("unknown-channel", "ledger channel add"),
        ("conflict", "--supersedes OLD"),
        ("cell-duplicated", "acquisition_id of its own"),
        ("nan", "mend the rows"),
    ],
)
def test_each_fault_has_its_own_step(code: str, step: str) -> None:
    told = next_step(_found(code))
    assert told is not None
    assert step in told
    assert LISTING not in told


def test_what_refuses_the_call_comes_first_and_many_are_listed_elsewhere() -> None:
    told = next_step(_found("cell-missing", "cell-missing", "cell-missing", "wrong-type"))
    assert told is not None
    assert told.startswith("write the columns")
    assert told.endswith(LISTING)


def test_another_file_is_named_only_where_there_is_none() -> None:
    assert "ledger ingest a.csv OTHER" in str(next_step(_found("cell-missing"), ["a.csv"]))
    assert "OTHER" not in str(next_step(_found("cell-missing"), ["a.csv", "b.csv"]))


def test_all_faults_of_columns_are_shown() -> None:
    assert len(to_lines(_found(*["missing-column"] * 6, "conflict"))) == 7


def test_a_misspelt_energy_is_guessed_and_every_missing_column_named() -> None:
    with pytest.raises(ContractError, match=r"scores without step, energy") as caught:
        decide(
            [
                "trajectory_id",
                "endpoint",
                "channel",
                "layout",
                "acquisition_id",
                "candidate",
                "enrgy",
                "target",
            ]
        )
    assert "did you mean energy by enrgy?" in str(caught.value.next_step)
