"""`ledger show ID`: everything the ledger knows of one thing itself, checked against the signed head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contracts.digest import unpack
from contracts.errors import MalformedError, VerificationError
from contracts.schema import SegmentSchema
from ledger import envelope, events, statement
from ledger.checkpoints import CheckpointFound
from ledger.entry_id import entry_id
from ledger.envelope import Envelope
from ledger.event_types import ACQUISITION, ATTESTATION, CHANNEL
from ledger.identify import EntryFound, EventFound, SourceFound, identify
from ledger.index_rows import (
    AcquisitionRow,
    AttestationRow,
    ChannelRow,
    PlanRow,
    RecordRow,
    RefusalRow,
    SegmentRow,
)
from ledger.node import Node, present
from ledger.object_names import record_name
from ledger.pages import page_count
from ledger.reading import Reading
from ledger.revoked_since import REPRODUCES, revoked_since, told
from ledger.segment_reader import SegmentReader, schema_of
from ledger.show_attested import attestation_node, checkpoint_node
from ledger.statement import Statement

AUDITS = ("audit", "record")  # what a revocation may call an audit


@dataclass(frozen=True)
class Entry:
    """A verified entry: its columns as Python values (absent ones left out), and where it stood."""

    id: str
    segment: SegmentRow
    row: int
    values: Mapping[str, Any]
    source: int
    source_row: int


@dataclass(frozen=True)
class Record:
    """A logged audit: its statement, and whether the key of this log signed it."""

    row: RecordRow
    statement: Statement
    signed_by: str
    trusted: bool


def show(reading: Reading, text: str) -> Node:
    """The node of what an id means, alone; UsageError when it means nothing or several things."""
    found = identify(reading.index, text, reading.size, reading.objects)
    reading.confirm(found.event)
    match found:
        case EntryFound():
            entry = read_entry(reading, found)
            node = entry_node(reading, entry, {**entry.values, **_where(entry)})
        case EventFound():
            node = event_node(reading, found.event)
        case ChannelRow():
            node = channel_node(reading, found, spec=True)
        case RecordRow():
            record = read_record(reading, found)
            node = audit_node(reading, record)
            node = Node(node.kind, node.id, {**node.facts, "predicate": dict(record.statement.predicate)})
        case AttestationRow():
            node = attestation_node(reading, found, whole=True)
        case CheckpointFound():
            node = checkpoint_node(reading, found, whole=True)
        case _:
            node = node_of(reading, found)
    return node


def node_of(
    reading: Reading, found: SegmentRow | RefusalRow | AcquisitionRow | PlanRow | SourceFound
) -> Node:
    """A segment, a refusal, an acquisition, a plan or a source file."""
    if isinstance(found, PlanRow):
        return plan_node(reading, found)
    if isinstance(found, SourceFound):
        return source_node(found)
    if isinstance(found, SegmentRow):
        return segment_node(reading, found)
    if isinstance(found, RefusalRow):
        return refusal_node(reading, found)
    return acquisition_node(reading, found)


def read_entry(reading: Reading, found: EntryFound) -> Entry:
    """The entry at a row, from pages checked against the segment's entries root."""
    with SegmentReader.ranged(reading.objects, found.segment) as reader:
        (values,) = reader.read(found.row, found.row + 1).to_pylist()
        where = reader.source_rows(found.row, found.row + 1)
    shown = _as_text(values, schema_of(found.segment))
    identity = entry_id(found.segment.root, found.row)
    return Entry(identity, found.segment, found.row, shown, int(where.files[0]), int(where.rows[0]))


def _as_text(values: Mapping[str, Any], schema: SegmentSchema) -> dict[str, Any]:
    digests = {column.name for column in schema.columns if column.type == "digest"}
    return {
        name: unpack(value) if name in digests else value
        for name, value in values.items()
        if value is not None
    }


def _where(entry: Entry) -> dict[str, object]:
    source = entry.segment.sources[entry.source]
    return {
        "segment": entry.segment.root,
        "row": entry.row,
        "event": entry.segment.event,
        "source": {"name": source.name, "digest": source.digest, "row": entry.source_row},
    }


def entry_node(reading: Reading, entry: Entry, facts: Mapping[str, object]) -> Node:
    """An entry with its channel by name."""
    channel = reading.index.channels(reading.size).by_fingerprint(entry.values.get("channel", ""))
    named = dict(facts)
    if channel is not None:
        named |= {"channel": channel.reference, "fingerprint": channel.fingerprint}
    return Node("entry", entry.id, named)


def segment_node(reading: Reading, segment: SegmentRow, **more: object) -> Node:
    """A segment: what its event commits to, and what it covers."""
    book = reading.index.channels(reading.size)
    channels = {fp: book.by_fingerprint(fp) for fp in segment.channels}
    facts = present(
        event=segment.event,
        time=reading.event_row(segment.event).time,
        kind=segment.kind,
        rows=segment.rows,
        trajectories=segment.trajectories,
        first=list(segment.first),
        last=list(segment.last),
        channels=[channel.reference if channel else fp for fp, channel in channels.items()],
        acquisitions=list(segment.acquisitions),
        sources=[{"name": s.name, "digest": s.digest, "rows": s.rows} for s in segment.sources],
        file=segment.file,
        bytes=segment.size,
        root=segment.root,
        pages=page_count(segment.rows),
        schema=segment.schema,
        contract=segment.contract,
        **more,
    )
    return Node("segment", segment.root, facts)


def refusal_node(reading: Reading, refusal: RefusalRow) -> Node:
    """Refused sides: how many, and the objects that hold their rows and their list."""
    facts = present(
        event=refusal.event,
        time=reading.event_row(refusal.event).time,
        sides=refusal.sides,
        rows=refusal.rows,
        sources=[{"name": s.name, "digest": s.digest, "rows": s.rows} for s in refusal.sources],
        file=refusal.file,
        root=refusal.root,
        index=refusal.side_index,
        schema=refusal.schema,
    )
    return Node("refusal", refusal.file, facts)


