"""Rows that speak for others: whatever is found by judging every row is found with them, word for word."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from contracts import representatives
from contracts.channel import ChannelBook
from contracts.digest import pack
from contracts.representatives import Speakers
from contracts.row_models import MAX_ENERGY
from contracts.schema import TRANSPORT
from ledger import channels
from ledger.coded import with_codes
from ledger.index import Index
from ledger.ingest import ingest
from ledger.problems import Problem, Problems
from ledger.segment_reader import SegmentReader
from ledger.sorting import sort
from ledger.verify_contract import Contract, Judge, Part
from tests.ledger.score_files import SPEC, Row, digest, place_with_channels, rows, write

Rng = random.Random
SIZES = (7, 100, 288, 1000)
OTHER_TEXT = (
    *("", " x", "e\u0301", "traj001", "tr\u0430j001", "donor:traj001", "donor:traj001/1", "before", "after"),
    *("own", "A", "B", "Z", "\u0410", "x" * 5000, "a\nb", "a\u200bb", "reason", "retrieval", "main-1"),
)
OTHER: dict[str, tuple[object, ...]] = {
    "int16": (-1, 0, 1, 2, 7, 32767),
    "int32": (-1, 0, 1, 5, 2**31 - 1),
    "float64": (
        *(float("nan"), float("inf"), -float("inf"), MAX_ENERGY, MAX_ENERGY + 1, -MAX_ENERGY - 1),
        *(-0.1, 0.0, 0.5, 1.5),
    ),
    "bool": (True, False),
    "digest": (b"\x00" * 33, pack(digest("one")), pack("blake3:" + "0" * 64), pack(digest("two"))),
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[ChannelBook, list[Row]]:
    """Twenty trajectories in three channels, of which one does not say its labels; as entries are kept."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("speakers")
        place = place_with_channels(folder)
        patch.setenv("XDG_CONFIG_HOME", str(place.config))
        spec = folder / "free.toml"
        spec.write_text(SPEC.format(name="free", view="none").replace('labels = ["A", "B", "C"]\n', ""))
        channels.add(place.home, place.key, [spec])
        made = rows(range(14)) + rows(range(14, 20), names=("free",), steps=3)
        # The last ones have two candidates, with a digest that stands for them.
        few = [row for row in made if row["trajectory_id"] < "traj017" or row["candidate"] != "C"]
        for row in few:
            if row["trajectory_id"] >= "traj014":
                row["candidates_hash"] = digest("two" if row["trajectory_id"] >= "traj017" else "three")
        ingest(place.home, [write(folder / "a.parquet", few)], key=place.key)
        with Index.open(place.home) as index:
            book = index.channels()
            with SegmentReader.whole(place.home.objects, index.segments()[0]) as reader:
                table = reader.read().cast(TRANSPORT.arrow)
    return book, table.to_pylist()


def table_of(made: list[Row]) -> pa.Table:
    """Rows as the check of a segment hands them on."""
    table = pa.Table.from_pylist(made, TRANSPORT.arrow)
    for column in TRANSPORT.columns:
        if column.type == "text":
            at = table.schema.get_field_index(column.name)
            table = table.set_column(at, column.name, table.column(at).dictionary_encode())
    return with_codes(table, TRANSPORT.key)


def told(judge: Judge, made: list[Row], cuts: list[int], sources: int = 1) -> list[Problem] | str:
    """What a judge says of rows that come in parts, or the name of what it raises."""
    found = Problems(catalog="catalog")
    contract = Contract(found, judge)
    table = table_of(made)
    files = np.arange(len(made), dtype=np.int64) % sources
    try:
        for start, stop in zip([0, *cuts], [*cuts, len(made)], strict=True):
            if stop > start:
                part = table.slice(start, stop - start)
                contract.feed(Part("objects/x", "sha256:" + "0" * 64, start, part, files[start:stop]))
        contract.finish()
        judge.settle()
    except Exception as error:  # the same for both
        return type(error).__name__
    return list(found.listed)


