"""A catalog on a server and its administrator: changed rows and guards, a restored dump, rights."""

from __future__ import annotations

import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from contracts.errors import LedgerError, StorageError, TamperError
from ledger import heads, log, pin, publish, repair
from ledger import home as homes
from ledger.index import Index
from ledger.rebuild import rebuild
from ledger.verify import verify
from tests.ledger.homes import Place, by_hand
from tests.ledger.server_homes import acquisition, append, assert_sound, no_hook, place
from tests.postgres import Cluster

__all__ = ["no_hook", "place"]  # fixtures
slow = partial(pytest.param, marks=pytest.mark.sweep)


@pytest.mark.parametrize(
    ("statement", "guard"),
    [
        ("DROP TRIGGER event_no_delete ON event", "trigger event_no_delete"),
        ("ALTER TABLE head DISABLE TRIGGER head_no_update", "trigger head_no_update"),
        slow("ALTER TABLE head ENABLE TRIGGER head_no_update", "trigger head_no_update"),
        slow("ALTER TABLE record DISABLE TRIGGER ALL", "trigger record_no_update"),
        (
            "CREATE OR REPLACE FUNCTION plan_no_replace() RETURNS trigger LANGUAGE plpgsql AS "
            "$$BEGIN RETURN NEW; END$$",
            "trigger plan_no_replace",
        ),
        (
            "CREATE TRIGGER evil BEFORE INSERT ON plan FOR EACH ROW EXECUTE FUNCTION event_no_replace()",
            "trigger evil",
        ),
        ("CREATE RULE quiet AS ON INSERT TO revocation DO INSTEAD NOTHING", "table revocation"),
        slow("ALTER TABLE segment ENABLE ROW LEVEL SECURITY", "table segment"),
        ("ALTER TABLE plan RENAME TO hidden; CREATE VIEW plan AS SELECT * FROM hidden", "table plan"),
    ],
)
def test_guards_that_are_gone_or_foreign_are_found(place: Place, statement: str, guard: str) -> None:
    place.sql(statement)
    assert guard in [entry for entry, _ in Index.open(place.home).wrong_guards()]
    assert ("catalog", "catalog", guard) in [(p.kind, p.where, p.entry) for p in verify(place.home).findings]


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("UPDATE acquisition SET id = 'run-2'", "catalog"),
        slow("DELETE FROM refused_side WHERE ordinal = 1", "catalog"),
        ("INSERT INTO revocation VALUES (3, 'acquisition', 'run-9', 'why')", "catalog"),
        slow("UPDATE event SET data = data || x'20' WHERE leaf_index = 4", "catalog"),
        slow("UPDATE head SET root = zeroblob(32) WHERE size = 7", "catalog"),
        slow("UPDATE segment SET sources = '[1]'", "catalog"),
    ],
)
def test_changed_rows_are_found(place: Place, statement: str, kind: str) -> None:
    by_hand(place, statement)
    found = {(p.kind, p.where) for p in verify(place.home).findings if "trigger" not in str(p)}
    assert (kind, "catalog") in found


def test_a_restored_dump_is_noticed(place: Place, cluster: Cluster, tmp_path: Path) -> None:
    program = [cluster.programs / "pg_dump", "--no-owner", place.cluster.url(place.database)]  # type: ignore[union-attr]
    dump = subprocess.run(program, check=True, capture_output=True).stdout
    restore = [
        shutil.which("psql") or "psql",
        "-q",
        "-X",
        "-v",
        "ON_ERROR_STOP=1",
        cluster.url(place.database),
    ]

    def restored() -> None:
        place.sql(f"DROP SCHEMA {place.schema} CASCADE")
        subprocess.run(restore, input=dump, check=True, capture_output=True)

    restored()
    with Index.open(place.home) as index:
        assert index.wrong_guards() == ()
    assert_sound(place, 7)
    append(place, "later")
    restored()
    for use in (
        lambda: heads.check(place.home, Index.open(place.home)), lambda: append(place, "again"),
        lambda: repair.repair(place.home),
    ):  # fmt: skip
        with pytest.raises(TamperError) as caught:
            use()
        assert caught.value.kind == "rolled-back-head"
    assert "rolled-back-head" in {p.kind for p in verify(place.home).findings}
    pin.config_file("test-log", ".pin").unlink()
    with pytest.raises(TamperError) as caught:  # the published log is further
        append(place, "again")
    assert caught.value.where == publish.CHECKPOINT
    assert rebuild(place.home, key=place.key.public).size == 8
    assert_sound(place, 8)


