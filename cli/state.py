"""What the options before a command said, kept for the length of one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledger.home import Home


@dataclass
class State:
    """The global options of this call."""

    home: str | None = None
    key: str | None = None
    json: bool = False
    debug: bool = False


CURRENT = State()


def find_home() -> Home:
    """The home this call is about; raises UsageError where there is none."""
    from ledger.home import find

    return find(CURRENT.home)
