"""Readers see the catalog at a head, on any disk, and say so when it is not a catalog."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from contracts.errors import LedgerError, StorageError, TamperError, UsageError
from ledger import catalog, catalog_file, derive, events, log
from ledger.events import AcquisitionEvent, Event, SegmentEvent
from ledger.index import Index
from migrations.append_only import TABLES
from migrations.revisions import LATEST
from tests.ledger.homes import (
    CATALOGS,
    Place,
    by_hand,
    channel_event,
    chosen,
    lose_catalog,
    new_place,
    on_file,
    one_of_each,
    refusal_event,
    refused_side,
    segment_event,
)


@pytest.fixture(params=CATALOGS)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return new_place(tmp_path, chosen(request))


def append(place: Place, *made: Event) -> None:
    log.commit(place.home, place.key, lambda _: made)


def test_rows_come_back_as_values(place: Place) -> None:
    made = one_of_each(place.home.objects)
    append(place, *made)
    _, acquired, segment, refusal, audit, revocation = made
    with Index.open(place.home) as index:
        (channel,) = index.channels().channels
        assert (channel.reference, channel.fingerprint) == ("direct@1", channel_event().fingerprint)
        assert channel.spec == channel_event().spec
        assert index.channel_rows()[0].event == 1
        (row,) = index.acquisitions()
        assert (row.event, row.id, row.kind) == (2, acquired.id, "transport")  # type: ignore[union-attr]
        (stored,) = index.segments()
        assert isinstance(segment, SegmentEvent)
        for name in (field.name for field in fields(SegmentEvent) if field.name != "time"):
            assert getattr(stored, name) == getattr(segment, name), name
        (kept,) = index.refusals()
        assert (kept.event, kept.side_index, kept.rows) == (4, refusal.index, 21)  # type: ignore[union-attr]
        sides = index.refused_sides()
        assert [side.event for side in sides] == [4, 4, 4]
        expected = refused_side(2)
        for name in (
            "trajectory_id",
            "step",
            "reason",
            "rows",
            "absent",
            "failed",
            "digest",
            "target",
            "success",
        ):
            assert getattr(sides[2], name) == getattr(expected, name), name
        assert [vars_of(f) for f in sides[2].faults] == [vars(f) for f in expected.faults]
        assert sides[2].step_kind is None
        (record,) = index.records()
        assert (record.event, record.record) == (5, audit.record)  # type: ignore[union-attr]
        (revoked,) = index.revocations()
        assert (revoked.event, revoked.reason) == (6, revocation.reason)  # type: ignore[union-attr]
        assert revoked.time == revocation.time
        assert index.wrong_guards() == ()


def vars_of(fault: object) -> dict[str, object]:
    return {name: getattr(fault, name) for name in ("endpoint", "layout", "candidate", "kind")}


def test_an_older_head_shows_the_ledger_as_it_was(place: Place) -> None:
    for event in one_of_each(place.home.objects):
        append(place, event)
    with Index.open(place.home) as index:
        readers: tuple[Callable[[int], tuple[object, ...]], ...] = (
            lambda at: index.channels(at).channels, index.acquisitions, index.segments, index.refusals,
            index.records, index.revocations,
        )  # fmt: skip
        for place_in_log, read in enumerate(readers, 1):
            assert len(read(place_in_log)) == 0
            assert len(read(place_in_log + 1)) == 1
        assert index.refused_sides(4) == ()
        assert len(index.refused_sides(5)) == 3
        assert index.head(3).size == 3
        assert index.heads() == (1, 2, 3, 4, 5, 6, 7)
        assert index.heads(5) == (6, 7)


def test_a_size_without_a_head_is_refused_with_the_nearest(place: Place) -> None:
    for count in (3, 4, 2, 5):
        append(place, *(AcquisitionEvent(f"{count}-{i}", "transport") for i in range(count)))
    with Index.open(place.home) as index:
        for read in (index.head, index.segments, index.channels, index.acquisitions, index.revocations):
            with pytest.raises(UsageError, match="nearest 4, 8, 10") as caught:
                read(7)
            assert caught.value.code == "no-head"
        with pytest.raises(UsageError):
            index.head(0)
        with pytest.raises(UsageError):
            index.head(16)


def test_segments_are_chosen_without_opening_files(place: Place) -> None:
    a, b = channel_event("a", "a").fingerprint, channel_event("b", "b").fingerprint
    append(
        place,
        segment_event(place.home.objects, "1", ((a, "r1", 5), (b, "r1", 5)), ("t00", "t10")),
        segment_event(place.home.objects, "2", ((a, "r2", 5),), ("t10", "t20")),
        segment_event(place.home.objects, "3", ((None, "file:1", 5),), ("t15", "é")),
    )
    shutil.rmtree(place.home.objects.root / "segments")
    with Index.open(place.home) as index:

        def chosen(**scope: object) -> list[int]:
            return [row.event for row in index.segments(**scope)]  # type: ignore[arg-type]

        assert chosen() == [1, 2, 3]
        assert chosen(channels={a}) == [1, 2]
        assert chosen(channels={b}) == [1]
        assert chosen(channels={None}) == [3]
        assert chosen(channels={b}, acquisitions={"r2"}) == []
        assert chosen(acquisitions={"r2", "file:1"}) == [2, 3]
        assert chosen(trajectories=("t10", "t10")) == [1, 2]
        assert chosen(trajectories=("t11", "t14")) == [2]
        assert chosen(trajectories=("z", "é")) == [3]  # by UTF-8 bytes é is after z
        assert chosen(trajectories=("ê", "ë")) == []
        assert chosen(kind="jev") == []
        root = index.segments()[1].root.removeprefix("sha256:")
        assert [row.event for row in index.segments_by_root(root[:16])] == [2]
        assert len(index.segments_by_root("")) == 3
        assert index.segments_by_root(root[:16] + "zz") == ()


def test_refused_sides_by_channel(place: Place) -> None:
    append(place, refusal_event(place.home.objects, 5))
    with Index.open(place.home) as index:
        assert index.refused_counts() == ((channel_event().fingerprint, "run-1", 5),)
        assert index.refused_counts(1) == ()
        assert len(index.refused_sides(channels={channel_event().fingerprint})) == 5
        assert index.refused_sides(channels={"blake3:" + "0" * 64}) == ()
        assert index.refused_sides(channels=()) == ()
        many = {f"blake3:{i:064x}" for i in range(1000)} | {channel_event().fingerprint}
        assert len(index.refused_sides(channels=many)) == 5


def test_the_catalog_is_what_the_log_derives(place: Place) -> None:
    append(place, *one_of_each(place.home.objects))
    with Index.open(place.home) as index:
        for event in index.events():
            derived = derive.rows(event.index, events.decode(event.data), place.home.objects)
            for table in TABLES.keys() - {"event", "head"}:
                stored = index.table_rows(table, event.index, event.index + 1)
                assert stored == list(derived.get(table, ())), table


def test_a_view_stays_at_its_size(place: Place) -> None:
    with Index.open(place.home) as index:
        append(place, *one_of_each(place.home.objects))
        assert index.size == 1
        assert index.segments() == ()
        assert len(list(index.events())) == 1
        assert index.event_count() == 7


@on_file
def test_missing_and_changed_triggers_are_found(place: Place) -> None:
    with sqlite3.connect(place.home.catalog) as connection:
        connection.execute("DROP TRIGGER event_no_delete")
        connection.execute("DROP TRIGGER head_no_update")
        connection.execute("CREATE TRIGGER head_no_update BEFORE UPDATE ON head BEGIN SELECT 1; END")
    with Index.open(place.home) as index:
        assert [name for name, _ in index.wrong_guards()] == [
            "trigger event_no_delete", "trigger head_no_update",
        ]  # fmt: skip


@on_file
def test_a_trigger_that_is_not_ours_is_found(place: Place) -> None:
    with sqlite3.connect(place.home.catalog) as connection:
        connection.execute("CREATE TRIGGER evil BEFORE INSERT ON revocation BEGIN SELECT RAISE(IGNORE); END")
    with Index.open(place.home) as index:
        assert index.wrong_guards() == (("trigger evil", "a trigger that is not the catalog's own"),)


def test_readers_cannot_write(place: Place) -> None:
    with Index.open(place.home) as index, pytest.raises(LedgerError):
        index._rows("INSERT INTO acquisition VALUES (0, 'a', 'b')")


# Where catalogs stand


def as_nobody(code: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    """Runs Python as a user who owns nothing, where this process may do that."""
    prefix = (
        "import os, sys; from pathlib import Path; from ledger.home import Home\n"
        "from ledger.index import Index\n"
        "os.setgid(65534) if os.getuid() == 0 else None; os.setuid(65534) if os.getuid() == 0 else None\n"
    )
    return subprocess.run(
        [sys.executable, "-c", prefix + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def open_up(path: Path) -> None:
    """Lets other users reach a folder below the test's own, but not write to it."""
    for folder in (path, *path.rglob("*")):
        folder.chmod(0o555 if folder.is_dir() else 0o444)
    for parent in path.parents:
        if parent.owner() == Path.home().owner() and parent != Path("/") and not parent.stat().st_mode & 0o5:
            parent.chmod(parent.stat().st_mode | 0o055)


