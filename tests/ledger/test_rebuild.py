"""The catalog can be made again from the published log and the objects, to the row."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from contracts.errors import LedgerError, StorageError, TamperError, VerificationError
from ledger import durable, heads, log, pin, publish, tree
from ledger.events import AcquisitionEvent
from ledger.index import Index
from ledger.rebuild import _swap, prefix_roots, rebuild
from tests.cli.calls import called
from tests.ledger.homes import (
    CATALOGS,
    Place,
    chosen,
    files,
    lose_catalog,
    new_place,
    on_file,
    on_server_in_sweep,
    one_of_each,
    segment_event,
    stored,
)
from tests.ledger.test_index import hot_journal


@pytest.fixture(params=CATALOGS)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = new_place(tmp_path, chosen(request))
    log.commit(made.home, made.key, lambda t: one_of_each(t.objects))
    scope = tuple((None, f"run-{i}", 1) for i in range(4000))
    log.commit(made.home, made.key, lambda t: [segment_event(t.objects, "long", scope)])
    return made


def test_every_row_comes_back(place: Place) -> None:
    before = stored(place)
    lose_catalog(place)
    result = rebuild(place.home)
    assert (result.size, result.heads, result.kept, result.left_out) == (8, 3, None, ())
    assert stored(place) == before
    with Index.open(place.home) as index:
        assert heads.check(place.home, index).row.root == result.root
        assert index.wrong_guards() == ()
    log.commit(place.home, place.key, lambda _: [AcquisitionEvent("b", "transport")])


@on_file
def test_the_old_catalog_is_kept_aside(place: Place) -> None:
    before = place.home.catalog.read_bytes()
    first, second = rebuild(place.home), rebuild(place.home)
    assert first.kept == place.home.path / "catalog.sqlite.old-1"
    assert second.kept == place.home.path / "catalog.sqlite.old-2"
    assert first.kept.read_bytes() == before
    assert {path.name for path in place.home.path.iterdir()} == {
        "catalog.sqlite", "catalog.sqlite.old-1", "catalog.sqlite.old-2", "ledger.toml", "objects",
        "writer.lock", "catalog.seal",
    }  # fmt: skip


@on_file
@pytest.mark.parametrize("content", [b"", b"garbage" * 3000])
def test_a_damaged_catalog_is_replaced(place: Place, content: bytes) -> None:
    before = stored(place)
    place.home.catalog.write_bytes(content)
    rebuild(place.home)
    assert stored(place) == before


@on_file
def test_a_folder_in_the_catalogs_place_is_told_by_every_command(place: Place) -> None:
    before = stored(place)
    place.home.catalog.unlink()
    place.home.catalog.mkdir()
    for words in (["status"], ["log"], ["verify"], ["repair"], ["rebuild"], ["acquisition", "list"]):
        done = called("--home", str(place.home.path), *words)
        assert done.code in {3, 4}, done
        said = " ".join((done.out + done.err).split())
        assert "a folder stands where the catalog was" in said, words
        assert "move it away" in said, words
    place.home.catalog.rmdir()
    rebuild(place.home)
    assert stored(place) == before


@on_file
def test_an_old_journal_never_meets_the_new_catalog(place: Place) -> None:
    before = stored(place)
    hot_journal(place)
    place.home.catalog.write_bytes(b"garbage" * 3000)
    rebuild(place.home)
    assert stored(place) == before
    assert not place.home.catalog.with_name("catalog.sqlite-journal").exists()


def test_a_journal_moves_with_its_catalog(tmp_path: Path) -> None:
    old, new, journal = tmp_path / "old", tmp_path / "new", tmp_path / "old-journal"
    for first in (True, False):
        new.write_bytes(b"new")
        journal.write_bytes(b"journal")
        if first:
            old.write_bytes(b"old")
        else:
            old.unlink()
        kept = _swap(old, new)
        assert old.read_bytes() == b"new"
        assert not journal.exists()
        assert (kept is not None) == first
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "old": b"new", "old.old-1": b"old", "old.old-1-journal": b"journal"
    }  # fmt: skip


def test_events_that_were_not_published_are_not_lost(place: Place) -> None:
    class StopError(Exception):
        pass

    def stop(name: str) -> None:
        if name == "committed":
            raise StopError

    durable.hook = stop
    with pytest.raises(StopError):
        log.commit(place.home, place.key, lambda _: [AcquisitionEvent("b", "transport")])
    durable.hook = None
    with pytest.raises(StorageError, match="ledger repair") as caught:
        rebuild(place.home)
    assert caught.value.code == "unpublished"
    lose_catalog(place)
    assert rebuild(place.home).size == 8


@on_server_in_sweep
@pytest.mark.parametrize("name", ["log/checkpoint", "log/tile/entries/000.p/8"])
def test_a_log_that_does_not_verify_makes_no_catalog(place: Place, name: str) -> None:
    path = place.home.objects.path(name)
    data = path.read_bytes()
    for at in range(0, len(data), len(data) // 7):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        before = files(place.home.path)
        with pytest.raises(VerificationError):
            rebuild(place.home)
        assert files(place.home.path) == before
    path.unlink()
    with pytest.raises(LedgerError):
        rebuild(place.home)


def test_a_shortened_log_makes_no_catalog(place: Place, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(place.home.objects.root / "log", old)
    log.commit(place.home, place.key, lambda _: [AcquisitionEvent("b", "transport")])
    shutil.rmtree(place.home.objects.root / "log")
    shutil.copytree(old, place.home.objects.root / "log")
    lose_catalog(place)
    with pytest.raises(TamperError) as caught:
        rebuild(place.home)
    assert caught.value.kind == "rolled-back-head"
    with pytest.raises(StorageError):
        Index.open(place.home)


@on_server_in_sweep
@pytest.mark.parametrize("folder", ["lists", "refusals"])
def test_a_changed_list_makes_no_catalog(place: Place, folder: str) -> None:
    for name in place.home.objects.list(folder):
        if name.endswith(".json"):
            path = place.home.objects.path(name)
            path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    with pytest.raises(TamperError) as caught:
        rebuild(place.home)
    assert caught.value.kind == "data"


@on_server_in_sweep
def test_a_head_that_is_not_one_is_left_out_and_named(place: Place) -> None:
    objects = place.home.objects
    objects.path("log/heads/7").write_bytes(objects.read("log/heads/7").replace(b"\n7\n", b"\n6\n"))
    objects.publish("log/heads/5", objects.read("log/heads/1"))
    result = rebuild(place.home)
    assert result.left_out == ("log/heads/7",)
    with Index.open(place.home) as index:
        assert index.heads() == (1, 8)


def test_without_a_pin_somebody_vouches(place: Place) -> None:
    pin.config_file("test-log", ".pin").unlink()
    with pytest.raises(VerificationError) as caught:
        rebuild(place.home)
    assert caught.value.code == "no-pin"
    rebuild(place.home, key=place.key.public)
    assert pin.load("test-log").head.size == 8  # type: ignore[union-attr]


@on_server_in_sweep
def test_nothing_published(place: Place) -> None:
    place.home.objects.remove(publish.CHECKPOINT)
    with pytest.raises(StorageError):
        rebuild(place.home)


def test_prefix_roots_are_the_roots() -> None:
    leaves = [hashlib.sha256(bytes([i])).digest() for i in range(100)]
    assert prefix_roots(leaves, range(1, 101)) == {n: tree.root(leaves[:n]) for n in range(1, 101)}
    assert prefix_roots(leaves, [0, 7, 101]) == {7: tree.root(leaves[:7])}
