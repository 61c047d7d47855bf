"""What the catalog says about an event: rows of plain values, a function of the log and its objects alone.

The writer stores them, `rebuild` makes them again, and verification compares them with what is stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

from contracts.canonical import canonical, parse
from contracts.channel import fingerprint
from contracts.errors import MalformedError, TamperError
from ledger.events import (
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
    SegmentEvent,
    Source,
    decode,
    list_bytes,
    plain_text,
    scope_rows,
    source,
)
from ledger.object_names import attestation_name, list_name, refusal_index_name
from ledger.objects import Objects
from ledger.refusals import faults_text, read_index

Row = dict[str, object]
Rows = Mapping[str, Iterable[Row]]
Pending = dict[str, list[Iterable[Row]]]
T = TypeVar("T")
MAX_SPEC = 64 * 1024 * 1024


def add(into: Pending, place: int, data: bytes, leaf: bytes, objects: Objects) -> None:
    """Adds the row of the event itself, and of everything derived from it, to the rows of a transaction."""
    event = decode(data)
    stored: Row = {
        "leaf_index": place, "leaf_hash": leaf, "type": event.type, "time": event.time, "data": data,
    }  # fmt: skip
    for table, items in {"event": [stored], **rows(place, event, objects)}.items():
        into.setdefault(table, []).append(items)


def joined(pending: Pending) -> Rows:
    """The rows of a transaction by table, events before what is derived from them."""
    return {table: chain.from_iterable(parts) for table, parts in pending.items()}


def rows(leaf_index: int, event: Event, objects: Objects) -> Rows:
    """The rows of the derived tables for one event, by table; objects it names are read and checked.

    A refusal can have a great many rows: they come one at a time.
    """
    made: dict[str, Iterable[Row]] = {}
    if isinstance(event, ChannelEvent):
        made["channel"] = [_channel(event, objects)]
    elif isinstance(event, AcquisitionEvent):
        made["acquisition"] = [{"id": event.id, "kind": event.kind, "supersedes": event.supersedes}]
    elif isinstance(event, SegmentEvent):
        scope = _resolve(event.scope, scope_rows, objects)
        made["segment"] = [_segment(event, objects)]
        made["segment_scope"] = [
            {"ordinal": i, "channel": part.channel, "acquisition": part.acquisition, "rows": part.rows}
            for i, part in enumerate(scope)
        ]
    elif isinstance(event, RefusalEvent):
        made["refusal"] = [_refusal(event, objects)]
        made["refused_side"] = _refused_sides(event, objects)
    elif isinstance(event, RevocationEvent):
        made["revocation"] = [
            {"target_kind": event.target_kind, "target_id": event.target_id, "reason": event.reason}
        ]
    elif isinstance(event, KeyChangeEvent | KeyEvent | PolicyEvent):
        made |= _trust(event)
    elif isinstance(event, AttestationEvent):
        made |= _attestation(event, objects)
    elif isinstance(event, PlanEvent):
        text = canonical(dict(event.plan)).decode()
        made["plan"] = [{"id": event.id, "digest": event.digest, "plan": text}]
    elif isinstance(event, AuditEvent):
        made["record"] = [
            {"kind": event.kind, "record": event.record, "result": event.result, "design": event.design}
        ]
    return {table: ({"event": leaf_index, **item} for item in items) for table, items in made.items()}


def _trust(event: KeyEvent | KeyChangeEvent | PolicyEvent) -> Rows:
    if isinstance(event, PolicyEvent):
        roles = enumerate(event.roles)
        return {
            "policy": [
                {
                    "ordinal": i, "role": role.role, "threshold": role.threshold,
                    "keys": list_bytes(list(role.keys)).decode(),
                }
                for i, role in roles
            ]
        }  # fmt: skip
    action, replaces = ("begin", None) if isinstance(event, KeyEvent) else (event.action, event.replaces)
    return {"signing_key": [{"action": action, "role": event.role, "vkey": event.vkey, "replaces": replaces}]}


def _attestation(event: AttestationEvent, objects: Objects) -> Rows:
    from ledger import envelope, statement

    data = objects.read_checked(attestation_name(event.statement), limit=envelope.MAX_ENVELOPE)
    subjects = statement.parse(envelope.parse(data).payload).subjects
    return {
        "attestation": [{"kind": event.kind, "subject": event.subject, "statement": event.statement}],
        "attested_file": [
            {"ordinal": i, "name": s.name, "blake3": s.digest.get("blake3"), "sha256": s.digest.get("sha256")}
            for i, s in enumerate(subjects)
        ],
    }


def _resolve(
    value: tuple[T, ...] | ObjectRef, read: Callable[[object], T], objects: Objects
) -> tuple[T, ...]:
    if not isinstance(value, ObjectRef):
        return value
    try:
        items = json.loads(objects.read_checked(list_name(value.digest)))
    except (ValueError, RecursionError) as error:
        raise MalformedError("list object is not json", where=list_name(value.digest)) from error
    if not isinstance(items, list):
        raise MalformedError("list object is not a list", where=list_name(value.digest))
    return tuple(read(item) for item in items)


def _channel(event: ChannelEvent, objects: Objects) -> Row:
    spec: object = event.spec
    if isinstance(event.spec, ObjectRef):
        data = objects.read_checked(list_name(event.spec.digest), limit=MAX_SPEC)
        spec = parse(data, limit=MAX_SPEC, whole_floats=True)
    if not isinstance(spec, Mapping):
        raise MalformedError("channel specification is not an object", where=f"channel {event.name}")
    found = fingerprint(spec)
    if found != event.fingerprint:
        raise TamperError(
            "channel specification does not have its fingerprint", kind="catalog",
            where=f"channel {event.name}", expected=event.fingerprint, got=found,
        )  # fmt: skip
    text = canonical(dict(spec)).decode()
    return {"name": event.name, "version": event.version, "fingerprint": event.fingerprint, "spec": text}


def _sources(value: tuple[Source, ...] | ObjectRef, objects: Objects) -> str:
    resolved = _resolve(value, source, objects)
    return list_bytes([{"name": s.name, "digest": s.digest, "rows": s.rows} for s in resolved]).decode()


def _texts(value: tuple[str, ...] | ObjectRef, objects: Objects) -> str:
    return list_bytes(list(_resolve(value, plain_text, objects))).decode()


def _stored(event: SegmentEvent | RefusalEvent) -> Row:
    return {
        "schema_id": event.schema, "file": event.file, "size": event.size, "root": event.root,
        "rows": event.rows, "leaves": event.leaves, "rows_file": event.rows_file,
    }  # fmt: skip


def _segment(event: SegmentEvent, objects: Objects) -> Row:
    return _stored(event) | {
        "kind": event.kind,
        "contract": event.contract,
        "sources": _sources(event.sources, objects),
        "channels": _texts(event.channels, objects),
        "acquisitions": _texts(event.acquisitions, objects),
        "first_trajectory": event.first[0],
        "first_step": event.first[1],
        "last_trajectory": event.last[0],
        "last_step": event.last[1],
        "trajectories": event.trajectories,
    }


def _refusal(event: RefusalEvent, objects: Objects) -> Row:
    return _stored(event) | {
        "sides": event.sides,
        "side_index": event.index,
        "sources": _sources(event.sources, objects),
    }


def _refused_sides(event: RefusalEvent, objects: Objects) -> Iterator[Row]:
    name = refusal_index_name(event.index)
    count = 0
    for ordinal, side in enumerate(read_index(objects.read_checked(name))):
        yield {"ordinal": ordinal, **side, "faults": faults_text(side)}
        count += 1
    if count != event.sides:
        raise MalformedError(
            "list of refused sides has another length", expected=event.sides, got=count, where=name
        )
