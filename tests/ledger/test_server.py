"""A catalog on a server: writers on several machines, sessions that are cut off, a server that crashes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import StorageError
from ledger import durable, heads, log, publish, repair
from ledger import home as homes
from ledger.event_types import AcquisitionEvent
from ledger.index import Index
from tests.ledger.homes import Place, segment_event
from tests.ledger.server_homes import acquisition, append, assert_sound, no_hook, place
from tests.postgres import Cluster

__all__ = ["no_hook", "place"]  # fixtures

LOST_STEP = "run the command again: nothing of this call was recorded"
ROOT = Path(__file__).parents[2]


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
