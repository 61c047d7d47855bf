"""The JSON of events about trust: keys, policy and attestations."""

from __future__ import annotations

import base64
import re

from contracts.errors import MalformedError
from ledger.event_types import (
    AttestationEvent,
    EventSignature,
    KeyChangeEvent,
    KeyEvent,
    PolicyEvent,
    RolePolicy,
)
from ledger.fields import Fields
from ledger.vkey import decode_base64

ACTIONS = ("add", "rotate", "retire")
_KEYID = re.compile(r"[0-9a-f]{64}", re.ASCII)


def key(fields: Fields, time: str) -> KeyEvent | KeyChangeEvent:
    """The first key of a log, or a change of the keys of a role."""
    if "action" not in fields.left:
        return KeyEvent(fields.text("role"), fields.text("vkey"), time)
    action = fields.text("action")
    if action not in ACTIONS:
        raise MalformedError(
            "key event with an unknown action", expected=" | ".join(ACTIONS), got=action[:40]
        )
    return KeyChangeEvent(
        action=action,
        role=fields.text("role"),
        vkey=fields.text("vkey"),
        replaces=fields.text("replaces") if action == "rotate" else None,
        log=fields.text("log"),
        previous=fields.whole("previous"),
        signatures=fields.list("signatures", _signature),
        time=time,
    )


def policy(fields: Fields, time: str) -> PolicyEvent:
    """All roles from an event on."""
    return PolicyEvent(
        roles=fields.list("roles", _role),
        log=fields.text("log"),
        previous=fields.whole("previous"),
        signatures=fields.list("signatures", _signature),
        time=time,
    )


def attestation(fields: Fields, time: str) -> AttestationEvent:
    """A signed statement that was logged."""
    signature = fields.digest("signature", "sha256") if "signature" in fields.left else None
    return AttestationEvent(
        fields.text("kind"), fields.text("subject"), fields.digest("statement", "sha256"), time, signature
    )


def stated(event: KeyChangeEvent | PolicyEvent) -> dict[str, object]:
    """The members of an event about keys, without its type and time."""
    made: dict[str, object] = {
        "log": event.log,
        "previous": event.previous,
        "signatures": [{"keyid": s.keyid, "sig": base64.b64encode(s.sig).decode()} for s in event.signatures],
    }
    if isinstance(event, PolicyEvent):
        roles = [{"role": r.role, "keys": list(r.keys), "threshold": r.threshold} for r in event.roles]
        return made | {"roles": roles}
    made |= {"action": event.action, "role": event.role, "vkey": event.vkey}
    return made if event.replaces is None else made | {"replaces": event.replaces}


def _signature(value: object) -> EventSignature:
    fields = Fields.of(value, "signature")
    keyid = fields.text("keyid")
    if _KEYID.fullmatch(keyid) is None:
        raise fields.wrong("keyid", "64 hex digits", keyid)
    signature = EventSignature(keyid, decode_base64(fields.text("sig")))
    fields.close()
    return signature


def _role(value: object) -> RolePolicy:
    fields = Fields.of(value, "role")
    role = RolePolicy(fields.text("role"), fields.list("keys", _text), fields.whole("threshold"))
    fields.close()
    return role


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise MalformedError("list item is not right", expected="text", got=type(value).__name__)
    return value