def channel_node(reading: Reading, row: ChannelRow, *, spec: bool = False) -> Node:
    """A channel; `spec` adds the whole specification."""
    channel = row.channel
    facts = present(
        name=channel.name,
        version=channel.version,
        fingerprint=channel.fingerprint,
        event=row.event,
        time=reading.event_row(row.event).time,
        checkpoint=channel.checkpoint,
        revoked=reading.revocation(channel.fingerprint, CHANNEL),
        spec={name: dict(table) for name, table in channel.spec.items()} if spec else None,
    )
    return Node("channel", channel.reference, facts)


def acquisition_node(reading: Reading, row: AcquisitionRow) -> Node:
    """An acquisition, and why it was revoked when it was."""
    segments = reading.index.segments(reading.size, acquisitions=[row.id])
    later = [other.id for other in reading.index.acquisitions(reading.size) if other.supersedes == row.id]
    facts = present(
        kind=row.kind,
        event=row.event,
        time=reading.event_row(row.event).time,
        rows=sum(part.rows for s in segments for part in s.scope if part.acquisition == row.id),
        revoked=reading.revocation(row.id, ACQUISITION),
        supersedes=row.supersedes,
        superseded_by=later or None,
        attested=_attested(reading, row.id) or None,
    )
    return Node("acquisition", row.id, facts)


def plan_node(reading: Reading, row: PlanRow) -> Node:
    """A declared plan: what it is about, and the design in its record."""
    facts = present(
        event=row.event,
        time=reading.event_row(row.event).time,
        digest=row.digest,
        audit=row.plan.get("audit"),
        estimands=row.plan.get("estimands"),
        gates=row.plan.get("gates"),
        design=row.plan.get("design"),
    )
    return Node("plan", row.id, facts)


def source_node(found: SourceFound) -> Node:
    """A file that an ingest read; the ledger keeps its digest, not the file."""
    return Node("source", found.digest, present(name=found.name, digest=found.digest, row=found.row))


def _attested(reading: Reading, acquisition: str) -> list[dict[str, object]]:
    """The attestations of an acquisition, with why each was revoked where it was."""
    found = []
    for row in reading.index.attestations(reading.size):
        if (row.kind, row.subject) == (ACQUISITION, acquisition):
            reading.confirm(row.event)
            revoked = reading.revocation(row.statement, ATTESTATION)
            found.append(present(statement=row.statement, event=row.event, revoked=revoked))
    return found


def event_node(reading: Reading, event: int) -> Node:
    """An event with its body, and how far it is from the signed root."""
    row = reading.event_row(event)
    facts = {
        **events.body(events.decode(row.data)),
        "leaf": row.leaf.hex(),
        "proof": {"index": event, "size": reading.size, "path": reading.proof_length(event)},
    }
    return Node("event", str(event), facts)


def head_node(reading: Reading) -> Node:
    """The signed head everything is seen at, and whether something outside the home vouches for it."""
    facts = present(
        origin=reading.home.origin,
        size=reading.size,
        root=reading.head.row.root,
        signed_by=str(reading.head.vkey),
        pinned=reading.head.pin is not None,
    )
    return Node("head", str(reading.size), facts)


def read_envelope(reading: Reading, row: RecordRow) -> Envelope:
    """The envelope of a logged audit, which has the digest in its event."""
    return envelope.parse(reading.objects.read_checked(record_name(row.record), limit=envelope.MAX_ENVELOPE))


def read_record(reading: Reading, row: RecordRow, signed: Envelope | None = None) -> Record:
    """The statement of a logged audit; `signed` is its envelope where that was read already."""
    signed = signed or read_envelope(reading, row)
    claimed = ", ".join(s.keyid or "unnamed key" for s in signed.signatures)
    try:
        signers = reading.head.trust.before(row.event).auditors
        envelope.verify(signed, signers.public, signers.threshold)
        trusted = True
    except VerificationError:
        trusted = False
    return Record(row, statement.parse(signed.payload), claimed, trusted)


def audit_node(reading: Reading, record: Record) -> Node:
    """A logged audit with its counts; numbers stand in the record itself."""
    predicate = record.statement.predicate
    result = _inside(predicate, "result")
    flow, provenance = _inside(result, "flow"), _inside(result, "provenance")
    facts = present(
        event=record.row.event,
        time=reading.event_row(record.row.event).time,
        audit=record.row.kind,
        record=record.row.record,
        result=record.row.result,
        design=record.row.design,
        signed_by=record.signed_by,
        signed_by_this_log=record.trusted,
        transitions=flow.get("transitions"),
        complete=flow.get("complete"),
        trajectories=flow.get("trajectories"),
        entries_in=provenance.get("entries_in"),
        entries_kept=provenance.get("entries_kept"),
        level=provenance.get("level"),
        revoked=reading.revocation(record.row.record, *AUDITS),
        **_standing(reading, record),
    )
    return Node("audit", record.row.record, facts)


def _standing(reading: Reading, record: Record) -> dict[str, object]:
    """What became of the inputs of an audit after it."""
    later = revoked_since(record.statement, reading.index, reading.size)
    for row in later:
        reading.confirm(row.event)
    return {"standing": f"{REPRODUCES}: {'; '.join(map(told, later))}"} if later else {}


def _inside(value: Mapping[str, object], key: str) -> Mapping[str, Any]:
    found = value.get(key, {})
    if not isinstance(found, Mapping):
        raise MalformedError(f"{key} of an audit record is not an object")
    return found
