"""Connections to a catalog on PostgreSQL, with everything that a session of ours settles for itself.

A session keeps to the ledger's schema (what a person's own search path holds is never met), and a commit is
on disk before it is acknowledged, even where a server's default is to acknowledge earlier. Timeouts that an
administrator set for idle sessions do not end a writer that is busy with files.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from contracts.errors import UsageError
from ledger import server_grammar
from ledger.catalog_file import SEVERAL, missing, wrong_revision
from ledger.server import WHERE_PASSWORDS_BELONG, Server
from ledger.server_errors import connect_error, server_error
from migrations.revisions import LATEST

try:
    import psycopg
    from psycopg import conninfo, sql
except ImportError as missing_driver:
    raise UsageError(
        "a catalog on PostgreSQL needs the driver psycopg", code="missing-extra",
        next_step="pip install 'evaluator-ledger[postgres]'",
    ) from missing_driver  # fmt: skip

CONNECT_SECONDS = 10
LOCK_SECONDS = 1.0
_MAX_HOST = 40
_SETTINGS = """
SET search_path TO {schema}, pg_temp;
SET client_encoding TO 'UTF8';
SET lock_timeout TO {wait};
SET default_transaction_read_only TO {readonly};
SET idle_in_transaction_session_timeout TO 0;
SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout';
SELECT set_config(name, 'on', false) FROM pg_settings WHERE name = 'synchronous_commit' AND setting = 'off'
"""


def program() -> str:
    """What a session calls itself, for administrators and for writers who have to wait for it."""
    host = ascii(socket.gethostname())[1:-1][:_MAX_HOST]
    return f"ledger process {os.getpid()} on {host}"


def connect(place: Server, *, wait: float, readonly: bool) -> psycopg.Connection[tuple[Any, ...]]:
    """A session that commits each statement, waiting up to `wait` seconds (one at least) for a table."""
    options: dict[str, Any] = {"fallback_application_name": program()}
    if "connect_timeout" not in place.conninfo and "PGCONNECT_TIMEOUT" not in os.environ:
        options["connect_timeout"] = CONNECT_SECONDS
    try:
        _refuse_secrets(place)
        made = psycopg.connect(place.conninfo, autocommit=True, prepare_threshold=None, **options)
    except (psycopg.Error, UnicodeError) as error:
        raise connect_error(error, place) from error
    try:
        made.execute(
            sql.SQL(_SETTINGS).format(
                schema=sql.Identifier(place.schema),
                wait=sql.Literal(f"{int(max(wait, LOCK_SECONDS) * 1000)}ms"),
                readonly=sql.Literal("on" if readonly else "off"),
            )
        )
    except psycopg.Error as error:
        made.close()
        raise server_error(error, place) from error
    return made


def _refuse_secrets(place: Server) -> None:
    """Stops an address in which libpq finds a password that `ledger.server_grammar` did not."""
    if server_grammar.SECRETS & conninfo.conninfo_to_dict(place.conninfo).keys():
        raise UsageError(
            "a password in the address of the catalog", code="password-in-url",
            next_step=WHERE_PASSWORDS_BELONG,
        )  # fmt: skip


@dataclass
class Rows:
    """The rows of one statement, all of them here already."""

    description: Any
    _rows: list[Any]
    _next: int = field(default=0)

    def fetchall(self) -> list[Any]:
        """All rows."""
        return self._rows

    def fetchone(self) -> Any:
        """The next row, None behind the last."""
        self._next += 1
        return self._rows[self._next - 1] if self._next <= len(self._rows) else None


class Reader:
    """A session as readers see it: `?` marks, rows fetched at once, errors of ours."""

    def __init__(self, place: Server, session: psycopg.Connection[tuple[Any, ...]]) -> None:
        self.place = place
        self._session = session

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        """Runs a statement; none of ours holds a question or percent mark that is no place for a value."""
        try:
            cursor = self._session.execute(statement.replace("?", "%s").encode(), tuple(values))
            return Rows(cursor.description, cursor.fetchall() if cursor.description else [])
        except (psycopg.Error, UnicodeError) as error:
            raise server_error(error, self.place) from error

    def close(self) -> None:
        """Ends the session."""
        self._session.close()


def open_readonly(place: Server, wait: float) -> Reader:
    """A session that can only read, to a catalog of a revision this version knows."""
    reader = Reader(place, connect(place, wait=wait, readonly=True))
    try:
        _check_revision(reader)
    except BaseException:
        reader.close()
        raise
    return reader


def _check_revision(reader: Reader) -> None:
    place = reader.place
    (found,) = reader.execute(
        "SELECT to_regclass(quote_ident(?) || '.alembic_version') IS NOT NULL", (place.schema,)
    ).fetchone()
    if not found:
        raise missing(place)
    rows = reader.execute("SELECT version_num FROM alembic_version ORDER BY 1 LIMIT 2").fetchall()
    revision = None if not rows else str(rows[0][0]) if len(rows) == 1 else SEVERAL
    if revision != LATEST:
        raise wrong_revision(revision, place)
