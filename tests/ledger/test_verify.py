"""Verification: a sound home passes, and whatever is touched is found and named."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.canonical import canonical
from contracts.digest import sha256_digest
from contracts.errors import CannotAnswerError, LedgerError, StorageError, VerificationError
from ledger import durable, envelope, log, pin, repair, seal
from ledger.event_types import AcquisitionEvent, AuditEvent
from ledger.home import Home, init, read
from ledger.index import Index
from ledger.ingest import ingest
from ledger.keys import SigningKey, key_id
from ledger.notes import TreeHead, sign_head
from ledger.object_names import record_name
from ledger.problems import LISTED, Problems
from ledger.records import log_record
from ledger.revocations import revoke_acquisition
from ledger.statement import AUDIT, PAYLOAD_TYPE, Statement, Subject
from ledger.tree import leaf_hash, root
from ledger.verify import Report, verify
from migrations.append_only import TABLES
from tests.ledger import homes
from tests.ledger.homes import FILE, SERVER, Place, chosen, files, put
from tests.ledger.score_files import place_with_channels, rows, without, write

RESULT = {"design": {"seed": 1}, "n": 3}
STATEMENT = Statement(
    (Subject("tree-head", {"sha256": "00" * 32}),),
    AUDIT,
    {"audit": "transport", "schema": "s", "result": RESULT, "environment": {}},
)


on_file = pytest.mark.parametrize("made", [FILE], indirect=True, scope="module")


@pytest.fixture(scope="module", params=[FILE, pytest.param(SERVER, marks=pytest.mark.sweep)])
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Place, Place]]:
    """A home with entries, a refusal, a record and a revocation, and the same home before the last two."""
    before = os.environ.get("XDG_CONFIG_HOME")
    folder = tmp_path_factory.mktemp("verify")
    place = place_with_channels(folder, chosen(request))
    scores = without(rows(), trajectory_id="traj003", step=1, endpoint="after", layout=1, candidate="B")
    ingest(place.home, [write(folder / "scores.parquet", scores)], key=place.key)
    (folder / "older").mkdir()
    older = place.copy(folder / "older")
    log_record(place.home, place.key, STATEMENT)
    revoke_acquisition(place.home, place.key, "main-1", "the server was swapped")
    seal.write(place.home)
    yield place, older
    if before is not None:
        os.environ["XDG_CONFIG_HOME"] = before


@pytest.fixture
def place(made: tuple[Place, Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A copy to damage."""
    copy = made[0].copy(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(copy.config))
    yield copy
    if copy.cluster is not None:
        copy.cluster.drop(copy.database)


def stored(home: Home, pattern: str) -> list[Path]:
    found = sorted(home.path.glob(pattern))
    assert found, pattern
    return found


def kinds(report: Report) -> set[str]:
    return {problem.kind for problem in report.findings}


def named(report: Report) -> set[str]:
    return {problem.where for problem in report.findings}


def unsealed(place: Place) -> Place:
    """Without its seal, so that only what the catalog says can give a change away."""
    (place.home.path / seal.SEAL).unlink(missing_ok=place.cluster is not None)
    return place


