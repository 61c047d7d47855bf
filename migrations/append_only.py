"""The triggers that make a table append-only, here those of SQLite.

`INSERT OR REPLACE` deletes the old row without firing a delete trigger unless `recursive_triggers` is on,
and that setting belongs to each connection. So a trigger before INSERT refuses an existing key too, which
holds for connections that never heard of this program (sqlite.org/lang_conflict.html).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# Each table's keys: the primary key first. `event` and `head` grow by position, so their guards ask for more.
TABLES: Mapping[str, Sequence[Sequence[str]]] = {
    "event": (("leaf_index",),),
    "head": (("size",),),
    "channel": (("event",), ("name", "version")),
    "acquisition": (("event",), ("id", "kind")),
    "segment": (("event",),),
    "segment_scope": (("event", "ordinal"),),
    "refusal": (("event",),),
    "refused_side": (("event", "ordinal"),),
    "record": (("event",),),
    "revocation": (("event",),),
    "signing_key": (("event",),),
    "policy": (("event", "ordinal"),),
    "attestation": (("event",),),
    "attested_file": (("event", "ordinal"),),
    "plan": (("event",), ("id",)),
}


def statements(table: str, dialect: str) -> list[str]:
    """The statements that make a table append-only in a database of that kind."""
    if dialect == "sqlite":
        return list(triggers(table).values())
    from migrations import append_only_server

    return append_only_server.statements(table)


def triggers(table: str) -> dict[str, str]:
    """The statements that create a table's triggers, by the trigger's name."""
    if table == "event":
        refused = "NEW.leaf_index <> (SELECT coalesce(max(leaf_index) + 1, 0) FROM event)"
    elif table == "head":
        refused = "NEW.size <= (SELECT coalesce(max(size), 0) FROM head)"
    else:
        keys = [" AND ".join(f"{column} = NEW.{column}" for column in key) for key in TABLES[table]]
        refused = " OR ".join(f"EXISTS (SELECT 1 FROM {table} WHERE {key})" for key in keys)  # noqa: S608
    return {
        f"{table}_no_update": _trigger(table, "no_update", "UPDATE", "", "never change"),
        f"{table}_no_delete": _trigger(table, "no_delete", "DELETE", "", "are never deleted"),
        f"{table}_no_replace": _trigger(
            table, "no_replace", "INSERT", f"WHEN {refused} ", "are never replaced"
        ),
    }


def _trigger(table: str, name: str, verb: str, condition: str, rule: str) -> str:
    return (
        f"CREATE TRIGGER {table}_{name} BEFORE {verb} ON {table} {condition}"
        f"BEGIN SELECT RAISE(ABORT, 'append-only: rows of {table} {rule}'); END"
    )
