"""Names for the shell to complete: channels of the nearest ledger, read from its catalog alone.

A shell asks while somebody types: there is no answer but a quick one, and none where anything is wrong.
"""

from __future__ import annotations

from contracts.errors import LedgerError


def channels(incomplete: str) -> list[str]:
    """The names of registered channels that begin like this; none where there is no readable ledger."""
    import os
    import sqlite3

    from cli import state
    from ledger.index import Index

    os.environ.setdefault("PGCONNECT_TIMEOUT", "2")  # a server that is away
    try:
        with Index.open(state.find_home()) as index:
            names = index.channels().names
    except (LedgerError, sqlite3.Error, OSError):
        return []
    return sorted(name for name in names if name.startswith(incomplete))