def by_hand(place: Place, statement: str, *values: object, drop: bool = True) -> None:
    """Changes the catalog as somebody with a database shell would, without its triggers when `drop`."""
    if place.cluster is not None:
        homes.by_hand(place, statement, *values, drop=drop)
        return
    with closing(sqlite3.connect(place.home.catalog, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in names if drop else []:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement, values)
        connection.execute("COMMIT")


# Sound


def test_a_sound_home_passes_quick_and_full(place: Place) -> None:
    phases: list[tuple[str, int, int | None]] = []
    for full in (False, True):
        report = verify(
            place.home,
            full=full,
            recompute=lambda payload: canonical(RESULT),
            progress=lambda *at: phases.append(at),
        )
        assert report.findings == ()
        assert report.notices == ()
        assert report.ok
        assert report.error() is None
        assert report.pin == "kept"
        assert report.head is not None
        assert report.head.size == report.counts["events"] == 8
    assert report.counts["segments"] == 1
    assert report.counts["entries"] == 4 * 2 * 2 * 12 - 24
    assert report.counts["records"] == report.counts["recomputed"] == 1
    assert {phase for phase, *_ in phases} == {"events", "published log", "objects", "rows", "audits"}
    assert all(done <= (total or 0) for _, done, total in phases)


def test_the_quick_form_imports_nothing_heavy(place: Place) -> None:
    heavy = ("sqlmodel", "sqlalchemy", "pandera", "polars", "pyarrow", "numpy", "alembic", "typer", "rich")
    code = (
        "import sys; from pathlib import Path;"
        "from ledger.home import read; from ledger.verify import verify;"
        f"assert verify(read(Path({str(place.home.path)!r}))).ok;"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


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


# Records


def forged_record(
    place: Place, key: SigningKey, event: dict[str, str] | None = None, payload_type: str = PAYLOAD_TYPE
) -> Report:
    data = envelope.sign(STATEMENT.to_bytes() + b" ", payload_type, [key]).to_bytes()
    digests = {
        "result": sha256_digest(canonical(RESULT)),
        "design": sha256_digest(canonical(RESULT["design"])),
    }
    record = put(place.home.objects, record_name, data, sha256_digest)
    log.commit(
        place.home, place.key, lambda _: [AuditEvent("transport", record, **{**digests, **(event or {})})]
    )
    seal.write(place.home)
    return verify(place.home)


def test_a_record_must_be_signed_by_a_key_of_the_log(place: Place) -> None:
    assert forged_record(place, place.key).ok
    (problem,) = forged_record(place, SigningKey(b"9" * 32)).findings
    assert (problem.kind, problem.entry) == ("signature", "event 9")


@pytest.mark.parametrize("part", ["result", "design"])
def test_a_record_must_hold_what_was_logged(place: Place, part: str) -> None:
    (problem,) = forged_record(place, place.key, {part: sha256_digest(b"another")}).findings
    assert problem.kind == "record"
    assert f"another {part} than was logged" in problem.message


def test_a_record_of_another_type_is_refused(place: Place) -> None:
    (problem,) = forged_record(place, place.key, payload_type="text/plain").findings
    assert (problem.kind, problem.message.partition(";")[0]) == ("record", "record of another type")


def cannot(payload: bytes) -> bytes:
    raise CannotAnswerError("the entries are not there")


@pytest.mark.parametrize(
    ("recompute", "message"),
    [
        (lambda payload: canonical({**RESULT, "n": 4}), "computing the audit again gives another result"),
        (lambda payload: canonical(RESULT) + b"\n", "computing the audit again gives another result"),
        (cannot, "the entries are not there"),
    ],
)
def test_an_audit_that_comes_out_differently_is_a_record_problem(
    place: Place, recompute: Callable[[bytes], bytes], message: str
) -> None:
    (problem,) = verify(place.home, full=True, recompute=recompute).findings
    assert (problem.kind, problem.message) == ("record", message)


def test_an_audit_this_version_cannot_compute_is_a_notice(place: Place) -> None:
    report = verify(place.home, full=True, recompute=lambda payload: None)
    assert report.ok
    assert report.counts["recomputed"] == 0
    assert "cannot be computed again by this version" in report.notices[0]


# While others write, and how much is told


def test_a_commit_in_between_is_looked_at_again(place: Place) -> None:
    commits = iter(range(2))

    def write_meanwhile(phase: str, done: int, total: int | None) -> None:
        if phase == "events" and (number := next(commits, None)) is not None:
            log.commit(place.home, place.key, lambda _: [AcquisitionEvent(f"more-{number}", "transport")])

    report = verify(unsealed(place).home, progress=write_meanwhile)
    assert report.findings == ()
    assert report.head is not None
    assert report.head.size == 10


def test_problems_past_a_bound_are_counted_only() -> None:
    found = Problems()
    for number in range(LISTED + 5):
        found.add("data", "a", "b", str(number))
    assert (len(found.listed), found.total) == (LISTED, LISTED + 5)


def test_the_error_says_the_first_problem_and_how_many_more(place: Place) -> None:
    for path in stored(place.home, "objects/segments/*"):
        path.write_bytes(b"x")
    report = verify(place.home)
    error = report.error()
    assert error is not None
    assert (error.exit_code, error.code) == (4, "data")
    assert str(error).endswith("(and 2 more)")
    assert str(report.findings[0]).startswith("objects/segments/")


def test_a_failing_disk_is_raised_and_not_called_forgery(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StorageError("reading an object failed: input/output error", code="io-error")

    monkeypatch.setattr("ledger.objects_folder.Folder.open", fail)
    with pytest.raises(StorageError, match="input/output"):
        verify(place.home)


def test_verification_changes_nothing_in_the_home(place: Place) -> None:
    before = files(place.home.path)
    verify(place.home, full=True)
    assert files(place.home.path) == before
