"""A process that dies anywhere in a commit loses nothing acknowledged and leaves nothing half-visible."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger import durable, events, heads, log, publish, rebuild, repair, tree
from ledger.events import AcquisitionEvent, Event
from ledger.index import Index
from ledger.log import Transaction
from tests.ledger.homes import (
    CATALOGS,
    Place,
    chosen,
    files,
    new_place,
    on_server_in_sweep,
    one_of_each,
    refusal_event,
    segment_event,
)

KILLED = 77
POINTS = (
    "object-staged", "object-named", "appended", "committed", "tiles-published", "published log/checkpoint",
    "published", "pinned",
)  # fmt: skip


@pytest.fixture(params=CATALOGS)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = new_place(tmp_path / "start", chosen(request))
    log.commit(made.home, made.key, lambda t: one_of_each(t.objects))
    return made


def ingest(place: Place) -> log.Commit:
    """What a caller does: objects first, then one commit, which a second try does not repeat."""
    objects = place.home.objects
    made: list[Event] = [
        AcquisitionEvent("run-2", "transport"), segment_event(objects, "new"), refusal_event(objects, 40)
    ]  # fmt: skip

    def build(transaction: Transaction) -> list[Event]:
        known = {row.id for row in transaction.index.acquisitions()}
        return [] if "run-2" in known else made

    return log.commit(place.home, place.key, build)


def killed(place: Place, arm: Callable[[], None]) -> bool:
    """Runs `ingest` in a child process that `arm` prepares to die; whether it died."""
    child = os.fork()
    if child == 0:
        try:
            arm()
            ingest(place)
        except BaseException:
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, KILLED)
    return code == KILLED


def assert_recovers(place: Place) -> bool:
    """The state is the old or the new one and both can go on; returns which."""
    with Index.open(place.home) as index:
        checked = heads.check(place.home, index)
        publish.check(place.home.objects, checked)
        size = index.size
        assert size == index.event_count()
        assert size in (7, 10)
        assert len(index.refused_sides()) == (3 if size == 7 else 43)
        assert [tree.leaf_hash(row.data) for row in index.events()] == index.leaves()
        for row in index.events():
            for name in events.object_names(events.decode(row.data)):
                assert place.home.objects.exists(name)
    commit = ingest(place)
    assert (commit.size, commit.first_index, commit.warnings) == (10, 7 if size == 7 else 10, ())
    assert_sound(place)
    return size == 10


def assert_sound(place: Place) -> None:
    with Index.open(place.home) as index:
        checked = heads.check(place.home, index)
        assert publish.check(place.home.objects, checked) == checked.head
        assert checked.pin is not None
        assert checked.pin.head == checked.head
    again = repair.repair(place.home, grace=0)
    assert all(action.what.startswith("removed a staged file") for action in again.actions)
    assert repair.repair(place.home, grace=0) == repair.Repair((), (), ())


@on_server_in_sweep
@pytest.mark.parametrize("point", POINTS)
def test_at_every_named_moment(place: Place, tmp_path: Path, point: str) -> None:
    counted: list[str] = []
    durable.hook = counted.append
    ingest(place.copy(tmp_path / "count").use())
    durable.hook = None
    assert point in counted
    outcomes = []
    for number in sorted({1, counted.count(point)}):
        there = place.copy(tmp_path / str(number)).use()

        def arm(number: int = number) -> None:
            seen = 0

            def die(name: str) -> None:
                nonlocal seen
                seen += name == point
                if seen == number:
                    os._exit(KILLED)

            durable.hook = die

        assert killed(there, arm)
        outcomes.append(assert_recovers(there))
    assert all(outcomes) == any(outcomes) == (POINTS.index(point) >= POINTS.index("committed"))


@on_server_in_sweep
@pytest.mark.parametrize(
    ("call", "when"),
    [
        ("replace", "before"),
        pytest.param("replace", "after", marks=pytest.mark.sweep),
        pytest.param("fsync", "before", marks=pytest.mark.sweep),
        pytest.param("fsync", "after", marks=pytest.mark.sweep),
    ],
)
def test_at_every_sync_and_rename(place: Place, tmp_path: Path, call: str, when: str) -> None:
    outcomes = []
    for number in range(1, 200):
        there = place.copy(tmp_path / f"{number}").use()

        def arm(number: int = number) -> None:
            original, seen = getattr(os, call), 0

            def die(*arguments: object) -> None:
                nonlocal seen
                seen += 1
                if seen == number and when == "before":
                    os._exit(KILLED)
                original(*arguments)
                if seen == number:
                    os._exit(KILLED)

            setattr(os, call, die)

        if not killed(there, arm):
            break
        outcomes.append(assert_recovers(there))
        shutil.rmtree(tmp_path / f"{number}")
    assert len(outcomes) > 8
    assert outcomes == sorted(outcomes)  # once the new state is there it stays
    assert any(outcomes)


def test_repair_alone_finishes_a_commit(place: Place, tmp_path: Path) -> None:
    def arm() -> None:
        durable.hook = lambda name: os._exit(KILLED) if name == "committed" else None

    there = place.copy(tmp_path / "there").use()
    assert killed(there, arm)
    done = repair.repair(there.home)
    sealed = set() if there.cluster else {"sealed the catalog"}
    assert {action.what for action in done.actions} == {"published", "moved the pin to the head"} | sealed
    assert_sound(there)


@on_server_in_sweep
def test_a_rebuild_that_dies_can_be_done_again(place: Place, tmp_path: Path) -> None:
    for point in ("catalog-rebuilt", "catalog-kept"):
        there = place.copy(tmp_path / point).use()
        child = os.fork()
        if child == 0:
            durable.hook = lambda name, point=point: os._exit(KILLED) if name == point else None
            rebuild.rebuild(there.home)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == KILLED
        assert rebuild.rebuild(there.home).size == 7
        assert_recovers(there)


SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>
static long left = -1;
void arm(long calls) { left = calls; }
long calls_left(void) { return left; }
static void count(void) { if (left > 0 && --left == 0) _exit(77); }
#define WRAP(result, name, parameters, arguments) \
  result name parameters { \
    static result (*original) parameters; \
    if (!original) original = (result (*) parameters) dlsym(RTLD_NEXT, #name); \
    count(); return original arguments; }
WRAP(ssize_t, write, (int f, const void *b, size_t n), (f, b, n))
WRAP(ssize_t, pwrite, (int f, const void *b, size_t n, off_t o), (f, b, n, o))
WRAP(ssize_t, pwrite64, (int f, const void *b, size_t n, off64_t o), (f, b, n, o))
WRAP(int, fsync, (int f), (f))
WRAP(int, fdatasync, (int f), (f))
WRAP(int, ftruncate, (int f, off_t n), (f, n))
WRAP(int, ftruncate64, (int f, off64_t n), (f, n))
WRAP(int, unlink, (const char *p), (p))
WRAP(int, rename, (const char *a, const char *b), (a, b))
WRAP(int, renameat, (int c, const char *a, int d, const char *b), (c, a, d, b))
"""


