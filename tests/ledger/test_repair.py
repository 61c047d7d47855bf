"""Repair finishes, clears and says so; it never touches a log that does not verify."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from contracts.digest import blake3_digest
from contracts.errors import StorageError, TamperError, VerificationError
from ledger import heads, lock, log, pin, publish
from ledger import object_names as names
from ledger import underway as underway_module
from ledger.events import AcquisitionEvent
from ledger.index import Index
from ledger.ingest import ingest
from ledger.repair import Repair, repair
from ledger.underway import any_underway, underway
from ledger.verify import verify
from tests.ledger.homes import (
    CATALOGS,
    Place,
    backup,
    by_hand,
    chosen,
    files,
    new_place,
    on_server_in_sweep,
    one_of_each,
    segment_event,
)
from tests.ledger.score_files import place_with_channels, rows, write


@pytest.fixture(params=CATALOGS)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = new_place(tmp_path, chosen(request))
    log.commit(made.home, made.key, lambda t: one_of_each(t.objects))
    return made


def done(result: Repair) -> list[tuple[str, str]]:
    return [(action.what, action.name) for action in result.actions]


def test_nothing_to_do(place: Place) -> None:
    before = files(place.home.path)
    assert repair(place.home, grace=0) == Repair((), (), ())
    assert files(place.home.path) == before


@on_server_in_sweep
def test_objects_that_no_event_names_are_removed_once_they_are_old(place: Place) -> None:
    kept = set(place.home.objects.list())
    segment_event(place.home.objects, "orphan")
    orphans = set(place.home.objects.list()) - kept
    staged = place.home.objects.stage(".parquet")
    staged.write_bytes(b"half")
    result = repair(place.home)
    assert result.actions == ()
    assert set(result.young) == orphans | {f"staging/{staged.name}"}
    for path in [staged, *(place.home.objects.path(name) for name in orphans)]:
        os.utime(path, (1, 1))
    result = repair(place.home)
    assert len(result.actions) == 4
    assert result.young == ()
    assert set(place.home.objects.list()) == kept
    assert repair(place.home) == Repair((), (), ())


@on_server_in_sweep
def test_an_orphan_that_is_written_again_is_young_again(place: Place) -> None:
    data = b"of a call that did not end"
    name = names.segment_name(blake3_digest(data))
    place.home.objects.put(name, data)
    os.utime(place.home.objects.path(name), (1, 1))
    place.home.objects.put(name, data)
    assert repair(place.home).young == (name,)


@on_server_in_sweep
def test_what_others_left_is_listed_and_left(place: Place) -> None:
    stray = place.home.objects.root / "segments" / "notes.txt"
    stray.write_text("mine")
    assert repair(place.home, grace=0) == Repair((), (), ("segments/notes.txt",))
    assert stray.exists()


@on_server_in_sweep
@pytest.mark.parametrize(
    "name", ["log/tile/0/000.p/7", "log/tile/entries/000.p/7", "log/heads/1", "log/checkpoint"]
)
@pytest.mark.parametrize("damage", ["flip", "remove"])
def test_published_files_are_written_again(place: Place, name: str, damage: str) -> None:
    path = place.home.objects.path(name)
    before = path.read_bytes()
    if damage == "flip":
        path.write_bytes(before[:-2] + bytes([before[-2] ^ 1]) + before[-1:])
    else:
        path.unlink()
    result = repair(place.home)
    assert ("published", name) in done(result)
    assert path.read_bytes() == before
    assert repair(place.home) == Repair((), (), ())


def test_a_pin_moves_forward_and_is_never_invented(place: Place) -> None:
    old = pin.load("test-log")
    log.commit(place.home, place.key, lambda _: [AcquisitionEvent("b", "transport")])
    new = pin.load("test-log")
    assert old is not None
    assert new is not None
    pin.store(old)
    assert done(repair(place.home)) == [("moved the pin to the head", "size 8")]
    assert pin.load("test-log") == new
    pin.config_file("test-log", ".pin").unlink()
    with pytest.raises(VerificationError) as caught:
        repair(place.home)
    assert caught.value.code == "no-pin"
    assert done(repair(place.home, key=place.key.public)) == [("moved the pin to the head", "size 8")]


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("DELETE FROM head WHERE size = 7", "unsigned-tail"),
        ("UPDATE event SET leaf_hash = zeroblob(32) WHERE leaf_index = 3", "tree"),
        ("UPDATE event SET data = x'7b7d' WHERE leaf_index = 3", "catalog"),
    ],
)
def test_a_log_that_does_not_verify_is_left_alone(place: Place, statement: str, kind: str) -> None:
    by_hand(place, statement)
    for name in list(place.home.objects.list("segments")):
        os.utime(place.home.objects.path(name), (1, 1))
    before = files(place.home.path)
    with pytest.raises(TamperError) as caught:
        repair(place.home, grace=0)
    assert caught.value.kind == kind
    assert files(place.home.path) == before


def test_a_rolled_back_home_is_left_alone(place: Place, tmp_path: Path) -> None:
    backup = place.copy(tmp_path / "backup")
    log.commit(place.home, place.key, lambda _: [AcquisitionEvent("b", "transport")])
    before = files(backup.home.path)
    with pytest.raises(TamperError) as caught:
        repair(backup.home)
    assert caught.value.kind == "rolled-back-head"
    assert files(backup.home.path) == before


def test_a_published_log_that_is_further_is_left_alone(place: Place) -> None:
    restore = backup(place)
    log.commit(place.home, place.key, lambda _: [AcquisitionEvent("b", "transport")])
    restore()
    pin.config_file("test-log", ".pin").unlink()
    with pytest.raises(TamperError) as caught:
        repair(place.home, trust_first=True)
    assert caught.value.where == publish.CHECKPOINT
    assert pin.load("test-log") is None


def test_a_writer_at_work_is_not_disturbed(place: Place) -> None:
    with lock.hold(place.home.path / log.LOCK_FILE), pytest.raises(StorageError) as caught:
        repair(place.home, wait=0.1)
    assert caught.value.code == "locked"
    with Index.open(place.home) as index:
        heads.check(place.home, index)


def test_an_older_catalog_is_migrated_and_sealed_again(place: Place) -> None:
    for table in ("signing_key", "policy", "attestation", "attested_file", "plan"):
        by_hand(place, f"DROP TABLE {table}", drop=False)
    by_hand(place, "ALTER TABLE acquisition DROP COLUMN supersedes", drop=False)
    by_hand(place, "UPDATE alembic_version SET version_num = '0001'", drop=False)
    with pytest.raises(StorageError, match="older form"):
        Index.open(place.home)
    assert done(repair(place.home)) == [("migrated the catalog", place.home.catalog_name)]
    assert not [p for p in verify(place.home).findings if p.kind == "catalog"]
    assert done(repair(place.home)) == []


def test_a_call_under_way_keeps_its_files_however_long_it_takes(place: Place) -> None:
    """Their age says nothing while its process lives; what it left is cleared once it is over."""
    staging = place.home.objects.staging()
    segment_event(place.home.objects, "not yet in the log")
    kept = {name for name in place.home.objects.list() if name.startswith("segments/")}
    with underway(staging):
        staged = place.home.objects.stage(".parquet")
        staged.write_bytes(b"half")
        for path in (*staging.iterdir(), *(place.home.objects.path(name) for name in kept)):
            os.utime(path, (1, 1))
        result = repair(place.home)
        assert result.actions == ()
        assert f"staging/{staged.name}" in result.young
    assert list(staging.iterdir()) == [staged]
    assert ("removed a staged file", f"staging/{staged.name}") in done(repair(place.home))


def test_the_mark_of_a_call_that_was_killed_keeps_nothing(place: Place) -> None:
    staging = place.home.objects.staging()
    code = (
        "import sys, time; from pathlib import Path; from ledger.underway import underway\n"
        "with underway(Path(sys.argv[1])):\n    print('begun', flush=True)\n    time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(staging)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        for path in staging.iterdir():
            os.utime(path, (1, 1))
        assert len(repair(place.home).young) == 1
        process.kill()
    (mark,) = staging.iterdir()
    assert done(repair(place.home)) == [("removed a staged file", f"staging/{mark.name}")]


def test_where_nothing_can_be_locked_files_are_kept_young(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    monkeypatch.setattr(underway_module, "RENEWED", 0.01)
    staging = place.home.objects.staging()
    with underway(staging):
        staged, other = place.home.objects.stage(), staging / "1-of-another-process"
        for path in (staged, other):
            path.write_bytes(b"half")
            os.utime(path, (1, 1))
        until = time.monotonic() + 10
        while staged.stat().st_mtime == 1 and time.monotonic() < until:
            time.sleep(0.01)
        assert (staged.stat().st_mtime > 1, other.stat().st_mtime) == (True, 1)


def test_an_ingest_is_under_way_from_its_first_byte_to_its_last(tmp_path: Path) -> None:
    place = place_with_channels(tmp_path)
    seen = []

    def look(phase: str, _done: int, _total: int) -> None:
        seen.append(any_underway(place.home.staged()))

    for dry_run in (True, False):
        ingest(
            place.home, [write(tmp_path / "a.parquet", rows())], key=place.key, dry_run=dry_run, progress=look
        )
        assert set(seen) == {not dry_run}
        assert list(place.home.staged()) == []
        seen.clear()
