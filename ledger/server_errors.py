"""What a server's failures mean to people, by their SQLSTATE (postgresql.org, appendix A)."""

from __future__ import annotations

from contracts.errors import LedgerError, StorageError, TamperError, UsageError
from ledger.catalog_file import REBUILD
from ledger.server import Server

UNDONE = "nothing of this call was recorded"
LOST = "connection-lost"
_AGAIN = f"run the command again: {UNDONE}"
_ONCE_MORE = "run the command again"
_CONNECT = "check that the server runs and who may log in (~/.pgpass, PGPASSWORD or PGSERVICE)"
# The first prefix that fits: code, what happened, next step.
_FAILURES = (
    ("55P03", "locked", "the catalog is locked by another program", "wait for it to finish, then try again"),
    ("40", "locked", "another program was at work on the catalog", _AGAIN),
    ("42501", "read-only", "the role may not do that in the catalog", "see the grants in docs/postgres.md"),
    ("25006", "read-only", "the server takes no writes", "name the primary server in ledger.toml"),
    ("53100", "disk-full", "writing the catalog failed: the server has no space left", _AGAIN),
    ("53", "busy", "the server has no room for another connection or query", _AGAIN),
    ("57014", "timeout", "the server stopped a statement that took too long", _AGAIN),
    ("58", "io-error", "the disk failed under the server", _AGAIN),
    ("57P", LOST, "the server ended the connection to the catalog", _ONCE_MORE),
    ("08", LOST, "the connection to the catalog was lost", _ONCE_MORE),
    ("25P03", LOST, "the server ended a transaction that was idle", _ONCE_MORE),
)
_DAMAGE = (
    ("XX00", "the catalog is damaged"),
    ("23", "the catalog refused a row"),
    ("42P01", "the catalog cannot be used"),
    ("42703", "the catalog cannot be used"),
    ("42883", "the catalog cannot be used"),
)


def server_error(error: BaseException | None, place: Server) -> LedgerError:
    """The error of ours for one of the driver's; what the server said is quoted, a statement never is."""
    state = getattr(error, "sqlstate", None) or ""
    said = primary(error)
    for prefix, code, what, step in _FAILURES:
        if state.startswith(prefix):
            return StorageError(f"{what} ({said})", code=code, where=place, next_step=step)
    for prefix, what in _DAMAGE:
        if state.startswith(prefix):
            return TamperError(f"{what} ({said})", kind="catalog", where=place, next_step=REBUILD)
    if state:
        return StorageError(f"the server refused ({said})", code="server", where=place)
    return StorageError(
        f"the connection to the catalog was lost ({said})", code=LOST, where=place, next_step=_ONCE_MORE
    )


def connect_error(error: BaseException, place: Server) -> LedgerError:
    """Why no connection came about."""
    if type(error).__name__ == "ProgrammingError":  # libpq could not read the URL, and quotes it
        return UsageError("the address of the catalog is not one that libpq reads", code="unsupported-url")
    said = primary(error)
    return StorageError(
        f"the catalog cannot be reached ({said})", code="unreachable", where=place, next_step=_CONNECT
    )


def primary(error: BaseException | None) -> str:
    """The first line of what a server or its driver said."""
    told = getattr(getattr(error, "diag", None), "message_primary", None) or str(error) or "no reason given"
    return str(told).strip().split("\n")[0][:200]
