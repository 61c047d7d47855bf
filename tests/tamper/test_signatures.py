"""Everything that is signed, signed again by another key: found, and told as a signature."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest

from ledger import envelope, events, notes, pin, trust, witness
from ledger.cosignature import cosign
from ledger.event_types import KeyChangeEvent, KeyEvent, PolicyEvent
from ledger.index import Index
from ledger.keys import SigningKey
from ledger.notes import TreeHead, sign_head
from ledger.tree import leaf_hash, root
from ledger.verify import verify
from ledger.vkey import VerifierKey, parse_vkey
from tests.tamper.victims import CATALOG, Victim, changed, edited, found, look

THIEF = SigningKey(b"t" * 32)
NEWEST = 21


def heads(victim: Victim) -> dict[int, TreeHead]:
    with Index.open(victim.home) as index:
        leaves = index.leaves()
        return {size: TreeHead("test-log", size, root(leaves[:size])) for size in index.heads()}


def put_note(connection: sqlite3.Connection, head: TreeHead, note: bytes) -> None:
    connection.execute("UPDATE head SET note = ?, root = ? WHERE size = ?", (note, head.root, head.size))


def test_every_head_signed_by_another_key_is_found(victim: Victim) -> None:
    for size, head in heads(victim).items():
        note = sign_head(head, THIEF)
        with edited(victim, lambda c, head=head, note=note: put_note(c, head, note)):  # type: ignore[misc]
            found(victim, f"{CATALOG} head of size {size}", kinds=("signature",))
        name = f"objects/log/heads/{size}"
        with changed(victim, name):
            victim.path(name).write_bytes(note)
            found(victim, name, kinds=("signature",))


def test_the_newest_head_signed_by_another_key_wherever_it_stands_is_found(victim: Victim) -> None:
    head = heads(victim)[NEWEST]
    note = sign_head(head, THIEF)
    places = [f"objects/log/{name}" for name in ("checkpoint", f"heads/{NEWEST}", f"witnessed/{NEWEST}")]
    for place in places:
        with changed(victim, place):
            victim.path(place).write_bytes(note)
            found(victim, place, kinds=("signature",))
    with changed(victim, *places), edited(victim, lambda c: put_note(c, head, note)):
        for place in places:
            victim.path(place).write_bytes(note)
        found(victim, f"{CATALOG} head of size {NEWEST}", kinds=("signature",))


def rewritten(victim: Victim, key: SigningKey, *, at: int, data: bytes) -> list[tuple[TreeHead, bytes]]:
    """The heads of a log with another event at a place, each signed by a key."""
    with Index.open(victim.home) as index:
        leaves = [*index.leaves()]
        leaves[at] = leaf_hash(data)
        made = [TreeHead("test-log", size, root(leaves[:size])) for size in index.heads() if size > at]
    return [(head, sign_head(head, key)) for head in made]


def put_history(
    connection: sqlite3.Connection, at: int, data: bytes, made: list[tuple[TreeHead, bytes]]
) -> None:
    connection.execute(
        "UPDATE event SET data = ?, leaf_hash = ? WHERE leaf_index = ?", (data, leaf_hash(data), at)
    )
    for head, note in made:
        put_note(connection, head, note)


def test_a_whole_history_signed_by_another_key_is_not_the_pinned_one(victim: Victim) -> None:
    data = events.encode(KeyEvent("head", str(VerifierKey("test-log", THIEF.public.raw))))
    made = rewritten(victim, THIEF, at=0, data=data)
    with edited(victim, lambda c: put_history(c, 0, data, made)):
        # the later changes of keys, which the thief cannot sign, give it away before the pin does
        found(victim, CATALOG, kinds=("signature",))


def signed_again(event: KeyChangeEvent | PolicyEvent) -> bytes:
    return events.encode(trust.signed(event, [THIEF]))


@pytest.mark.parametrize("operator", [False, True], ids=["without the key", "with the key of the heads"])
def test_a_change_of_keys_signed_by_another_key_is_found(
    victim: Victim, operator: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Even where the key of the heads signed the heads above it again, and nobody has a pin."""
    with Index.open(victim.home) as index:
        changes = {
            row.index: events.decode(row.data)
            for row in index.events()
            if row.type in ("keychange", "key", "policy")
        }
    told = {at: event for at, event in changes.items() if isinstance(event, KeyChangeEvent | PolicyEvent)}
    assert len(told) == 2
    if operator:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))
    for at, event in told.items():
        data = signed_again(event)
        made = rewritten(victim, victim.place.key, at=at, data=data) if operator else []
        with edited(victim, lambda c, at=at, data=data, made=made: put_history(c, at, data, made)):  # type: ignore[misc]
            if operator:
                report = verify(victim.home, key=victim.place.key.public)
                assert {"signature"} <= {p.kind for p in report.findings}
                assert any(p.entry == f"event {at}" for p in report.findings)
            else:
                found(victim, f"{CATALOG} event {at}", f"{CATALOG} head of size {NEWEST}")


def envelopes(victim: Victim) -> list[str]:
    return [name for name in victim.names() if name.endswith(".dsse.json")]


