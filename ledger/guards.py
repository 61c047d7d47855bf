"""Whether what keeps the rows of a catalog from being changed is still as a migration made it."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.connection import Connection
from migrations.append_only import TABLES, triggers

LOST = "an append-only trigger is missing or changed"
FOREIGN = "a trigger that is not the catalog's own"
Wrong = tuple[tuple[str, str], ...]


def wrong_in_file(connection: Connection) -> Wrong:
    """The triggers of a file that are lost, changed or foreign."""
    found = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall())
    return _compared(found, {name: sql for table in TABLES for name, sql in triggers(table).items()})


def wrong_on_server(connection: Connection) -> Wrong:
    """The same on a server, with the functions behind them; and what stands there instead of a table."""
    from migrations import append_only_server

    rows = connection.execute(append_only_server.FOUND).fetchall()
    found = {name: (text, *rest) for name, text, *rest in rows}
    odd = connection.execute(append_only_server.ODD).fetchall()
    told = tuple(("table " + name, "not the plain table that a migration made") for (name,) in sorted(odd))
    return _compared(found, append_only_server.expected()) + told


def _compared(found: Mapping[str, object], wanted: Mapping[str, object]) -> Wrong:
    lost = tuple((f"trigger {name}", LOST) for name, what in wanted.items() if found.get(name) != what)
    return lost + tuple((f"trigger {name}", FOREIGN) for name in sorted(found.keys() - wanted.keys()))
