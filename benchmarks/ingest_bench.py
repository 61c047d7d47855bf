"""How fast scores become entries, beside the same rows put elsewhere, and how many bytes they are there.

Above PEERS_UP_TO entries only ledger itself runs: peers that hold a table in memory would not fit.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import server
from case import LEDGER, Bar, Case, Fact, Home, faster, megabytes, share, times
from data import Order, whole, write
from homes import copied, new_home
from peer_python import peer

SQLMODEL_ROWS, SQLITE_ROWS = 100_000, 1_000_000  # at most; beyond, rows per second stay as they are
PEERS_UP_TO = 10_000_000


def cases(folder: Path, entries: int) -> list[Case | Fact]:
    """Each starts from nothing: contracts, pages, tree, signature and every fsync are in the time."""
    template = new_home(folder / "empty")

    def ingest(name: str, order: Order) -> Case:
        source = write(folder / f"{order}.parquet", entries, order=order)
        fresh = Home(folder / f"home-{order}")
        return Case(
            name,
            [*LEDGER, "ingest", str(source)],
            fresh.environment,
            prepare=lambda: copied(template, fresh.folder) and None,
            entries=whole(entries),
            grows=True,
        )

    made: list[Case | Fact] = [
        ingest("ingest", "requests"),
        ingest("ingest, rows shuffled", "rows"),
        ingest("ingest, rows sorted", "sorted"),
    ]
    per_entry = {
        "home": lambda: sum(map(_size, Home(folder / "home-requests").segment_files)) / whole(entries),
        "Parquet": lambda: _size(folder / "sorted.parquet") / whole(entries),
    }
    if entries <= PEERS_UP_TO:
        made += _peers(folder, entries)
        rows = whole(min(entries, SQLITE_ROWS))
        per_entry["SQLite"] = lambda: _size(folder / "baseline-sqlite") / rows
    return made + [Fact(f"bytes an entry: {name}", find) for name, find in per_entry.items()]


def _peers(folder: Path, entries: int) -> list[Case]:
    address, no_server = server.address()

    def case(kind: str, distribution: str, most: int = PEERS_UP_TO) -> Case:
        rows, file = entries, folder / "requests.parquet"
        if most < entries:
            rows, file = most, write(folder / f"first{most}.parquet", most)
        target = folder / f"baseline-{kind}"
        to = address if kind == "postgres" else str(target)
        return peer(
            NAMES[kind],
            distribution,
            *(kind, str(file), to),
            prepare=lambda: _cleared(target),
            entries=whole(rows),
        )

    copy = case("postgres", "adbc-driver-postgresql")
    return [
        case("sqlmodel", "sqlmodel", SQLMODEL_ROWS),
        case("sqlite", "pyarrow", SQLITE_ROWS),
        copy if no_server is None else replace(copy, missing=copy.missing or no_server),
        case("iceberg", "pyiceberg"),
        case("rewrite", "pyarrow"),
    ]


def _cleared(target: Path) -> None:
    for path in target.parent.glob(f"{target.name}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _size(path: Path) -> int:
    return path.stat().st_size


NAMES = {
    "sqlmodel": "SQLModel, an object a row",
    "sqlite": "sqlite3 executemany",
    "postgres": "PostgreSQL COPY through ADBC",
    "iceberg": "pyiceberg append",
    "rewrite": "pyarrow rewrite",
}
STATED, SMALL = 10_000_000, 1_000_000
BARS: list[Bar] = [
    faster("ingest / SQLModel, entries/s", "ingest", NAMES["sqlmodel"], 100.0, STATED),
    faster("ingest / sqlite3 executemany, entries/s", "ingest", NAMES["sqlite"], 6.0, STATED),
    faster("ingest / PostgreSQL COPY, entries/s", "ingest", NAMES["postgres"], 2.0, STATED),
    faster("ingest / pyiceberg append, entries/s", "ingest", NAMES["iceberg"], 1.3, STATED),
    times("ingest / pyarrow rewrite, time", "ingest", NAMES["rewrite"], at_most=2.5, of=STATED),
    faster("ingest / sqlite3 executemany, entries/s", "ingest", NAMES["sqlite"], 3.0, SMALL),
    times("ingest / pyarrow rewrite, time", "ingest", NAMES["rewrite"], at_most=4.0, of=SMALL),
    megabytes("ingest", 2048, STATED),
    megabytes("ingest", 1000, SMALL),
    times(
        "rows shuffled / sorted, time", "ingest, rows shuffled", "ingest, rows sorted", at_most=2.0, of=STATED
    ),
    megabytes("ingest, rows shuffled", 2048, STATED),
    share("bytes: home / zstd Parquet", "bytes an entry: home", "bytes an entry: Parquet", 1.1, STATED),
    share("bytes: home / SQLite", "bytes an entry: home", "bytes an entry: SQLite", 1 / 8, STATED),
]
