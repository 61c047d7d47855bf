"""The models are the migrated tables, and bulk rows go in as one statement."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlmodel import SQLModel

from contracts.errors import MalformedError, StorageError, TamperError
from ledger import append, catalog, log, pin
from ledger.index import Index
from ledger.refusals import decode_faults, decode_index, encode_index, faults_text, read_index
from migrations.append_only import TABLES
from tests.ledger.homes import (
    CATALOGS,
    Place,
    by_hand,
    chosen,
    new_place,
    one_of_each,
    refusal_event,
    refused_side,
)


@pytest.fixture(params=CATALOGS)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return new_place(tmp_path, chosen(request))


def kind(column: sa.types.TypeEngine[object]) -> str:
    """The family of a column type: the names of text types differ between the two declarations."""
    families = {sa.LargeBinary: "bytes", sa.Boolean: "truth", sa.Integer: "number", sa.String: "text"}
    return next(name for base, name in families.items() if isinstance(getattr(column, "impl", column), base))


def test_the_models_are_the_migrated_tables(place: Place) -> None:
    made = catalog._engine(place.home.catalog, 5.0)
    inspector = sa.inspect(made)
    assert set(TABLES) == set(SQLModel.metadata.tables)
    for name, table in SQLModel.metadata.tables.items():
        stored = {column["name"]: column for column in inspector.get_columns(name)}
        assert set(stored) == set(table.columns.keys()), name
        for column in table.columns:
            assert stored[column.name]["nullable"] == column.nullable, (name, column.name)
            affinity = {kind(stored[column.name]["type"]), kind(column.type)}
            assert len(affinity) == 1, (name, column.name, affinity)
        keys = [column.name for column in table.primary_key.columns]
        assert inspector.get_pk_constraint(name)["constrained_columns"] == keys
        assert tuple(keys) == tuple(TABLES[name][0])
    made.dispose()


def test_a_row_that_is_there_is_damage_and_nothing_is_written(place: Place) -> None:
    log.commit(place.home, place.key, lambda t: one_of_each(t.objects))
    row = {"event": 2, "id": "run-1", "kind": "transport"}
    with pytest.raises(TamperError) as caught, append.writing(place.home.catalog) as appending:
        appending.append({"acquisition": [{"event": 9, "id": "new", "kind": "transport"}, row]})
    assert caught.value.kind == "catalog"
    with Index.open(place.home) as index:
        assert len(index.table_rows("acquisition", 0, 100)) == 1


@pytest.mark.parametrize("table", ["event", "head", "acquisition", "segment", "segment_scope"])
def test_a_trigger_that_drops_rows_cannot_make_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    place = new_place(tmp_path)
    ignore = f"CREATE TRIGGER quiet BEFORE INSERT ON {table} BEGIN SELECT RAISE(IGNORE); END"
    by_hand(place, ignore, drop=False)
    before = pin.load(place.home.origin)
    with pytest.raises(TamperError, match="did not take every row"):
        log.commit(place.home, place.key, lambda t: one_of_each(t.objects))
    assert pin.load(place.home.origin) == before
    with Index.open(place.home) as index:
        assert (index.size, index.event_count()) == (1, 1)


def test_a_catalog_that_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        catalog.create(tmp_path / "nowhere" / "catalog.sqlite")


def test_many_refused_sides(place: Place) -> None:
    log.commit(place.home, place.key, lambda t: [refusal_event(t.objects, 3000)])
    with Index.open(place.home) as index:
        sides = index.refused_sides()
    assert len(sides) == 3000
    assert [side.ordinal for side in sides] == list(range(3000))
    assert sides == decode_index(encode_index([refused_side(n) for n in range(3000)]), 1)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{}", b"[1]", b"[{}]", b"nonsense", b"[" * 100_000, b"\xff", b"[", b"]", b"[]]", b"[,]",
        encode_index([refused_side(1)])[:-1], encode_index([refused_side(1)]) + b"]",
        encode_index([refused_side(1)])[:-1] + b",]",
        encode_index([refused_side(1)]).replace(b'"step":1', b'"step":-1'),
        encode_index([refused_side(1)]).replace(b'"reason"', b'"raison"'),
        encode_index([refused_side(1)]).replace(b'"success":false', b'"success":"no"'),
        encode_index([refused_side(1)]).replace(b'"layout":2', b'"layout":null'),
    ],
)  # fmt: skip
def test_lists_that_are_none(data: bytes) -> None:
    with pytest.raises(MalformedError):
        decode_index(data, 0)


def test_faults_and_their_json_are_one_to_one() -> None:
    data = encode_index([refused_side(1)])
    (side,), (item,) = decode_index(data, 0), read_index(data)
    assert len(side.faults) == 2
    assert decode_faults(faults_text(item)) == side.faults
    assert side.key == ("traj000001", 1, "own", refused_side(1).channel, "run-1")
    assert encode_index([]) == b"[]"
    assert decode_index(b"[]", 0) == ()
    for text in ("", "{}", "[1]", "[{}]", "[" * 100_000):
        with pytest.raises(MalformedError):
            decode_faults(text)
