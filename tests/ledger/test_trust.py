"""Who may sign what: every change of keys and policy is authorised by what was in force before it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.errors import (
    LedgerError,
    MalformedError,
    SignatureError,
    TamperError,
    UnknownKeyError,
    UsageError,
)
from ledger import heads, home, key_changes, log, pin, policy_file, publish
from ledger import trust as trusts
from ledger.event_types import AcquisitionEvent, KeyChangeEvent, KeyEvent, PolicyEvent, RolePolicy
from ledger.index import Index
from ledger.keys import SigningKey
from ledger.rebuild import rebuild
from ledger.repair import repair
from ledger.snapshot import open_snapshot
from ledger.trust import Change, Trust
from ledger.verify import verify
from ledger.vkey import COSIGNATURE, VerifierKey
from tests.ledger.homes import Place, by_hand, new_place

FIRST, OTHER, THIRD = (SigningKey.generate() for _ in range(3))
LOG = "test-log"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return new_place(tmp_path)


def named(key: SigningKey, name: str = "alpha") -> str:
    return str(VerifierKey(name, key.public.raw))


def start() -> Trust:
    return trusts.begin(KeyEvent("head", named(FIRST, LOG))).newest


def addition(
    key: SigningKey = OTHER, role: str = "collector", *, log: str = LOG, previous: int = 0
) -> Change:
    return KeyChangeEvent("add", role, named(key), None, log, previous)


def rotation(new: SigningKey = OTHER, name: str = LOG) -> Change:
    return KeyChangeEvent("rotate", "head", named(new, name), named(FIRST, LOG), LOG, 0)


def test_the_first_key_gives_others_a_role() -> None:
    trust = trusts.apply(start(), 3, trusts.signed(addition(), [FIRST]))
    assert [key.name for key in trust.role("collector").keys] == ["alpha"]
    assert (trust.changed, trust.role("collector").threshold) == (3, 1)


def test_unknown_key_bad_signature_and_malformed_are_told_apart() -> None:
    good = trusts.signed(addition(), [FIRST])
    with pytest.raises(UnknownKeyError):
        trusts.apply(start(), 1, trusts.signed(addition(), [OTHER]))
    with pytest.raises(UnknownKeyError):
        trusts.apply(start(), 1, addition())
    (signature,) = good.signatures
    broken = dataclasses.replace(signature, sig=bytes([signature.sig[0] ^ 1]) + signature.sig[1:])
    with pytest.raises(SignatureError):
        trusts.apply(start(), 1, dataclasses.replace(good, signatures=(broken,)))
    assert isinstance(good, KeyChangeEvent)
    with pytest.raises(SignatureError):
        trusts.apply(start(), 1, dataclasses.replace(good, role="checkpoint"))
    with pytest.raises(MalformedError):
        trusts.apply(start(), 1, dataclasses.replace(good, vkey="alpha+00000000+AAAA"))
    with pytest.raises(MalformedError):
        trusts.apply(start(), 1, dataclasses.replace(good, role="king"))


@pytest.mark.parametrize("moved", [addition(log="another"), addition(previous=1)])
def test_a_change_holds_at_its_own_place_only(moved: Change) -> None:
    with pytest.raises(TamperError):
        trusts.apply(start(), 1, trusts.signed(moved, [FIRST]))


@pytest.mark.parametrize(("signers", "right"), [((FIRST, OTHER), True), ((FIRST,), False), ((OTHER,), False)])
def test_rotation_needs_the_old_and_the_new_key(signers: tuple[SigningKey, ...], right: bool) -> None:
    event = trusts.signed(rotation(), signers)
    if right:
        assert trusts.apply(start(), 1, event).role("head").keys[0].public == OTHER.public.raw
    else:
        with pytest.raises(UnknownKeyError):
            trusts.apply(start(), 1, event)


def test_the_key_of_the_heads_is_called_like_the_log() -> None:
    with pytest.raises(MalformedError, match="name of the log"):
        trusts.apply(start(), 1, trusts.signed(rotation(name="another"), [FIRST, OTHER]))


def policy(*roles: tuple[str, tuple[SigningKey, ...], int], previous: int = 0) -> PolicyEvent:
    stated = (RolePolicy(role, tuple(named(k) for k in keys), n) for role, keys, n in roles)
    return PolicyEvent((RolePolicy("head", (named(FIRST, LOG),), 1), *stated), LOG, previous)


def test_a_policy_is_signed_under_the_policy_before_it() -> None:
    trust = trusts.apply(start(), 1, trusts.signed(policy(("policy", (OTHER, THIRD), 2)), [FIRST]))
    later = policy(("collector", (THIRD,), 1), previous=1)
    for signers in ([FIRST], [OTHER], [OTHER, OTHER], [FIRST, THIRD]):
        with pytest.raises(UnknownKeyError):
            trusts.apply(trust, 2, trusts.signed(later, signers))
    assert trusts.apply(trust, 2, trusts.signed(later, [OTHER, THIRD])).authority.keys[0].name == LOG


@pytest.mark.parametrize(
    "wrong",
    [
        policy(("collector", (OTHER,), 2)), policy(("collector", (OTHER,), 0)), policy(("king", (OTHER,), 1)),
        policy(("collector", (OTHER, OTHER), 1)), PolicyEvent((), LOG, 0),
        policy(("collector", (OTHER,), 1), ("collector", (THIRD,), 1)),
    ],
)  # fmt: skip
def test_an_impossible_policy_is_malformed(wrong: PolicyEvent) -> None:
    with pytest.raises(MalformedError):
        trusts.apply(start(), 1, trusts.signed(wrong, [FIRST]))


def test_a_key_leaves_a_role_and_earlier_events_keep_it() -> None:
    told = trusts.history(
        [
            (0, KeyEvent("head", named(FIRST, LOG))),
            (4, trusts.signed(addition(), [FIRST])),
            (7, trusts.signed(KeyChangeEvent("retire", "collector", named(OTHER), None, LOG, 4), [FIRST])),
        ]
    )
    assert [bool(told.before(n).role("collector").keys) for n in (4, 5, 7, 8)] == [False, True, True, False]


def rotate(place: Place) -> SigningKey:
    new = SigningKey.generate()
    key_changes.rotate(place.home, place.key, "head", place.key, new)
    return new


def more(place: Place, key: SigningKey, name: str) -> None:
    log.commit(place.home, key, lambda _: [AcquisitionEvent(name, "transport")])


def test_heads_after_a_rotation_are_signed_by_the_new_key(place: Place) -> None:
    more(place, place.key, "a")
    new = rotate(place)
    known = pin.load(LOG)
    assert known is not None
    assert known.vkey == named(new, LOG)
    with pytest.raises(UnknownKeyError, match="no longer signs"):
        more(place, place.key, "b")
    more(place, new, "b")
    report = verify(place.home, full=True)
    assert report.ok, report.findings
    assert report.counts["heads"] == 4
    assert open_snapshot(place.home, at=2).checked.vkey.public == place.key.public.raw
    assert open_snapshot(place.home).checked.vkey.public == new.public.raw


@pytest.mark.parametrize("with_new", [True, False])
def test_either_key_vouches_where_there_is_no_pin(place: Place, with_new: bool) -> None:
    new = rotate(place)
    pin.config_file(LOG, ".pin").unlink()
    with Index.open(place.home) as index:
        heads.check(place.home, index, key=(new if with_new else place.key).public)
        with pytest.raises(UnknownKeyError):
            heads.check(place.home, index, key=OTHER.public)


def test_a_pin_from_before_the_rotation_moves_forward(place: Place) -> None:
    before = pin.load(LOG)
    assert before is not None
    new = rotate(place)
    more(place, new, "b")
    pin.store(before)
    assert verify(place.home).pin == "moved"
    moved = pin.load(LOG)
    assert moved is not None
    assert (moved.head.size, moved.vkey) == (3, named(new, LOG))


def test_the_old_key_cannot_go_on_behind_the_rotation(place: Place) -> None:
    from ledger.notes import TreeHead, sign_head

    new = rotate(place)
    more(place, new, "b")
    with Index.open(place.home) as index:
        row = index.head()
    forged = sign_head(TreeHead(LOG, row.size, bytes.fromhex(row.root[7:])), place.key)
    by_hand(place, "UPDATE head SET note = ? WHERE size = 3", forged)
    with Index.open(place.home) as index, pytest.raises(UnknownKeyError, match="did not sign there"):
        heads.check(place.home, index)
    assert "signature" in {problem.kind for problem in verify(place.home).findings}


def test_rebuild_and_repair_follow_the_keys(place: Place) -> None:
    more(place, place.key, "a")
    new = rotate(place)
    more(place, new, "b")
    place.home.catalog.unlink()
    assert rebuild(place.home).heads == 4
    place.home.objects.remove(publish.CHECKPOINT)
    assert [action.name for action in repair(place.home).actions] == [publish.CHECKPOINT]
    assert verify(place.home).ok


def test_an_unsigned_change_in_the_log_is_found(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownKeyError):
        log.commit(place.home, place.key, lambda _: [addition()])
    unsigned = KeyChangeEvent("add", "collector", named(OTHER), None, LOG, 0)
    monkeypatch.setattr("ledger.trust._authorise", lambda *_: None)
    log.commit(place.home, place.key, lambda _: [unsigned])
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place.config))
    assert [p.kind for p in verify(place.home).findings][:1] == ["signature"]
    with pytest.raises(UnknownKeyError):
        open_snapshot(place.home)


def test_a_change_hidden_in_the_catalog_is_found(place: Place) -> None:
    key_changes.add(place.home, place.key, "collector", VerifierKey("alpha", OTHER.public.raw))
    by_hand(place, "UPDATE event SET type = 'plan' WHERE leaf_index = 1")
    with pytest.raises(TamperError):
        open_snapshot(place.home)
    assert not verify(place.home).ok


def test_adding_twice_and_setting_the_same_policy_log_nothing(place: Place) -> None:
    alpha = VerifierKey("alpha", OTHER.public.raw)
    assert key_changes.add(place.home, place.key, "collector", alpha).new
    again = key_changes.add(place.home, place.key, "collector", alpha)
    assert (again.new, again.event, again.commit.size) == (False, 1, 2)
    same = key_changes.in_force(again.trust)
    assert not key_changes.set_policy(place.home, place.key, same).new
    key_changes.retire(place.home, place.key, "collector", "alpha")
    assert [role.role for role in key_changes.in_force(verify_trust(place))] == ["head"]


def verify_trust(place: Place) -> Trust:
    with Index.open(place.home) as index:
        return heads.check(place.home, index).trust.newest


REFUSED: list[Callable[[Place], object]] = [
    lambda p: key_changes.add(p.home, p.key, "head", VerifierKey(LOG, OTHER.public.raw)),
    lambda p: key_changes.retire(p.home, p.key, "head", LOG),
    lambda p: key_changes.retire(p.home, p.key, "collector", "nobody"),
    lambda p: key_changes.rotate(p.home, p.key, "collector", OTHER, THIRD),
    lambda p: key_changes.rotate(p.home, p.key, "head", p.key, p.key),
    lambda p: key_changes.set_policy(p.home, p.key, [RolePolicy("head", (named(OTHER, LOG),), 1)]),
    lambda p: key_changes.verifier_key("king", named(OTHER)),
]


@pytest.mark.parametrize("attempt", REFUSED)
def test_mistakes_are_refused_before_anything_is_logged(
    place: Place, attempt: Callable[[Place], object]
) -> None:
    with pytest.raises(UsageError):
        attempt(place)
    with Index.open(place.home) as index:
        assert index.size == 1


def test_a_policy_file_reads_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "two.pem").write_bytes(THIRD.public.to_pem())
    witness = str(VerifierKey("w", OTHER.public.raw, COSIGNATURE))
    file = tmp_path / "policy.toml"
    file.write_text(
        f'[collector]\nkeys = ["{named(OTHER)}", "two.pem"]\nthreshold = 2\n[witness]\nkeys = ["{witness}"]\n'
    )
    roles = policy_file.load(file)
    assert roles == (
        RolePolicy("collector", (named(OTHER), named(THIRD, "two")), 2), RolePolicy("witness", (witness,), 1),
    )  # fmt: skip
    file.write_text(policy_file.dump(roles))
    assert policy_file.load(file) == roles


@pytest.mark.parametrize(
    "text",
    ["x", "[king]\nkeys=['a']", "[collector]\n", "[collector]\nkeys=[]", "collector = 1",
     "[collector]\nkeys=['a']\nn=1", "[collector]\nkeys=[1]", "[head]\nkeys=['no.pem']"],
)  # fmt: skip
def test_a_wrong_policy_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(text)
    with pytest.raises(LedgerError):
        policy_file.load(file)


def test_a_successor_key_survives_a_crash(place: Place) -> None:
    waiting = key_changes.successor(place.home)
    assert key_changes.successor(place.home).public == waiting.public
    assert key_changes.finish_rotation(place.home) is None
    key_changes.rotate(place.home, place.key, "head", place.key, waiting)
    kept = key_changes.finish_rotation(place.home)
    assert kept is not None
    assert key_changes.finish_rotation(place.home) is None
    assert home.signing_key(place.home).public == waiting.public
    assert SigningKey.load(kept).public == place.key.public
