"""What the options before a command said, kept for the length of one call."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.interruption import Mark
    from ledger.home import Home
    from ledger.keys import PublicKey, SigningKey


@dataclass
class State:
    """The global options of this call."""

    home: str | None = None
    debug: bool = False
    mark: Mark | None = None
    terminated: bool = False


CURRENT = State()


def long_work(home: Home) -> None:
    """Note where the log stands, to tell what is kept should somebody interrupt the command."""
    from cli.interruption import Mark

    CURRENT.mark = Mark.of(home)


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


def signers(named: list[str] | None) -> list[SigningKey]:
    """The private keys a person named beside the one that signs the head."""
    from ledger.keys import SigningKey

    return [SigningKey.load(uri) for uri in named or ()]


def auditors() -> list[SigningKey]:
    """The private keys for audits that LEDGER_AUDITOR_KEY names, separated by spaces."""
    return signers(os.environ.get("LEDGER_AUDITOR_KEY", "").split())