def test_tables_that_others_have_are_never_met(place: Place) -> None:
    place.sql(
        f"ALTER DATABASE {place.database} SET search_path = public",
        "CREATE TABLE public.head AS SELECT 99 AS size, ''::bytea AS root, ''::bytea AS note",
        "CREATE FUNCTION public.max(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint'",
    )
    append(place, "a")
    assert_sound(place, 8)


def test_a_rebuild_keeps_the_grants_and_the_old_schema(place: Place) -> None:
    place.sql(
        f"GRANT USAGE ON SCHEMA {place.schema} TO reader, writer",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {place.schema} TO reader, writer",
        "GRANT INSERT ON event TO writer", "GRANT SELECT ON head TO PUBLIC",
    )  # fmt: skip
    rights = (
        "SELECT c.relname, a.grantee::regrole::text, a.privilege_type "
        "FROM pg_class c, aclexplode(c.relacl) a "
        "WHERE c.relnamespace = current_schema()::regnamespace ORDER BY 1, 2, 3"
    )
    before = place.sql(rights)
    assert len(before) > 40
    made = rebuild(place.home)
    assert str(made.kept).endswith(f"?schema={place.schema}_old_1")
    assert place.sql(rights) == before
    assert place.sql("SELECT count(*) FROM event", user="reader") == [(7,)]
    assert str(rebuild(place.home).kept).endswith("_old_2")
    assert place.sql("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'ledger%' ORDER BY 1") == [
        (place.schema + end,) for end in ("", "_old_1", "_old_2")
    ]
    assert_sound(place, 7)


def test_who_may_not_is_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = place.home.path / "ledger.toml"
    settings.write_text(settings.read_text().replace("keeper@", ""))
    home = homes.read(place.home.path)
    monkeypatch.setenv("PGUSER", "reader")
    with pytest.raises(StorageError, match=r"docs/postgres\.md") as caught:
        Index.open(home)
    assert caught.value.code == "read-only"
    place.sql(
        f"GRANT USAGE ON SCHEMA {place.schema} TO reader",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {place.schema} TO reader",
    )
    with Index.open(home) as index:
        assert index.size == 7
    for use in (lambda: log.commit(home, place.key, lambda _: [acquisition("x")]), lambda: rebuild(home)):
        with pytest.raises(LedgerError) as refused:
            use()
        assert refused.value.code == "read-only"
    monkeypatch.setenv("PGUSER", "nobody-of-that-name")
    with pytest.raises(StorageError) as caught:
        Index.open(home)
    assert caught.value.code == "unreachable"


def test_a_password_comes_from_where_libpq_looks(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = cluster.database()
    cluster.sql("postgres", "CREATE ROLE locked LOGIN PASSWORD 'hunter2'")
    cluster.sql(database, f"GRANT CREATE ON DATABASE {database} TO locked")
    url = cluster.url(database, "locked")
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    try:
        with pytest.raises(StorageError, match="password") as caught:
            homes.init(tmp_path / "a" / ".ledger", "a", catalog=url)
        assert caught.value.code == "unreachable"
        monkeypatch.setenv("PGPASSWORD", "hunter2")
        homes.init(tmp_path / "a" / ".ledger", "a", catalog=url)
        monkeypatch.delenv("PGPASSWORD")
        (tmp_path / "pgpass").write_text(f"127.0.0.1:{cluster.port}:{database}:locked:hunter2\n")
        (tmp_path / "pgpass").chmod(0o600)
        homes.init(tmp_path / "b" / ".ledger", "b", catalog=url)
        (tmp_path / "services").write_text(
            f"[judges]\nhost=127.0.0.1\nport={cluster.port}\ndbname={database}\nuser=locked\npassword=hunter2\n"
        )
        monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
        monkeypatch.delenv("PGPASSFILE")
        made = homes.init(tmp_path / "c" / ".ledger", "c", catalog="postgresql:///?service=judges")
        assert made.catalog_url == "postgresql:///?service=judges&schema=ledger_c"
        assert not [path for path in tmp_path.rglob("ledger.toml") if "hunter2" in path.read_text()]
    finally:
        cluster.drop(database)
        cluster.sql("postgres", "DROP ROLE locked")
