"""What the options before a command said, kept for the length of one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledger.home import Home
    from ledger.keys import PublicKey


@dataclass
class State:
    """The global options of this call."""

    home: str | None = None
    debug: bool = False


CURRENT = State()


def find_home() -> Home:
    """The home this call is about; raises UsageError where there is none."""
    from ledger.home import find

    return find(CURRENT.home)


def public_key(named: str | None) -> PublicKey | None:
    """The public key a person named, or None to let the pin decide."""
    if named is None:
        return None
    from ledger.keys import PublicKey

    return PublicKey.load(named)
