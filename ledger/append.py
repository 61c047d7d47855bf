"""Adding rows to the catalog: one transaction that holds the write lock from its start.

A catalog at the present revision is written through the standard library or a server's driver, which are
there at once. The tables' own module is slow to import, and is asked only where there is more to do: an older
catalog, which is migrated first.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Protocol

from contracts.errors import TamperError
from ledger import catalog_file
from ledger.connection import Place
from ledger.derive import Row, Rows
from migrations.revisions import LATEST
from migrations.settings import BEGIN, PRAGMAS


class Appending(Protocol):
    """An open transaction."""

    def append(self, rows: Rows) -> None:
        """Adds rows to tables; they may be made while they are stored."""


@contextmanager
def writing(place: Place, wait: float = 5.0) -> Iterator[Appending]:
    """One transaction, committed when the block ends; anything raised inside rolls everything back."""
    if isinstance(place, Path):
        connection, revision = catalog_file.open_writable(place, wait)
        with closing(connection):
            if revision == LATEST:
                with _transaction(connection, place):
                    yield _File(connection)
                return
    else:
        from ledger import server_append

        if not server_append.is_older(place, wait):
            with server_append.writing(place, wait) as transaction:
                yield transaction
            return
    from ledger import catalog

    with catalog.writing(place, wait) as session:
        yield session


@contextmanager
def _transaction(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    try:
        for pragma in PRAGMAS:
            connection.execute(pragma)
        connection.execute(BEGIN)
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise
    except sqlite3.Error as error:
        raise catalog_file.catalog_error(error, path) from error


class _File:
    """A transaction on a catalog file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def append(self, rows: Rows) -> None:
        """See Appending; tables and columns are those of `derive`."""
        for table, items in rows.items():
            counted = Counted(items)
            for first in counted:
                columns, marks = ", ".join(first), ", ".join(f":{name}" for name in first)
                statement = f"INSERT INTO {table} ({columns}) VALUES ({marks})"  # noqa: S608
                taken = self.connection.executemany(statement, chain([first], counted)).rowcount
                counted.require(taken, table)


class Counted:
    """Rows on their way into a table, counted: a trigger can make a database drop some without a word."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = iter(rows)
        self._count = 0

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = next(self._rows)
        self._count += 1
        return row

    def require(self, taken: int, table: str) -> None:
        """TamperError unless as many rows were taken as were given."""
        if taken != self._count:
            raise TamperError(
                "the catalog did not take every row", kind="catalog", where=f"table {table}",
                expected=f"{self._count} rows", got=str(taken), next_step=catalog_file.REBUILD,
            )  # fmt: skip
