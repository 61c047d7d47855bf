"""Who may sign what, as the log itself says: keys by role, and how each change of them was authorised.

The first event names the key of the heads; it is believed because of the pin or a key somebody brings.
Every later event about keys or policy is valid only if the keys in force before it signed it:

1. It names this log and the event about trust before it, so it cannot be played back elsewhere.
2. `rotate` is signed by the old key and by the new one.
3. Everything else is signed by the role `policy`, where it has keys; otherwise by the key of the heads.
4. The heads have one key at a time, which only `rotate` replaces.

Nothing in a home's settings or its catalog is asked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from contracts.canonical import canonical
from contracts.errors import MalformedError, SignatureError, TamperError, UnknownKeyError
from ledger import envelope, events
from ledger.event_types import Event, EventSignature, KeyChangeEvent, KeyEvent, PolicyEvent
from ledger.head_keys import HeadKeys
from ledger.keys import PublicKey, SigningKey, key_id
from ledger.vkey import COSIGNATURE, ED25519, VerifierKey, parse_vkey

HEAD, POLICY, COLLECTOR, CHECKPOINT, AUDITOR, WITNESS = (
    "head", "policy", "collector", "checkpoint", "auditor", "witness",
)  # fmt: skip
ROLES = (HEAD, POLICY, COLLECTOR, CHECKPOINT, AUDITOR, WITNESS)
SIGNED_TYPE = "application/vnd.evaluator-ledger.event+json"
Change = KeyChangeEvent | PolicyEvent


@dataclass(frozen=True)
class Role:
    """The keys that may sign for a role, and how many of them have to."""

    keys: tuple[VerifierKey, ...] = ()
    threshold: int = 1

    @property
    def public(self) -> list[PublicKey]:
        """The keys as they verify."""
        return [PublicKey(key.public) for key in self.keys]


@dataclass(frozen=True)
class Trust:
    """The roles in force behind the event `changed`, which was the last to change them."""

    log: str
    changed: int
    roles: Mapping[str, Role] = field(hash=False)

    def role(self, name: str) -> Role:
        """A role; one without keys where none was named."""
        return self.roles.get(name, Role())

    @property
    def authority(self) -> Role:
        """Who may change keys and policy."""
        return self.role(POLICY) if self.role(POLICY).keys else self.role(HEAD)

    @property
    def auditors(self) -> Role:
        """Who may sign audits."""
        return self.role(AUDITOR) if self.role(AUDITOR).keys else self.role(HEAD)


@dataclass(frozen=True)
class TrustHistory:
    """The roles of a log over time, oldest first."""

    states: tuple[Trust, ...]

    @property
    def newest(self) -> Trust:
        """The roles in force now."""
        return self.states[-1]

    def before(self, event: int) -> Trust:
        """The roles in force when the event at that index was written."""
        earlier = [state for state in self.states if state.changed < event]
        return earlier[-1] if earlier else self.states[0]

    @property
    def heads(self) -> HeadKeys:
        """The keys of the heads over time."""
        periods: list[tuple[int, VerifierKey]] = []
        for state in self.states:
            (key,) = state.role(HEAD).keys
            if not periods or periods[-1][1] != key:
                periods.append((state.changed, key))
        return HeadKeys(self.newest.log, tuple(periods))

    def extended(self, changes: Iterable[tuple[int, Event]]) -> TrustHistory:
        """The history with further events; those that say nothing about trust are passed over."""
        states = list(self.states)
        for index, event in changes:
            if isinstance(event, KeyChangeEvent | PolicyEvent):
                states.append(apply(states[-1], index, event))
            elif isinstance(event, KeyEvent):
                raise MalformedError("a key event that nobody signed", where=f"event {index}")
        return TrustHistory(tuple(states))


def begin(event: Event | None) -> TrustHistory:
    """The history that the event at index 0 begins; says nothing about whether to trust it."""
    if not isinstance(event, KeyEvent) or event.role != HEAD:
        raise MalformedError(
            "the log does not begin with the key of its heads", where="event 0", expected="a key event"
        )
    key = parse_vkey(event.vkey)
    return TrustHistory((Trust(key.name, 0, {HEAD: Role((key,))}),))


def history(changes: Iterable[tuple[int, Event]]) -> TrustHistory:
    """The history of a log from its events by index; the one at index 0 comes first."""
    remaining = iter(changes)
    first = next(remaining, None)
    return begin(first[1] if first is not None and first[0] == 0 else None).extended(remaining)


def signed(event: Change, keys: Iterable[SigningKey]) -> Change:
    """The event with a signature by each key, a key once only."""
    body = _message(event)
    made = {key_id(key.public): key for key in keys}
    signatures = tuple(EventSignature(name, key.sign(body)) for name, key in made.items())
    return dataclasses.replace(event, signatures=signatures)


def apply(trust: Trust, index: int, event: Change) -> Trust:
    """The roles behind an event, which must be valid under those before it.

    MalformedError: it says what no log may say. TamperError: it belongs to another place. UnknownKeyError
    or SignatureError: it was not signed by those who may.
    """
    where = f"event {index}"
    try:
        _in_place(trust, event)
        if isinstance(event, PolicyEvent):
            _authorise(event, trust.authority)
            return Trust(trust.log, index, _policy(trust, event))
        return Trust(trust.log, index, {**trust.roles, event.role: _changed(trust, event)})
    except (MalformedError, TamperError, UnknownKeyError, SignatureError) as error:
        error.where = error.where or where
        raise


def read_key(role: str, text: str) -> VerifierKey:
    """The verifier key of a role: witnesses sign notes with a time, everybody else plain bytes."""
    return parse_vkey(text, COSIGNATURE if role == WITNESS else ED25519)


def _in_place(trust: Trust, event: Change) -> None:
    if (event.log, event.previous) != (trust.log, trust.changed):
        raise TamperError(
            "an event about keys or policy belongs to another place in a log", kind="signature",
            expected=f"{trust.log}, behind event {trust.changed}",
            got=f"{ascii(event.log[:80])[1:-1]}, behind event {event.previous}",
        )  # fmt: skip


def _changed(trust: Trust, event: KeyChangeEvent) -> Role:
    if event.role not in ROLES:
        raise MalformedError("unknown role", expected=" | ".join(ROLES), got=ascii(event.role[:40]))
    key, role = read_key(event.role, event.vkey), trust.role(event.role)
    held = {known.public for known in role.keys}
    if event.action == "rotate":
        return _rotated(trust, event, key)
    _authorise(event, trust.authority)
    if event.role == HEAD:
        raise MalformedError("the key of the heads can only be rotated", got=event.action)
    if event.action == "add":
        if key.public in held:
            raise MalformedError(f"the key has the role {event.role} already", got=str(key)[:80])
        return Role((*role.keys, key), role.threshold)
    if key not in role.keys:
        raise MalformedError(f"no such key in the role {event.role}", got=str(key)[:80])
    kept = tuple(known for known in role.keys if known != key)
    if kept and len(kept) < role.threshold:
        raise MalformedError(
            f"too few keys would be left in the role {event.role}", expected=f"at least {role.threshold}",
            got=len(kept),
        )  # fmt: skip
    return Role(kept, role.threshold if kept else 1)


def _rotated(trust: Trust, event: KeyChangeEvent, key: VerifierKey) -> Role:
    role = trust.role(event.role)
    if event.role == WITNESS:
        raise MalformedError("the key of a witness signs heads only; add the new one and retire the old")
    old = read_key(event.role, event.replaces or "")
    if old not in role.keys:
        raise UnknownKeyError(f"the replaced key does not have the role {event.role}", got=str(old)[:80])
    if any(known.public == key.public for known in role.keys):
        raise MalformedError(f"the key has the role {event.role} already", got=str(key)[:80])
    if event.role == HEAD and key.name != trust.log:
        raise MalformedError("the key of the heads has the name of the log", expected=trust.log, got=key.name)
    for signer in (old, key):
        _verify(event, [PublicKey(signer.public)], 1)
    return Role(tuple(key if known == old else known for known in role.keys), role.threshold)


def _policy(trust: Trust, event: PolicyEvent) -> dict[str, Role]:
    roles: dict[str, Role] = {}
    for stated in event.roles:
        if stated.role not in ROLES or stated.role in roles:
            raise MalformedError("a role that is unknown or named twice", got=ascii(stated.role[:40]))
        keys = tuple(read_key(stated.role, text) for text in stated.keys)
        if len({key.public for key in keys}) < len(keys):
            raise MalformedError(f"a key twice in the role {stated.role}")
        if not 1 <= stated.threshold <= len(keys):
            raise MalformedError(
                f"impossible threshold of the role {stated.role}", expected=f"1 to {len(keys)}",
                got=stated.threshold,
            )  # fmt: skip
        roles[stated.role] = Role(keys, stated.threshold)
    if roles.get(HEAD) != trust.role(HEAD):
        raise MalformedError("a policy cannot change the key of the heads", expected="the key in force")
    return roles


def _authorise(event: Change, role: Role) -> None:
    _verify(event, role.public, role.threshold)


def _verify(event: Change, keys: list[PublicKey], threshold: int) -> None:
    signatures = tuple(envelope.EnvelopeSignature(s.sig, s.keyid) for s in event.signatures)
    envelope.verify(envelope.Envelope(SIGNED_TYPE, _unsigned(event), signatures), keys, threshold)


def _unsigned(event: Change) -> bytes:
    return canonical({name: value for name, value in events.body(event).items() if name != "signatures"})


def _message(event: Change) -> bytes:
    return envelope.pae(SIGNED_TYPE, _unsigned(event))
