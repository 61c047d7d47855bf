"""Whether the catalog says what the log says: events, and the rows derived from them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from contracts.errors import LedgerError, StorageError, TamperError
from ledger import derive, events, seal
from ledger.catalog_file import open_readonly
from ledger.connection import failure
from ledger.event_types import (
    AttestationEvent,
    AuditEvent,
    Event,
    KeyChangeEvent,
    KeyEvent,
    PolicyEvent,
    RefusalEvent,
    SegmentEvent,
)
from ledger.home import Home
from ledger.index import Index
from ledger.index_rows import EventRow
from ledger.objects import Objects
from ledger.problems import Problems
from ledger.tree import leaf_hash
from migrations.append_only import TABLES

DERIVED = tuple(table for table in TABLES if table not in ("event", "head"))
CHUNK = 1000
FAULTS = 20
OTHER_VERSION = ("old-catalog", "newer-catalog")
_END = 2**63 - 1
SIDES = "refused_side"


@dataclass
class Named:
    """What the events of the log name, with the index of the event that does."""

    objects: dict[str, int] = field(default_factory=dict)
    stored: list[tuple[int, SegmentEvent | RefusalEvent]] = field(default_factory=list)
    audits: list[tuple[int, AuditEvent]] = field(default_factory=list)
    attestations: list[tuple[int, AttestationEvent]] = field(default_factory=list)
    trust: list[tuple[int, Event]] = field(default_factory=list)

    def take(self, index: int, event: Event) -> None:
        """Adds one event."""
        for name in events.object_names(event):
            self.objects.setdefault(name, index)
        if isinstance(event, SegmentEvent | RefusalEvent):
            self.stored.append((index, event))
        elif isinstance(event, AuditEvent):
            self.audits.append((index, event))
        elif isinstance(event, AttestationEvent):
            self.attestations.append((index, event))
        elif isinstance(event, KeyEvent | KeyChangeEvent | PolicyEvent):
            self.trust.append((index, event))


@contextmanager
def reading(found: Problems, home: Home) -> Iterator[None]:
    """Turns what SQLite says about damaged pages, or an error of ours, into a problem of the catalog."""
    with found.guard("catalog", found.catalog):
        try:
            yield
        except sqlite3.Error as error:
            raise failure(error, home.catalog) from error
        except UnicodeDecodeError as error:  # sqlite3 quotes damaged text in its own messages
            raise TamperError("the catalog is damaged: its text is not utf-8", kind="catalog") from error


def check_file(found: Problems, home: Home) -> None:
    """SQLite's own structure, indexes included, and the checksum of the file.

    A server answers for its own files; there every row is compared with the log, and no byte behind them.
    """
    place = home.catalog
    if not isinstance(place, Path):
        return
    try:
        opened = open_readonly(place)
    except StorageError as error:
        if error.code in OTHER_VERSION:
            seal.check_unopened(home, place)
        raise
    with closing(opened) as connection:
        for (message,) in connection.execute(f"PRAGMA integrity_check({FAULTS})").fetchall():
            if message != "ok":
                said = " ".join(str(message).split())[:200]
                found.add("catalog", found.catalog, f"sqlite finds a fault: {said}")
        before = found.total
        with found.guard("catalog", seal.SEAL):
            seal.read(home)
        if found.total > before:
            return
        with found.guard("catalog", found.catalog):
            notice = seal.check(connection, home, place)
            if notice is not None:
                found.notices.append(notice)


def check_rows(
    found: Problems, index: Index, objects: Objects, size: int, progress: Callable[[int], None]
) -> Named:
    """Every event against its leaf, and every derived row against its event."""
    for guard, why in index.wrong_guards():
        found.add("catalog", found.catalog, why, guard)
    rows = _Rows(found, index, objects)
    for start in range(0, size, CHUNK):
        rows.check(start, min(start + CHUNK, size))
        progress(min(start + CHUNK, size))
    for table in DERIVED:
        rows.surplus(table, -_END, 0)
        rows.surplus(table, size, _END)
    if rows.early:
        told = f"{len(rows.early)} events say" if len(rows.early) > 1 else "an event says"
        found.notices.append(
            f"{told} an earlier time than one before, the first is event {rows.early[0]}: a clock went back; "
            "the order of the log stands, times are what its writers' clocks said"
        )
    return rows.named


@dataclass
class _Rows:
    """Compares the derived tables with the events, some events at a time."""

    found: Problems
    index: Index
    objects: Objects
    named: Named = field(default_factory=Named)
    latest: str = ""
    early: list[int] = field(default_factory=list)

    def check(self, start: int, stop: int) -> None:
        """The events [start, stop) and their rows."""
        stored: dict[str, dict[object, list[derive.Row]]] = {table: {} for table in DERIVED}
        for table in DERIVED:
            if table != SIDES:
                for row in self.index.table_rows(table, start, stop):
                    stored[table].setdefault(row["event"], []).append(row)
        # where the rows of refused sides were not looked at yet: one refusal may have very many
        sides = expected = start
        for one in self.index.events(start, stop):
            self._missing(expected, one.index)
            expected = one.index + 1
            event = self._decoded(one)
            if event is None or isinstance(event, RefusalEvent):
                self.surplus(SIDES, sides, one.index)
                sides = one.index + 1
            mine = {table: stored[table].pop(one.index, []) for table in DERIVED}
            if event is not None:
                self._clock(one.index, event.time)
                if isinstance(event, RefusalEvent):
                    mine[SIDES] = self.index.table_rows(SIDES, one.index, sides)
                self._event(one.index, event, mine)
        self._missing(expected, stop)
        self.surplus(SIDES, sides, stop)
        for table, rows in stored.items():
            for row in (row for items in rows.values() for row in items):
                self._tell("a row of no event in the log", table, row)

    def _clock(self, index: int, time: str) -> None:
        """Notes an event that says it was before an earlier one; the texts are of one form and compare."""
        if time < self.latest:
            self.early.append(index)
        self.latest = max(self.latest, time)

    def _missing(self, start: int, stop: int) -> None:
        for index in range(start, stop):
            self.found.add("catalog", self.found.catalog, "the event is missing", f"event {index}")

    def surplus(self, table: str, start: int, stop: int) -> None:
        """Rows of a table where there are no events that could have made them."""
        for row in self.index.table_rows(table, start, stop):
            self._tell("a row of no event in the log", table, row)

    def _event(self, index: int, event: Event, stored: Mapping[str, list[derive.Row]]) -> None:
        entry = f"event {index}"
        with self.found.guard("catalog", self.found.catalog, entry):
            self.named.take(index, event)
        try:
            derived = derive.rows(index, event, self.objects)
            for table, rows in stored.items():
                self._compare(table, rows, derived.get(table, ()))
        except LedgerError as error:
            if error.code not in ("missing-object", "data"):  # those are told with the objects
                self.found.add_error(error, "catalog", self.found.catalog, entry)

    def _compare(self, table: str, stored: list[derive.Row], derived: Iterable[derive.Row]) -> None:
        for row, wanted in zip_longest(stored, derived):
            if wanted is None:
                self._tell("a row that its event did not make", table, row)
            elif row is None:
                self._tell("the row of an event is missing", table, wanted)
            elif row != wanted:
                names = ", ".join(name for name in wanted if wanted[name] != row.get(name))
                self._tell(f"the row differs from its event in {names}", table, wanted)

    def _tell(self, message: str, table: str, row: derive.Row) -> None:
        key = "/".join(str(row[name]) for name in ("event", "ordinal") if name in row)
        self.found.add("catalog", self.found.catalog, message, f"{table} {key}")

    def _decoded(self, row: EventRow) -> Event | None:
        """The decoded event of a stored row; None where it cannot be told."""
        entry = f"event {row.index}"
        if leaf_hash(row.data) != row.leaf:
            self.found.add("catalog", self.found.catalog, "the stored bytes are not those of the leaf", entry)
            return None
        with self.found.guard("catalog", self.found.catalog, entry):
            event = events.decode(row.data)
            if (event.type, event.time) != (row.type, row.time):
                what = "stored type or time is not the one in the event"
                self.found.add("catalog", self.found.catalog, what, entry)
            return event
        return None
