"""Full verification of predictions: what a broken writer could sign, and that honest calls all pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from audits.statistics import label_mass
from contracts.digest import pack
from contracts.schema import JEV, JEV_POSITIVES, SegmentSchema
from ledger import log, segments
from ledger.event_types import AcquisitionEvent, SegmentEvent
from ledger.index import Index
from ledger.ingest import ingest
from ledger.ingest_jev import CONTRACT
from ledger.ingest_store import segment_event
from ledger.problems import Problem
from ledger.segment_reader import SegmentReader
from ledger.verify import verify
from tests.audits.predictions import Pair, study, write
from tests.ledger.homes import Place
from tests.ledger.score_files import place_with_channels

Row = dict[str, Any]
Change = Callable[[list[Row]], list[Row]]
NAMED: Row = {"channel": "direct", "acquisition_id": "main-1"}


def measured(**group: Any) -> list[Pair]:
    """Pairs that use every column."""
    more = {"label_order": ["p2", "p1"], "before_label_mass": 0.5, "after_label_mass": 0.75}
    evidence = {"evidence_hash": "blake3:" + "e" * 64}
    return [{**pair, **more, **evidence} for pair in study(4, flips=1, **group)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A home with the predictions of one honest call."""
    with pytest.MonkeyPatch.context() as patch:
        place = place_with_channels(tmp_path_factory.mktemp("predictions"))
        patch.setenv("XDG_CONFIG_HOME", str(place.config))
        honest(place, measured(**NAMED))
        yield place


