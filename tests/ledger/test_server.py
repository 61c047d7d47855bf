"""A catalog on a server: writers on several machines, sessions cut off, what an administrator does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import LedgerError, StorageError, TamperError, UsageError
from ledger import durable, heads, log, pin, publish, repair
from ledger import home as homes
from ledger.event_types import AcquisitionEvent
from ledger.index import Index
from ledger.rebuild import rebuild
from ledger.verify import verify
from tests.ledger.homes import SERVER, Place, by_hand, chosen, new_place, one_of_each, segment_event
from tests.postgres import Cluster

LOST_STEP = "run the command again: nothing of this call was recorded"
slow = partial(pytest.param, marks=pytest.mark.sweep)
ROOT = Path(__file__).parents[2]


@pytest.fixture(params=[SERVER])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = new_place(tmp_path, chosen(request))
    log.commit(made.home, made.key, lambda t: one_of_each(t.objects))
    return made


@pytest.fixture(autouse=True)
def no_hook() -> Iterator[None]:
    yield
    durable.hook = None


def acquisition(name: str) -> AcquisitionEvent:
    return AcquisitionEvent(name, "transport")


def append(place: Place, name: str, wait: float = 5.0) -> log.Commit:
    return log.commit(place.home, place.key, lambda _: [acquisition(name)], wait=wait)


def another_machine(place: Place, folder: Path) -> Place:
    """A home of the same ledger with the same objects, and a configuration of its own."""
    (folder / ".ledger").mkdir(parents=True)
    shutil.copy(place.home.path / "ledger.toml", folder / ".ledger" / "ledger.toml")
    (folder / ".ledger" / "objects").symlink_to(place.home.path / "objects")
    shutil.copytree(place.config, folder / "config")
    return Place(homes.read(folder / ".ledger"), folder / "config", place.key, place.cluster)


def started(place: Place, body: str, *words: str) -> subprocess.Popen[str]:
    """A program on that machine; `append(name)` and `home` are known to it."""
    code = (
        "import sys; from pathlib import Path\n"
        "from ledger import durable, log, home as homes\n"
        "from ledger.event_types import AcquisitionEvent\n"
        "home = homes.read(Path(sys.argv[1])); key = homes.signing_key(home)\n"
        "def append(name, wait=30.0):\n"
        "    return log.commit(home, key, lambda _: [AcquisitionEvent(name, 'transport')], wait=wait)\n"
    )
    environment = {**os.environ, "XDG_CONFIG_HOME": str(place.config)}
    return subprocess.Popen(
        [sys.executable, "-c", code + body, str(place.home.path), *words],
        env=environment, cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


PAUSED = """
def pause(point):
    if point == 'appended':
        print('there', flush=True); sys.stdin.readline()
