"""Engines that write the catalog, with everything that differs between databases in one place.

On a server every statement sees what was committed before it (READ COMMITTED): a writer that waited for
another then appends behind it, whatever isolation the database has by default.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from migrations.settings import BEGIN, PRAGMAS


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
    connection.exec_driver_sql(BEGIN)
