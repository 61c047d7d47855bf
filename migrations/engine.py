"""Connections that write the catalog, with everything that differs between databases in one place.

SQLite keeps its rollback journal in every version of the library. A write-ahead log would need files
beside the catalog even for reading, so a home on a read-only disk could not be opened, and libraries
before 3.51.3 can lose committed rows of it; EXTRA makes the deletion of the journal, which is the
commit, durable as well (sqlite.org/pragma.html#pragma_synchronous).

On a server every statement sees what was committed before it (READ COMMITTED): a writer that waited for
another then appends behind it, whatever isolation the database has by default.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

PRAGMAS = (
    "PRAGMA journal_mode=DELETE",
    "PRAGMA synchronous=EXTRA",
    "PRAGMA recursive_triggers=ON",
    # A transaction larger than the cache would lock readers out before its commit.
    "PRAGMA cache_spill=OFF",
)


def sqlite_url(path: str) -> str:
    """The database URL of a catalog file."""
    return sa.URL.create("sqlite", database=path).render_as_string(hide_password=False)


def engine(url: str, wait: float = 5.0) -> sa.Engine:
    """An engine whose transactions take the write lock when they begin, waiting up to `wait` seconds."""
    made = sa.create_engine(url, poolclass=NullPool, connect_args={"timeout": wait, "isolation_level": None})
    sa.event.listen(made, "connect", _settings)
    sa.event.listen(made, "begin", _begin)
    return made


def server_engine(connect: Callable[[], DBAPIConnection]) -> sa.Engine:
    """An engine over sessions that `connect` opens, libpq reading their address."""
    return sa.create_engine(
        "postgresql+psycopg://", creator=connect, poolclass=NullPool, isolation_level="READ COMMITTED",
        use_native_hstore=False,
    )  # fmt: skip


def _settings(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    for pragma in PRAGMAS:
        cursor.execute(pragma)
    cursor.close()


def _begin(connection: sa.Connection) -> None:
    # The driver's own implicit BEGIN is off (isolation_level None): it would be deferred.
    connection.exec_driver_sql("BEGIN IMMEDIATE")
