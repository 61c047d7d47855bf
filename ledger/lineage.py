"""Where an entry comes from and what became of it, and what an audit rests on.

From an entry upward: the row of the source file, its segment and event under the signed head, channel with
its checkpoint, acquisition with what attests it, inputs, and the audits that read it. From everything else
downward: its channels and acquisitions, the segments with their sources, and the audits. Every step is
checked on the way; nothing is told from the catalog alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from ledger import events, lineage_scope
from ledger import lineage_parts as parts
from ledger.audit_scope import (
    acquisitions_of,
    all_audits,
    audits_over,
    channels_of,
    design_of,
    reads,
    segments_of,
)
from ledger.checkpoints import CheckpointFound
from ledger.event_types import (
    ACQUISITION,
    CHANNEL,
    AcquisitionEvent,
    AttestationEvent,
    AuditEvent,
    ChannelEvent,
    PlanEvent,
    RefusalEvent,
    RevocationEvent,
    SegmentEvent,
)
from ledger.identify import EntryFound, EventFound, Found, SourceFound, identify
from ledger.index_rows import (
    AcquisitionRow,
    AttestationRow,
    ChannelRow,
    PlanRow,
    RecordRow,
    RefusalRow,
    SegmentRow,
)
from ledger.lineage_parts import logged, with_children
from ledger.node import Node
from ledger.pages import PAGE_ROWS
from ledger.reading import Reading
from ledger.segment_reader import SegmentReader
from ledger.show import (
    Entry,
    Record,
    acquisition_node,
    audit_node,
    channel_node,
    entry_node,
    event_node,
    head_node,
    plan_node,
    read_entry,
    read_record,
    refusal_node,
    segment_node,
    source_node,
)
from ledger.show_attested import attestation_node, checkpoint_node
from ledger.source_check import check_source

INPUTS = ("state_hash", "candidates_hash", "request_hash", "view_hash", "response_hash")


def lineage(reading: Reading, text: str, source: Path | None = None) -> Node:
    """The tree of what an id means; UsageError when it means nothing or several things.

    `source` is a file that should be one it came from: a node `file` says so, with the row of an entry;
    VerificationError when it is another file.
    """
    found = identify(reading.index, text, reading.size, reading.objects)
    if isinstance(found, EventFound):
        found = made_by(reading, found)
    reading.confirm(found.event)
    if isinstance(found, EntryFound):
        return _of_entry(reading, read_entry(reading, found), source)
    node = _of(reading, found)
    if source is None:
        return node
    return with_children(node, [check_source(source, _sources_below(node)), *node.children])


def _of(reading: Reading, found: Found) -> Node:
    """The tree of anything but an entry."""
    match found:
        case SegmentRow():
            node = _of_segment(reading, found)
        case RecordRow():
            node = _of_audit(reading, read_record(reading, found))
        case ChannelRow():
            node = _of_channel(reading, found)
        case AcquisitionRow():
            node = _of_acquisition(reading, found)
        case PlanRow():
            node = _of_plan(reading, found)
        case SourceFound():
            node = _of_source(reading, found)
        case RefusalRow():
            node = _of_refusal(reading, found)
        case CheckpointFound():
            node = _of_checkpoint(reading, found)
        case AttestationRow():
            node = _of_attestation(reading, found)
        case _:
            node = _of_event(reading, found.event)
    return node


def _sources_below(node: Node) -> dict[str, str]:
    """The source files of the segments and refusals in a tree: digest to name."""
    holders = [node, *node.find("segment"), *node.find("refusal")]
    listed: list[Any] = [
        item for holder in holders for item in cast("list[Any]", holder.facts.get("sources", []))
    ]
    return {item["digest"]: item["name"] for item in listed}


def _of_entry(reading: Reading, entry: Entry, path: Path | None) -> Node:
    """An entry, with everything it depends on and the audits it was in scope of."""
    segment, values = entry.segment, entry.values
    source = segment.sources[entry.source]
    shown = {name: value for name, value in values.items() if name not in INPUTS}
    inputs = {name.removesuffix("_hash"): values[name] for name in INPUTS if name in values}
    below = [
        Node(
            "source",
            source.digest,
            {"name": source.name, "digest": source.digest, "row": entry.source_row},
            () if path is None else (check_source(path, {source.digest: source.name}, entry),),
        ),
        with_children(
            segment_node(reading, segment, row=entry.row, page=entry.row // PAGE_ROWS),
            [logged(reading, segment.event)],
        ),
        *parts.channels(reading, [values["channel"]] if "channel" in values else []),
        *parts.acquisitions(reading, [values["acquisition_id"]]),
        *([Node("inputs", entry.id, inputs)] if inputs else []),
        *(audit_node(reading, record) for record in audits_over(reading, [segment]) if reads(record, values)),
    ]
    return with_children(entry_node(reading, entry, shown), below)


def _of_segment(reading: Reading, segment: SegmentRow) -> Node:
    return with_children(
        segment_node(reading, segment),
        [
            logged(reading, segment.event),
            *parts.channels(reading, segment.channels),
            *parts.acquisitions(reading, segment.acquisitions),
            *(audit_node(reading, record) for record in audits_over(reading, [segment])),
        ],
    )


def _of_audit(reading: Reading, record: Record) -> Node:
    """An audit downward: its head, channels, acquisitions and segments, in the order of the log."""
    return with_children(
        audit_node(reading, record),
        [
            logged(reading, record.row.event),
            *parts.channels(reading, channels_of(reading, record)),
            *parts.acquisitions(reading, acquisitions_of(reading, record)),
            *parts.plans(reading, design_of(record).get("plan")),
            *(parts.segment(reading, segment) for segment in segments_of(reading, record)),
        ],
    )


def _of_plan(reading: Reading, row: PlanRow) -> Node:
    """A plan downward: the audits that followed it."""
    followed = [record for record in all_audits(reading) if design_of(record).get("plan") == row.digest]
    return with_children(plan_node(reading, row), [logged(reading, row.event), *_audits(reading, followed)])


def _of_source(reading: Reading, found: SourceFound) -> Node:
    """A source file downward: what was made of it; of one row, the entries or the refusal it became."""
    index, size = reading.index, reading.size
    segments = [s for s in index.segments(size) if any(f.digest == found.digest for f in s.sources)]
    refusals = [r for r in index.refusals(size) if any(f.digest == found.digest for f in r.sources)]
    if found.row is not None:
        entries = [
            _of_entry(reading, read_entry(reading, EntryFound(segment, row)), None)
            for segment in segments
            for row in rows_of(reading, segment, found)
        ]
        refused = [_of_refusal(reading, row) for row in refusals if rows_of(reading, row, found)]
        return with_children(source_node(found), [*entries, *refused])
    return with_children(
        source_node(found),
        [
            *(parts.segment(reading, segment) for segment in segments),
            *(parts.refusal(reading, row) for row in refusals),
            *_audits(reading, [*audits_over(reading, segments), *_counting(reading, refusals)]),
        ],
    )


def rows_of(reading: Reading, stored: SegmentRow | RefusalRow, found: SourceFound) -> list[int]:
    """The rows of a segment or a refusal that a row of a source file became."""
    reading.confirm(stored.event)
    places = [i for i, source in enumerate(stored.sources) if source.digest == found.digest]
    folder = "segments" if isinstance(stored, SegmentRow) else "refusals"
    with SegmentReader.ranged(reading.objects, stored, folder) as reader:
        where = reader.source_rows(0, stored.rows)
    hit = np.isin(where.files, places) & (where.rows == found.row)
    return [int(row) for row in np.flatnonzero(hit)]


def _of_refusal(reading: Reading, row: RefusalRow) -> Node:
    """Refused sides downward: the audits whose flow counts one of them."""
    reading.confirm(row.event)
    return with_children(
        refusal_node(reading, row),
        [logged(reading, row.event), *_audits(reading, list(_counting(reading, [row])))],
    )


def _counting(reading: Reading, refusals: Sequence[RefusalRow]) -> Sequence[Record]:
    """The audits that count a side of these refusals."""
    made = {row.event for row in refusals}
    sides = [side for side in lineage_scope.refused(reading) if side.event in made] if made else []
    return list(lineage_scope.of_refused(reading, sides))


def _of_channel(reading: Reading, row: ChannelRow) -> Node:
    fingerprint = row.channel.fingerprint
    segments = reading.index.segments(reading.size, channels=[fingerprint])
    acquisitions = sorted(
        {part.acquisition for s in segments for part in s.scope if part.channel == fingerprint}
    )
    return with_children(
        channel_node(reading, row),
        [
            logged(reading, row.event),
            *parts.weights_of(reading, row),
            *parts.acquisitions(reading, acquisitions),
            *(parts.segment(reading, segment) for segment in segments),
            *_audits(reading, lineage_scope.of_channel(reading, fingerprint)),
        ],
    )


def _of_acquisition(reading: Reading, row: AcquisitionRow) -> Node:
    segments = reading.index.segments(reading.size, acquisitions=[row.id])
    asked = {part.channel for s in segments for part in s.scope if part.acquisition == row.id}
    return with_children(
        acquisition_node(reading, row),
        [
            logged(reading, row.event),
            *parts.attestations_of(reading, row.id),
            *parts.channels(reading, sorted(channel for channel in asked if channel is not None)),
            *(parts.segment(reading, segment) for segment in segments),
            *_audits(reading, lineage_scope.of_acquisition(reading, row.id)),
        ],
    )


def _of_checkpoint(reading: Reading, found: CheckpointFound) -> Node:
    """A model checkpoint upward to what attests it, downward to the channels that name it and on."""
    fingerprints = list(dict.fromkeys(row.channel.fingerprint for row in found.channels))
    segments = reading.index.segments(reading.size, channels=fingerprints)
    attested = [
        with_children(attestation_node(reading, row), [logged(reading, row.event)]) for row in found.rows
    ]
    return with_children(
        checkpoint_node(reading, found),
        [
            *attested,
            *(channel_node(reading, row) for row in found.channels),
            *(parts.segment(reading, segment) for segment in segments),
            *_audits(reading, lineage_scope.of_checkpoint(reading, found)),
        ],
    )


def _of_attestation(reading: Reading, row: AttestationRow) -> Node:
    """An attestation upward to its event, downward to what it is about and the audits that count it."""
    below: list[Node] = []
    if row.kind == ACQUISITION:
        below = [
            acquisition_node(reading, other)
            for other in reading.index.acquisitions(reading.size)
            if other.id == row.subject
        ]
        below += [
            parts.segment(reading, segment)
            for segment in reading.index.segments(reading.size, acquisitions=[row.subject])
        ]
    elif (found := lineage_scope.attested(reading, row)) is not None:
        below = [
            checkpoint_node(reading, found),
            *(channel_node(reading, channel) for channel in found.channels),
        ]
    audits = _audits(reading, lineage_scope.of_attestation(reading, row))
    return with_children(attestation_node(reading, row), [logged(reading, row.event), *below, *audits])


def _of_event(reading: Reading, event: int) -> Node:
    """An event that brought nothing of its own; a revocation leads to what it took back."""
    below: list[Node] = []
    decoded = events.decode(reading.event_row(event).data)
    if isinstance(decoded, RevocationEvent):
        index, size, target = reading.index, reading.size, decoded.target_id
        if decoded.target_kind == ACQUISITION:
            below = [acquisition_node(reading, row) for row in index.acquisitions(size) if row.id == target]
        elif decoded.target_kind == CHANNEL:
            below = list(parts.channels(reading, [target]))
        else:
            rows = [row for row in index.attestations(size) if row.statement == target]
            below = [attestation_node(reading, row) for row in rows]
    return with_children(event_node(reading, event), [head_node(reading), *below])


def made_by(reading: Reading, found: EventFound) -> Found:
    """What an event brought into the ledger, the event itself when that is nothing of its own."""
    index, size, event = reading.index, reading.size, found.event
    rows: Sequence[Found] = ()
    match events.decode(reading.event_row(event).data):
        case SegmentEvent():
            rows = index.segments(size)
        case RefusalEvent():
            rows = index.refusals(size)
        case ChannelEvent():
            rows = index.channel_rows(size)
        case AcquisitionEvent():
            rows = index.acquisitions(size)
        case AuditEvent():
            rows = index.records(size)
        case PlanEvent():
            rows = index.plans(size)
        case AttestationEvent():
            rows = index.attestations(size)
    return next((row for row in rows if row.event == event), found)


def _audits(reading: Reading, records: Iterable[Record]) -> list[Node]:
    return [audit_node(reading, record) for record in lineage_scope.in_order(records)]
