"""Queries: exactly the entries that meet every filter, each verified, at any head."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from contracts.errors import TamperError
from ledger import ingest, reading, segments
from ledger.index import Index
from ledger.query import Query, scores
from tests.ledger import score_files
from tests.ledger.homes import Place, by_hand
from tests.ledger.score_files import Row, rows, write


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Three calls: trajectories 0-3, 2-5 by another acquisition, and 6-7; two segments a call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", "")
        patch.setattr(segments, "SEGMENT_ROWS", 100)
        place = score_files.place_with_channels(tmp_path_factory.mktemp("template"))
        for number, made in enumerate(calls()):
            file = write(place.home.path.parent / f"{number}.parquet", made)
            ingest.ingest(place.home, [file], key=place.key)
    return place


@pytest.fixture
def place(template: Place, tmp_path: Path) -> Place:
    return template.copy(tmp_path).use()


def calls() -> Iterator[list[Row]]:
    yield rows(range(4))
    yield rows(range(2, 6), acquisition="main-2")
    yield rows(range(6, 8), names=["direct"])


def asked(place: Place, query: Query, at: int | None = None) -> list[dict[str, Any]]:
    with reading.reading(place.home, at=at) as view:
        return [row for table in scores(view, query) for row in table.to_pylist()]


def fingerprint(place: Place, name: str) -> str:
    with Index.open(place.home) as index:
        return index.channels().resolve(name).fingerprint


EVERYTHING = [row for made in calls() for row in made]
Wanted = Callable[[Row], bool]
QUERIES: dict[str, tuple[Query, Wanted]] = {
    "all": (Query(), lambda r: True),
    "one trajectory": (Query(trajectories=("traj003",)), lambda r: r["trajectory_id"] == "traj003"),
    "two trajectories": (
        Query(trajectories=("traj006", "traj000", "traj006")),
        lambda r: r["trajectory_id"] in ("traj000", "traj006"),
    ),
    "between the ids": (Query(trajectories=("traj003x", "", "zzz")), lambda r: False),
    "step": (Query(steps=(1, 9_000_000_000)), lambda r: r["step"] == 1),
    "endpoint": (Query(endpoints=("after",)), lambda r: r["endpoint"] == "after"),
    "acquisition": (Query(acquisitions=("main-2",)), lambda r: r["acquisition_id"] == "main-2"),
    "candidate": (Query(candidates=("B", "C")), lambda r: r["candidate"] in "BC"),
    "layout": (Query(layouts=(1,)), lambda r: r["layout"] == 1),
    "all parts": (
        Query(("traj002",), (0,), ("before",), ("own",), (), (0,), ("main-1",), ("A",)),
        lambda r: (
            (r["trajectory_id"], r["step"], r["endpoint"], r["layout"], r["acquisition_id"], r["candidate"])
            == ("traj002", 0, "before", 0, "main-1", "A")
        ),
    ),
}


def identity(row: dict[str, Any]) -> tuple[object, ...]:
    parts = ("trajectory_id", "step", "endpoint", "layout", "acquisition_id", "candidate", "energy")
    return tuple(row[part] for part in parts)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_returns_the_entries_it_means(place: Place, name: str) -> None:
    query, wanted = QUERIES[name]
    found = asked(place, query)
    assert sorted(map(identity, found)) == sorted(identity(row) for row in EVERYTHING if wanted(row))


def test_a_channel_is_asked_for_by_fingerprint_and_shown_by_name(place: Place) -> None:
    wanted = fingerprint(place, "generated")
    found = asked(place, Query(channels=(wanted,)))
    assert len(found) == sum(row["channel"] == "generated" for row in EVERYTHING)
    assert {(row["channel"], row["fingerprint"]) for row in found} == {("generated@1", wanted)}


def test_rows_read_as_they_were_written(place: Place) -> None:
    (found,) = asked(place, Query(("traj002",), (0,), ("before",), ("own",), (), (0,), ("main-2",), ("B",)))[
        1:
    ]
    (written,) = (
        row for row in rows([2], 1, names=["generated"], acquisition="main-2")
        if (row["endpoint"], row["layout"], row["candidate"]) == ("before", 0, "B")
    )  # fmt: skip
    assert {name: found[name] for name in written if name != "channel"} == {
        name: value for name, value in written.items() if name != "channel"
    }
    assert found["response_hash"] is None
    prefix, _, row = found["entry"].partition(":")
    with Index.open(place.home) as index:
        (segment,) = index.segments_by_root(prefix)
    assert int(row) < segment.rows


def test_entries_come_in_the_order_of_the_log_and_a_limit_cuts_it(place: Place) -> None:
    everything = [row["entry"] for row in asked(place, Query())]
    assert len(set(everything)) == len(everything) == len(EVERYTHING)
    for limit in (0, 1, 150, 10_000):
        assert [row["entry"] for row in asked(place, Query(limit=limit))] == everything[:limit]


def test_an_older_head_shows_what_was_there_then(place: Place) -> None:
    with Index.open(place.home) as index:
        sizes = index.heads()
    assert len(asked(place, Query(), at=sizes[2])) == len(rows(range(4)))
    assert len(asked(place, Query(), at=sizes[1])) == 0


def test_columns_are_the_same_whatever_is_asked(place: Place) -> None:
    with reading.reading(place.home) as view:
        schemas = {table.schema for query in (Query(), Query(("traj003",))) for table in scores(view, query)}
    (schema,) = schemas
    assert (schema.names[0], schema.names[-1]) == ("entry", "fingerprint")
    assert pa.types.is_dictionary(schema.field("state_hash").type)


@pytest.mark.parametrize("query", [Query(), Query(trajectories=("traj003",))])
def test_a_changed_segment_is_never_returned(place: Place, query: Query) -> None:
    with Index.open(place.home) as index:
        segment = next(s for s in index.segments() if s.first[0] <= "traj003" <= s.last[0])
    path = place.home.objects.path(f"segments/{segment.file[7:]}.parquet")
    data = bytearray(path.read_bytes())
    for at in range(100, len(data) - 8, 40):
        data[at] ^= 0x10
    path.write_bytes(data)
    with pytest.raises(TamperError) as caught:
        asked(place, query)
    assert caught.value.kind == "data"


def test_a_catalog_that_names_another_root_is_caught(place: Place) -> None:
    """Whoever can write the home can make a segment and its catalog row agree; the log does not."""
    by_hand(place, "UPDATE segment SET root = ?", "sha256:" + "0" * 64)
    with pytest.raises(TamperError) as caught:
        asked(place, Query())
    assert caught.value.kind == "catalog"