durable.hook = pause
print(append('first').size)
"""


def assert_sound(place: Place, size: int) -> None:
    place.use()
    with Index.open(place.home) as index:
        checked = heads.check(place.home, index)
        assert checked.head.size == size == index.event_count()
        assert publish.check(place.home.objects, checked) == checked.head
    report = verify(place.home)
    assert [p for p in report.findings if p.kind != "record"] == []  # the homes hold no real records


def names(place: Place) -> list[str]:
    with Index.open(place.home) as index:
        return [row.id for row in index.acquisitions()]


# Two writers


def test_a_writer_elsewhere_is_waited_for_and_named(place: Place, tmp_path: Path) -> None:
    there = another_machine(place, tmp_path / "there")
    with started(there, PAUSED) as first:
        assert first.stdout is not None
        assert first.stdin is not None
        assert first.stdout.readline() == "there\n"
        with pytest.raises(StorageError, match=rf"ledger process {first.pid} on .* since 20") as caught:
            append(place, "second", wait=0.2)
        assert caught.value.code == "locked"
        assert names(place) == ["run-1"]  # a reader never waits
        first.stdin.write("\n")
        first.stdin.flush()
        assert append(place, "second", wait=20).size == 9
        assert first.stdout.readline() == "8\n"
    assert names(place) == ["run-1", "first", "second"]
    assert_sound(place, 9)
    assert_sound(there, 9)


def test_a_writer_whose_lock_was_cut_off_still_keeps_the_fence(place: Place, tmp_path: Path) -> None:
    there = another_machine(place, tmp_path / "there")
    with started(there, PAUSED) as first:
        assert first.stdout is not None
        assert first.stdin is not None
        assert first.stdout.readline() == "there\n"
        held = (
            "SELECT pg_terminate_backend(l.pid) FROM pg_locks l WHERE locktype = 'advisory' AND NOT EXISTS "
        )
        place.sql(held + "(SELECT 1 FROM pg_locks r WHERE r.pid = l.pid AND r.mode = 'RowExclusiveLock')")
        with pytest.raises(StorageError, match=f"ledger process {first.pid} on") as caught:
            append(place, "second", wait=0.3)
        assert caught.value.code == "locked"
        first.stdin.write("\n")
        first.stdin.flush()
        assert append(place, "second", wait=20).size == 9
        assert first.stdout.readline() == "8\n"
    repair.repair(place.home)  # the one who was cut off may have published last
    assert names(place) == ["run-1", "first", "second"]
    assert_sound(place, 9)


def test_many_writers_on_two_machines_make_one_log(place: Place, tmp_path: Path) -> None:
    there = another_machine(place, tmp_path / "there")
    body = "for i in range(5):\n    append(f'{sys.argv[2]}-{i}', wait=60)\n"
    programs = [started(machine, body, name) for machine, name in ((place, "here"), (there, "there"))]
    for program in programs:
        _, told = program.communicate(timeout=120)
        assert program.returncode == 0, told
    assert sorted(names(place)[1:]) == sorted(f"{name}-{i}" for name in ("here", "there") for i in range(5))
    assert_sound(place, 17)
    assert_sound(there, 17)


# Sessions that end


def cut(place: Place) -> Callable[[str], None]:
    """Ends every session in the database."""
    return lambda _: (
        place.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        and None
    )


def survives(place: Place, at: int) -> bool | None:
    """Cuts all sessions off at a moment of a commit; whether it was recorded, None where there is none."""
    seen, end = 0, cut(place)

    def hook(point: str) -> None:
        nonlocal seen
        seen += 1
        if seen == at:
            end(point)

    with Index.open(place.home) as index:
        before = index.size
    durable.hook, commit, told = hook, None, ("connection-lost", LOST_STEP)
    try:
        commit = log.commit(place.home, place.key, lambda t: [segment_event(t.objects, f"cut {at}")])
    except StorageError as error:
        told = error.code, error.next_step
    durable.hook = None
    assert told == ("connection-lost", LOST_STEP)
    with Index.open(place.home) as index:
        publish.check(place.home.objects, heads.check(place.home, index))
        assert index.size == index.event_count() == before + (commit is not None)
        assert len(index.segments()) == before - 6 + (commit is not None)
    assert append(place, f"after {at}").warnings == ()
    repair.repair(place.home, grace=0)
    assert_sound(place, before + 1 + (commit is not None))
    return (commit is not None) if seen >= at else None


def moments(place: Place, folder: Path) -> list[str]:
    counted: list[str] = []
    durable.hook = counted.append
    copy = place.copy(folder).use()
    log.commit(copy.home, copy.key, lambda t: [segment_event(t.objects, "count")])
    durable.hook = None
    place.use()
    return counted


@pytest.mark.parametrize("point", ["appended", "committed", "tiles-published"])
def test_a_session_cut_off_at_a_named_moment(place: Place, tmp_path: Path, point: str) -> None:
    there = place.copy(tmp_path / "there").use()
    assert survives(there, moments(there, tmp_path / "count").index(point) + 1) is (point != "appended")


@pytest.mark.parametrize("heard", [False, True])
def test_a_commit_whose_end_was_not_heard_of(
    place: Place, monkeypatch: pytest.MonkeyPatch, heard: bool
) -> None:
    import psycopg

    commit, ends = psycopg.Connection.commit, cut(place)

    def deaf(session: psycopg.Connection[Any]) -> None:
        if heard:
            commit(session)
        monkeypatch.setattr(psycopg.Connection, "commit", commit)
        ends("")
        raise psycopg.OperationalError("the line went dead")

    durable.hook = lambda point: (
        monkeypatch.setattr(psycopg.Connection, "commit", deaf) if point == "appended" else None
    )
    if heard:
        made = append(place, "a")
        assert (made.size, made.warnings) == (8, ())
        assert names(place) == ["run-1", "a"]
    else:
        with pytest.raises(StorageError, match="nothing of this call was recorded"):
            append(place, "a")
        assert names(place) == ["run-1"]
    durable.hook = None
    append(place, "b")
    assert_sound(place, 9 if heard else 8)


@pytest.mark.sweep
def test_a_session_cut_off_at_every_moment(place: Place, tmp_path: Path) -> None:
    counted = moments(place, tmp_path / "count")
    outcomes = []
    for at in range(1, len(counted) + 1):
        there = place.copy(tmp_path / f"{at}").use()
        outcomes.append(survives(there, at))
    assert len(outcomes) > 12
    assert outcomes == [at > counted.index("appended") for at in range(len(counted))]


def test_a_server_that_crashes_and_comes_back(place: Place, cluster: Cluster) -> None:
    append(place, "before")
    durable.hook = lambda point: cluster.stop() if point == "appended" else None
    with pytest.raises(StorageError) as caught:
        append(place, "during")
    assert caught.value.code == "connection-lost"
    durable.hook = None
    try:
        for use in (lambda: Index.open(place.home), lambda: append(place, "meanwhile")):
            with pytest.raises(StorageError, match="cannot be reached") as caught:
                use()
            assert caught.value.exit_code == 3
    finally:
        cluster.start()
    assert names(place) == ["run-1", "before"]
    append(place, "after")
    cluster.stop(signal.SIGINT)
    cluster.start()
    assert names(place) == ["run-1", "before", "after"]
    assert_sound(place, 9)


def test_a_commit_is_on_disk_whatever_the_server_does_by_default(place: Place) -> None:
    # the tests' server acknowledges early by default, and this database ends idle sessions at once
    place.sql(
        f"ALTER DATABASE {place.database} SET idle_in_transaction_session_timeout = 100",
        f"ALTER DATABASE {place.database} SET idle_session_timeout = 100",
        f"ALTER DATABASE {place.database} SET default_transaction_isolation = 'serializable'",
    )
    from ledger.server_connection import connect

    with connect(place.home.catalog, wait=1, readonly=False) as session:  # type: ignore[arg-type]
        assert session.execute("SHOW synchronous_commit").fetchone() == ("on",)

    def slow(_: log.Transaction) -> list[AcquisitionEvent]:
        subprocess.run(["sleep", "0.4"], check=True)
        return [acquisition("slow")]

    assert log.commit(place.home, place.key, slow).warnings == ()
    assert_sound(place, 8)


# What an administrator can do, and what is seen of it


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


# Schemas


def test_two_ledgers_share_a_database(cluster: Cluster, tmp_path: Path) -> None:
    url = cluster.url(cluster.database(), over="socket")
    made = [homes.init(tmp_path / name / ".ledger", name, catalog=url) for name in ("One", "two")]
    assert [home.catalog.schema for home in made] == ["ledger_one", "ledger_two"]  # type: ignore[union-attr]
    for home, own in zip(made, ("a", "b"), strict=True):
        log.commit(home, homes.signing_key(home), lambda _, own=own: [acquisition(own)])
        with Index.open(homes.read(home.path)) as index:
            assert [row.id for row in index.acquisitions()] == [own]
            heads.check(home, index)


def test_nothing_is_put_over_something(cluster: Cluster, tmp_path: Path) -> None:
    database = cluster.database()
    homes.init(tmp_path / "a" / ".ledger", "a.b", catalog=cluster.url(database))
    with pytest.raises(UsageError, match=r"\?schema=NAME") as caught:
        homes.init(tmp_path / "b" / ".ledger", "a-b", catalog=cluster.url(database))
    assert caught.value.code == "catalog-exists"
    assert not homes.key_path("a-b").exists()
    cluster.sql(database, "CREATE SCHEMA used", "CREATE TABLE used.mine (x int)")
    with pytest.raises(UsageError):
        homes.init(tmp_path / "b" / ".ledger", "a-b", catalog=cluster.url(database) + "?schema=used")
    assert cluster.sql(database, "SELECT count(*) FROM used.mine") == [(0,)]
    homes.init(tmp_path / "b" / ".ledger", "a-b", catalog=cluster.url(database) + "?schema=other")


@pytest.mark.parametrize("word", ["select", "user", "table", "public", "desc"])
def test_a_schema_may_be_called_by_a_reserved_word(cluster: Cluster, tmp_path: Path, word: str) -> None:
    database = cluster.database()
    url = f"{cluster.url(database)}?schema={word}"
    made = homes.init(tmp_path / ".ledger", word, catalog=url)
    log.commit(made, homes.signing_key(made), lambda _: [acquisition("a")])
    kept = rebuild(made).kept
    assert str(kept).endswith(f"schema={word}_old_1")
    with Index.open(made) as index:
        assert [row.id for row in index.acquisitions()] == ["a"]
    durable.hook = lambda point: _end() if point == "home-built" else None
    with pytest.raises(StorageError, match="ended"):
        homes.init(
            tmp_path / "b" / ".ledger", "b", catalog=f"{cluster.url(cluster.database())}?schema={word}"
        )


def _end() -> None:
    raise StorageError("ended")


@pytest.mark.parametrize("before", [False, True])
def test_a_home_that_does_not_come_about_leaves_no_tables(
    cluster: Cluster, tmp_path: Path, before: bool
) -> None:
    database = cluster.database()
    if before:
        cluster.sql(database, "CREATE SCHEMA mine")

    def fail(point: str) -> None:
        if point == "home-built":
            raise StorageError("no")

    durable.hook = fail
    with pytest.raises(StorageError, match="no"):
        homes.init(tmp_path / ".ledger", "x", catalog=cluster.url(database) + "?schema=mine")
    durable.hook = None
    schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'mine'"
    left = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('mine')"
    assert cluster.sql(database, schemas) == [(int(before),)]
    assert cluster.sql(database, left) == [(0,)]
    homes.init(tmp_path / ".ledger", "x", catalog=cluster.url(database) + "?schema=mine")


def test_a_database_of_another_encoding_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    cluster.sql("postgres", "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    try:
        with pytest.raises(UsageError, match="expected encoding UTF8"):
            homes.init(tmp_path / ".ledger", "x", catalog=cluster.url("latin"))
    finally:
        cluster.drop("latin")
    assert not (tmp_path / ".ledger").exists()


def test_text_is_in_the_order_of_its_bytes_under_any_collation(cluster: Cluster, tmp_path: Path) -> None:
    options = "ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C.UTF-8'"
    try:
        cluster.sql("postgres", f"CREATE DATABASE sorted TEMPLATE template0 {options}")
    except Exception as error:
        if type(error).__name__ != "FeatureNotSupported":
            raise
        pytest.skip("this server was built without ICU")
    try:
        assert cluster.sql("sorted", "SELECT 'a' < 'Z'") == [
            (True,)
        ]  # not by bytes, so there is a difference
        home = homes.init(tmp_path / ".ledger", "x", catalog=cluster.url("sorted"))
        made = [
            segment_event(home.objects, "1", span=("A", "Z")),
            segment_event(home.objects, "2", span=("a", "é")),
        ]
        log.commit(home, homes.signing_key(home), lambda _: made)
        with Index.open(home) as index:
            chosen = [
                [row.event for row in index.segments(trajectories=span)]
                for span in (("B", "Y"), ("Z~", "_"), ("b", "c"), ("zz", "zz"), ("ê", "ê"))
            ]
        assert chosen == [[1], [], [2], [2], []]
    finally:
        cluster.drop("sorted")


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
