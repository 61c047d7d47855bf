"""Whether the catalog says what the log says: events, and the rows derived from them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from contracts.errors import LedgerError, StorageError, TamperError
from ledger import derive, events, seal
from ledger.catalog_file import catalog_error, open_readonly
from ledger.event_types import AuditEvent, Event, KeyEvent, RefusalEvent, SegmentEvent
from ledger.home import Home
from ledger.index import Index
from ledger.index_rows import EventRow
from ledger.keys import PublicKey
from ledger.objects import Objects
from ledger.problems import Problems
from ledger.tree import leaf_hash
from ledger.vkey import VerifierKey, parse_vkey
from migrations.append_only import TABLES

CATALOG = "catalog.sqlite"
DERIVED = tuple(table for table in TABLES if table not in ("event", "head"))
CHUNK = 1000
FAULTS = 20
OTHER_VERSION = ("old-catalog", "newer-catalog")
_END = 2**63 - 1
_KEY = ("event", "ordinal")
SIGNERS = ("head", "audit")


@dataclass
class Named:
    """What the events of the log name, with the index of the event that does."""

    objects: dict[str, int] = field(default_factory=dict)
    stored: list[tuple[int, SegmentEvent | RefusalEvent]] = field(default_factory=list)
    audits: list[tuple[int, AuditEvent]] = field(default_factory=list)
    keys: list[tuple[str, VerifierKey]] = field(default_factory=list)

    def signers(self, head: VerifierKey) -> list[PublicKey]:
        """The keys that may sign an audit: that of the heads, and those the log names for it."""
        raw = [head.public, *(key.public for role, key in self.keys if role in SIGNERS)]
        return [PublicKey(key) for key in dict.fromkeys(raw)]

    def take(self, index: int, event: Event) -> None:
        """Adds one event."""
        for name in events.object_names(event):
            self.objects.setdefault(name, index)
        if isinstance(event, SegmentEvent | RefusalEvent):
            self.stored.append((index, event))
        elif isinstance(event, AuditEvent):
            self.audits.append((index, event))
        elif isinstance(event, KeyEvent):
            self.keys.append((event.role, parse_vkey(event.vkey)))


@contextmanager
def reading(found: Problems, home: Home) -> Iterator[None]:
    """Turns what SQLite says about damaged pages, or an error of ours, into a problem of the catalog."""
    with found.guard("catalog", CATALOG):
        try:
            yield
        except sqlite3.Error as error:
            raise catalog_error(error, home.catalog) from error
        except UnicodeDecodeError as error:  # sqlite3 quotes damaged text in its own messages
            raise TamperError("the catalog is damaged: its text is not utf-8", kind="catalog") from error


def check_file(found: Problems, home: Home) -> None:
    """SQLite's own structure, indexes included, and the checksum of the file."""
    try:
        opened = open_readonly(home.catalog)
    except StorageError as error:
        if error.code in OTHER_VERSION:
            seal.check_unopened(home)
        raise
    with closing(opened) as connection:
        for (message,) in connection.execute(f"PRAGMA integrity_check({FAULTS})").fetchall():
            if message != "ok":
                found.add("catalog", CATALOG, f"sqlite finds a fault: {str(message)[:200]}")
        with found.guard("catalog", CATALOG):
            notice = seal.check(connection, home)
            if notice is not None:
                found.notices.append(notice)


def check_rows(
    found: Problems, index: Index, objects: Objects, size: int, progress: Callable[[int], None]
) -> Named:
    """Every event against its leaf, and every derived row against its event, `CHUNK` events at a time."""
    for trigger in index.missing_triggers():
        found.add("catalog", CATALOG, "an append-only trigger is missing or changed", f"trigger {trigger}")
    named = Named()
    for start in range(0, size, CHUNK):
        stop = min(start + CHUNK, size)
        expected: dict[str, list[derive.Row]] = {table: [] for table in DERIVED}
        unknown: set[int] = set()
        for row in index.events(start, stop):
            event = _event(found, row)
            if event is None:
                unknown.add(row.index)
                continue
            with found.guard("catalog", CATALOG, f"event {row.index}"):
                named.take(row.index, event)
            try:
                for table, items in derive.rows(row.index, event, objects).items():
                    expected[table].extend(items)
            except LedgerError as error:
                unknown.add(row.index)
                if error.code not in ("missing-object", "data"):  # those are told with the objects
                    found.add_error(error, "catalog", CATALOG, f"event {row.index}")
        for table in DERIVED:
            stored = [row for row in index.table_rows(table, start, stop) if row["event"] not in unknown]
            _compare(found, table, stored, expected[table])
        progress(stop)
    for table in DERIVED:
        for stray in [*index.table_rows(table, -_END, 0), *index.table_rows(table, size, _END)]:
            found.add("catalog", CATALOG, "a row of no event in the log", f"{table} {_key(stray)}")
    return named


def _event(found: Problems, row: EventRow) -> Event | None:
    """The decoded event of a stored row; None where it cannot be told."""
    entry = f"event {row.index}"
    if leaf_hash(row.data) != row.leaf:
        found.add("catalog", CATALOG, "the stored bytes are not those of the leaf", entry)
        return None
    with found.guard("catalog", CATALOG, entry):
        event = events.decode(row.data)
        if (event.type, event.time) != (row.type, row.time):
            found.add("catalog", CATALOG, "stored type or time is not the one in the event", entry)
        return event
    return None


def _compare(
    found: Problems, table: str, stored: Sequence[derive.Row], expected: Sequence[derive.Row]
) -> None:
    if list(stored) == list(expected):
        return
    before, after = ({_key(row): row for row in rows} for rows in (expected, stored))
    for key in sorted({**before, **after}):
        wanted, row = before.get(key), after.get(key)
        if wanted is None or row is None:
            what = "a row that no event made" if wanted is None else "the row of an event is missing"
            found.add("catalog", CATALOG, what, f"{table} {key}")
        elif wanted != row:
            names = ", ".join(name for name in wanted if wanted[name] != row.get(name))
            found.add("catalog", CATALOG, f"the row differs from its event in {names}", f"{table} {key}")


def _key(row: derive.Row) -> str:
    return "/".join(str(row[name]) for name in _KEY if name in row)
