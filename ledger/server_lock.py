"""The one writer of a catalog on a server, wherever its programs run: two advisory locks of its own.

`hold` keeps other writers out from the first look to the published files, as the lock on a home's file does
on one machine; its session ends with the process or the connection, so nothing stays locked. `enter` is the
fence inside the transaction: whoever passes it sees every commit before his own, even where a session that
held the first lock was cut off in the middle. Advisory locks need no right to change a row, which the role
of a writer does not have.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from contracts.errors import LedgerError, StorageError
from ledger.server import Server
from ledger.server_connection import Reader, connect

if TYPE_CHECKING:
    import sqlalchemy as sa

WRITER = "writer"
COMMIT = "commit"
_PAUSE = 0.05
_HOLDER = """
SELECT a.application_name, to_char(a.backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND l.classid::bigint = (?::bigint >> 32) & 4294967295 AND l.objid::bigint = ?::bigint & 4294967295
"""

Run = Callable[[str, Sequence[Any]], Any]  # a statement with `?` marks and its values, to its first row


@contextmanager
def hold(place: Server, wait: float) -> Iterator[None]:
    """Keeps every other writer of the catalog out for the length of the block; StorageError `locked`."""
    with closing(Reader(place, connect(place, wait=wait, readonly=True))) as session:
        _acquire(lambda text, values: session.execute(text, values).fetchone(), WRITER, place, wait)
        try:
            yield
        finally:
            # A connection that is gone took the lock with it.
            with suppress(LedgerError):
                session.execute("SELECT pg_advisory_unlock(?)", (place.lock_key(WRITER),))


def enter(run: Run, place: Server, wait: float) -> None:
    """Lets one transaction at a time go on from here; held until it ends. `run` runs statements in it."""
    _acquire(run, COMMIT, place, wait)


def running(connection: sa.Connection) -> Run:
    """What runs statements in a transaction of SQLAlchemy."""
    return lambda text, values: connection.exec_driver_sql(text.replace("?", "%s"), tuple(values)).fetchone()


def _acquire(run: Run, purpose: str, place: Server, wait: float) -> None:
    call = "pg_try_advisory_lock" if purpose == WRITER else "pg_try_advisory_xact_lock"
    key, deadline = place.lock_key(purpose), time.monotonic() + wait
    while not run(f"SELECT {call}(?)", (key,))[0]:
        if time.monotonic() >= deadline:
            holder = _holder(run(_HOLDER, (key, key)))
            raise StorageError(
                f"another writer is at work ({holder})", code="locked", where=place,
                expected=f"it to finish within {wait:g} seconds",
                next_step="run the command again when it is done; the lock ends with its connection",
            )  # fmt: skip
        time.sleep(_PAUSE)


def _holder(row: tuple[str | None, str | None] | None) -> str:
    """What a session says of itself: good enough for a message; who may not see it learns less."""
    if row is None:
        return "it has just finished"
    name = ascii(row[0] or "a program without a name")[1:-1][:80]
    return f"{name} since {row[1]}" if row[1] else name