READ = "index = Index.open(Home(Path(sys.argv[1]), 'test-log')); print(index.size, len(index.segments()))"


@pytest.fixture
def readonly(place: Place) -> Place:
    append(place, *one_of_each(place.home.objects))
    open_up(place.home.path)
    return place


@on_file
def test_a_home_nobody_may_write_is_read(readonly: Place) -> None:
    done = as_nobody(READ, readonly.home.path)
    assert (done.stdout, done.stderr) == ("7 1\n", "")


@on_file
def test_a_disk_without_locks_is_read_as_it_is(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    append(place, *one_of_each(place.home.objects))
    opened: list[str] = []
    connect = sqlite3.connect

    def refuse_locks(name: str, **options: object) -> sqlite3.Connection:
        opened.append(name.partition("?")[2])
        if "immutable" not in name:
            name = (place.home.path / "nowhere" / "x").as_uri() + "?mode=ro"
        return connect(name, **options)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(sqlite3, "connect", refuse_locks)
    with Index.open(place.home) as index:
        assert len(index.segments()) == 1
    assert opened[-1] == "mode=ro&immutable=1"


def hot_journal(place: Place) -> None:
    """Leaves the catalog as a writer does that was killed while it committed."""
    copy = place.home.path / "copy.sqlite"
    shutil.copy(place.home.catalog, copy)
    connection = sqlite3.connect(copy, isolation_level=None)
    connection.execute("PRAGMA cache_size=1")
    connection.execute("PRAGMA cache_spill=1")
    connection.execute("BEGIN IMMEDIATE")
    for i in range(500):
        row = (i + 10, f"half-{i}" * 9)
        connection.execute("INSERT INTO acquisition (event, id, kind) VALUES (?, ?, 'transport')", row)
    shutil.copy(copy, place.home.catalog)
    shutil.copy(copy.with_name("copy.sqlite-journal"), place.home.path / "catalog.sqlite-journal")
    connection.execute("ROLLBACK")
    connection.close()
    copy.unlink()


@on_file
def test_what_a_dead_writer_left_is_rolled_back_by_a_reader(place: Place) -> None:
    append(place, *one_of_each(place.home.objects))
    hot_journal(place)
    with Index.open(place.home) as index:
        assert [row.id for row in index.acquisitions()] == ["run-1"]
        assert index.size == 7
    assert not (place.home.path / "catalog.sqlite-journal").exists()


@on_file
def test_and_named_where_nobody_may_write(place: Place) -> None:
    append(place, *one_of_each(place.home.objects))
    hot_journal(place)
    open_up(place.home.path)
    code = (
        "from contracts.errors import StorageError\n"
        "try:\n    Index.open(Home(Path(sys.argv[1]), 'test-log'))\n"
        "except StorageError as error:\n    print(error.code, error)"
    )
    done = as_nobody(code, place.home.path)
    assert done.stdout.startswith("read-only "), done.stderr
    assert "ledger repair" in done.stdout


def test_no_catalog(place: Place) -> None:
    lose_catalog(place)
    with pytest.raises(StorageError, match="ledger rebuild") as caught:
        Index.open(place.home)
    assert caught.value.code == "missing-file"
    with pytest.raises(StorageError, match="ledger rebuild"):
        append(place)
    with pytest.raises(StorageError):
        Index.open(place.home)


@on_file
@pytest.mark.parametrize("content", [b"", b"not a database" * 100, b"SQLite format 3\0" + bytes(5000)])
def test_not_a_catalog(place: Place, content: bytes) -> None:
    place.home.catalog.write_bytes(content)
    for use in (lambda: Index.open(place.home), lambda: append(place)):
        with pytest.raises(TamperError, match="ledger rebuild") as caught:
            use()
        assert caught.value.kind == "catalog"


def test_a_newer_catalog_is_not_guessed_at(place: Place) -> None:
    by_hand(place, "UPDATE alembic_version SET version_num = '0999'", drop=False)
    for use in (lambda: Index.open(place.home), lambda: append(place)):
        with pytest.raises(StorageError, match="newer version of this program") as caught:
            use()
        assert (caught.value.code, caught.value.exit_code) == ("newer-catalog", 3)


def test_an_older_catalog_is_migrated_by_a_writer(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    by_hand(place, "UPDATE alembic_version SET version_num = '0000'", drop=False)
    for module in (catalog, catalog_file):
        monkeypatch.setattr(module, "REVISIONS", ("0000", LATEST))
    monkeypatch.setattr(
        "migrations.runner.upgrade",
        lambda *_: by_hand(place, f"UPDATE alembic_version SET version_num = '{LATEST}'", drop=False),
    )
    with pytest.raises(StorageError, match="ledger repair") as caught:
        Index.open(place.home)
    assert caught.value.code == "old-catalog"
    append(place, *one_of_each(place.home.objects))
    with Index.open(place.home) as index:
        assert index.size == 7


def test_reading_imports_nothing_heavy() -> None:
    heavy = {"sqlmodel", "sqlalchemy", "alembic", "pandera", "polars", "pyarrow", "numpy"}
    code = f"import sys, ledger.index, ledger.status; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