def both(
    book: ChannelBook, made: list[Row], honest: list[Row], cuts: list[int], sources: int = 1
) -> list[Problem] | str:
    """What is found with speakers, fresh and experienced, which must be what all rows say."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Speakers, "of", lambda self, tables: None)
        every = told(Judge(book), made, cuts, sources)
    assert told(Judge(book), made, cuts, sources) == every
    experienced = Judge(book)
    assert told(experienced, honest, []) == []
    assert told(experienced, made, cuts, sources) == every
    return every


def spoilt(rng: Rng, made: list[Row]) -> list[Row]:
    """Some of the rows changed in one or two columns: one row, a transition, a side, or a trajectory."""
    made = [dict(row) for row in made]
    for _ in range(rng.choice((1, 1, 2))):
        one = rng.choice(made)
        same: tuple[str, ...] = rng.choice(
            ((), ("trajectory_id",), ("trajectory_id", "step"), ("trajectory_id", "step", "channel"),
             ("trajectory_id", "step", "endpoint", "candidate"), ("candidate",), ("layout", "channel"))
        )  # fmt: skip
        chosen = [row for row in made if same and all(row[name] == one[name] for name in same)] or [one]
        what = rng.random()
        if what < 0.15:
            made = [row for row in made if all(row is not each for each in chosen)] or made[:1]
        elif what < 0.25:
            made += [dict(row) for row in chosen]
        else:
            column = rng.choice(TRANSPORT.columns)
            others: tuple[Any, ...] = OTHER_TEXT if column.type == "text" else OTHER[column.type]
            value = rng.choice([*others, rng.choice(made)[column.name]])
            if column.nullable and rng.random() < 0.3:
                value = None
            for row in chosen:
                row[column.name] = value
    return made


def compare(study: tuple[ChannelBook, list[Row]], seeds: range) -> int:
    """How many of some spoilt studies are still whole."""
    book, honest = study
    clean = 0
    for seed in seeds:
        rng = Rng(seed)
        made = spoilt(rng, honest)
        if rng.random() < 0.85:
            made = sort(pa.Table.from_pylist(made, TRANSPORT.arrow), TRANSPORT).to_pylist()
        size = rng.choice(SIZES)
        clean += both(book, made, honest, [*range(size, len(made), size)], rng.choice((1, 1, 2))) == []
    return clean


def test_what_is_found_of_spoilt_rows_is_the_same(study: tuple[ChannelBook, list[Row]]) -> None:
    assert 0 < compare(study, range(8)) < 8


@pytest.mark.sweep
def test_what_is_found_of_many_spoilt_rows_is_the_same(study: tuple[ChannelBook, list[Row]]) -> None:
    compare(study, range(8, 40))


def test_honest_rows_are_spoken_for_by_few(
    study: tuple[ChannelBook, list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    book, honest = study
    asked: list[int] = []
    findings = Judge._findings

    def counting(self: Judge, parts: list[Part]) -> Any:
        asked.append(sum(part.table.num_rows for part in parts))
        return findings(self, parts)

    monkeypatch.setattr(Judge, "_findings", counting)
    judge = Judge(book)
    assert told(judge, honest, []) == []
    assert sum(asked) < len(honest) / 3
    asked.clear()
    assert told(judge, honest, [500]) == []
    assert asked == []  # all of it was found whole before
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(representatives, "FEW", 0)
        assert Speakers(book).of([table_of(honest[:24])]) is None  # nobody speaks for another


Whole = Callable[[list[Row]], None]


def at_last(values: dict[str, object]) -> Whole:
    """Sets values in the last row of a trajectory whose pattern others have."""

    def change(made: list[Row]) -> None:
        max((row for row in made if row["trajectory_id"] == "traj005"), key=made.index).update(values)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (at_last({"energy": MAX_ENERGY * 2}), "energy is too large"),
        (at_last({"energy": float("nan")}), "energy is NaN"),
        (at_last({"energy": float("-inf")}), "energy is infinite"),
        (at_last({"label_mass": 1.5}), "label_mass is out of range"),
        (at_last({"position": -1}), "position is out of range"),
        (at_last({"success": True}), "success"),
        (at_last({"success": None, "layout": 9}), "layout is out of range"),
        (at_last({"request_hash": b"\x07" * 33}), "is not a digest"),
        (at_last({"view_hash": None}), "view_hash"),
        (at_last({"state_hash": None}), "state_hash"),
        (at_last({"candidates_hash": pack(digest("two"))}), "candidates"),
        (at_last({"target": "B"}), "target"),
        (at_last({"candidate": "D"}), "candidate"),
    ],
)
def test_what_differs_from_its_pattern_in_one_row_is_found(
    study: tuple[ChannelBook, list[Row]], change: Whole, message: str
) -> None:
    book, honest = study
    made = [dict(row) for row in honest]
    change(made)
    found = both(book, made, honest, [])
    assert any(message in problem.message for problem in found if not isinstance(problem, str)), found


def test_a_transition_in_two_places_is_no_two_transitions(study: tuple[ChannelBook, list[Row]]) -> None:
    """Both halves have a pattern of which one, once, was a whole transition's."""
    book, honest = study
    side = [row for row in honest if row["trajectory_id"] == "traj003"]
    rest = [row for row in honest if row["trajectory_id"] != "traj003"]
    between = [row for row in rest if row["trajectory_id"] == "traj009"]
    rest = [row for row in rest if row["trajectory_id"] != "traj009"]
    both(book, [*rest[:10], *side[:24], *between, *side[24:]], honest, [])
    assert both(book, [*side[:24], *between, *side[24:-1]], honest, []) != []


