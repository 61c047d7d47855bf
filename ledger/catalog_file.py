"""The catalog as a file: opening it for reading, and what its database's failures mean to people.

A home may stand on a disk nobody can write. The rollback journal lets SQLite read there; only a journal
left by a writer that died has to be played back first, by anyone who may write.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from contracts.errors import LedgerError, StorageError, TamperError
from ledger.server import Server
from migrations.revisions import LATEST, REVISIONS

REBUILD = "run `ledger rebuild` to make it again from the log and the objects"
_UNDONE = "nothing of this call was recorded"
_FAILURES = (
    (
        ("SQLITE_BUSY", "SQLITE_LOCKED"), "locked", "the catalog is locked by another program",
        "wait for it to finish, then run the command again",
    ),
    (
        ("SQLITE_FULL",), "disk-full", "writing the catalog failed: no space left",
        f"free some space and run the command again: {_UNDONE}",
    ),
    (
        ("SQLITE_READONLY", "SQLITE_PERM"), "read-only", "the catalog cannot be written",
        "check who owns the home and whether it can be written",
    ),
    (
        ("SQLITE_IOERR",), "io-error", "the disk failed under the catalog", f"check the disk; {_UNDONE}",
    ),
    (
        ("SQLITE_CANTOPEN",), "unreadable", "the catalog cannot be opened",
        "check who owns the home and whether it can be read",
    ),
)  # fmt: skip


def catalog_error(error: BaseException | None, where: Path | str) -> LedgerError:
    """The error of ours for one of sqlite3's."""
    name = getattr(error, "sqlite_errorname", "") or ""
    for prefixes, code, what, step in _FAILURES:
        if name.startswith(prefixes):
            return StorageError(what, code=code, where=where, next_step=step)
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        what = "the catalog is damaged"
    elif name.startswith("SQLITE_CONSTRAINT"):
        what = f"the catalog refused a row ({error})"
    else:  # a table or column that is not there: not the catalog that was migrated
        what = f"the catalog cannot be used ({error})"
    return TamperError(what, kind="catalog", where=where, next_step=REBUILD)


def open_readonly(path: Path, wait: float = 5.0) -> sqlite3.Connection:
    """A connection that can only read, to a catalog of a revision this version knows."""
    if not path.is_file():
        raise absent(path)
    try:
        connection, revision = _open(path, "mode=ro", wait)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname.startswith("SQLITE_BUSY"):
            raise catalog_error(error, path) from error
        connection, revision = _second_try(path, wait, error)
    except sqlite3.Error as error:
        raise catalog_error(error, path) from error
    if revision != LATEST:
        connection.close()
        raise wrong_revision(revision, path)
    return connection


def absent(path: Path) -> StorageError:
    """There is no file where the catalog belongs."""
    if path.is_dir():
        return StorageError(
            "a folder stands where the catalog was", code="missing-file", where=path,
            next_step="move it away, then run `ledger rebuild`",
        )  # fmt: skip
    return StorageError("the catalog is missing", code="missing-file", where=path, next_step=REBUILD)


SEVERAL = "several revisions"  # what a catalog is at to which somebody added a row


def wrong_revision(revision: str | None, path: Path | Server) -> LedgerError:
    """Why a catalog at another revision is not read: a newer one, or one a writer has to migrate first."""
    if revision in REVISIONS:
        return StorageError(
            "the catalog is of an older form", code="old-catalog", where=path, expected=f"revision {LATEST}",
            got=f"revision {revision}", next_step="run `ledger repair` to migrate it",
        )  # fmt: skip
    if revision is None and isinstance(path, Server):
        return missing(path)
    if revision is None or revision == SEVERAL:
        return TamperError("not a catalog", kind="catalog", where=path, got=revision, next_step=REBUILD)
    return StorageError(
        "the catalog was written by a newer version of this program", code="newer-catalog", where=path,
        expected=f"revision {LATEST} or older", got=f"revision {revision[:40]}",
        next_step="install that version (pip install --upgrade evaluator-ledger)",
    )  # fmt: skip


def missing(place: Server) -> LedgerError:
    """There is no catalog in that schema."""
    return StorageError(
        f"the catalog is missing: no tables in schema {place.schema}", code="missing-file", where=place,
        next_step=REBUILD,
    )  # fmt: skip


def open_writable(path: Path, wait: float = 5.0) -> tuple[sqlite3.Connection, str | None]:
    """A connection outside any transaction, and the catalog's revision; what a dead writer left is undone."""
    if not path.is_file():
        raise absent(path)
    try:
        return _open(path, "mode=rw", wait)
    except sqlite3.Error as error:
        raise catalog_error(error, path) from error


def journal(path: Path) -> Path:
    """The file beside a catalog that undoes an unfinished transaction."""
    return path.with_name(path.name + "-journal")


def _open(path: Path, mode: str, wait: float) -> tuple[sqlite3.Connection, str | None]:
    """A connection that was used once, so that it is known to work, and the catalog's revision."""
    uri = f"{path.absolute().as_uri()}?{mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=wait, isolation_level=None)
    try:
        return connection, _revision(connection)
    except BaseException:
        connection.close()
        raise


def _revision(connection: sqlite3.Connection) -> str | None:
    tables = connection.execute(
        "SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'"
    ).fetchone()
    if not tables[0]:
        return None
    rows = connection.execute("SELECT version_num FROM alembic_version ORDER BY 1 LIMIT 2").fetchall()
    return None if not rows else str(rows[0][0]) if len(rows) == 1 else SEVERAL


def _second_try(
    path: Path, wait: float, error: sqlite3.OperationalError
) -> tuple[sqlite3.Connection, str | None]:
    """Plays a dead writer's journal back, or reads a disk without locks as the fixed bytes they are."""
    unfinished = journal(path).exists()
    if unfinished and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        raise StorageError(
            "the last write to the catalog was cut off, and it cannot be undone here", code="read-only",
            where=path, next_step="run `ledger repair` as a user who may write there",
        ) from error  # fmt: skip
    try:
        if unfinished:
            _open(path, "mode=rw", wait)[0].close()
        return _open(path, "mode=ro" if unfinished else "mode=ro&immutable=1", wait)
    except sqlite3.Error as failure:
        raise catalog_error(failure, path) from failure