@pytest.fixture
def place(made: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A copy to append to."""
    copy = made.copy(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(copy.config))
    return copy


def honest(place: Place, pairs: list[Pair], name: str = "pairs.jsonl") -> None:
    path = write(place.home.path.parent / name, pairs)
    ingest(place.home, [path], key=place.key, labels=label_mass)


def stored(place: Place, schema: SegmentSchema) -> list[Row]:
    """The rows of the one segment of a kind, with where each came from."""
    with Index.open(place.home) as index:
        (segment,) = index.segments(kind=schema.kind)
        with SegmentReader.whole(place.home.objects, segment) as reader:
            table, sources = reader.read().cast(schema.arrow), reader.source_rows()
    table = table.append_column("source_file", pa.array(sources.files.astype("int32")))
    rows: list[Row] = table.append_column("source_row", pa.array(sources.rows.astype("int64"))).to_pylist()
    return rows


def event_of(place: Place, schema: SegmentSchema, rows: list[Row]) -> list[SegmentEvent]:
    """The events of segments that hold exactly these rows."""
    columns = [*schema.arrow, pa.field("source_file", pa.int32()), pa.field("source_row", pa.int64())]
    table = pa.Table.from_pylist(rows, pa.schema(columns))
    with Index.open(place.home) as index:
        sources = index.segments(kind=schema.kind)[0].sources
    return [
        segment_event(written, schema.kind, CONTRACT, sources)
        for written in segments.write(table, schema, place.home.objects)
    ]


def forge(
    place: Place, change: Change = list, positives: Change = list, acquisition: str = "other"
) -> list[Problem]:
    """What full verification says of changed rows that the home's own key signed as another acquisition."""
    events: list[AcquisitionEvent | SegmentEvent] = []
    if acquisition == "other":
        events.append(AcquisitionEvent(acquisition, JEV.kind))
    for schema, changed in ((JEV, change), (JEV_POSITIVES, positives)):
        rows = changed([{**row, "acquisition_id": acquisition} for row in stored(place, schema)])
        events += event_of(place, schema, rows) if rows else []
    log.commit(place.home, place.key, lambda _: events)
    assert verify(place.home).ok  # every byte is what was signed
    report = verify(place.home, full=True)
    assert all(
        problem.kind == "data" and problem.where.startswith("objects/segments/")
        for problem in report.findings
    )
    return list(report.findings)


def test_honest_calls_of_any_shape_pass(place: Place) -> None:
    honest(place, measured(channel="generated", acquisition_id="main-2", mode="joint"), "b.jsonl")
    honest(place, study(3, bound=False), "c.jsonl")
    first = [row for row in study(4, year=2021, **NAMED, variant="v") if row["scenario"] != "two"]
    honest(place, first, "d.jsonl")
    honest(place, study(4, year=2021, **NAMED, variant="v"), "e.jsonl")
    report = verify(place.home, full=True)
    assert report.findings == ()
    assert report.notices == ()


def test_a_copy_under_another_acquisition_is_all_right(place: Place) -> None:
    assert forge(place) == []


def set_at(row: int, **values: Any) -> Change:
    return lambda rows: [{**each, **values} if i == row else each for i, each in enumerate(rows)]


def all_of(**values: Any) -> Change:
    return lambda rows: [{**each, **values} for each in rows]


def without(**values: Any) -> Change:
    return lambda rows: [row for row in rows if any(row[name] != value for name, value in values.items())]


ENTRY: list[tuple[int, Row, str]] = [
    (3, {"probability": 1.5}, "is out of range; expected 0 to 1, got 1.5"),
    (3, {"probability": -0.25}, "is out of range"),
    (3, {"probability": float("nan")}, "is out of range"),
    (5, {"label_mass": 1.5}, "label_mass is out of range"),
    (5, {"label_mass": float("nan")}, "label_mass is out of range"),
    (5, {"label_mass": None}, "do not stand together"),
    (5, {"label_mass": 0.25}, "is not what another entry says"),
    (7, {"mass_kind": "guessed"}, "is no kind of label mass"),
    (7, {"evidence_hash": None}, "is not what another entry says"),
    (7, {"request_hash": b"\x00" * 33}, "is not a digest"),
    (9, {"label_position": -2}, "label_position is out of range"),
    (9, {"label_position": 0}, "is not the place of its label"),
    (9, {"label_position": None}, "is not the place of its label"),
    (0, {"arm": "during"}, "is no arm"),
    (0, {"intervention": "wording"}, "is no intervention"),
    (0, {"mode": "loud"}, "is no mode"),
    (0, {"scenario": "e\u0301"}, "normal form C"),
    (0, {"label": ""}, "is an empty text"),
    (0, {"year": -1}, "year is out of range"),
    (0, {"channel": None}, "channel is missing"),
    (0, {"channel": pack("blake3:" + "0" * 64)}, "was not registered"),
    (0, {"acquisition_id": "ghost"}, "an acquisition that was not in the log"),
]


@pytest.mark.parametrize(("row", "values", "said"), ENTRY)
def test_an_entry_no_contract_admits_is_found(place: Place, row: int, values: Row, said: str) -> None:
    found = forge(place, set_at(row, **values))
    assert any(said in problem.message for problem in found), found


def test_the_first_entry_that_breaks_the_contract_is_named(place: Place) -> None:
    (problem,) = forge(place, set_at(13, probability=1.5))
    with Index.open(place.home) as index:
        root = index.segments(kind=JEV.kind)[1].root.removeprefix("sha256:")
    assert problem.entry == f"{root[:16]}:13"


GROUP: list[tuple[Change, Change, str]] = [
    (without(query_id="q02", scenario="zero"), list, "lacks a scenario of its group"),
    (without(query_id="q02", scenario="zero", arm="before"), list, "has a label that before lacks"),
    (without(query_id="q02", scenario="zero", arm="after", label="p1"), list, "lacks a label of before"),
    (without(query_id="q02", scenario="zero", arm="before", label="p1"), list, "that before lacks"),
    (all_of(intervention="candidates"), all_of(intervention="candidates"), "expands no candidate"),
    (without(query_id="q02", scenario="one"), list, "names a label that is no target"),
    (list, set_at(0, label="p9"), "names a label that is no target"),
    (list, set_at(0, query_id="q99"), "names a label that is no target"),
    (list, all_of(year=2020), "names a label that is no target"),
]


@pytest.mark.parametrize(("change", "positives", "said"), GROUP)
def test_pairs_that_are_no_whole_group_are_found(
    place: Place, change: Change, positives: Change, said: str
) -> None:
    found = forge(place, change, positives)
    assert any(said in problem.message for problem in found), found


def test_a_missing_scenario_is_named_at_an_entry_of_its_query(place: Place) -> None:
    found = forge(place, without(query_id="q02", scenario="zero"))
    rows = [row for row in stored_rows(place) if row["query_id"] == "q02"]
    assert {int(str(problem.entry).rpartition(":")[2]) for problem in found} <= {
        int(row["at"]) for row in rows
    }
    assert len(found) == 2


def stored_rows(place: Place) -> list[Row]:
    """The rows of the forged segment, each with its number."""
    with Index.open(place.home) as index:
        segment = index.segments(kind=JEV.kind)[1]
        with SegmentReader.whole(place.home.objects, segment) as reader:
            return [{**row, "at": at} for at, row in enumerate(reader.read().to_pylist())]


def test_a_pair_that_was_taken_in_twice_is_found(place: Place) -> None:
    found = forge(place, acquisition="main-1")
    assert any("occurs again in its group" in problem.message for problem in found)


def test_a_pair_cut_between_segments_is_judged_whole(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    arm = {"p1": 0.5, "p2": 0.25, "p3": 0.125}  # six entries a pair, so that no page ends with one
    group: Row = {"channel": "direct", "acquisition_id": "many"}
    monkeypatch.setattr(segments, "SEGMENT_ROWS", 512)
    monkeypatch.setattr(segments, "GROUP_ROWS", 256)
    honest(place, [{**pair, "before": arm, "after": arm} for pair in study(60, **group)], "many.jsonl")
    report = verify(place.home, full=True)
    assert report.findings == ()
    assert report.counts["segments"] > 4


def test_a_damaged_segment_is_told_once_and_no_group_is_blamed(place: Place) -> None:
    with Index.open(place.home) as index:
        file = index.segments(kind=JEV.kind)[0].file.removeprefix("blake3:")
    path = place.home.path / f"objects/segments/{file}.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    report = verify(place.home, full=True)
    (problem,) = report.findings
    assert problem.message.startswith("the file changed")
    assert any("the groups of pairs were not judged" in notice for notice in report.notices)


def test_an_event_of_another_kind_than_its_rows_is_found(place: Place) -> None:
    (event,) = event_of(place, JEV, [{**row, "acquisition_id": "other"} for row in stored(place, JEV)])
    events = AcquisitionEvent("other", JEV.kind), replace(event, kind="jev-positives")
    log.commit(place.home, place.key, lambda _: events)
    found = verify(place.home, full=True).findings
    assert any("another kind" in problem.message for problem in found)
