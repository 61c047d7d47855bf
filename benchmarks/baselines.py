"""What ingest is compared with, each a process of its own: rows into SQLite, and a plain Parquet rewrite.

baselines.py sqlite FILE TARGET     one row an entry by executemany, WAL, synchronous FULL, no index
baselines.py rewrite FILE TARGET    pyarrow reads the file and writes it again, zstd, with fsync
"""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def sqlite(source: Path, target: Path) -> None:
    """Every row with the same columns; Arrow batches become tuples as they are inserted."""
    file = pq.ParquetFile(source)
    names = file.schema_arrow.names
    connection = sqlite3.connect(target)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    columns = ", ".join(f'"{name}"' for name in names)
    connection.execute(f"CREATE TABLE entry ({columns})")
    places = ", ".join("?" * len(names))
    with connection:
        for batch in file.iter_batches(65_536):
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            connection.executemany(f"INSERT INTO entry VALUES ({places})", rows)
    connection.close()


def rewrite(source: Path, target: Path) -> None:
    """The whole table in and out, as somebody would who keeps scores as files."""
    table: pa.Table = pq.read_table(source)
    pq.write_table(table, target, compression="zstd")
    descriptor = os.open(target, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


if __name__ == "__main__":
    {"sqlite": sqlite, "rewrite": rewrite}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
