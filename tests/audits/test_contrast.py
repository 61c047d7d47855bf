"""Controls: any two channels or view sources, own view against a donor's."""

from __future__ import annotations

from pathlib import Path

import pytest

from audits.arms import parse_arm
from audits.contrast import contrast
from audits.recompute import recompute
from audits.record import statement
from audits.results import Audited
from contracts.errors import UsageError
from tests.audits.cohorts import Ledger, Row, digest
from tests.audits.family import family, shuffled, side

SPECS = {"own": {"view": "generated"}, "other": {"view": "generated", "order": "view-first"}}


def donor_of(t: int, trajectories: int) -> str:
    return f"t{(t + 1) % trajectories:03d}"


def rows(trajectories: int = 12, level: float = 0.0) -> list[Row]:
    """Each trajectory under its own view and under that of the next one, which takes 1/2 from its gain."""
    made: list[Row] = []
    for t in range(trajectories):
        name, gain = f"t{t:03d}", level + (t % 5 - 1) / 4
        made += side("own", name, (0.0, gain))
        for row in side("own", name, (0.0, gain - 0.5), source=f"donor:{donor_of(t, trajectories)}"):
            made.append(row | {"view_hash": digest("view", donor_of(t, trajectories), 0, row["endpoint"])})
        made += side("other", name, (0.0, gain + 0.25))
    return made


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return family(tmp_path, SPECS)


def run(ledger: Ledger, ref: str, alt: str, **more: object) -> Audited:
    return contrast(ledger.snapshot(), ref, alt, resamples=200, **more)  # type: ignore[arg-type]


def test_own_minus_donor_is_the_gain_of_one_view_minus_that_of_the_other(ledger: Ledger) -> None:
    ledger.ingest(rows())
    found = run(ledger, "own:donor", "own:own").result
    assert found["estimates"]["interaction"]["value"] == 0.5
    assert found["estimates"]["interaction"]["role"] == "primary"
    assert found["flow"]["complete"] == 12
    assert run(ledger, "own", "own:donor").estimates["interaction"]["value"] == -0.5


def test_the_record_holds_the_donor_of_every_transition(ledger: Ledger) -> None:
    ledger.ingest(rows())
    donors = run(ledger, "own:donor", "own").result["tables"]["donors"]
    assert donors == {"ref": [[f"t{t:03d}", 0, donor_of(t, 12)] for t in range(12)]}


def test_an_arm_without_donors_needs_no_map(ledger: Ledger) -> None:
    ledger.ingest(rows())
    assert "donors" not in run(ledger, "own", "other").result["tables"]


def test_a_transition_with_several_donors_is_left_out(ledger: Ledger) -> None:
    second = [
        row | {"view_hash": digest("view", "t008", 0, row["endpoint"])}
        for row in side("own", "t003", (0.0, 1.0), source="donor:t008", acquisition="main-1")
    ]
    ledger.ingest(rows() + second)
    found = run(ledger, "own:donor", "own").result
    assert found["flow"]["complete"] == 11
    (excluded,) = found["flow"]["excluded"]
    assert (excluded["reason"], excluded["transitions"]) == ("several-donors", 1)
    assert excluded["examples"] == ["t003/step00: several donors for one transition"]
    assert "t003" not in {name for name, _, _ in found["tables"]["donors"]["ref"]}


def test_one_donor_alone_is_an_arm_of_its_own(ledger: Ledger) -> None:
    ledger.ingest(rows())
    flow = run(ledger, "own:donor:t004", "own").result["flow"]
    assert flow["complete"] == 1


def test_any_two_channels_compare_on_the_transitions_complete_in_both(ledger: Ledger) -> None:
    lacking = ("t005", "other", "after", 1)
    ledger.ingest(
        [r for r in rows() if (r["trajectory_id"], r["channel"], r["endpoint"], r["layout"]) != lacking]
    )
    found = run(ledger, "own:own", "other", band=1.0).result
    assert found["estimates"]["interaction"]["value"] == 0.25
    assert (found["flow"]["complete"], found["flow"]["excluded"][0]["transitions"]) == (11, 1)
    assert found["verdicts"]["equivalence"]["established"] is True


def test_an_arm_is_not_compared_with_itself(ledger: Ledger) -> None:
    with pytest.raises(UsageError) as refused:
        run(ledger, "own", "own:own")
    assert refused.value.code == "same-arm"


def test_an_unknown_view_source_is_refused_with_those_there_are(ledger: Ledger) -> None:
    with pytest.raises(UsageError) as refused:
        run(ledger, "own:donors", "own")
    assert refused.value.where == "--ref"
    assert "own, before, after, donor" in str(refused.value)


def test_a_fingerprint_may_carry_a_view_source(ledger: Ledger) -> None:
    snapshot = ledger.snapshot()
    channel = snapshot.book.resolve("own")
    assert parse_arm(f"{channel.short}:donor", snapshot, "--ref").view_source == "donor"
    assert parse_arm(channel.fingerprint, snapshot, "--ref").view_source == "own"


def test_names_say_whose_view_an_arm_was_shown(ledger: Ledger) -> None:
    ledger.ingest(rows())
    found = run(ledger, "own:donor", "own")
    assert found.audit.names == {"ref": "own:donor", "alt": "own"}
    assert "under own:donor and" in found.sentence


def test_the_result_is_the_same_bytes_for_permuted_rows_and_when_computed_again(tmp_path: Path) -> None:
    results = []
    for place, given in enumerate((rows(), shuffled(rows()))):
        folder = tmp_path / str(place)
        folder.mkdir()
        ledger = family(folder, SPECS)
        ledger.ingest(given)
        found = run(ledger, "own:donor", "own", band=0.5).audit
        stated = statement(found, versions={}, time="2026-02-03T04:05:06Z")
        assert recompute(ledger.snapshot(), stated) == found.result_bytes
        results.append(found.result_bytes)
    assert results[0] == results[1]
