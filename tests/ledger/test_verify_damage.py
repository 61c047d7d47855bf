"""Verification of a damaged home: bytes flipped, files gone or replaced, the catalog edited by hand."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from contracts.errors import LedgerError, StorageError
from ledger import seal
from ledger.home import init, read
from ledger.index import Index
from ledger.keys import SigningKey
from ledger.notes import TreeHead, sign_head
from ledger.tree import leaf_hash, root
from ledger.verify import verify
from migrations.append_only import TABLES
from tests.ledger import homes
from tests.ledger.homes import Place, put
from tests.ledger.verified_homes import by_hand, kinds, made, named, on_file, place, stored, unsealed

__all__ = ["made", "place"]  # fixtures


# A byte flipped in any stored file


def spots(size: int) -> list[int]:
    return sorted({0, size // 3, size // 2, size - 1})


def test_a_flipped_byte_in_any_object_or_log_file_is_found_and_named(place: Place) -> None:
    paths = [path for path in stored(place.home, "objects/**/*") if path.is_file()]
    assert len(paths) == 18
    for path in paths:
        data = path.read_bytes()
        for spot in spots(len(data)):
            path.write_bytes(data[:spot] + bytes([data[spot] ^ 1 << spot % 8]) + data[spot + 1 :])
            report = verify(place.home)
            first = report.findings[0]
            assert first.where == path.relative_to(place.home.path).as_posix()
            kind = {"log": {"signature", "tree"}, "records": {"record"}}.get(
                path.relative_to(place.home.path).parts[1], {"data"}
            )
            assert first.kind in kind
            if path.suffix == ".parquet" and spot not in (0, len(data) - 1):
                assert first.entry is not None
                assert ":" in first.entry or first.entry.startswith("event")
        path.write_bytes(data)
    assert verify(place.home).ok


def test_the_first_damaged_entry_of_a_segment_is_named(place: Place) -> None:
    (path,) = stored(place.home, "objects/segments/*.parquet")
    data = bytearray(path.read_bytes())
    data[4 + len(data) // 8] ^= 1
    path.write_bytes(bytes(data))
    with Index.open(place.home) as index:
        (segment,) = index.segments()
    (problem,) = verify(place.home).findings
    assert problem.entry is not None
    assert problem.entry.startswith(segment.root.removeprefix("sha256:")[:16] + ":")


@on_file
def test_a_flipped_byte_anywhere_in_the_catalog_is_found(place: Place) -> None:
    path = place.home.catalog
    data = path.read_bytes()
    for spot in [*range(0, len(data), len(data) // 60), len(data) - 1]:
        path.write_bytes(data[:spot] + bytes([data[spot] ^ 1 << spot % 8]) + data[spot + 1 :])
        report = verify(place.home)
        assert report.findings[0].where == "catalog.sqlite"
        assert kinds(report) <= {"catalog", "signature", "tree", "unsigned-tail", "rolled-back-head"}


@on_file
def test_a_flipped_byte_in_what_the_catalog_says_is_found_without_its_seal(place: Place) -> None:
    path = unsealed(place).home.catalog
    data = path.read_bytes()
    for text in (b"the server was swapped", b"scores.parquet", b"main-1", b"score it", b"test-log\n"):
        at = -1
        while (at := data.find(text, at + 1)) >= 0:
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            report = verify(place.home)
            assert not report.ok, (text, at)
            assert report.findings[0].where == "catalog.sqlite"


def test_flipped_settings_never_pass(place: Place) -> None:
    path = place.home.path / "ledger.toml"
    data = path.read_bytes()
    for spot in range(len(data)):
        path.write_bytes(data[:spot] + bytes([data[spot] ^ 1 << spot % 8]) + data[spot + 1 :])
        try:
            report = verify(read(place.home.path))
        except LedgerError:
            continue
        assert not report.ok, spot


@on_file
def test_a_flipped_seal_is_found(place: Place) -> None:
    path = place.home.path / seal.SEAL
    data = path.read_bytes()
    for spot in [*range(0, len(data), 9), data.index(b"size") + 6]:
        path.write_bytes(data[:spot] + bytes([data[spot] ^ 1 << spot % 8]) + data[spot + 1 :])
        assert kinds(verify(place.home)) == {"catalog"}


# Gone, replaced, or not ours


def test_any_deleted_object_or_log_file_is_named(place: Place) -> None:
    for path in [path for path in stored(place.home, "objects/**/*") if path.is_file()]:
        name = path.relative_to(place.home.path).as_posix()
        data = path.read_bytes()
        path.unlink()
        report = verify(place.home)
        stale = "/log/tile/" in name and not name.endswith(("/8", "/000"))
        assert (named(report) == set()) if stale else (report.findings[0].where == name), name
        path.write_bytes(data)


def test_a_missing_catalog_cannot_be_looked_at(place: Place) -> None:
    homes.lose_catalog(place)
    with pytest.raises(StorageError, match="the catalog is missing"):
        verify(place.home)


def test_a_symbolic_link_is_no_object_even_to_the_right_bytes(place: Place) -> None:
    for pattern in ("objects/segments/*.parquet", "objects/records/*.json", "objects/log/checkpoint"):
        path = stored(place.home, pattern)[0]
        shutil.move(path, place.home.path.parent / "moved")
        path.symlink_to(place.home.path.parent / "moved")
        report = verify(place.home)
        assert any("symbolic link" in problem.message for problem in report.findings), pattern
        assert path.relative_to(place.home.path).as_posix() in named(report)
        path.unlink()
        shutil.move(place.home.path.parent / "moved", path)


def test_strays_are_listed_and_not_fatal(place: Place) -> None:
    home = place.home
    (home.path / "notes.txt").write_text("mine")
    (home.path / "catalog.sqlite.old-1").write_bytes(b"")
    (home.path / "catalog.sqlite.old-1.bak").write_bytes(b"")
    (home.path / "objects" / "segments" / ".DS_Store").write_text("")
    put(home.objects, lambda digest: f"lists/{digest.removeprefix('blake3:')}.json", b"[]")
    (home.objects.staging() / "1-half").write_bytes(b"half")
    report = verify(home)
    assert report.ok
    for part in (
        "notes.txt is no file of this ledger",
        "catalog.sqlite.old-1 was kept by `ledger rebuild`; delete it when you like",
        "catalog.sqlite.old-1.bak is no file of this ledger",
        "objects/segments/.DS_Store is no file",
        "is named by no event; `ledger repair` removes it after an hour",
        "1 unfinished files in objects/staging; `ledger repair` removes them after an hour",
    ):
        assert any(part in notice for notice in report.notices), part


# The catalog edited by hand


@pytest.mark.parametrize(
    ("statement", "entry"),
    [
        ("UPDATE channel SET name = 'other' WHERE event = 1", "channel 1"),
        ("UPDATE channel SET spec = replace(spec, '\"m\"', '\"n\"') WHERE event = 2", "channel 2"),
        ("UPDATE acquisition SET kind = 'jev'", "acquisition 3"),
        ("UPDATE segment SET rows = rows + 1", "segment 4"),
        ("UPDATE segment SET file = replace(file, 'a', 'b')", "segment 4"),
        ("UPDATE segment_scope SET rows = rows - 1 WHERE ordinal = 0", "segment_scope 4/0"),
        ("DELETE FROM segment_scope WHERE ordinal = 1", "segment_scope 4/1"),
        ("UPDATE refusal SET sides = 0", "refusal 5"),
        ("UPDATE refused_side SET trajectory_id = 'traj000' WHERE ordinal = 0", "refused_side 5/0"),
        ("DELETE FROM refused_side", "refused_side 5/0"),
        ("UPDATE record SET result = design", "record 6"),
        ("DELETE FROM revocation", "revocation 7"),
        ("UPDATE revocation SET target_id = 'main-2'", "revocation 7"),
        ("INSERT INTO revocation VALUES (6, 'acquisition', 'main-1', 'forged')", "revocation 6"),
        ("INSERT INTO revocation VALUES (99, 'acquisition', 'main-1', 'forged')", "revocation 99"),
        ("INSERT INTO acquisition (event, id, kind) VALUES (-5, 'ghost', 'transport')", "acquisition -5"),
        ("UPDATE event SET type = 'segment' WHERE leaf_index = 3", "event 3"),
        ("UPDATE event SET time = '2020-01-01T00:00:00Z' WHERE leaf_index = 3", "event 3"),
        ("UPDATE event SET data = x'00' WHERE leaf_index = 3", "event 3"),
        ("DELETE FROM head WHERE size = 3", "head of size 3"),
    ],
)
def test_every_row_changed_by_hand_is_named(place: Place, statement: str, entry: str) -> None:
    by_hand(unsealed(place), statement)
    report = verify(place.home)
    assert ("catalog", place.home.catalog_name, entry) in {
        (p.kind, p.where, p.entry) for p in report.findings
    }
    triggers = [p for p in report.findings if p.entry is not None and p.entry.startswith("trigger ")]
    assert len(triggers) == 3 * len(TABLES) + (0 if place.cluster is None else 3)
    assert report.error() is not None


def test_a_dropped_trigger_alone_is_found(place: Place) -> None:
    on = "" if place.cluster is None else " ON event"
    by_hand(unsealed(place), f"DROP TRIGGER event_no_update{on}", drop=False)
    (problem,) = verify(place.home).findings
    assert (problem.kind, problem.entry) == ("catalog", "trigger event_no_update")


def test_an_event_changed_with_its_leaf_is_named_by_what_was_published(place: Place) -> None:
    with Index.open(place.home) as index:
        event = next(index.events(3, 4))
    data = event.data.replace(b"main-1", b"main-2")
    by_hand(place, "UPDATE event SET data = ?, leaf_hash = ? WHERE leaf_index = 3", data, leaf_hash(data))
    report = verify(place.home)
    assert "tree" in kinds(report)
    assert ("catalog", "event 3") in {(p.kind, p.entry) for p in report.findings}


@pytest.mark.parametrize("size", [8, 3])
def test_a_head_signed_by_another_key_is_a_signature_problem(place: Place, size: int) -> None:
    with Index.open(place.home) as index:
        head = TreeHead("test-log", size, root(index.leaves(size)))
    by_hand(
        unsealed(place),
        "UPDATE head SET note = ? WHERE size = ?",
        sign_head(head, SigningKey(b"9" * 32)),
        size,
    )
    report = verify(place.home)
    assert ("signature", f"head of size {size}") in {(p.kind, p.entry) for p in report.findings}


def test_a_head_of_another_root_is_a_tree_problem(place: Place) -> None:
    head = TreeHead("test-log", 3, leaf_hash(b"another history"))
    by_hand(
        unsealed(place),
        "UPDATE head SET note = ?, root = ? WHERE size = 3",
        sign_head(head, place.key),
        head.root,
    )
    assert ("tree", "head of size 3") in {(p.kind, p.entry) for p in verify(place.home).findings}


def test_a_stored_head_that_its_note_does_not_state_is_a_catalog_problem(place: Place) -> None:
    by_hand(unsealed(place), "UPDATE head SET root = x'00' WHERE size = 3")
    assert ("catalog", "head of size 3") in {(p.kind, p.entry) for p in verify(place.home).findings}


def test_another_first_key_is_not_the_pinned_one(place: Place, tmp_path: Path) -> None:
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path / "elsewhere")
    other = init(tmp_path / "other" / ".ledger", origin="test-log")
    os.environ["XDG_CONFIG_HOME"] = str(place.config)
    report = verify(other)
    assert report.findings[0].kind == "signature"
    assert "another key" in report.findings[0].message
