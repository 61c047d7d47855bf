"""Making a bundle: everything that computing one audit again reads, with the log that vouches for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from contracts.canonical import canonical
from contracts.errors import TamperError, UsageError
from ledger import bundle, envelope, events, heads, publish, statement
from ledger.audit_scope import head_size
from ledger.bundle import OBJECTS, Manifest, Watched, Writer
from ledger.entry_proof import event_proof
from ledger.event_types import AuditEvent, ChannelEvent, PlanEvent
from ledger.index_rows import EventRow
from ledger.object_names import record_name
from ledger.objects import Objects
from ledger.reading import Reading
from ledger.snapshot import Snapshot, view
from ledger.standing import audit_row
from ledger.statement import Statement
from ledger.tiles import bundle_bytes, tiles
from ledger.verify_catalog import Named
from ledger.verify_records import checked_payload

# From the ledger as it was and an audit's statement to the canonical bytes of its result.
Recompute = Callable[[Snapshot, Statement], bytes | None]


@dataclass(frozen=True)
class Written:
    """What a bundle holds: the record, the head it was made at, members by number, and its bytes."""

    record: str
    event: int
    size: int
    segments: int
    proofs: int
    bytes: int


def write(reading: Reading, text: str, path: Path, recompute: Recompute) -> Written:
    """Write the bundle of an audit, which is computed again on the way.

    1. The record is the one its event names, signed by a key of the log.
    2. Computing it gives its result; every object that is read for this goes into the bundle.
    3. All events up to the head go in too, so that a reader can see that none was left out.
    """
    row = audit_row(reading, text)
    data = reading.objects.read_checked(record_name(row.record), limit=envelope.MAX_ENVELOPE)
    named = Named()
    logged = list(heads.events_in_tree(reading.index, 0, reading.size))
    for event in logged:
        named.take(event.index, events.decode(event.data))
    audit = reading.confirm(row.event)
    assert isinstance(audit, AuditEvent), "a record's event is an audit"
    stated = statement.parse(checked_payload(data, audit, reading.head.trust.before(row.event).auditors))  # 1
    watched = Watched(reading.objects)
    size = head_size(stated)
    past = heads.check(reading.home, reading.index, at=size, trust_first=True)
    snapshot = view(
        past, ((e.index, e.data) for e in logged[:size]), watched, has_newer_head=size < reading.size
    )
    result = recompute(snapshot, stated)  # 2
    if result is None:
        raise UsageError(
            f"this version cannot compute an audit of that kind again ({row.kind})", code="cannot-recompute"
        )
    if result != canonical(stated.predicate.get("result")):
        raise TamperError("computing the audit again gives another result", kind="record", where=row.record)
    used = used_events(named, logged, watched.opened, stated) | {row.event}
    with bundle.create(path) as made:
        made.add(bundle.MANIFEST, Manifest(row.record, row.event, reading.size).to_bytes())
        made.add(OBJECTS + publish.CHECKPOINT, reading.head.row.note)
        if size < reading.size:
            made.add(OBJECTS + publish.head_name(size), past.row.note)
        for tile in tiles(reading.size):  # 3
            if tile.level is None:
                part = [event.data for event in logged[tile.start : tile.stop]]
                made.add(f"{OBJECTS}log/{tile.path}", bundle_bytes(part))
        for index in sorted(used):
            made.add(f"proofs/{index}.tlog-proof", event_proof(reading, index))
        made.add(OBJECTS + record_name(row.record), data)
        for name in sorted(watched.opened):
            _copy(made, reading.objects, name)
    segments = sum(name.endswith(".parquet") and name.startswith("segments/") for name in watched.opened)
    return Written(row.record, row.event, reading.size, segments, len(used), path.stat().st_size)


def used_events(
    named: Named, logged: Sequence[EventRow], opened: Collection[str], stated: Statement
) -> set[int]:
    """The events an audit rests on: those whose objects were read, and what its design names by digest."""
    result = stated.predicate.get("result")
    design = set(events.digests_in(result.get("design") if isinstance(result, Mapping) else None))
    found = {named.objects[name] for name in opened if name in named.objects}
    for row in logged:
        if row.type not in (ChannelEvent.type, PlanEvent.type):
            continue
        event = events.decode(row.data)
        named_by = event.fingerprint if isinstance(event, ChannelEvent) else getattr(event, "digest", None)
        if named_by in design:
            found.add(row.index)
    return found


def _copy(made: Writer, objects: Objects, name: str) -> None:
    with objects.open(name) as source:
        made.copy(OBJECTS + name, source, objects.size(name))
