"""Verification against what was signed before: rolled-back heads, the published log, pins and who vouches."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.errors import VerificationError
from ledger import durable, log, pin, repair, seal
from ledger.event_types import AcquisitionEvent
from ledger.home import Home
from ledger.index import Index
from ledger.keys import SigningKey, key_id
from ledger.notes import TreeHead, sign_head
from ledger.tree import leaf_hash, root
from ledger.verify import verify
from tests.ledger.homes import Place
from tests.ledger.verified_homes import by_hand, kinds, made, place, stored, unsealed

__all__ = ["made", "place"]  # fixtures


# Rolled back, cut, or grown without a signature


def test_a_restored_backup_is_a_rolled_back_head(
    made: tuple[Place, Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, older = made
    (tmp_path / "old").mkdir()
    backup = older.copy(tmp_path / "old")
    shutil.copytree(place.config, tmp_path / "config")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    report = verify(backup.home)
    assert report.findings[0].kind == "rolled-back-head"
    assert report.findings[0].where == str(pin.config_file("test-log", ".pin"))
    assert report.head is None
    assert report.pin == "left"
    known = pin.load("test-log")
    assert known is not None
    assert known.head.size == 8


def cut_tail(place: Place, size: int) -> None:
    for table in (
        "segment",
        "segment_scope",
        "refusal",
        "refused_side",
        "record",
        "revocation",
        "acquisition",
        "channel",
    ):
        by_hand(place, f"DELETE FROM {table} WHERE event >= {size}")
    by_hand(place, f"DELETE FROM event WHERE leaf_index >= {size}")
    by_hand(place, f"DELETE FROM head WHERE size > {size}")


def test_a_catalog_behind_the_published_log_is_a_rolled_back_head(place: Place) -> None:
    with Index.open(place.home) as index:
        size = index.heads()[-2]
        note = index.head(size).note
    cut_tail(place, size)
    known = pin.load("test-log")
    assert known is not None
    pin.store(replace(known, note=note))  # even to somebody whose pin is as old
    report = verify(place.home)
    assert "rolled-back-head" in kinds(report)
    assert {"objects/log/checkpoint", "objects/log/heads/8"} <= {
        p.where for p in report.findings if p.kind == "rolled-back-head"
    }


def test_events_behind_the_signed_head_are_an_unsigned_tail(place: Place) -> None:
    data = b'{"id":"x","kind":"transport","time":"2026-01-01T00:00:00Z","type":"acquisition","v":1}'
    statement = "INSERT INTO event VALUES (8, ?, 'acquisition', '2026-01-01T00:00:00Z', ?)"
    by_hand(unsealed(place), statement, leaf_hash(data), data, drop=False)
    (problem,) = verify(place.home).findings
    assert (problem.kind, problem.entry) == ("unsigned-tail", "event 8")


def test_a_shorter_log_signed_anew_by_a_stolen_key_contradicts_the_published_one(place: Place) -> None:
    with Index.open(place.home) as index:
        leaves = index.leaves(6)
    cut_tail(place, 6)
    head = TreeHead("test-log", 6, root(leaves))
    by_hand(place, "DELETE FROM head WHERE size = 6")
    by_hand(place, "INSERT INTO head VALUES (6, ?, ?)", head.root, sign_head(head, place.key))
    assert "rolled-back-head" in kinds(verify(place.home))


# The published log


def test_what_a_crash_left_unpublished_is_a_notice_until_repaired(place: Place) -> None:
    def die(name: str) -> None:
        if name == "committed":
            raise KeyboardInterrupt

    durable.hook = die
    try:
        with pytest.raises(KeyboardInterrupt):
            log.commit(place.home, place.key, lambda _: [AcquisitionEvent("main-2", "transport")])
    finally:
        durable.hook = None
    report = verify(place.home)
    assert report.ok
    assert any("1 signed events are not published yet; run `ledger repair`" in n for n in report.notices)
    assert place.cluster or any("catalog.seal is of an older head" in n for n in report.notices)
    assert report.pin == "moved"
    repair.repair(place.home)
    seal.write(place.home)
    assert verify(place.home).notices == ()


def test_another_history_among_the_published_heads_is_told(place: Place) -> None:
    heads = place.home.path / "objects" / "log" / "heads"
    forked = TreeHead("test-log", 5, leaf_hash(b"another history"))
    (heads / "5").write_bytes(sign_head(forked, place.key))
    longer = TreeHead("test-log", 9, leaf_hash(b"longer"))
    (heads / "9").write_bytes(sign_head(longer, place.key))
    (heads / "4").write_bytes(sign_head(forked, SigningKey(b"9" * 32)))
    found = {(p.where.rpartition("/")[2], p.kind) for p in verify(place.home).findings}
    assert found == {("5", "tree"), ("9", "rolled-back-head"), ("4", "signature")}


def test_a_checkpoint_of_another_history_is_a_tree_problem(place: Place) -> None:
    forked = TreeHead("test-log", 8, leaf_hash(b"another history"))
    (place.home.path / "objects/log/checkpoint").write_bytes(sign_head(forked, place.key))
    (problem,) = verify(place.home).findings
    assert (problem.kind, problem.where) == ("tree", "objects/log/checkpoint")


def test_tiles_beyond_the_log_are_listed(place: Place) -> None:
    for name in ("tile/0/000.p/9", "tile/0/001", "tile/5/000.p/1"):
        path = place.home.path / "objects/log" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(32))
    report = verify(place.home)
    assert report.ok
    assert len([n for n in report.notices if "is not a file of this log" in n]) == 3


# Whom to trust


def clone(place: Place, tmp_path: Path) -> Home:
    """The home on a machine that never saw it."""
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path / "other-machine")
    return place.home


def test_without_a_pin_somebody_must_vouch(place: Place, tmp_path: Path) -> None:
    home = clone(place, tmp_path)
    with pytest.raises(VerificationError) as caught:
        verify(home)
    assert caught.value.code == "no-pin"
    assert "--trust-first" in str(caught.value)
    wrong = verify(home, key=SigningKey(b"9" * 32).public)
    assert (wrong.findings[0].kind, wrong.pin) == ("signature", "left")
    assert (wrong.findings[0].where, wrong.findings[0].entry) == ("--key", None)
    given, log_key = key_id(SigningKey(b"9" * 32).public)[:16], key_id(place.key.public)[:16]
    assert f"expected heads signed by {given}, got heads signed by {log_key}" in wrong.findings[0].message
    assert pin.load("test-log") is None
    assert verify(home, key=place.key.public).pin == "created"
    assert verify(home).pin == "kept"


def test_trusting_first_pins_what_was_seen(place: Place, tmp_path: Path) -> None:
    home = clone(place, tmp_path)
    assert verify(home, trust_first=True).pin == "created"
    assert verify(home).ok
    assert verify(home, key=SigningKey(b"9" * 32).public).findings[0].kind == "signature"


def test_a_pin_behind_moves_and_stays_when_anything_is_wrong(place: Place) -> None:
    with Index.open(place.home) as index:
        note = index.head(3).note
    known = pin.load("test-log")
    assert known is not None
    pin.store(replace(known, note=note))
    (path,) = stored(place.home, "objects/records/*")
    data = path.read_bytes()
    path.write_bytes(b"x")
    assert verify(place.home).pin == "left"
    path.write_bytes(data)
    assert verify(place.home).pin == "moved"
    assert pin.load("test-log") == known


def test_a_damaged_pin_is_named(place: Place) -> None:
    path = pin.config_file("test-log", ".pin")
    path.write_bytes(path.read_bytes()[:-1])
    (problem,) = verify(place.home).findings
    assert (problem.kind, problem.where) == ("signature", str(path))


def test_a_pin_that_cannot_be_written_is_a_notice(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(durable, "write_all", fail)
    report = verify(clone(place, tmp_path), trust_first=True)
    assert report.ok
    assert report.pin == "left"
    assert "the pin could not be written" in report.notices[0]
