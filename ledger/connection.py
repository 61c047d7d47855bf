"""The one seam between readers and databases: a connection that executes statements with `?` marks.

For a file it is the standard library's own connection, untouched; for a server an adapter with the same two
calls, whose driver is imported only where a home names a server.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from contracts.errors import LedgerError
from ledger import catalog_file
from ledger.server import Server

Place = Path | Server


class Result(Protocol):
    """The rows of one statement."""

    @property
    def description(self) -> Any:
        """For each column a sequence that starts with its name."""

    def fetchall(self) -> list[Any]:
        """All rows."""

    def fetchone(self) -> Any:
        """The next row, None behind the last."""


class Connection(Protocol):
    """An open catalog."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Result:
        """Runs a statement whose values stand where its marks are."""

    def close(self) -> None:
        """Lets go of it."""


def open_readonly(place: Place, wait: float = 5.0) -> Connection:
    """A connection that can only read, to a catalog of a revision this version knows."""
    if isinstance(place, Path):
        return catalog_file.open_readonly(place, wait)
    from ledger import server_connection

    return server_connection.open_readonly(place, wait)


def failure(error: BaseException | None, place: Place) -> LedgerError:
    """The error of ours for one of a database driver's."""
    if isinstance(place, Path):
        return catalog_file.catalog_error(error, place)
    from ledger import server_errors

    return server_errors.server_error(error, place)
