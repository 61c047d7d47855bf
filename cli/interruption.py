"""What an interrupted command leaves behind, told from the log so that nobody has to guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contracts.errors import LedgerError
from ledger import durable

if TYPE_CHECKING:
    from ledger.home import Home


@dataclass(frozen=True)
class Mark:
    """The size of a log before a command began to work, None where it could not be told, and `steps`.

    `steps` is the count of `durable` then: one that grew tells that something was written.
    """

    home: Home
    size: int | None
    steps: int

    @classmethod
    def of(cls, home: Home) -> Mark:
        """The log as it is now."""
        return cls(home, _size(home), durable.steps)

    def told(self) -> str:
        """What became of the log since, in one clause."""
        now = _size(self.home)
        if now is None or self.size is None:
            return "what was acknowledged is kept, nothing else is visible"
        if now > self.size:
            return f"{now - self.size:,} of the log's {now:,} events are new and kept"
        told = f"the log has {now:,} events, as before"
        return (
            f"{told}; after an hour ledger repair clears what was not finished"
            if self._unfinished()
            else told
        )

    def _unfinished(self) -> bool:
        """Whether something may be left that no event names; True where nobody can look."""
        try:
            return durable.steps > self.steps or any(True for _ in self.home.staged())
        except (LedgerError, OSError):
            return True


def _size(home: Home) -> int | None:
    from ledger.index import Index

    try:
        with Index.open(home) as index:
            return index.size
    except LedgerError:
        return None
