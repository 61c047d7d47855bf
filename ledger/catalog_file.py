"""The catalog as a file: opening it for reading, and what its database's failures mean to people.

A home may stand on a disk nobody can write. The rollback journal lets SQLite read there; only a journal
left by a writer that died has to be played back first, by anyone who may write.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from contracts.errors import LedgerError, StorageError, TamperError
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
        raise StorageError("the catalog is missing", code="missing-file", where=path, next_step=REBUILD)
    connection = _connect(path, "mode=ro", wait)
    try:
        revision = _revision(connection)
    except sqlite3.OperationalError as error:
        connection.close()
        if (error.sqlite_errorname or "").startswith("SQLITE_BUSY"):
            raise catalog_error(error, path) from error
        connection = _second_try(path, wait, error)
        revision = _revision(connection)
    except sqlite3.Error as error:
        connection.close()
        raise catalog_error(error, path) from error
    if revision != LATEST:
        connection.close()
        raise wrong_revision(revision, path)
    return connection


def wrong_revision(revision: str | None, path: Path) -> LedgerError:
    """Why a catalog at another revision is not read: a newer one, or one a writer has to migrate first."""
    if revision in REVISIONS:
        return StorageError(
            "the catalog is of an older form", code="old-catalog", where=path, expected=f"revision {LATEST}",
            got=f"revision {revision}", next_step="run `ledger repair` to migrate it",
        )  # fmt: skip
    if revision is None:
        return TamperError("not a catalog", kind="catalog", where=path, next_step=REBUILD)
    return StorageError(
        "the catalog was written by a newer version of this program", code="newer-catalog", where=path,
        expected=f"revision {LATEST} or older", got=f"revision {revision[:40]}",
        next_step="install that version (pip install --upgrade evaluator-ledger)",
    )  # fmt: skip


def journal(path: Path) -> Path:
    """The file beside a catalog that undoes an unfinished transaction."""
    return path.with_name(path.name + "-journal")


def _connect(path: Path, mode: str, wait: float) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=wait, isolation_level=None)


def _revision(connection: sqlite3.Connection) -> str | None:
    tables = connection.execute(
        "SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'"
    ).fetchone()
    if not tables[0]:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(row[0]) if row else None


def _second_try(path: Path, wait: float, error: sqlite3.OperationalError) -> sqlite3.Connection:
    """Plays a dead writer's journal back, or reads a disk without locks as the fixed bytes they are."""
    try:
        if journal(path).exists():
            if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
                raise StorageError(
                    "the last write to the catalog was cut off, and it cannot be undone here",
                    code="read-only", where=path,
                    next_step="run `ledger repair` as a user who may write there",
                ) from error  # fmt: skip
            with closing(_connect(path, "mode=rw", wait)) as writer:
                writer.execute("SELECT count(*) FROM sqlite_master").fetchone()
            connection = _connect(path, "mode=ro", wait)
        else:
            connection = _connect(path, "mode=ro&immutable=1", wait)
        _revision(connection)
    except sqlite3.Error as failure:
        raise catalog_error(failure, path) from failure
    return connection