def test_an_envelope_signed_by_another_key_is_found(victim: Victim) -> None:
    assert len(envelopes(victim)) == 5
    for name in envelopes(victim):
        with changed(victim, name):
            kept = envelope.parse(victim.path(name).read_bytes())
            forged = envelope.sign(kept.payload, kept.payload_type, [THIEF])
            victim.path(name).write_bytes(forged.to_bytes())
            found(victim, name, kinds=("record", "data"))


def test_an_envelope_whose_event_was_made_to_fit_is_found_in_the_tree(victim: Victim) -> None:
    """The forger renames the file and rewrites the event and every row of it; the signed tree remains."""
    for name in envelopes(victim):
        old = Path(name).name.partition(".")[0]
        kept = envelope.parse(victim.path(name).read_bytes())
        data = envelope.sign(kept.payload, kept.payload_type, [THIEF]).to_bytes()
        new = hashlib.sha256(data).hexdigest()
        moved = name.replace(old, new)
        with changed(victim, name, moved):
            victim.path(name).unlink()
            victim.path(moved).write_bytes(data)

            def fit(connection: sqlite3.Connection, old: str = old, new: str = new) -> None:
                for at, body in connection.execute("SELECT leaf_index, data FROM event").fetchall():
                    if old.encode() in body:
                        put_history(connection, at, body.replace(old.encode(), new.encode()), [])
                for table, column in (
                    ("record", "record"),
                    ("attestation", "statement"),
                    ("revocation", "target_id"),
                ):
                    connection.execute(f"UPDATE {table} SET {column} = replace({column}, ?, ?)", (old, new))

            with edited(victim, fit):
                found(victim, f"{CATALOG} head of size {NEWEST}", kinds=("tree",))


def test_signatures_that_change_places_between_envelopes_are_found(victim: Victim) -> None:
    """By hand in the JSON: payload of one, signature of another."""
    names = [name for name in envelopes(victim) if "/records/" in name]
    one, other = (json.loads(victim.path(name).read_bytes()) for name in names)
    assert one["signatures"] != other["signatures"]
    with changed(victim, *names):
        for name, kept, lent in ((names[0], one, other), (names[1], other, one)):
            victim.path(name).write_text(json.dumps({**kept, "signatures": lent["signatures"]}))
        found(victim, names[0], kinds=("record",))
        found(victim, names[1], kinds=("record",))


def test_an_envelope_written_anew_by_hand_is_found_even_where_its_meaning_is_kept(victim: Victim) -> None:
    for name in envelopes(victim):
        value = json.loads(victim.path(name).read_bytes())
        shapes = [
            json.dumps(value, indent=1),
            json.dumps(dict(reversed(value.items()))),
            json.dumps({**value, "note": "harmless"}),
            json.dumps({**value, "payload": value["payload"].replace("+", "-").replace("/", "_")}),
            json.dumps({**value, "signatures": value["signatures"] * 2}),
        ]
        for text in shapes:
            if text.encode() == victim.path(name).read_bytes():
                continue
            with changed(victim, name):
                victim.path(name).write_text(text)
                found(victim, name)


def test_a_cosignature_by_another_key_is_found_or_does_not_count(victim: Victim) -> None:
    name = f"objects/log/witnessed/{NEWEST}"
    kept = victim.path(name).read_bytes()
    head = heads(victim)[NEWEST]
    desk = witness.public("desk")
    note = notes.verify(kept, [parse_vkey(str(pin_key(victim)))])
    own = kept[: -len(str(note.others[0]).encode())]
    line = cosign(str(head), "desk", THIEF, 1_800_000_000)
    under_its_id = notes.Signature("desk", desk.id, line.signature)
    with changed(victim, name):
        victim.path(name).write_bytes(own + str(under_its_id).encode())
        found(victim, name, kinds=("signature",))
    with changed(victim, name):
        victim.path(name).write_bytes(own + str(line).encode())
        report = look(victim)
        assert report.ok
        assert any("not cosigned by 1 of the 1 witnesses" in notice for notice in report.notices)


def pin_key(victim: Victim) -> str:
    known = pin.load(victim.home.origin)
    assert known is not None
    return known.vkey


def test_a_further_signature_of_a_stranger_changes_nothing_and_is_no_problem(victim: Victim) -> None:
    """A note may carry signatures nobody here knows; docs/trust.md names what that leaves open."""
    head = heads(victim)[NEWEST]
    stranger = VerifierKey("stranger", THIEF.public.raw)
    extra = sign_head(TreeHead("stranger", head.size, head.root), THIEF).decode().splitlines()[-1]
    note = victim.path(f"objects/log/heads/{NEWEST}").read_bytes() + extra.encode() + b"\n"
    places = [f"objects/log/{name}" for name in ("checkpoint", f"heads/{NEWEST}")]
    with changed(victim, *places):
        victim.path(places[1]).write_bytes(note)
        found(victim, places[1])  # it is not the file that the catalog has
    with changed(victim, *places), edited(victim, lambda c: put_note(c, head, note)):
        for place in places:
            victim.path(place).write_bytes(note)
        assert verify(victim.home).ok
    assert stranger.name in extra
