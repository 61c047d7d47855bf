"""What ingest refuses: single sides, kept by name, and whole calls that leave nothing behind."""

from __future__ import annotations

import pytest
from pyarrow import parquet as pq

from contracts.errors import ContractError, StorageError, UsageError
from ledger import ingest
from ledger.event_types import AcquisitionEvent, RefusalEvent
from ledger.receipt import RefusedCallError
from ledger.refusals import decode_index
from tests.ledger.homes import Place, files
from tests.ledger.ingest_calls import logged, place, stored, take, take_rows, template
from tests.ledger.score_files import rows, without, write

__all__ = ["place", "template"]  # fixtures


# --- refused sides


def test_an_incomplete_side_is_refused_by_name_and_kept(place: Place) -> None:
    made = without(
        rows(), trajectory_id="traj001", step=1, endpoint="after", channel="direct", layout=1, candidate="B"
    )
    receipt = take_rows(place, made)
    assert (receipt.admitted, receipt.refused_sides, receipt.refused_rows) == (len(made) - 11, 1, 11)
    assert receipt.exit_code == 0
    refusal = logged(place)[-1]
    assert isinstance(refusal, RefusalEvent)
    assert (refusal.sides, refusal.rows) == (1, 11)
    assert receipt.refusal is not None
    assert receipt.refusal.event == receipt.head[0] - 1  # type: ignore[index]
    (side,) = decode_index(place.home.objects.read_checked(receipt.refusal.index_file), 0)
    assert (side.trajectory_id, side.step, side.rows) == ("traj001", 1, 11)
    assert [(f.endpoint, f.layout, f.candidate, f.kind) for f in side.faults] == [("after", 1, "B", "absent")]
    kept = pq.read_table(place.home.objects.path(receipt.refusal.rows_file))
    assert sorted(kept["energy"].to_pylist()) == sorted(
        row["energy"] for row in made
        if (row["trajectory_id"], row["step"], row["channel"]) == ("traj001", 1, "direct")
    )  # fmt: skip


def test_refused_once_and_whole_later_is_admitted(place: Place) -> None:
    made = rows()
    take_rows(
        place, without(made, trajectory_id="traj001", step=1, channel="direct", layout=1, candidate="B")
    )
    receipt = take_rows(place, made, "whole")
    assert (receipt.admitted, receipt.skipped, receipt.refused_sides) == (12, len(made) - 12, 0)
    assert stored(place) == len(made)


def test_the_same_refusal_is_recorded_once_and_another_one_anew(place: Place) -> None:
    made = rows()
    one = without(made, trajectory_id="traj001", step=1, channel="direct", layout=1, candidate="B")
    first = take_rows(place, one)
    again = take_rows(place, one)
    assert (again.refused_sides, again.refused_before, again.refusal, again.head) == (1, 1, None, first.head)
    two = without(one, trajectory_id="traj002", step=0, channel="generated", endpoint="before")
    # traj002 stands in the ledger already, so only a new acquisition can leave it incomplete
    two = [row | {"acquisition_id": "main-2"} for row in two]
    take_rows(place, two)
    other = without(two, trajectory_id="traj001", step=1, channel="direct", layout=0, candidate="B")
    third = take_rows(place, other)
    assert (third.refused_sides, third.refused_before) == (2, 1)
    assert third.refusal is not None
    (side,) = decode_index(place.home.objects.read_checked(third.refusal.index_file), 0)
    assert (side.trajectory_id, third.refusal.rows) == ("traj001", side.rows)


def test_a_call_with_nothing_to_admit_records_the_refusal_and_fails(place: Place) -> None:
    receipt = take_rows(place, without(rows([0], 1, names=["direct"]), layout=1))
    assert (receipt.admitted, receipt.refused_sides, receipt.exit_code) == (0, 1, 1)
    assert isinstance(logged(place)[-1], RefusalEvent)
    assert take_rows(place, without(rows([0], 1, names=["direct"]), layout=1)).exit_code == 1


def test_a_side_spread_over_calls_is_refused_and_over_files_admitted(place: Place) -> None:
    made = rows([0])
    folder = place.home.path.parent
    parts = [write(folder / f"{i}.parquet", made[i::2]) for i in range(2)]
    assert take(place, parts[0]).admitted == 0
    assert take(place, *parts).admitted == len(made)


# --- refused calls


@pytest.mark.parametrize("dry_run", [False, True])
def test_strict_refuses_everything_when_anything_is_refused(place: Place, dry_run: bool) -> None:
    before = files(place.home.path)
    made = without(rows(), trajectory_id="traj001", layout=1)
    with pytest.raises(RefusedCallError) as caught:
        take_rows(place, made, strict=True, dry_run=dry_run)
    assert caught.value.exit_code == 1
    assert caught.value.receipt.findings.total == 4
    assert files(place.home.path) == before


def test_a_fault_in_a_row_refuses_the_call(place: Place) -> None:
    before = files(place.home.path)
    made = rows()
    made[7]["energy"] = float("nan")
    with pytest.raises(RefusedCallError) as caught:
        take_rows(place, made)
    assert caught.value.receipt.findings.examples[0].rows == (8,)
    assert files(place.home.path) == before


def test_an_unknown_channel_is_refused_with_the_command_to_run(place: Place) -> None:
    with pytest.raises(ContractError, match="ledger channel add"):
        take_rows(place, [row | {"channel": "nobody"} for row in rows([0])])


def test_defaults_stand_for_missing_columns(place: Place) -> None:
    made = [
        {k: v for k, v in row.items() if k not in ("channel", "acquisition_id")}
        for row in rows(names=["direct"])
    ]
    assert take_rows(place, made, channel="direct", acquisition="given").admitted == len(made)
    assert [event.id for event in logged(place) if isinstance(event, AcquisitionEvent)] == ["given"]


def test_files_of_no_or_unreadable_kind(place: Place) -> None:
    with pytest.raises(UsageError, match="one kind"):
        take(place)
    with pytest.raises(StorageError):
        take(place, place.home.path.parent / "absent.parquet")


def test_a_dry_run_says_what_would_be_and_writes_nothing(place: Place) -> None:
    before = files(place.home.path)
    made = without(rows(), trajectory_id="traj001", step=1, channel="direct", layout=1)
    planned = ingest.ingest(
        place.home, [write(place.home.path.parent / "s.parquet", made)], key=None, dry_run=True
    )
    assert files(place.home.path) == before
    real = take(place, place.home.path.parent / "s.parquet")
    assert (planned.admitted, planned.refused_sides, planned.exit_code) == (real.admitted, 1, 0)
    assert [s.root for s in planned.segments] == [s.root for s in real.segments]
