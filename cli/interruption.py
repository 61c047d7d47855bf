"""What an interrupted command leaves behind, told from the log so that nobody has to guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contracts.errors import LedgerError

if TYPE_CHECKING:
    from ledger.home import Home


@dataclass(frozen=True)
class Mark:
    """The size of a log before a command began to work; None where it could not be told."""

    home: Home
    size: int | None

    @classmethod
    def of(cls, home: Home) -> Mark:
        """The log as it is now."""
        return cls(home, _size(home))

    def told(self) -> str:
        """What became of the log since, in one clause."""
        now = _size(self.home)
        if now is None or self.size is None:
            return "what was acknowledged is kept, nothing else is visible"
        if now > self.size:
            return f"{now - self.size:,} of the log's {now:,} events are new and kept"
        return f"the log has {now:,} events, as before; ledger repair clears what was not finished"


def _size(home: Home) -> int | None:
    from ledger.index import Index

    try:
        with Index.open(home) as index:
            return index.size
    except LedgerError:
        return None
