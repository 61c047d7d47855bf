"""What the log says: each event is a value, and its canonical JSON is one leaf.

Every event carries `type`, `v` (1) and `time`. Bytes stay below 64 KiB: `fit` moves lists (or a channel
specification) that would not fit into objects and leaves their digests. `decode(encode(e)) == e`, and
`encode(decode(b)) == b` for every b that is accepted.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from contracts.canonical import canonical, parse_canonical
from contracts.digest import is_digest, sha256_digest
from contracts.errors import MalformedError
from ledger import clock, event_trust
from ledger import object_names as naming
from ledger.event_types import (
    AcquisitionEvent,
    AttestationEvent,
    AuditEvent,
    ChannelEvent,
    Event,
    KeyChangeEvent,
    KeyEvent,
    ObjectRef,
    PlanEvent,
    PolicyEvent,
    RefusalEvent,
    RevocationEvent,
    ScopeRows,
    SegmentEvent,
    Source,
)
from ledger.fields import Fields

__all__ = [
    "AcquisitionEvent",
    "AttestationEvent",
    "AuditEvent",
    "ChannelEvent",
    "Event",
    "KeyChangeEvent",
    "KeyEvent",
    "ObjectRef",
    "PlanEvent",
    "PolicyEvent",
    "RefusalEvent",
    "RevocationEvent",
    "ScopeRows",
    "SegmentEvent",
    "Source",
    "decode",
    "encode",
    "fit",
]

LIMIT = 64 * 1024 - 1
VERSION = 1
T = TypeVar("T")


def encode(event: Event) -> bytes:
    """The canonical bytes of an event; MalformedError when they reach 64 KiB (see `fit`)."""
    data = _bytes(event)
    if len(data) > LIMIT:
        raise MalformedError(f"{event.type} event too long", expected=f"at most {LIMIT} bytes", got=len(data))
    return data


def decode(data: bytes) -> Event:
    """The event of canonical bytes; MalformedError on unknown types, versions, keys or values."""
    value = parse_canonical(data, limit=LIMIT)
    fields = Fields.of(value, "event")
    kind, time = fields.text("type"), clock.check(fields.text("time"))
    if (version := fields.whole("v")) != VERSION:
        raise MalformedError(f"{kind} event of another version", expected=VERSION, got=version)
    if kind not in _READERS:
        raise MalformedError("unknown type of event", expected=" | ".join(_READERS), got=kind)
    event = _READERS[kind](fields, time)
    fields.close()
    return event


def fit(event: Event, store: Callable[[bytes], str]) -> Event:
    """The same event short enough for the log: the longest values go through `store`, which names them."""
    while len(_bytes(event)) > LIMIT:
        name, value = max(_movable(event), key=lambda item: len(item[1]), default=("", b""))
        if not name:
            encode(event)
        moved: dict[str, Any] = {name: ObjectRef(store(value))}
        event = dataclasses.replace(event, **moved)
    return event


def list_bytes(value: object) -> bytes:
    """Canonical bytes of a long list of objects without floating-point numbers.

    The C encoder writes the form of RFC 8785 for these (ASCII keys sort alike, the escapes are the
    same) some thirty times faster than a walk in Python.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise MalformedError("text holds a lone surrogate") from error


def object_names(event: Event) -> tuple[str, ...]:
    """The objects an event names, all of which must be stored before it is."""
    named = [naming.list_name(value.digest) for value in vars(event).values() if isinstance(value, ObjectRef)]
    if isinstance(event, SegmentEvent):
        named += [
            naming.segment_name(event.file), naming.leaves_name(event.leaves),
            naming.rows_name(event.rows_file),
        ]  # fmt: skip
    elif isinstance(event, RefusalEvent):
        named += [
            naming.refusal_rows_name(event.file), naming.refusal_leaves_name(event.leaves),
            naming.refusal_source_rows_name(event.rows_file), naming.refusal_index_name(event.index),
        ]  # fmt: skip
    elif isinstance(event, AuditEvent):
        named.append(naming.record_name(event.record))
    elif isinstance(event, AttestationEvent):
        named.append(naming.attestation_name(event.statement))
        if event.signature is not None:
            named.append(naming.signature_name(event.signature))
    return tuple(named)


def digests_in(value: object) -> Iterator[str]:
    """Every digest that occurs anywhere in a JSON value, whatever it stands for."""
    if isinstance(value, str):
        if is_digest(value):
            yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from digests_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from digests_in(item)


def body(event: Event) -> dict[str, object]:
    """The JSON object of an event: what `encode` writes and programs read."""
    stated: dict[str, object]
    if isinstance(event, KeyChangeEvent | PolicyEvent):
        stated = event_trust.stated(event)
    elif isinstance(event, RevocationEvent):
        stated = {"target": {"kind": event.target_kind, "id": event.target_id}, "reason": event.reason}
    else:
        stated = {_KEYS.get(name, name): _json(value) for name, value in vars(event).items()}
    if isinstance(event, AcquisitionEvent) and event.supersedes is None:
        del stated["supersedes"]
    if isinstance(event, AttestationEvent) and event.signature is None:
        del stated["signature"]
    if isinstance(event, ChannelEvent) and isinstance(event.spec, ObjectRef):
        stated["spec_object"] = event.spec.digest
        del stated["spec"]
    return stated | {"type": event.type, "v": VERSION, "time": event.time}


_KEYS = {"size": "bytes"}


def _bytes(event: Event) -> bytes:
    return canonical(body(event))


