"""What ledger is compared with, each a process of its own that imports nothing of it.

peers.py sqlmodel FILE TARGET      one object and one row an entry, SQLite in WAL mode, synchronous FULL
peers.py sqlite FILE TARGET        one row an entry by executemany, WAL, synchronous FULL, no index
peers.py postgres FILE URL         COPY through ADBC, one transaction
peers.py iceberg FILE TARGET       one append to a table in a local warehouse, its catalog in SQLite
peers.py rewrite FILE TARGET       pyarrow reads the file and writes it again, zstd, with fsync
peers.py omega FILE… REF ALT       DuckDB computes the mean Ω from segment files and prints it
peers.py blake3 FILE…              the module blake3 on every core, where the program b3sum is missing
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

# Margin F = e_target - log sum exp of the competitors; a gain G is F after minus F before, over layouts on
# average; Ω is the gain under ALT less that under REF. As somebody writes it who has complete data.
OMEGA = """
WITH margin AS (
    SELECT trajectory_id, step, channel, endpoint, layout,
           max(energy) FILTER (candidate = target) - ln(sum(exp(energy)) FILTER (candidate <> target)) AS f
    FROM read_parquet(?)
    GROUP BY ALL
), gain AS (
    SELECT trajectory_id, step, channel,
           avg(f) FILTER (endpoint = 'after') - avg(f) FILTER (endpoint = 'before') AS g
    FROM margin
    GROUP BY ALL
)
SELECT avg(alt.g - ref.g)
FROM gain AS ref JOIN gain AS alt USING (trajectory_id, step)
WHERE ref.channel = ? AND alt.channel = ?
"""


def sqlmodel(source: str, target: str) -> None:
    """Every row becomes an object of a table class, as the tutorial of SQLModel does it."""
    import pyarrow.parquet as pq
    from sqlalchemy import event
    from sqlmodel import Field, Session, SQLModel, create_engine

    class Entry(SQLModel, table=True):
        id: int | None = Field(default=None, primary_key=True)
        trajectory_id: str
        step: int
        step_kind: str
        endpoint: str
        view_source: str
        channel: str
        layout: int
        acquisition_id: str
        candidate: str
        energy: float
        status: str
        target: str
        success: bool
        state_hash: str
        candidates_hash: str
        view_hash: str | None
        request_hash: str

    engine = create_engine(f"sqlite:///{target}")

    @event.listens_for(engine, "connect")
    def durable(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    table = SQLModel.metadata.tables["entry"]
    table.create(engine)
    SQLModel.metadata.remove(table)  # one registry for the process: nobody else is to find it there
    with Session(engine) as session:
        for batch in pq.ParquetFile(source).iter_batches(10_000):
            session.add_all(Entry(**row) for row in batch.to_pylist())
            session.commit()


def sqlite(source: str, target: str) -> None:
    """Every row with the same columns; Arrow batches become tuples as they are inserted."""
    import pyarrow.parquet as pq

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


def postgres(source: str, url: str) -> None:
    """Batches are streamed into a table that replaces the one before."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from adbc_driver_postgresql import dbapi

    file = pq.ParquetFile(source)
    reader = pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(65_536))
    with dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("entry", reader, mode="replace")
        connection.commit()


def iceberg(source: str, target: str) -> None:
    """The table is read whole, as an append takes it."""
    import pyarrow.parquet as pq
    from pyiceberg.catalog.sql import SqlCatalog

    folder = Path(target)
    folder.mkdir()
    catalog = SqlCatalog(
        "bench", uri=f"sqlite:///{folder}/catalog.sqlite", warehouse=f"file://{folder}/warehouse"
    )
    catalog.create_namespace("bench")
    rows = pq.read_table(source)
    catalog.create_table("bench.entry", schema=rows.schema).append(rows)


def rewrite(source: str, target: str) -> None:
    """The whole table in and out, as somebody would who keeps scores as files."""
    import pyarrow.parquet as pq

    pq.write_table(pq.read_table(source), target, compression="zstd")
    descriptor = os.open(target, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def omega(*words: str) -> None:
    """Channels by the hex digits of the digest that segments hold."""
    import duckdb

    *files, ref, alt = words
    found = duckdb.execute(OMEGA, [files, bytes.fromhex(ref), bytes.fromhex(alt)]).fetchone()
    assert found is not None, "an average is one row"
    print(repr(found[0]))


def blake3(*files: str) -> None:
    """One digest a file, mapped into memory."""
    import blake3 as module

    for file in files:
        hasher = module.blake3(max_threads=module.blake3.AUTO)
        print(hasher.update_mmap(file).hexdigest(), file)


PEERS = {each.__name__: each for each in (sqlmodel, sqlite, postgres, iceberg, rewrite, omega, blake3)}


def main(words: Sequence[str]) -> None:
    """The first word says which."""
    PEERS[words[0]](*words[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