@pytest.mark.sweep
def test_at_every_call_that_changes_the_disk(tmp_path: Path) -> None:
    """SQLite's own calls included, by a library that ends the process at the n-th of them."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler on Linux")
    (tmp_path / "shim.c").write_text(SHIM)
    library = tmp_path / "shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "shim.c", "-ldl"], check=True)
    code = (
        "import sys; from pathlib import Path; from tests.ledger import test_crashes\n"
        "test_crashes.sweep(Path(sys.argv[1]))"
    )
    environment = {**os.environ, "LD_PRELOAD": str(library), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    calls, new = map(int, done.stdout.split())
    assert calls > 100
    assert 0 < new < calls


def sweep(folder: Path) -> None:
    """Dies at every call in turn, in a process that the shim is loaded into; prints calls and new states."""
    shim = ctypes.CDLL(str(folder / "shim.so"))
    start = new_place(folder / "start")
    log.commit(start.home, start.key, lambda t: one_of_each(t.objects))
    outcomes = []
    for number in range(1, 5000):
        there = start.copy(folder / str(number)).use()
        before = files(there.home.path)
        if not killed(there, lambda number=number: shim.arm(number)):  # type: ignore[misc]
            break
        outcomes.append(assert_recovers(there))
        for name, data in before.items():  # what was acknowledged is still there, to the byte
            if name.startswith("objects/") and "/log/" not in name:
                assert (there.home.path / name).read_bytes() == data
        shutil.rmtree(folder / str(number))
    assert outcomes == sorted(outcomes)
    print(len(outcomes), sum(outcomes))
