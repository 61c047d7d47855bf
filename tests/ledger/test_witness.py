"""A witness cosigns heads that grew from the one it saw last, and nothing else; verification counts it."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from contracts.errors import MalformedError, SignatureError, StorageError, TamperError, UsageError
from ledger import key_changes, log, notes, witness
from ledger.cosignature import cosign, cosigned, message
from ledger.event_types import AcquisitionEvent
from ledger.keys import SigningKey
from ledger.notes import TreeHead
from ledger.verify import verify
from ledger.vkey import COSIGNATURE, VerifierKey, parse_vkey
from tests.ledger.homes import Place, new_place

KEY, LOG_KEY = SigningKey(bytes(range(32))), SigningKey(bytes(range(1, 33)))
HEAD = TreeHead("a-log", 7, bytes(32))
DESK = VerifierKey("desk", KEY.public.raw, COSIGNATURE)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return new_place(tmp_path)


def note(*lines: notes.Signature) -> notes.Note:
    data = notes.sign_head(HEAD, LOG_KEY) + "".join(map(str, lines)).encode()
    return notes.verify(data, [VerifierKey("a-log", LOG_KEY.public.raw)])


def test_a_cosignature_has_the_bytes_of_the_specification() -> None:
    line = cosign(str(HEAD), "desk", KEY, 1679315147)
    assert message("x\n", 1679315147) == b"cosignature/v1\ntime 1679315147\nx\n"
    raw = base64.b64decode(str(line).rpartition(" ")[2])
    assert (raw[:4], raw[4:12], len(raw)) == (DESK.id, (1679315147).to_bytes(8, "big"), 76)
    assert str(DESK).startswith("desk+")
    assert parse_vkey(str(DESK), COSIGNATURE) == DESK
    with pytest.raises(MalformedError, match="another type"):
        parse_vkey(str(DESK))


def test_witnesses_are_verified_counted_once_and_strangers_ignored() -> None:
    line, stranger = cosign(str(HEAD), "desk", KEY, 5), cosign(str(HEAD), "eve", SigningKey.generate(), 5)
    assert [each.time for each in cosigned(note(line, stranger, line), [DESK])] == [5]
    assert cosigned(note(stranger), [DESK]) == ()
    for broken in (
        cosign("another text\n", "desk", KEY, 5),
        cosign(str(HEAD), "desk", SigningKey.generate(), 5),
    ):
        forged = notes.Signature("desk", DESK.id, broken.signature)
        with pytest.raises(SignatureError):
            cosigned(note(forged), [DESK])
    early = notes.Signature("desk", DESK.id, (4).to_bytes(8, "big") + line.signature[8:])
    with pytest.raises(SignatureError):
        cosigned(note(early), [DESK])
    with pytest.raises(MalformedError):
        cosigned(note(notes.Signature("desk", DESK.id, line.signature[:-1])), [DESK])


def more(place: Place, name: str) -> None:
    log.commit(place.home, place.key, lambda _: [AcquisitionEvent(name, "transport")])


def test_heads_are_cosigned_and_counted_against_the_policy(place: Place) -> None:
    for name in ("desk", "shelf"):
        key_changes.add(place.home, place.key, "witness", witness.create(name))
    roles = key_changes.in_force(
        key_changes.add(place.home, place.key, "witness", witness.public("desk")).trust
    )
    wanted = [role if role.role != "witness" else type(role)(role.role, role.keys, 2) for role in roles]
    key_changes.set_policy(place.home, place.key, wanted)
    assert any("not cosigned by 2 of the 2" in notice for notice in verify(place.home).notices)
    first = witness.sign(place.home, "desk")
    assert ([each.witness.name for each in first.by], first.threshold, first.enough) == (["desk"], 2, False)
    again = witness.sign(place.home, "desk")
    assert len(again.by) == 1
    both = witness.sign(place.home, "shelf")
    assert ([each.witness.name for each in both.by], both.enough) == (["desk", "shelf"], True)
    report = verify(place.home)
    assert report.ok
    assert not [notice for notice in report.notices if "cosigned" in notice]
    more(place, "a")
    assert any("the newest that is has size 4" in notice for notice in verify(place.home).notices)


def test_an_inconsistent_head_is_refused(place: Place, tmp_path: Path) -> None:
    witness.create("desk")
    before = place.copy(tmp_path / "before")
    place.use()
    more(place, "a")
    witness.sign(place.home, "desk")
    remembered = place.config / "ledger" / "witness"
    more(before.use(), "b")
    goal = before.config / "ledger" / "witness" / "desk" / "test-log.head"
    goal.parent.mkdir(parents=True)
    goal.write_bytes(next(remembered.rglob("*.head")).read_bytes())
    with pytest.raises(TamperError, match="did not grow") as caught:
        witness.sign(before.home, "desk")
    assert caught.value.kind == "rolled-back-head"
    assert not list(before.home.objects.list(witness.FOLDER))


def test_a_shorter_log_is_refused(place: Place, tmp_path: Path) -> None:
    witness.create("desk")
    before = place.copy(tmp_path / "before")
    place.use()
    more(place, "a")
    witness.sign(place.home, "desk")
    state = next((place.config / "ledger" / "witness").rglob("*.head")).read_bytes()
    goal = before.use().config / "ledger" / "witness" / "desk" / "test-log.head"
    goal.parent.mkdir(parents=True)
    goal.write_bytes(state)
    with pytest.raises(TamperError, match="shorter"):
        witness.sign(before.home, "desk")


def test_a_changed_cosigned_head_is_found(place: Place) -> None:
    key_changes.add(place.home, place.key, "witness", witness.create("desk"))
    witness.sign(place.home, "desk")
    path = place.home.objects.root / witness.FOLDER / "2"
    data = path.read_bytes()
    path.write_bytes(data[:-10] + (b"A" if data[-10:-9] != b"A" else b"B") + data[-9:])
    report = verify(place.home)
    assert [problem.where for problem in report.findings] == [f"objects/{witness.FOLDER}/2"]


def test_names_and_missing_witnesses(place: Place) -> None:
    witness.create("desk")
    with pytest.raises(StorageError):
        witness.create("desk")
    with pytest.raises(UsageError):
        witness.create("a+b")
    with pytest.raises(UsageError, match="witness create"):
        witness.sign(place.home, "nobody")
