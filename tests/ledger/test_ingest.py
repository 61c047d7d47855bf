"""Ingest: one call is judged as one set, recorded whole or not at all, and never twice."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet as pq

from contracts.errors import StorageError, TamperError
from ledger import channels, durable, existing, log, segments
from ledger.event_types import AcquisitionEvent, SegmentEvent
from ledger.index import Index
from ledger.object_names import segment_name
from ledger.objects import Objects
from ledger.receipt import RefusedCallError
from ledger.segment_reader import SegmentReader, StoredSegment
from tests.ledger import score_files
from tests.ledger.homes import Place, by_hand, files
from tests.ledger.ingest_calls import logged, place, stored, take, take_rows, template
from tests.ledger.score_files import rows, write

__all__ = ["place", "template"]  # fixtures

SHARED = Path(__file__).parents[2].parent / "shared"


def roots(place: Place) -> list[str]:
    return [event.root for event in logged(place) if isinstance(event, SegmentEvent)]


# --- what is recorded


def test_rows_become_entries_with_events_that_say_what_they_are(place: Place) -> None:
    made = rows()
    receipt = take_rows(place, made)
    assert (receipt.rows, receipt.admitted, receipt.skipped, receipt.refused_sides) == (
        len(made),
        len(made),
        0,
        0,
    )
    assert receipt.exit_code == 0
    acquisition, segment = logged(place)[-2:]
    assert isinstance(acquisition, AcquisitionEvent)
    assert isinstance(segment, SegmentEvent)
    assert (acquisition.id, acquisition.kind) == ("main-1", "transport")
    assert (segment.rows, segment.trajectories, segment.kind) == (len(made), 4, "transport")
    assert (segment.first, segment.last) == (("traj000", 0), ("traj003", 1))
    assert isinstance(segment.sources, tuple)
    assert [(source.name, source.rows) for source in segment.sources] == [("scores.parquet", len(made))]
    (written,) = receipt.segments
    assert (written.root, written.file, written.event) == (segment.root, segment.file, receipt.head[0] - 1)  # type: ignore[index]
    assert json.loads(json.dumps(receipt.as_json()))["admitted"] == len(made)


def test_each_entry_keeps_the_place_of_its_row(place: Place) -> None:
    made = rows()
    random.Random(3).shuffle(made)
    take(
        place,
        write(place.home.path.parent / "a.parquet", made[:90]),
        write(place.home.path.parent / "b.parquet", made[90:]),
    )
    with Index.open(place.home) as index:
        (segment,) = index.segments()
    with SegmentReader.ranged(place.home.objects, segment) as reader:
        where, table = reader.source_rows(), reader.read()
    assert [source.name for source in segment.sources] == ["a.parquet", "b.parquet"]
    for file, row, energy in zip(where.files, where.rows, table["energy"].to_pylist(), strict=True):
        assert made[(0, 90)[file] + int(row) - 1]["energy"] == energy


def test_order_and_split_of_one_call_do_not_change_the_roots(
    place: Place, template: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = rows()
    take_rows(place, made)
    shuffled = made[:]
    random.Random(1).shuffle(shuffled)
    other = template.copy(tmp_path_factory.mktemp("shuffled")).use()
    take_rows(other, shuffled)
    third = template.copy(tmp_path_factory.mktemp("split")).use()
    folder = third.home.path.parent
    take(third, *(write(folder / f"{part}.parquet", shuffled[part::3]) for part in range(3)))
    assert roots(place) == roots(other) == roots(third) != []


def test_a_large_call_is_cut_into_segments_in_one_commit(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "SEGMENT_ROWS", 64)
    receipt = take_rows(place, rows())
    assert [segment.rows for segment in receipt.segments] == [64, 64, 64]
    assert stored(place) == 192


def test_large_files_are_decoded_beside_the_imports_with_the_same_outcome(
    place: Place, template: Place, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own, where nothing is imported yet; what was hidden meanwhile is back after it."""
    take_rows(place, rows())
    other = template.copy(tmp_path_factory.mktemp("large"))
    file = write(other.home.path.parent / "scores.parquet", rows())
    code = (
        "import sys; from pathlib import Path; from ledger import home, ingest; ingest.LARGE = 0\n"
        "where = home.read(Path(sys.argv[1]))\n"
        "receipt = ingest.ingest(where, [sys.argv[2]], key=home.signing_key(where))\n"
        "import hypothesis; print(receipt.admitted, *[s.root for s in receipt.segments])"
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(other.config))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    done = subprocess.run(
        [sys.executable, "-c", code, str(other.home.path), str(file)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(len(rows())), *roots(place)]


# --- again, and more


def test_the_same_file_again_appends_nothing(place: Place) -> None:
    made = rows()
    first = take_rows(place, made)
    before = files(place.home.path)
    again = take_rows(place, made)
    assert (again.admitted, again.skipped, again.exit_code, again.head) == (0, len(made), 0, first.head)
    assert files(place.home.path) == before


def test_an_overlapping_file_adds_what_is_new(place: Place) -> None:
    take_rows(place, rows(range(0, 3)))
    receipt = take_rows(place, rows(range(2, 5)))
    assert (receipt.admitted, receipt.skipped) == (96, 48)
    assert stored(place) == 240


def test_a_second_acquisition_and_channel_join_the_same_transitions(place: Place) -> None:
    take_rows(place, rows(names=["direct"]))
    take_rows(place, rows(names=["generated"]))
    take_rows(place, rows(acquisition="main-2"))
    assert [event.id for event in logged(place) if isinstance(event, AcquisitionEvent)] == [
        "main-1",
        "main-2",
    ]
    assert stored(place) == 2 * len(rows())


def test_the_same_key_with_another_energy_names_both_sources(place: Place) -> None:
    made = rows()
    take_rows(place, made)
    before = files(place.home.path)
    changed = [dict(row) for row in made]
    changed[17]["energy"] += 1.0
    with pytest.raises(RefusedCallError) as caught:
        take_rows(place, changed, "other")
    assert caught.value.code == "conflict"
    assert "other.parquet row 18" in str(caught.value)
    assert "scores.parquet row 18" in str(caught.value)
    assert caught.value.receipt.admitted == 0
    assert files(place.home.path) == before


def test_one_candidates_digest_never_stands_for_two_sets(place: Place) -> None:
    """Also where the other set is in a trajectory the call does not touch."""
    take_rows(place, rows([0]))
    (place.home.path.parent / "free.toml").write_text(
        score_files.SPEC.format(name="free", view="none").replace('labels = ["A", "B", "C"]\n', "")
    )
    channels.add(place.home, place.key, [place.home.path.parent / "free.toml"])
    other = [row for row in rows([5], names=["direct"]) if row["candidate"] != "C"]
    for row in other:
        row |= {"channel": "free", "candidates_hash": rows([0])[0]["candidates_hash"]}
    receipt = take_rows(place, other)
    assert receipt.admitted == 0
    assert "candidates-rebound" in receipt.findings.by_code


def test_what_small_segments_say_of_candidates_is_read_once_and_for_one_ledger(
    place: Place, tmp_path: Path, template: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        take_rows(place, rows([number]))
    opened: list[str] = []
    whole = SegmentReader.whole

    def counting(
        objects: Objects, segment: StoredSegment, folder: segments.Folder = "segments"
    ) -> SegmentReader:
        opened.append(segment.file)
        return whole(objects, segment, folder)

    monkeypatch.setattr(SegmentReader, "whole", counting)
    take_rows(place, rows([3]))
    assert len(opened) == 1  # the segment of the call before
    other = template.copy(tmp_path / "other").use()
    shared = [row | {"candidates_hash": rows([0])[0]["candidates_hash"]} for row in rows([9], steps=1)]
    assert take_rows(other, shared).admitted == len(shared)
    take_rows(other, rows([10]))
    assert len(existing._known.files) == 1  # nothing is known there of the first ledger
    place.use()
    take_rows(place, rows([4]))
    assert len(existing._known.files) == 4


@pytest.mark.parametrize("damage", ["gone", "shorter", "longer"])
def test_a_segment_that_is_damaged_after_it_was_read_is_noticed(place: Place, damage: str) -> None:
    """What this process remembers of a file counts only while the file is there and has its length."""
    for number in range(2):
        take_rows(place, rows([number]), str(number))
    (first, *_) = (event for event in logged(place) if isinstance(event, SegmentEvent))
    path = place.home.objects.path(segment_name(first.file))  # type: ignore[attr-defined]
    data = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(data[:-1] if damage == "shorter" else data + b"x")
    with pytest.raises((StorageError, TamperError)) as caught:
        take_rows(place, rows([2]), "2")
    assert first.file.removeprefix("blake3:") in str(caught.value)
    path.write_bytes(data)
    assert take_rows(place, rows([2]), "2").admitted == len(rows([2]))


@pytest.mark.parametrize(
    "column",
    ["file", "root", "rows", "leaves", "rows_file", "first_trajectory", "last_trajectory", "last_step"],
)
def test_a_catalog_that_says_something_else_of_a_segment_is_met_by_no_call(place: Place, column: str) -> None:
    take_rows(place, rows([0]))
    by_hand(place, f"UPDATE segment SET {column} = ?", 7 if column in ("rows", "last_step") else "traj099")
    with pytest.raises(TamperError, match="something else than the log"):
        take_rows(place, rows([5]))


def test_success_is_constant_in_a_trajectory_over_calls(place: Place) -> None:
    take_rows(place, rows([0], steps=1))
    later = [row | {"success": not row["success"]} for row in rows([0], steps=2) if row["step"] == 1]
    assert "two-successes" in take_rows(place, later).findings.by_code


# --- other writers, crashes, tampering


def test_a_call_overtaken_by_another_writer_is_judged_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one records half of the rows between judging and committing: nothing stands twice."""
    commit = log.commit

    def overtaken(*arguments: object, **options: object) -> object:
        monkeypatch.setattr(log, "commit", commit)
        take_rows(place, rows(range(2)), "first")
        return commit(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(log, "commit", overtaken)
    receipt = take_rows(place, rows(range(4)), "second")
    assert (receipt.admitted, receipt.skipped) == (96, 96)
    assert stored(place) == 192


@pytest.mark.parametrize("point", ["object-staged", "object-named", "appended"])
def test_a_crash_before_the_commit_leaves_nothing_visible(
    place: Place, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    def stop(name: str) -> None:
        if name == point:
            raise KeyboardInterrupt

    before = logged(place)
    monkeypatch.setattr(durable, "hook", stop)
    with pytest.raises(KeyboardInterrupt):
        take_rows(place, rows())
    monkeypatch.setattr(durable, "hook", None)
    assert logged(place) == before
    assert take_rows(place, rows()).admitted == len(rows())


def test_entries_are_not_judged_against_a_changed_segment(place: Place) -> None:
    take_rows(place, rows([0]))
    with Index.open(place.home) as index:
        path = place.home.objects.path(f"segments/{index.segments()[0].file[7:]}.parquet")
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    with pytest.raises(TamperError):
        take_rows(place, rows([0, 1]))


def test_progress_is_told_in_files_and_rows(place: Place) -> None:
    heard: list[tuple[str, int, int]] = []
    take_rows(place, rows(), progress=lambda *step: heard.append(step))
    assert heard == [
        ("read", 0, 1), ("read", 1, 1), ("write", 0, 192), ("write", 192, 192), ("log", 0, 1), ("log", 1, 1),
    ]  # fmt: skip


@pytest.mark.skipif(not (SHARED / "cohort").is_dir(), reason="the shared cohort is not here")
def test_the_cohort_is_admitted_but_for_its_incomplete_sides(place: Place) -> None:
    specs = [SHARED / "cohort/channels" / f"{name}.toml" for name in ("direct", "generated")]
    channels.add(place.home, place.key, specs, new_version=True)
    table = pq.read_table(SHARED / "cohort/scores.parquet")
    for version, name in ((2, "direct"), (2, "generated")):
        at = table.column_names.index("channel")
        column = [f"{name}@{version}" if value == name else value for value in table["channel"].to_pylist()]
        table = table.set_column(at, "channel", [column])
    pq.write_table(table, place.home.path.parent / "cohort.parquet")
    receipt = take(place, place.home.path.parent / "cohort.parquet")
    assert receipt.rows == 69_656
    assert receipt.refused_sides == 96
    assert receipt.admitted + receipt.refused_rows == 69_656