def _json(value: object) -> object:
    if isinstance(value, ObjectRef):
        return {"object": value.digest}
    if isinstance(value, Source):
        return {"name": value.name, "digest": value.digest, "rows": value.rows}
    if isinstance(value, ScopeRows):
        return [value.channel, value.acquisition, value.rows]
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    return value


def _movable(event: Event) -> Iterator[tuple[str, bytes]]:
    """The parts of an event that may stand in an object, as their bytes."""
    for name in ("sources", "channels", "acquisitions", "scope"):
        value = getattr(event, name, None)
        if isinstance(value, tuple):
            yield name, list_bytes(_json(value))
    if isinstance(event, ChannelEvent) and not isinstance(event.spec, ObjectRef):
        yield "spec", canonical(dict(event.spec))


def _reference(fields: Fields) -> ObjectRef:
    reference = ObjectRef(fields.digest("object", "blake3"))
    fields.close()
    return reference


def _listed(fields: Fields, key: str, read: Callable[[object], T]) -> tuple[T, ...] | ObjectRef:
    if isinstance(fields.left.get(key), dict):
        return _reference(fields.inside(key))
    return fields.list(key, read)


def source(value: object) -> Source:
    """The source file a JSON object describes."""
    fields = Fields.of(value, "source")
    read = Source(fields.text("name"), fields.digest("digest", "blake3"), fields.whole("rows"))
    fields.close()
    return read


def scope_rows(value: object) -> ScopeRows:
    """The scope row a JSON list of three describes."""
    if isinstance(value, list) and len(value) == 3:
        channel, acquisition, rows = value
        known = channel is None or (isinstance(channel, str) and is_digest(channel))
        if known and isinstance(rows, int) and not isinstance(rows, bool) and rows >= 0:
            return ScopeRows(channel, plain_text(acquisition), rows)
    raise MalformedError("scope row is not right", expected="[channel, acquisition, rows]")


def plain_text(value: object) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise MalformedError("list item is not right", expected="text", got=type(value).__name__)
    return value


def _corner(value: object) -> str | int:
    if isinstance(value, str | int) and not isinstance(value, bool):
        return value
    raise MalformedError("key of a row is not right", expected="text and a whole number")


def _row_key(fields: Fields, key: str) -> tuple[str, int]:
    match fields.list(key, _corner):
        case (str(trajectory), int(step)):
            return trajectory, step
    raise fields.wrong(key, "[trajectory, step]", None)


def _channel(fields: Fields, time: str) -> Event:
    spec: Mapping[str, object] | ObjectRef
    if "spec_object" in fields.left:
        spec = ObjectRef(fields.digest("spec_object", "blake3"))
    else:
        spec = fields.inside("spec").rest()
    return ChannelEvent(
        fields.text("name"), fields.whole("version"), fields.digest("fingerprint", "blake3"), spec, time
    )


def _acquisition(fields: Fields, time: str) -> Event:
    supersedes = fields.text("supersedes") if "supersedes" in fields.left else None
    return AcquisitionEvent(fields.text("id"), fields.text("kind"), supersedes, time)


def _segment(fields: Fields, time: str) -> Event:
    return SegmentEvent(
        kind=fields.text("kind"),
        schema=fields.text("schema"),
        contract=fields.text("contract"),
        file=fields.digest("file", "blake3"),
        size=fields.whole("bytes"),
        root=fields.digest("root", "sha256"),
        rows=fields.whole("rows"),
        leaves=fields.digest("leaves", "blake3"),
        rows_file=fields.digest("rows_file", "blake3"),
        sources=_listed(fields, "sources", source),
        channels=_listed(fields, "channels", plain_text),
        acquisitions=_listed(fields, "acquisitions", plain_text),
        scope=_listed(fields, "scope", scope_rows),
        first=_row_key(fields, "first"),
        last=_row_key(fields, "last"),
        trajectories=fields.whole("trajectories"),
        time=time,
    )


def _refusal(fields: Fields, time: str) -> Event:
    return RefusalEvent(
        schema=fields.text("schema"),
        file=fields.digest("file", "blake3"),
        size=fields.whole("bytes"),
        root=fields.digest("root", "sha256"),
        rows=fields.whole("rows"),
        leaves=fields.digest("leaves", "blake3"),
        rows_file=fields.digest("rows_file", "blake3"),
        sides=fields.whole("sides"),
        index=fields.digest("index", "blake3"),
        sources=_listed(fields, "sources", source),
        time=time,
    )


def _revocation(fields: Fields, time: str) -> Event:
    target = fields.inside("target")
    event = RevocationEvent(target.text("kind"), target.text("id"), fields.text("reason"), time)
    target.close()
    return event


def _audit(fields: Fields, time: str) -> Event:
    return AuditEvent(
        fields.text("kind"),
        fields.digest("record", "sha256"),
        fields.digest("result", "sha256"),
        fields.digest("design", "sha256"),
        time,
    )


def _plan(fields: Fields, time: str) -> Event:
    name, digest, plan = fields.text("id"), fields.digest("digest", "sha256"), fields.inside("plan").rest()
    if sha256_digest(canonical(dict(plan))) != digest:
        raise MalformedError("a plan does not have its digest", expected=digest)
    return PlanEvent(name, digest, plan, time)


_READERS: dict[str, Callable[[Fields, str], Event]] = {
    "key": event_trust.key,
    "policy": event_trust.policy,
    "attestation": event_trust.attestation,
    "channel": _channel,
    "acquisition": _acquisition,
    "segment": _segment,
    "refusal": _refusal,
    "revocation": _revocation,
    "audit": _audit,
    "plan": _plan,
}
