"""The catalog's tables come from migrations, and nothing in them can be changed afterwards."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError

import migrations
from migrations import revisions, runner
from migrations.append_only import TABLES, triggers
from migrations.engine import engine, sqlite_url
from migrations.runner import current


def upgrade(url: str) -> None:
    made = engine(url)
    try:
        runner.upgrade(made)
    finally:
        made.dispose()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    catalog = tmp_path / "catalog.sqlite"
    upgrade(sqlite_url(str(catalog)))
    return catalog


@pytest.fixture
def by_hand(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of somebody who set no pragma at all."""
    connection = sqlite3.connect(path)
    yield connection
    connection.close()


def example(table: str, connection: sqlite3.Connection) -> dict[str, object]:
    values: dict[str, object] = {}
    for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({table})"):
        values[name] = 0 if "INT" in kind or kind == "BOOLEAN" else b"x" if kind == "BLOB" else "x"
    return values | ({"size": 1} if table == "head" else {})


def insert(connection: sqlite3.Connection, verb: str, table: str, values: dict[str, object]) -> None:
    marks = ", ".join("?" * len(values))
    connection.execute(f"{verb} INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values()))


def test_the_migrations_are_the_known_revisions(path: Path) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__ or "").parent))
    script = ScriptDirectory.from_config(config)
    assert tuple(reversed([r.revision for r in script.walk_revisions()])) == revisions.REVISIONS
    with engine(sqlite_url(str(path))).connect() as connection:
        assert current(connection) == revisions.LATEST


def test_every_table_has_its_triggers(by_hand: sqlite3.Connection) -> None:
    found = dict(by_hand.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"))
    expected = {name: sql for table in TABLES for name, sql in triggers(table).items()}
    assert found == expected
    tables = {row[0] for row in by_hand.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {*TABLES, "alembic_version"}


@pytest.mark.parametrize("table", TABLES)
def test_rows_cannot_be_changed_by_hand(table: str, by_hand: sqlite3.Connection) -> None:
    values = example(table, by_hand)
    insert(by_hand, "INSERT", table, values)
    column = next(reversed(values))
    attempts = [f"UPDATE {table} SET {column} = 'y'", f"DELETE FROM {table}"]
    for statement in attempts:
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            by_hand.execute(statement)
    for verb in ("INSERT OR REPLACE", "REPLACE", "INSERT"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            insert(by_hand, verb, table, values | {column: b"y" if table in ("event", "head") else 1})
    kept = by_hand.execute(f"SELECT {', '.join(values)} FROM {table}").fetchall()
    assert kept == [tuple(values.values())]


@pytest.mark.parametrize("table", ["channel", "acquisition"])
def test_a_second_key_is_guarded_too(table: str, by_hand: sqlite3.Connection) -> None:
    values = example(table, by_hand)
    insert(by_hand, "INSERT", table, values)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        insert(by_hand, "INSERT OR REPLACE", table, values | {"event": 7})


@pytest.mark.parametrize("table", ["segment_scope", "refused_side"])
def test_no_hidden_row_id_can_be_hit(table: str, by_hand: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.OperationalError):
        by_hand.execute(f"SELECT rowid FROM {table}")


def test_the_log_has_no_gaps_and_heads_only_grow(by_hand: sqlite3.Connection) -> None:
    values = example("event", by_hand)
    with pytest.raises(sqlite3.IntegrityError):
        insert(by_hand, "INSERT", "event", values | {"leaf_index": 1})
    insert(by_hand, "INSERT", "event", values)
    insert(by_hand, "INSERT", "event", values | {"leaf_index": 1})
    insert(by_hand, "INSERT", "head", {"size": 2, "root": b"r", "note": b"n"})
    with pytest.raises(sqlite3.IntegrityError):
        insert(by_hand, "INSERT", "head", {"size": 1, "root": b"r", "note": b"n"})


def test_upgrading_twice_changes_nothing(path: Path) -> None:
    before = path.read_bytes()
    upgrade(sqlite_url(str(path)))
    assert path.read_bytes() == before


def test_a_failed_upgrade_leaves_no_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = tmp_path / "catalog.sqlite"
    monkeypatch.setitem(TABLES, "revocation", (("no_such_column",),))  # type: ignore[misc]
    monkeypatch.setattr("migrations.append_only._trigger", lambda *_: "CREATE NONSENSE")
    with pytest.raises(sa.exc.OperationalError):
        upgrade(sqlite_url(str(catalog)))
    with sqlite3.connect(catalog) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []


def test_a_newer_revision_is_not_understood(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0999'")
    with pytest.raises(CommandError):
        upgrade(sqlite_url(str(path)))


def test_writers_use_the_safe_settings(path: Path) -> None:
    with engine(sqlite_url(str(path))).connect() as connection:
        asked = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "recursive_triggers", "cache_spill")
        }
    assert asked == {"journal_mode": "delete", "synchronous": 3, "recursive_triggers": 1, "cache_spill": 0}
