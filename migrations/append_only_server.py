"""The same rules in PostgreSQL: triggers in its own language that refuse UPDATE, DELETE and TRUNCATE.

They fire once for a statement, so that one which hits no row is refused too, and always, replication roles
included. Keys are kept by constraints there; only what a key cannot say (a log without gaps, heads that grow,
one plan of a name) takes a trigger before INSERT. `TG_TABLE_SCHEMA` lets a schema be renamed.
"""

from __future__ import annotations

from migrations.append_only import TABLES

CHANGE = "append_only"
_CHANGES = (
    ("no_update", "UPDATE", "never change"),
    ("no_delete", "DELETE", "are never deleted"),
    ("no_truncate", "TRUNCATE", "are never deleted"),
)
# What an INSERT of `NEW` would have to find to be refused; %I is the schema.
_INSERTS = {
    "event": ("SELECT coalesce(max(leaf_index) + 1, 0) <> $1 FROM %I.event", "leaf_index"),
    "head": ("SELECT coalesce(max(size), 0) >= $1 FROM %I.head", "size"),
    "plan": ("SELECT count(*) > 0 FROM %I.plan WHERE id = $1", "id"),
}
_REFUSE = (
    "RAISE EXCEPTION 'append-only: rows of % %', TG_TABLE_NAME, {rule} "
    "USING ERRCODE = 'integrity_constraint_violation'"
)
_ALWAYS = "ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}"


def sources() -> dict[str, str]:
    """The bodies of the trigger functions, by name."""
    bodies = {CHANGE: f"BEGIN {_REFUSE.format(rule='TG_ARGV[0]')}; END"}
    for table, (query, column) in _INSERTS.items():
        refuse = _REFUSE.format(rule="'are never replaced'")
        bodies[f"{table}_no_replace"] = (
            "DECLARE refused boolean; BEGIN "
            f"EXECUTE format('{query}', TG_TABLE_SCHEMA) INTO refused USING NEW.{column}; "
            f"IF refused THEN {refuse}; END IF; RETURN NEW; END"
        )
    return bodies


def triggers(table: str) -> dict[str, str]:
    """The statements that create a table's triggers, as the server says them back, by the trigger's name."""
    made = {
        f"{table}_{name}": f"BEFORE {verb} ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {CHANGE}('{rule}')"
        for name, verb, rule in _CHANGES
    }
    if table in _INSERTS:
        name = f"{table}_no_replace"
        made[name] = f"BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()"
    return {name: f"CREATE TRIGGER {name} {rest}" for name, rest in made.items()}


def statements(table: str) -> list[str]:
    """Everything that makes a table append-only, in order."""
    wanted = {CHANGE} | {name for name in sources() if name == f"{table}_no_replace"}
    made = [
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql "
        f"SET search_path = pg_catalog, pg_temp AS $body${body}$body$"
        for name, body in sources().items()
        if name in wanted
    ]
    for name, statement in triggers(table).items():
        made += [statement, _ALWAYS.format(table=table, name=name)]
    return made


# A catalog as the server describes it: triggers, whether they always fire, and the bodies behind them.
FOUND = """
SELECT t.tgname::text, pg_get_triggerdef(t.oid, true), t.tgenabled::text, p.prosrc, p.proconfig::text
FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_proc AS p ON p.oid = t.tgfoid
WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal
"""
# What stands where a table should be and is none, or lets rows be hidden or diverted.
ODD = """
SELECT relname::text FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')
AND (relkind <> 'r' OR relrowsecurity OR relhasrules OR relhassubclass OR relpersistence <> 'p')
"""
CONFIG = '{"search_path=pg_catalog, pg_temp"}'


def expected() -> dict[str, tuple[str, str, str, str]]:
    """What FOUND gives for a catalog as the migrations made it, by the trigger's name."""
    bodies = sources()
    return {
        name: (text, "A", bodies[name if name in bodies else CHANGE], CONFIG)
        for table in TABLES
        for name, text in triggers(table).items()
    }
