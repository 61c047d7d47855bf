"""A commit is one step: checked before, whole after, published behind, and never twice."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contracts.digest import sha256_digest
from contracts.errors import LedgerError, StorageError, TamperError, UnknownKeyError, VerificationError
from ledger import durable, events, heads, lock, log, notes, pin, publish, tree
from ledger.events import AcquisitionEvent, Event, PlanEvent
from ledger.index import Index
from ledger.keys import SigningKey
from ledger.log import Transaction
from ledger.tiles import parse_bundle, parse_tile, tiles
from tests.ledger.homes import (
    CATALOGS,
    Place,
    backup,
    by_hand,
    chosen,
    files,
    new_place,
    on_file,
    on_server_in_sweep,
    one_of_each,
    segment_event,
)


@pytest.fixture(params=CATALOGS)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return new_place(tmp_path, chosen(request))


@pytest.fixture(autouse=True)
def no_hook() -> Iterator[None]:
    yield
    durable.hook = None


def acquisition(name: str) -> AcquisitionEvent:
    return AcquisitionEvent(name, "transport")


def append(place: Place, *made: Event, wait: float = 5.0) -> log.Commit:
    return log.commit(place.home, place.key, lambda _: made, wait=wait)


def once(name: str) -> Callable[[Transaction], list[Event]]:
    """An operation that a caller may safely try again."""
    return lambda t: [] if name in [row.id for row in t.index.acquisitions()] else [acquisition(name)]


def assert_sound(place: Place, size: int) -> None:
    """Catalog, published files and pin agree on one verified head."""
    with Index.open(place.home) as index:
        checked = heads.check(place.home, index)
        found = publish.check(place.home.objects, checked)
        assert checked.head.size == size == index.event_count()
        assert found == checked.head
        assert checked.pin is not None
        assert checked.pin.head == checked.head
        data = [event.data for event in index.events()]
        assert [tree.leaf_hash(d) for d in data] == index.leaves()
    stored: list[bytes] = []
    for tile in tiles(size):
        content = place.home.objects.read(f"log/{tile.path}")
        if tile.level is None:
            stored += parse_bundle(content, tile)
        elif tile.level == 0:
            assert list(parse_tile(content, tile)) == [
                tree.leaf_hash(d) for d in data[tile.start : tile.stop]
            ]
    assert stored == data


def test_events_become_part_of_the_ledger(place: Place) -> None:
    made = one_of_each(place.home.objects)
    commit = append(place, *made)
    assert (commit.first_index, commit.size, commit.warnings) == (1, 7, ())
    head = notes.verify_head(commit.note, [pin.load("test-log").vkey], "test-log")  # type: ignore[union-attr]
    assert (head.size, "sha256:" + head.root.hex()) == (7, commit.root)
    with Index.open(place.home) as index:
        assert [events.decode(row.data) for row in index.events(1)] == made
    assert_sound(place, 7)


def test_nothing_to_append_changes_nothing(place: Place) -> None:
    before = files(place.home.path)
    commit = append(place)
    assert (commit.first_index, commit.size) == (1, 1)
    assert files(place.home.path) == before


def test_a_builder_sees_the_state_it_appends_to(place: Place) -> None:
    for _ in range(3):
        log.commit(place.home, place.key, once("run-1"))
    assert_sound(place, 2)


def test_a_builder_that_fails_leaves_nothing(place: Place) -> None:
    before = files(place.home.path)

    def build(_: Transaction) -> list[Event]:
        raise StorageError("no")

    with pytest.raises(StorageError, match="no"):
        log.commit(place.home, place.key, build)
    assert files(place.home.path) == before


def test_another_key_does_not_sign(place: Place) -> None:
    with pytest.raises(UnknownKeyError):
        log.commit(place.home, SigningKey.generate(), lambda _: [acquisition("a")])
    assert_sound(place, 1)


@on_server_in_sweep
def test_objects_must_be_there_first(place: Place) -> None:
    event = segment_event(place.home.objects)
    place.home.objects.remove(events.object_names(event)[1])
    with pytest.raises(StorageError, match="gone") as caught:
        append(place, event)
    assert caught.value.code == "missing-object"
    assert_sound(place, 1)


@on_server_in_sweep
def test_long_lists_stand_in_objects_and_come_back(place: Place) -> None:
    scope = tuple((None, f"run-{i}", 1) for i in range(4000))
    event = segment_event(place.home.objects, scope=scope)
    append(place, event)
    with Index.open(place.home) as index:
        row = index.segments()[0]
        assert isinstance(events.decode(next(index.events(1)).data).scope, events.ObjectRef)  # type: ignore[union-attr]
    assert row.scope == event.scope
    assert row.acquisitions == event.acquisitions


@on_server_in_sweep
def test_sizes_around_a_tile_and_partial_files(place: Place) -> None:
    for size in (254, 255, 256, 257, 300, 520):
        with Index.open(place.home) as index:
            old = index.size
        append(place, *(acquisition(f"run-{i}") for i in range(old, size)))
        assert_sound(place, size)
    partial = [name for name in place.home.objects.list("log/tile") if ".p/" in name]
    # Those of the head, and of the one before it whose readers may still be at work, until the tile is full.
    assert sorted(partial) == [
        "log/tile/0/002.p/8", "log/tile/1/000.p/1", "log/tile/1/000.p/2", "log/tile/entries/002.p/8",
    ]  # fmt: skip
    heads_stored = sorted(int(name.rpartition("/")[2]) for name in place.home.objects.list("log/heads"))
    assert heads_stored == [1, 254, 255, 256, 257, 300, 520]


@on_server_in_sweep
def test_a_clock_that_goes_backwards_is_a_warning(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    commit = append(place, acquisition("run-1"))
    assert len(commit.warnings) == 1
    assert "clock" in commit.warnings[0]
    assert_sound(place, 2)


@on_server_in_sweep
def test_plans_are_stored_and_proved(place: Place) -> None:
    append(place, PlanEvent("main", sha256_digest(b"{}"), {}))
    assert_sound(place, 2)


# Who else is there


def test_a_second_writer_learns_who_is_at_work(place: Place) -> None:
    code = (
        "import sys, time; from pathlib import Path; from ledger import lock\n"
        "with lock.hold(Path(sys.argv[1])):\n print('held', flush=True); time.sleep(60)"
    )
    path = place.home.path / log.LOCK_FILE
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StorageError, match=f"process {holder.pid} on .* since 20") as caught:
            append(place, acquisition("a"), wait=0.2)
        assert caught.value.code == "locked"
        assert caught.value.next_step
        holder.kill()
    append(place, acquisition("a"), wait=2)
    assert_sound(place, 2)


def test_a_second_writer_waits_for_the_first(place: Place) -> None:
    def hold() -> None:
        with lock.hold(place.home.path / log.LOCK_FILE):
            started.set()
            time.sleep(0.3)

    started = threading.Event()
    thread = threading.Thread(target=hold)
    thread.start()
    started.wait()
    append(place, acquisition("a"))
    thread.join()
    assert_sound(place, 2)


@on_file
def test_a_database_shell_in_a_transaction_is_waited_for_and_named(place: Place) -> None:
    shell = sqlite3.connect(place.home.catalog, isolation_level=None)
    shell.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError) as caught:
        append(place, acquisition("a"), wait=0.2)
    assert caught.value.code == "locked"
    shell.close()
    append(place, acquisition("a"))
    assert_sound(place, 2)


def test_many_writers_double_nothing(place: Place) -> None:
    failures: list[BaseException] = []

    def write(start: int) -> None:
        try:
            for i in range(6):
                log.commit(place.home, place.key, once(f"run-{(start + i) % 9}"), wait=30)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(start,)) for start in (0, 3, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    with Index.open(place.home) as index:
        assert sorted(row.id for row in index.acquisitions()) == [f"run-{i}" for i in range(9)]
    assert_sound(place, 10)


def test_a_reader_during_a_write_sees_the_last_head(place: Place) -> None:
    seen: list[tuple[str, int, int]] = []

    def look(point: str) -> None:
        with Index.open(place.home) as index:
            found = publish.published(place.home.objects, heads.history(index).heads)
            seen.append((point, index.size, found.size if found else 0))

    durable.hook = look
    append(place, acquisition("a"))
    durable.hook = None
    sizes = {point: (catalog, served) for point, catalog, served in seen}
    assert sizes["appended"] == (1, 1)
    assert sizes["committed"] == (2, 1)
    assert sizes["tiles-published"] == (2, 1)
    assert sizes["published"] == (2, 2)


# The log is checked before anything is signed


@on_file
def test_a_restored_backup_is_refused(place: Place, tmp_path: Path) -> None:
    append(place, acquisition("a"))
    backup = place.copy(tmp_path / "backup")
    append(place, acquisition("b"))
    for name in ("catalog.sqlite", "objects"):
        os.rename(place.home.path / name, tmp_path / name)
        os.rename(backup.home.path / name, place.home.path / name)
    before = files(place.home.path)
    with pytest.raises(TamperError) as caught:
        append(place, acquisition("c"))
    assert caught.value.kind == "rolled-back-head"
    assert caught.value.exit_code == 4
    assert files(place.home.path) == before


def test_a_copied_home_cannot_fork_the_log(place: Place, tmp_path: Path) -> None:
    append(place, acquisition("a"))
    copy = place.copy(tmp_path / "copy")  # the pin stays that of the first
    append(place, acquisition("b"))
    for builder in (acquisition("c"), acquisition("b")):
        with pytest.raises(TamperError) as caught:
            append(copy, builder)
        assert caught.value.kind == "rolled-back-head"
    assert_sound(place, 3)


def test_only_the_catalog_restored_is_refused_too(place: Place, tmp_path: Path) -> None:
    restore = backup(place)
    append(place, acquisition("a"))
    restore()
    pin.config_file("test-log", ".pin").unlink()
    with pytest.raises(TamperError) as caught:
        append(place, acquisition("b"))
    assert (caught.value.kind, caught.value.where) == ("rolled-back-head", "log/checkpoint")


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("INSERT INTO event VALUES (2, x'00', 'plan', 't', x'7b7d')", "unsigned-tail"),
        ("DELETE FROM event WHERE leaf_index = 1", "catalog"),
        ("UPDATE event SET leaf_hash = zeroblob(32) WHERE leaf_index = 1", "tree"),
        ("UPDATE head SET root = zeroblob(32) WHERE size = 2", "catalog"),
        ("DELETE FROM head WHERE size = 2", "unsigned-tail"),
        ("DELETE FROM head", "catalog"),
        ("UPDATE head SET note = (SELECT note FROM head WHERE size = 1) WHERE size = 2", "catalog"),
        ("DROP TABLE head", "catalog"),
    ],
)
def test_an_edited_catalog_is_never_signed(place: Place, statement: str, kind: str) -> None:
    append(place, acquisition("a"))
    by_hand(place, statement)
    with pytest.raises(TamperError) as caught:
        append(place, acquisition("b"))
    assert caught.value.kind == kind
    assert pin.load("test-log").head.size == 2  # type: ignore[union-attr]


def test_a_head_signed_by_a_stranger_is_refused(place: Place) -> None:
    append(place, acquisition("a"))
    stranger = SigningKey.generate()
    with Index.open(place.home) as index:
        head = notes.TreeHead("test-log", 2, tree.root(index.leaves()))
    by_hand(place, "UPDATE head SET note = ? WHERE size = 2", notes.sign_head(head, stranger))
    with pytest.raises(UnknownKeyError) as caught:
        append(place, acquisition("b"))
    assert caught.value.where == "head of size 2"


@on_server_in_sweep
def test_a_damaged_checkpoint_stops_a_writer(place: Place) -> None:
    path = place.home.objects.path(publish.CHECKPOINT)
    path.write_bytes(path.read_bytes().replace(b"\n1\n", b"\n2\n"))
    with pytest.raises(VerificationError) as caught:
        append(place, acquisition("a"))
    assert caught.value.where == publish.CHECKPOINT
    assert "repair" in (caught.value.next_step or "")


def test_without_a_pin_the_signing_key_vouches(place: Place) -> None:
    append(place, acquisition("a"))
    pin.config_file("test-log", ".pin").unlink()
    append(place, acquisition("b"))
    assert_sound(place, 3)


# Disks that fail


def failing(call: Callable[..., object], at: int, code: int) -> tuple[Callable[..., object], list[int]]:
    """The same function, which fails once, at its `at`-th call."""
    count = [0]

    def fail(*args: object) -> object:
        count[0] += 1
        if count[0] == at:
            raise OSError(code, os.strerror(code))
        return call(*args)

    return fail, count


@on_server_in_sweep
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("replace", errno.ENOSPC),
        ("write", errno.ENOSPC),
        pytest.param("fsync", errno.EIO, marks=pytest.mark.sweep),
    ],
)
def test_every_failing_call_ends_whole_or_not_at_all(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    append(place, *one_of_each(place.home.objects))
    original = getattr(os, name)
    for at in range(1, 100):
        there = place.copy(tmp_path / f"{name}-{at}").use()
        fail, count = failing(original, at, code)
        monkeypatch.setattr(os, name, fail)
        commit, error = None, None
        try:
            commit = append(there, segment_event(there.home.objects, "new"))
        except StorageError as caught:
            error = caught
        assert error is None or error.code in ("disk-full", "io-error")
        monkeypatch.setattr(os, name, original)
        with Index.open(there.home) as index:
            assert index.size == (8 if commit else 7)
            heads.check(there.home, index)
        redone = log.commit(
            there.home, there.key, lambda t: [] if t.size == 8 else [segment_event(t.objects, "new")]
        )
        assert redone.warnings == ()
        assert_sound(there, 8)
        if count[0] < at:
            assert commit is not None
            assert commit.warnings == ()
            break
    assert at > 4


def test_a_full_disk_after_the_commit_is_a_warning(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    write = os.write
    durable.hook = lambda point: monkeypatch.setattr(os, "write", full) if point == "committed" else None
    commit = append(place, acquisition("a"))
    assert commit.size == 2
    assert "not yet published" in commit.warnings[0]
    assert "ledger repair" in commit.warnings[0]
    durable.hook = None
    monkeypatch.setattr(os, "write", write)
    assert append(place, acquisition("b")).warnings == ()
    assert_sound(place, 3)


@on_file
def test_a_full_database_is_a_clear_error(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledger.append.PRAGMAS", ("PRAGMA max_page_count=26",))
    with pytest.raises(LedgerError) as caught:
        append(place, *(acquisition(f"run-{i}" * 50) for i in range(300)))
    assert caught.value.code == "disk-full"
    assert_sound(place, 1)