def test_a_rule_that_is_no_interval_switches_speakers_off(
    study: tuple[ChannelBook, list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows at the edges of every number are judged too: where they break a rule, every row is judged."""
    book, honest = study
    monkeypatch.setattr(representatives, "EDGES", {**representatives.EDGES, "energy": (-MAX_ENERGY * 4, 0.0)})
    made = [
        {**row, "energy": -MAX_ENERGY * 2} if row is honest[7] else {**row, "energy": -1.0} for row in honest
    ]
    found = told(Judge(book), made, [])
    assert len(found) == 1
    assert not isinstance(found, str)
    assert "energy is too large" in found[0].message


def test_sums_that_do_not_tell_rows_apart_speak_for_nobody(
    study: tuple[ChannelBook, list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(representatives, "_ODD", np.zeros(4096, np.uint64))
    book, honest = study
    assert Speakers(book).of([table_of(honest)]) is None
    assert told(Judge(book), honest, []) == []


def test_halves_of_a_trajectory_in_two_calls_are_judged_apart(
    study: tuple[ChannelBook, list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is held together is no one call: half a side is not made whole by a half of the same pattern."""
    book, honest = study
    one = [row for row in honest if row["trajectory_id"] == "traj004"]
    halves = [[row for row in one if row["layout"] == layout] for layout in (0, 1)]

    def found() -> list[tuple[str, ...]]:
        judge, listed = Judge(book), []
        for number, half in enumerate(halves):
            problems = Problems(catalog="catalog")
            contract = Contract(problems, judge)
            where = f"objects/{number}"
            contract.feed(
                Part(where, "sha256:" + f"{number}" * 64, 0, table_of(half), np.zeros(len(half), np.int64))
            )
            contract.finish()
            listed.append(problems)
        judge.settle()
        return [tuple(problem.message for problem in problems.listed) for problems in listed]

    with_speakers = found()
    assert all(with_speakers)
    monkeypatch.setattr(Speakers, "of", lambda self, tables: None)
    assert found() == with_speakers


def test_a_file_with_other_types_is_judged_whole(study: tuple[ChannelBook, list[Row]]) -> None:
    book, honest = study
    table = table_of(honest)
    at = table.schema.get_field_index("energy")
    single = table.set_column(at, "energy", table.column("energy").cast(pa.float32()))
    assert Speakers(book).of([single]) is None
    assert Speakers(book).of([table]) is not None


def test_digests_that_stand_for_sets_of_their_own_are_spoken_for(
    study: tuple[ChannelBook, list[Row]],
) -> None:
    book, honest = study
    speaking = Speakers(book).of([table_of(honest)])
    assert speaking is not None
    sets = {row["candidate"] for row in honest if row["trajectory_id"] == "traj018"}
    assert sets == {"A", "B"}
    assert speaking.rows.num_rows < len(honest) / 3
