"""The schema of a catalog on a server: made, taken away again, and exchanged for a rebuilt one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa

from contracts.errors import UsageError
from ledger import durable, server_lock
from ledger.connection import failure
from ledger.server import Server
from ledger.server_connection import connect
from migrations.engine import server_engine

T = TypeVar("T")
ENCODING = "UTF8"
OURS = "a catalog of the program ledger"
_WAIT = 5.0
# Rights on the tables of one schema and on the schema itself, as statements for the other.
_GRANTS = """
SELECT format('GRANT %%s ON SCHEMA %%I TO %%s', a.privilege_type, %(new)s::text,
  CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
FROM pg_namespace AS n, aclexplode(n.nspacl) AS a WHERE n.nspname = %(old)s AND a.grantee <> n.nspowner
UNION ALL
SELECT format('GRANT %%s ON %%I.%%I TO %%s', a.privilege_type, %(new)s::text, c.relname,
  CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace, aclexplode(c.relacl) AS a
WHERE n.nspname = %(old)s AND c.relkind = 'r' AND a.grantee <> c.relowner
AND EXISTS (SELECT 1 FROM pg_class AS d JOIN pg_namespace AS m ON m.oid = d.relnamespace
  WHERE m.nspname = %(new)s AND d.relname = c.relname)
"""
_COMMENT = """
SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %(schema)s
"""
_DROPS = """
SELECT format('DROP TABLE %%I.%%I CASCADE', %(schema)s::text, c.relname)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relkind = 'r'
UNION ALL
SELECT format('DROP FUNCTION %%I.%%I()', %(schema)s::text, p.proname)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname = %(schema)s AND p.prorettype = 'trigger'::regtype
"""


def engine(place: Server, wait: float) -> sa.Engine:
    """An engine over the sessions of a writer."""

    def session() -> object:
        made = connect(place, wait=wait, readonly=False)
        made.autocommit = False
        return made

    return server_engine(session)  # type: ignore[arg-type]


def prepare(place: Server, connection: sa.Connection) -> None:
    """Makes sure of an empty schema in a database that can hold our text, other writers kept out."""
    server_lock.enter(server_lock.running(connection), place, _WAIT)
    (encoding,) = connection.exec_driver_sql("SHOW server_encoding").one()
    if encoding != ENCODING:
        raise UsageError(
            "the database cannot hold every text", code="unsupported-url", where=place,
            expected=f"encoding {ENCODING}", got=encoding,
            next_step="make another database: createdb -E UTF8 -T template0 NAME",
        )  # fmt: skip
    if not _exists(connection, place.schema):
        connection.exec_driver_sql(f'CREATE SCHEMA "{place.schema}"')
        connection.exec_driver_sql(f"COMMENT ON SCHEMA \"{place.schema}\" IS '{OURS}'")
    elif _tables(connection, place.schema):
        raise UsageError(
            f"there are tables in schema {place.schema} already", code="catalog-exists", where=place,
            next_step="name another with ?schema=NAME; what an `init` left that was cut off: DROP SCHEMA",
        )  # fmt: skip


def drop(place: Server) -> None:
    """Takes a catalog away that nothing refers to yet; a schema that was there before stays, empty."""

    def clear(connection: sa.Connection) -> None:
        names = {"schema": place.schema}
        if connection.exec_driver_sql(_COMMENT, names).scalar() == OURS:
            connection.exec_driver_sql(f'DROP SCHEMA "{place.schema}" CASCADE')
            return
        for (statement,) in connection.exec_driver_sql(_DROPS, names).all():
            connection.exec_driver_sql(statement.replace("%", "%%"))

    _transact(place, clear)


def swap(old: Server, new: Server) -> Server | None:
    """Puts the new schema in the old one's place, with its grants, and keeps that under another name.

    Renames are part of a transaction there: a reader sees the one or the other.
    """

    def exchange(connection: sa.Connection) -> Server | None:
        server_lock.enter(server_lock.running(connection), old, _WAIT)
        kept = None
        if _exists(connection, old.schema):
            values = {"old": old.schema, "new": new.schema}
            for (grant,) in connection.exec_driver_sql(_GRANTS, values).all():
                connection.exec_driver_sql(grant.replace("%", "%%"))
            kept = _free_name(connection, old)
            connection.exec_driver_sql(f'ALTER SCHEMA "{old.schema}" RENAME TO "{kept.schema}"')
        durable.crash_point("catalog-kept")
        connection.exec_driver_sql(f'ALTER SCHEMA "{new.schema}" RENAME TO "{old.schema}"')
        return kept

    return _transact(old, exchange)


def _transact(place: Server, work: Callable[[sa.Connection], T]) -> T:
    made = engine(place, _WAIT)
    try:
        with made.begin() as connection:
            return work(connection)
    except sa.exc.DBAPIError as error:
        raise failure(error.orig, place) from error
    finally:
        made.dispose()


def _exists(connection: sa.Connection, schema: str) -> bool:
    found = connection.exec_driver_sql("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,))
    return found.first() is not None


def _tables(connection: sa.Connection, schema: str) -> int:
    query = (
        "SELECT count(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s"
    )
    return int(connection.exec_driver_sql(query, (schema,)).one()[0])


def _free_name(connection: sa.Connection, place: Server) -> Server:
    number = 1
    while _exists(connection, (kept := place.beside(f"_old_{number}")).schema):
        number += 1
    return kept
