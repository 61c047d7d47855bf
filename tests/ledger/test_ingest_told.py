"""What a person hears of an ingest: files named twice, the audit to run next, what audits will leave out."""

from __future__ import annotations

import pytest

from contracts.errors import ContractError
from tests.ledger.homes import Place
from tests.ledger.ingest_calls import place, stored, take, take_rows, template
from tests.ledger.score_files import rows, write

__all__ = ["place", "template"]  # fixtures


def test_a_file_named_twice_is_no_duplicate_of_its_rows(place: Place) -> None:
    path = write(place.home.path.parent / "a.parquet", rows())
    copy = path.with_name("b.parquet")
    copy.write_bytes(path.read_bytes())
    for names, told in (((path, path), "named twice"), ((path, copy), "very bytes of")):
        with pytest.raises(ContractError, match=told) as caught:
            take(place, *names)
        assert caught.value.code == "file-twice"
    assert stored(place) == 0


def test_two_channels_with_entries_can_be_audited(place: Place) -> None:
    assert take_rows(place, rows(names=["direct"]), "one").next_step is None
    told = take_rows(place, rows(names=["generated"]), "two").next_step
    assert told == "ledger audit transport --ref direct --alt generated"


def test_only_channels_with_a_transition_in_common_are_put_to_an_audit(place: Place) -> None:
    assert take_rows(place, rows([0, 1], names=["direct"]), "one").next_step is None
    assert take_rows(place, rows([5, 6], names=["generated"]), "two").next_step is None
    told = take_rows(place, rows([6], names=["direct"]), "three").next_step
    assert told == "ledger audit transport --ref direct --alt generated"


def test_equal_notes_of_several_channels_are_one(place: Place) -> None:
    take_rows(place, rows([0]), "one")
    told = take_rows(place, [{**r, "acquisition_id": "again"} for r in rows([0])], "two").warnings
    (line,) = (line for line in told if "several acquisitions" in line)
    assert line.startswith("direct, generated have several acquisitions now (again, ")


def test_a_further_acquisition_of_a_channel_is_told_of(place: Place) -> None:
    assert take_rows(place, rows([0], 1), "one").warnings == ()
    (first, *_) = take_rows(place, [{**r, "acquisition_id": "again"} for r in rows([0], 1)], "two").warnings
    assert "direct, generated have several acquisitions now" in first
    assert "every acquisition of a channel in scope" in first


def test_what_audits_will_leave_out_is_told_at_ingest(place: Place) -> None:
    same = "blake3:" + "ab" * 32
    made = [
        {**r, "request_hash": same if r["endpoint"] == "before" else r["request_hash"]} for r in rows([0], 1)
    ]
    (line,) = take_rows(place, made, dry_run=True).warnings
    assert line.startswith(f"request-rotated will keep {len(made) // 2} entries out of audits")
    states = [{**r, "state_hash": same if r["layout"] == 0 else r["state_hash"]} for r in rows([1], 1)]
    (line,) = take_rows(place, states, dry_run=True).warnings
    assert line.startswith(f"state-frozen will keep {len(states)} entries out of audits")


def test_a_contradiction_with_entries_is_told_of_too(place: Place) -> None:
    take_rows(place, rows([0], 1, names=["direct"]), "one")
    other = [{**r, "state_hash": "blake3:" + "cd" * 32} for r in rows([0], 1, names=["generated"])]
    (line,) = take_rows(place, other, "two").warnings
    assert line.startswith("state-frozen will keep")
