"""On a server too nothing can be changed afterwards, by anybody who does not take the guards away first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ledger import catalog
from ledger.server import Server, parse
from migrations.append_only import TABLES
from tests.postgres import Cluster

psycopg = pytest.importorskip("psycopg", reason="no server catalog: no psycopg")


@pytest.fixture(scope="module")
def place(cluster: Cluster) -> Server:
    made = parse(cluster.url(cluster.database()) + "?schema=guarded", "here")
    catalog.create(made)
    return made


@pytest.fixture
def shell(place: Server) -> Iterator[Any]:
    """The session of somebody who set nothing at all; rolled back afterwards."""
    with psycopg.connect(place.conninfo) as connection:
        connection.execute("SET search_path TO guarded")
        connection.execute("ALTER TABLE event DISABLE TRIGGER event_no_replace")
        connection.execute("INSERT INTO event VALUES (0, 'x', 'x', 'x', 'x')")
        connection.execute("ALTER TABLE event ENABLE ALWAYS TRIGGER event_no_replace")
        yield connection
        connection.rollback()


def example(table: str, shell: Any) -> dict[str, Any]:
    columns = shell.execute(
        "SELECT column_name, data_type FROM information_schema.columns "
        "WHERE table_schema = 'guarded' AND table_name = %s ORDER BY ordinal_position", (table,),
    ).fetchall()  # fmt: skip
    kinds = {"bytea": b"x", "text": "x", "boolean": False}
    return {name: kinds.get(kind, 0) for name, kind in columns} | ({"size": 1} if table == "head" else {})


def insert(shell: Any, table: str, values: dict[str, Any], more: str = "") -> None:
    marks = ", ".join(["%s"] * len(values))
    shell.execute(f"INSERT INTO {table} VALUES ({marks}) {more}".encode(), list(values.values()))


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("role", ["origin", "replica"])
def test_rows_cannot_be_changed_by_hand(table: str, role: str, shell: Any) -> None:
    values = example(table, shell)
    if table != "event":
        insert(shell, table, values)
    shell.execute(f"SET session_replication_role = {role}".encode())
    column, key = next(reversed(values)), next(iter(values))
    again = f"ON CONFLICT ({', '.join(TABLES[table][0])}) DO UPDATE SET {key} = 0"
    attempts = [
        lambda: shell.execute(f"UPDATE {table} SET {column} = {column}".encode()),
        lambda: shell.execute(f"UPDATE {table} SET {key} = 7 WHERE false".encode()),
        lambda: shell.execute(f"DELETE FROM {table}".encode()),
        lambda: shell.execute(f"TRUNCATE {table} CASCADE".encode()),
        lambda: insert(shell, table, values, again),
    ]
    for attempt in attempts:
        with pytest.raises(psycopg.errors.IntegrityError, match="append-only"), shell.transaction():
            attempt()
    with pytest.raises(psycopg.errors.IntegrityError), shell.transaction():
        insert(shell, table, values)
    assert shell.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() == (1,)


@pytest.mark.parametrize("table", [table for table, keys in TABLES.items() if len(keys) > 1])
def test_a_second_key_is_guarded_too(table: str, shell: Any) -> None:
    values = example(table, shell)
    insert(shell, table, values)
    insert(shell, "event", dict.fromkeys(range(5), "x") | {0: 1})
    with pytest.raises(psycopg.errors.IntegrityError):
        insert(shell, table, values | {"event": 1})


def test_the_log_has_no_gaps_and_heads_only_grow(shell: Any) -> None:
    for index in (0, 2, -1, 5):
        with pytest.raises(psycopg.errors.IntegrityError), shell.transaction():
            insert(shell, "event", dict.fromkeys(range(5), "x") | {0: index})
    insert(shell, "event", dict.fromkeys(range(5), "x") | {0: 1})
    insert(shell, "head", {"size": 2, "root": b"x", "note": b"x"})
    for size in (0, 1, 2):
        with pytest.raises(psycopg.errors.IntegrityError), shell.transaction():
            insert(shell, "head", {"size": size, "root": b"x", "note": b"x"})


def test_text_is_compared_by_its_bytes_and_places_are_long(shell: Any) -> None:
    odd = shell.execute(
        "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
        "WHERE c.relnamespace = 'guarded'::regnamespace AND c.relkind IN ('r', 'i') "
        "AND c.relname NOT LIKE 'alembic%' AND a.atttypid = 'text'::regtype "
        "AND a.attcollation <> (SELECT oid FROM pg_collation WHERE collname = 'C')"
    ).fetchall()
    assert odd == []
    short = shell.execute(
        "SELECT DISTINCT column_name FROM information_schema.columns "
        "WHERE table_schema = 'guarded' AND data_type = 'integer'"
    ).fetchall()
    assert {name for (name,) in short} == {"version", "ordinal", "threshold"}
