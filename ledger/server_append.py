"""Adding rows to a catalog on a server through its driver alone: one transaction, one writer at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice
from typing import Any

import psycopg

from contracts.errors import StorageError
from ledger import server_lock
from ledger.append import Counted
from ledger.derive import Rows
from ledger.server import Server
from ledger.server_connection import connect, open_readonly
from ledger.server_errors import server_error

BATCH = 5000
OLDER = "old-catalog"


def is_older(place: Server, wait: float) -> bool:
    """Whether a catalog has to be migrated before it is written; raises where there is none to write."""
    try:
        open_readonly(place, wait).close()
    except StorageError as error:
        if error.code != OLDER:
            raise
        return True
    return False


@contextmanager
def writing(place: Server, wait: float) -> Iterator[Transaction]:
    """One transaction behind every other writer's, committed when the block ends, else rolled back."""
    with closing(connect(place, wait=wait, readonly=False)) as session:
        try:
            # Whatever a database has by default: what others committed while this one waited has to be seen.
            session.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            session.autocommit = False
            transaction = Transaction(session)
            server_lock.enter(transaction.first, place, wait)
            yield transaction
            session.commit()
        except psycopg.Error as error:
            raise server_error(error, place) from error


class Transaction:
    """An open transaction; closing its session rolls it back."""

    def __init__(self, session: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._session = session

    def first(self, statement: str, values: Sequence[Any]) -> Any:
        """The first row of a statement with `?` marks."""
        return self._session.execute(statement.replace("?", "%s").encode(), values).fetchone()

    def append(self, rows: Rows) -> None:
        """Adds rows to tables, thousands in one go; tables and columns are those of `derive`."""
        with self._session.cursor() as cursor:
            for table, items in rows.items():
                counted = Counted(items)
                for first in counted:
                    columns, marks = ", ".join(first), ", ".join(f"%({name})s" for name in first)
                    statement = f"INSERT INTO {table} ({columns}) VALUES ({marks})"  # noqa: S608
                    every, taken = chain([first], counted), 0
                    while batch := list(islice(every, BATCH)):
                        cursor.executemany(statement.encode(), batch)
                        taken += cursor.rowcount
                    counted.require(taken, table)
