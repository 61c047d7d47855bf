"""Every row of the catalog dropped, every two that can be exchanged exchanged: found, and the row named."""

from __future__ import annotations

import itertools
import random
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pytest

from contracts.errors import LedgerError
from ledger import seal
from ledger.verify import verify
from migrations.append_only import TABLES
from tests.tamper.victims import CATALOG, Victim, changed, edited, flip, found, keys_of, look, rows_of

Key = tuple[int, ...]
# Where verification names what an added event or head leads to.
ADDED = {"event": (f"{CATALOG} event 21",), "head": (f"{CATALOG} head of size 10000",)}
FEW = 4  # pairs of one table by default


def entry(table: str, key: Key) -> str:
    """What verification calls a row."""
    named = {"event": f"event {key[0]}", "head": f"head of size {key[0]}"}
    return f"{CATALOG} {named.get(table, f'{table} ' + '/'.join(map(str, key)))}"


def one(table: str, key: Key) -> tuple[str, Key]:
    """The condition for one row, and its values."""
    return " AND ".join(f"{name} = ?" for name in keys_of(table)), key


def pairs(rows: list[Key], limit: int | None) -> Iterable[tuple[Key, Key]]:
    every = list(itertools.combinations(rows, 2))
    if limit is None or len(every) <= limit:
        return every
    return [*itertools.islice(itertools.pairwise(rows), limit // 2),
            *random.Random(len(rows)).sample(every, limit // 2)]  # fmt: skip


def test_no_table_is_empty(victim: Victim) -> None:
    assert [table for table in TABLES if not rows_of(victim, table)] == []


@pytest.mark.parametrize("table", TABLES)
def test_every_dropped_row_is_found_and_named(victim: Victim, table: str) -> None:
    rows = rows_of(victim, table)
    for key in rows:
        condition, values = one(table, key)

        def drop(connection: sqlite3.Connection, condition: str = condition, values: Key = values) -> None:
            connection.execute(f"DELETE FROM {table} WHERE {condition}", values)

        with edited(victim, drop):
            newest = table == "head" and key == rows[-1]  # then it is the events behind it that are told
            found(victim, f"{CATALOG} event {rows[-2][0]}" if newest else entry(table, key))
    assert verify(victim.home).ok


@pytest.mark.parametrize("table", TABLES)
def test_a_repeated_row_under_another_key_is_found(victim: Victim, table: str) -> None:
    key = rows_of(victim, table)[0]
    columns = [name for name in columns_of(victim, table) if name not in keys_of(table)]
    free = (10_000, *key[1:])
    names = ", ".join((*keys_of(table), *columns))
    marks = ", ".join("?" * len(free))

    def repeat(connection: sqlite3.Connection) -> None:
        rest = "".join(f", {name}" for name in columns)
        condition, values = one(table, key)
        connection.execute(
            f"INSERT OR IGNORE INTO {table} ({names}) SELECT {marks}{rest} FROM {table} WHERE {condition}",
            (*free, *values),
        )

    with edited(victim, repeat):
        if free in rows_of(victim, table):  # some tables have a second key that refuses it
            found(victim, entry(table, free), *ADDED.get(table, ()))
        else:
            assert len(TABLES[table]) > 1


def columns_of(victim: Victim, table: str) -> list[str]:
    connection = sqlite3.connect(victim.home.path / CATALOG)
    try:
        return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    finally:
        connection.close()


def swaps(victim: Victim, table: str, limit: int | None) -> Iterator[tuple[Key, Key]]:
    yield from pairs(rows_of(victim, table), limit)


def swap_all(victim: Victim, table: str, limit: int | None) -> None:
    """Two rows change places: everything but their keys."""
    columns = [name for name in columns_of(victim, table) if name not in keys_of(table)]
    listed = ", ".join(columns)
    for one_key, other_key in swaps(victim, table, limit):

        def exchange(connection: sqlite3.Connection, ends: tuple[Key, Key] = (one_key, other_key)) -> None:
            held = []
            for key in ends:
                condition, values = one(table, key)
                held.append(
                    connection.execute(f"SELECT {listed} FROM {table} WHERE {condition}", values).fetchone()
                )
                connection.execute(f"DELETE FROM {table} WHERE {condition}", values)
            names = ", ".join((*keys_of(table), *columns))
            marks = ", ".join("?" * (len(ends[0]) + len(columns)))
            for key, row in zip(ends, reversed(held), strict=True):
                connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", (*key, *row))

        before = contents(victim, table)
        with edited(victim, exchange):
            if contents(victim, table) == before:
                continue  # two rows that say the same
            found(victim, entry(table, one_key))
    assert verify(victim.home).ok


def contents(victim: Victim, table: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(victim.home.path / CATALOG)
    try:
        return connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize("table", TABLES)
def test_two_rows_that_change_places_are_found(victim: Victim, table: str) -> None:
    swap_all(victim, table, FEW)


@pytest.mark.sweep
@pytest.mark.parametrize("table", ["event", "head"])
def test_every_two_events_or_heads_that_change_places_are_found(victim: Victim, table: str) -> None:
    swap_all(victim, table, None)


def test_an_event_stored_far_out_keeps_nobody_busy(victim: Victim) -> None:
    def far(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE event SET leaf_index = ? WHERE leaf_index = 20", (2**52,))
        connection.execute("UPDATE head SET size = ? WHERE size = 21", (2**52 + 1,))

    with edited(victim, far):
        found(victim, f"{CATALOG} event 20")


@pytest.mark.parametrize(
    "statement", ["DELETE FROM alembic_version", "INSERT INTO alembic_version VALUES ('0000')"]
)
def test_the_version_of_the_catalog_cannot_be_taken_away_or_doubled_unseen(
    victim: Victim, statement: str
) -> None:
    with changed(victim, CATALOG, seal.SEAL):
        connection = sqlite3.connect(victim.home.path / CATALOG)
        with connection:
            connection.execute(statement)
        connection.close()
        victim.path(seal.SEAL).unlink()
        found(victim, CATALOG)


def flipped_under_a_new_seal(victim: Victim, spots: int) -> None:
    """What a new seal hides changes no row of any table."""
    size = victim.path(CATALOG).stat().st_size
    before = {table: contents(victim, table) for table in TABLES}
    draw, passed = random.Random(11), 0
    for _ in range(spots):
        with changed(victim, CATALOG, seal.SEAL):
            flip(victim, CATALOG, draw.randrange(size), draw.randrange(8))
            victim.path(seal.SEAL).unlink()
            with suppress(LedgerError):
                seal.write(victim.home)
            if look(victim).ok:
                passed += 1
                assert {table: contents(victim, table) for table in TABLES} == before
    assert passed


def test_a_flip_under_a_new_seal_is_found_or_changes_no_row(victim: Victim) -> None:
    flipped_under_a_new_seal(victim, 15)


@pytest.mark.sweep
def test_many_flips_under_a_new_seal_are_found_or_change_no_row(victim: Victim) -> None:
    flipped_under_a_new_seal(victim, 500)
