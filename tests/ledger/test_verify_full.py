"""Full verification: segments a dishonest or broken writer could sign, and that the honest ones all pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from contracts.channel import ChannelBook
from contracts.digest import blake3_digest, pack
from contracts.rows import RowResult
from contracts.schema import TRANSPORT
from contracts.source_table import SourceTable
from ledger import ingest_store, log, segments, verify_contract, verify_full
from ledger.event_types import AcquisitionEvent, Event, ScopeRows, SegmentEvent
from ledger.index import Index
from ledger.ingest import ingest
from ledger.ingest_store import segment_event
from ledger.object_names import rows_name
from ledger.problems import Problem
from ledger.segment_reader import SegmentReader
from ledger.verify import verify
from tests.ledger.homes import Place, put
from tests.ledger.score_files import Row, place_with_channels, rows, without, write

Change = Callable[[list[Row]], list[Row]]
SIDE = {"trajectory_id": "traj001", "step": 1, "view_source": "own"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A home with the rows of one honest call."""
    before = os.environ.get("XDG_CONFIG_HOME")
    place = place_with_channels(tmp_path_factory.mktemp("full"))
    honest(place)
    yield place
    if before is not None:
        os.environ["XDG_CONFIG_HOME"] = before


@pytest.fixture
def place(made: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A copy to append to."""
    copy = made.copy(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(copy.config))
    return copy


def honest(place: Place, name: str = "a", made: list[Row] | None = None) -> None:
    path = write(place.home.path.parent / f"{name}.parquet", rows(range(6)) if made is None else made)
    ingest(place.home, [path], key=place.key)


def table_of(place: Place) -> pa.Table:
    """The rows of the first segment with the columns that say where each came from."""
    with (
        Index.open(place.home) as index,
        SegmentReader.whole(place.home.objects, index.segments()[0]) as reader,
    ):
        table, sources = reader.read(), reader.source_rows()
    table = table.cast(TRANSPORT.arrow)
    table = table.append_column("source_file", pa.array(sources.files.astype("int32")))
    return table.append_column("source_row", pa.array(sources.rows.astype("int64")))


def event_of(place: Place, table: pa.Table) -> SegmentEvent:
    """The event of a segment that holds exactly these rows, in the order given."""
    with Index.open(place.home) as index:
        sources = index.segments()[0].sources
    (written,) = segments.write(table, TRANSPORT, place.home.objects)
    return segment_event(written, "transport", "ledger.transport-contract.v1", sources)


def append(place: Place, *events: Event) -> None:
    log.commit(place.home, place.key, lambda _: events)


def forge(
    place: Place, monkeypatch: pytest.MonkeyPatch, change: Change, *, resort: bool = True
) -> list[Problem]:
    """What full verification says where the one writer signed changed rows of another acquisition."""
    table = table_of(place)
    made = change([{**row, "acquisition_id": "other"} for row in table.to_pylist()])
    if not resort:
        monkeypatch.setattr(segments, "sort", lambda table, schema: table)
    append(
        place,
        AcquisitionEvent("other", "transport"),
        event_of(place, pa.Table.from_pylist(made, table.schema)),
    )
    assert verify(place.home).ok  # every byte is what was signed
    report = verify(place.home, full=True)
    assert all(
        problem.kind == "data" and problem.where.startswith("objects/segments/")
        for problem in report.findings
    )
    return list(report.findings)


# Honest homes


def test_calls_in_any_shape_pass(place: Place) -> None:
    honest(place, "b", rows([9, 11]))
    honest(place, "c", rows(acquisition="main-2"))
    honest(place, "d", without(rows([15, 16]), trajectory_id="traj016", layout=1, candidate="A"))
    bare = [{k: v for k, v in row.items() if not k.endswith("_hash")} for row in rows([7])]
    folder = place.home.path.parent
    ingest(
        place.home, [write(folder / "e.parquet", bare), write(folder / "f.parquet", rows([8]))], key=place.key
    )
    report = verify(place.home, full=True)
    assert report.findings == ()
    assert report.counts["segments"] == 5
    assert report.notices == ()


@pytest.mark.parametrize(("segment", "group"), [(512, 256), (256, 256)])
def test_a_call_cut_inside_its_sides_passes(
    place: Place, monkeypatch: pytest.MonkeyPatch, segment: int, group: int
) -> None:
    monkeypatch.setattr(segments, "SEGMENT_ROWS", segment)
    monkeypatch.setattr(segments, "GROUP_ROWS", group)
    honest(place, "b", rows(range(10, 20), steps=5))
    honest(place, "c", rows(range(12, 14), steps=5, acquisition="main-2"))
    report = verify(place.home, full=True)
    assert report.findings == ()
    assert report.counts["segments"] >= 3


def test_small_segments_are_judged_together(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        honest(place, f"t{number}", rows([20 + number]))
    judged: list[int] = []
    canonicalise = verify_contract.canonicalise

    def counting(files: Sequence[SourceTable], book: ChannelBook) -> RowResult:
        judged.append(len(files))
        return canonicalise(files, book)

    monkeypatch.setattr(verify_contract, "canonicalise", counting)
    assert verify(place.home, full=True).findings == ()
    assert judged == [1, 1]  # a few transitions of them all, and rows with numbers at the edges
    judged.clear()
    monkeypatch.setattr(verify_contract.Speakers, "of", lambda self, tables: None)
    assert verify(place.home, full=True).findings == ()
    assert judged == [5]  # the first call's trajectories but its last, that one, and one of each other call
    judged.clear()
    monkeypatch.setattr(verify_contract, "TOGETHER", 1)
    assert verify(place.home, full=True).findings == ()
    assert len(judged) > 3


def test_what_is_found_in_many_segments_is_told_of_the_one_it_is_in(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest(place, "b", rows([30]))

    def spoiled(made: list[Row]) -> list[Row]:
        made[10]["energy"] = float("nan")
        return without(made, **SIDE, layout=1, candidate="B")

    together = forge(place, monkeypatch, spoiled)
    honest(place, "c", rows([31]))
    assert list(verify(place.home, full=True).findings) == together
    monkeypatch.setattr(verify_contract, "TOGETHER", 1)
    assert list(verify(place.home, full=True).findings) == together
    with Index.open(place.home) as index:
        bad = index.segments()[2]
    assert {problem.where for problem in together} == {f"objects/{verify_full.name_of(bad)}"}
    assert "energy is NaN" in together[0].message


def test_halves_of_a_side_in_two_segments_do_not_make_it_whole(place: Place) -> None:
    table = table_of(place)
    rows_of = [{**row, "acquisition_id": "other"} for row in table.to_pylist()]
    side = [row for row in rows_of if all(row[name] == value for name, value in SIDE.items())]
    first, second = (
        event_of(place, pa.Table.from_pylist([row for row in side if row["layout"] == layout], table.schema))
        for layout in (0, 1)
    )
    other, between = (AcquisitionEvent(name, "transport") for name in ("other", "between"))
    append(place, other, first, between, second)  # an event lies between them, so no call was cut there
    messages = [problem.message for problem in verify(place.home, full=True).findings]
    assert sum("layout" in message for message in messages) >= 2
    assert any("twice" in message for message in messages)


# Rows no contract would admit

ROW_FAULTS: dict[int, tuple[dict[str, object], str]] = {
    0: ({"energy": 2.0**21}, "energy is too large"),
    10: ({"energy": float("nan")}, "energy is NaN"),
    20: ({"layout": 7}, "layout is out of range"),
    30: ({"label_mass": 1.5}, "label_mass is out of range"),
    40: ({"endpoint": "during"}, "is no endpoint"),
    50: ({"candidate": "e\u0301"}, "normal form C"),
    60: ({"step_kind": ""}, "empty text"),
    70: ({"view_source": "theirs"}, "is no view source"),
    80: ({"channel": pack("blake3:" + "0" * 64)}, "was not registered"),
    90: ({"acquisition_id": "ghost"}, "an acquisition that was not in the log"),
    100: ({"request_hash": b"\x00" * 33}, "is not a digest"),
    110: ({"step": -1}, "step is out of range"),
    120: ({"source_row": 0}, "from no line"),
}


def test_every_row_no_contract_admits_is_found(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(made: list[Row]) -> list[Row]:
        for row, (values, _) in ROW_FAULTS.items():
            made[row].update(values)
        return made

    found = forge(place, monkeypatch, change)
    for _, message in ROW_FAULTS.values():
        assert any(message in problem.message for problem in found), message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda made: made[:20] + made[21:], "breaks the contract: "),
        (
            lambda made: [{**row, "target": "Z"} if row["step"] else row for row in made],
            "breaks the contract: ",
        ),
        (lambda made: [*made, {**made[20], "energy": 0.0, "source_row": 9999}], "two entries have one key"),
        (lambda made: [{**row, "acquisition_id": "main-1"} for row in made], "is in the log twice"),
        (lambda made: [{**row, "source_row": 1} for row in made], "from one line of a file"),
        (lambda made: [{**row, "source_file": 3} for row in made], "from a file its call did not have"),
    ],
)
def test_rows_that_do_not_belong_together_are_found(
    place: Place, monkeypatch: pytest.MonkeyPatch, change: Change, message: str
) -> None:
    found = forge(place, monkeypatch, change)
    assert any(message in problem.message for problem in found), found


def test_the_first_entry_that_breaks_the_contract_is_named(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(made: list[Row]) -> list[Row]:
        made[20]["energy"] = 2.0**21
        return made

    (problem,) = forge(place, monkeypatch, change)
    with Index.open(place.home) as index:
        root = index.segments()[1].root.removeprefix("sha256:")
    assert problem.entry == f"{root[:16]}:20"


def swapped(at: int) -> Change:
    return lambda made: [*made[: at - 1], made[at], made[at - 1], *made[at + 1 :]]


@pytest.mark.parametrize(("group", "at"), [(131_072, 100), (256, 256)])
def test_rows_out_of_order_are_found_wherever_groups_end(
    place: Place, monkeypatch: pytest.MonkeyPatch, group: int, at: int
) -> None:
    monkeypatch.setattr(segments, "GROUP_ROWS", group)
    found = [p for p in forge(place, monkeypatch, swapped(at), resort=False) if "segment order" in p.message]
    assert [str(p.entry).rpartition(":")[2] for p in found] == [str(at - 1)]


# Events that describe their rows wrongly


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first": ("traj000", 1)}, "another first"),
        ({"last": ("traj999", 1)}, "another last"),
        ({"trajectories": 3}, "another trajectories"),
        ({"kind": "jev"}, "another kind"),
        ({"channels": ()}, "another channels"),
        ({"acquisitions": ("main-1", "other")}, "another acquisitions"),
        ({"scope": (ScopeRows(None, "other", 192),)}, "another scope"),
        ({"size": 1}, "the event says 1 bytes"),
        ({"rows": 287}, "rows where 287 were committed"),
        ({"root": "sha256:" + "0" * 64}, "do not have the segment's entries root"),
        ({"schema": "ledger.future.v9"}, "a segment of an unknown schema"),
        ({"sources": ()}, "a file its call did not have"),
    ],
)
def test_an_event_that_describes_other_rows_is_found(
    place: Place, changes: dict[str, object], message: str
) -> None:
    table = table_of(place)
    other = table.set_column(6, "acquisition_id", pa.array(["other"] * table.num_rows))
    event = replace(event_of(place, other), **changes)  # type: ignore[arg-type]
    append(place, AcquisitionEvent("other", "transport"), event)
    report = verify(place.home, full=True)
    assert any(message in problem.message for problem in report.findings), report.findings
    assert {problem.kind for problem in report.findings} == {"data"}


def test_pages_of_other_rows_than_committed_are_found(place: Place) -> None:
    """The file is the one the event names, its leaves and root are those of other rows."""
    table = table_of(place)
    other = table.set_column(6, "acquisition_id", pa.array(["other"] * table.num_rows))
    energies = other.set_column(8, "energy", pa.array([0.5] * table.num_rows))
    one, two = event_of(place, other), event_of(place, energies)
    append(place, AcquisitionEvent("other", "transport"), replace(one, file=two.file, size=two.size))
    (problem,) = verify(place.home, full=True).findings
    assert "page 0 is not what was committed" in problem.message


def test_source_rows_that_do_not_decode_are_found(place: Place) -> None:
    other = table_of(place).set_column(6, "acquisition_id", pa.array(["other"] * 288))
    event = event_of(place, other)
    junk = put(place.home.objects, rows_name, b"junk")
    append(place, AcquisitionEvent("other", "transport"), replace(event, rows_file=junk))
    (problem,) = verify(place.home, full=True).findings
    assert "source rows do not decode" in problem.message


def test_a_list_of_refused_sides_that_hides_one_is_found(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shorter(sides: object) -> bytes:
        return encode([side for side in sides if side.step == 0])  # type: ignore[attr-defined]

    encode = ingest_store.encode_index
    monkeypatch.setattr(ingest_store, "encode_index", shorter)
    made = without(
        rows([7, 8]), trajectory_id="traj007", layout=1, candidate="A", channel="direct", endpoint="after"
    )
    real = ingest_store.RefusalEvent
    monkeypatch.setattr(ingest_store, "RefusalEvent", lambda **parts: real(**{**parts, "sides": 1}))
    honest(place, "a", made)
    (problem,) = verify(place.home, full=True).findings
    assert problem.where.startswith("objects/refusals/")
    assert "disagree about traj007/step 1" in problem.message
    assert verify(place.home).ok


def test_the_objects_of_a_damaged_segment_are_told_once(place: Place) -> None:
    (path,) = (place.home.path / "objects/segments").glob("*.parquet")
    path.write_bytes(path.read_bytes()[:-1])
    (problem,) = verify(place.home, full=True).findings
    assert problem.message.startswith("the file changed")
    assert (problem.kind, problem.entry) == ("data", "event 4")


def test_no_entry_is_called_the_first_bad_one_where_none_can_be_told(place: Place) -> None:
    event = event_of(place, table_of(place))
    assert verify_full.first_bad_entry(place.home.objects, event) is None
    missing = replace(event, file=blake3_digest(b"absent"))
    assert verify_full.first_bad_entry(place.home.objects, missing) is None
