"""Where an entry comes from and what became of it, and what an audit rests on.

From an entry upward: the row of the source file, its segment and event under the signed head, channel,
acquisition, inputs, and the audits that read it. From an audit, a channel or an acquisition downward: the
segments, with their sources. Every step is checked on the way; nothing is told from the catalog alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from ledger import events
from ledger.audit_scope import (
    acquisitions_of,
    all_audits,
    audits_over,
    channels_of,
    design_of,
    reads,
    segments_of,
)
from ledger.design_scope import asks, chosen
from ledger.event_types import (
    AcquisitionEvent,
    AuditEvent,
    ChannelEvent,
    PlanEvent,
    RefusalEvent,
    SegmentEvent,
)
from ledger.identify import EntryFound, EventFound, Found, SourceFound, identify
from ledger.index_rows import AcquisitionRow, ChannelRow, PlanRow, RecordRow, RefusalRow, SegmentRow
from ledger.node import Node, present
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
from ledger.source_check import check_source

INPUTS = ("state_hash", "candidates_hash", "request_hash", "view_hash", "response_hash")


def lineage(reading: Reading, text: str, source: Path | None = None) -> Node:
    """The tree of what an id means; UsageError when it means nothing or several things.

    `source` is a file that should be one it came from: a node `file` says so, with the row of an entry;
    VerificationError when it is another file.
    """
    found = identify(reading.index, text, reading.size)
    if isinstance(found, EventFound):
        found = made_by(reading, found)
    reading.confirm(found.event)
    match found:
        case EntryFound():
            node = _of_entry(reading, read_entry(reading, found), source)
            source = None
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
            node = _with(refusal_node(reading, found), [_logged(reading, found.event)])
        case EventFound():
            node = _with(event_node(reading, found.event), [head_node(reading)])
    if source is None:
        return node
    return _with(node, [check_source(source, _sources_below(node)), *node.children])


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
        _with(
            segment_node(reading, segment, row=entry.row, page=entry.row // PAGE_ROWS),
            [_logged(reading, segment.event)],
        ),
        *_channels(reading, [values["channel"]] if "channel" in values else []),
        *_acquisitions(reading, [values["acquisition_id"]]),
        *([Node("inputs", entry.id, inputs)] if inputs else []),
        *(audit_node(reading, record) for record in audits_over(reading, [segment]) if reads(record, values)),
    ]
    return _with(entry_node(reading, entry, shown), below)


def _of_segment(reading: Reading, segment: SegmentRow) -> Node:
    return _with(
        segment_node(reading, segment),
        [
            _logged(reading, segment.event),
            *_channels(reading, segment.channels),
            *_acquisitions(reading, segment.acquisitions),
            *(audit_node(reading, record) for record in audits_over(reading, [segment])),
        ],
    )


def _of_audit(reading: Reading, record: Record) -> Node:
    """An audit downward: its head, channels, acquisitions and segments, in the order of the log."""
    return _with(
        audit_node(reading, record),
        [
            _logged(reading, record.row.event),
            *_channels(reading, channels_of(reading, record)),
            *_acquisitions(reading, acquisitions_of(reading, record)),
            *_plans(reading, design_of(record).get("plan")),
            *(_checked_segment(reading, segment) for segment in segments_of(reading, record)),
        ],
    )


def _of_plan(reading: Reading, row: PlanRow) -> Node:
    """A plan downward: the audits that followed it."""
    followed = [
        audit_node(reading, record)
        for record in all_audits(reading)
        if design_of(record).get("plan") == row.digest
    ]
    return _with(plan_node(reading, row), [_logged(reading, row.event), *followed])


def _of_source(reading: Reading, found: SourceFound) -> Node:
    """A source file downward: what was made of it; of one row, the entries it became."""
    index, size = reading.index, reading.size
    segments = [s for s in index.segments(size) if any(f.digest == found.digest for f in s.sources)]
    refusals = [r for r in index.refusals(size) if any(f.digest == found.digest for f in r.sources)]
    if found.row is not None:
        entries = [
            _of_entry(reading, read_entry(reading, EntryFound(segment, row)), None)
            for segment in segments
            for row in rows_of(reading, segment, found)
        ]
        return _with(source_node(found), entries)
    return _with(
        source_node(found),
        [
            *(_checked_segment(reading, segment) for segment in segments),
            *(_checked_refusal(reading, row) for row in refusals),
            *(audit_node(reading, record) for record in audits_over(reading, segments)),
        ],
    )


def rows_of(reading: Reading, segment: SegmentRow, found: SourceFound) -> list[int]:
    """The rows of a segment that a row of a source file became."""
    reading.confirm(segment.event)
    places = [i for i, source in enumerate(segment.sources) if source.digest == found.digest]
    with SegmentReader.ranged(reading.objects, segment) as reader:
        where = reader.source_rows(0, segment.rows)
    hit = np.isin(where.files, places) & (where.rows == found.row)
    return [int(row) for row in np.flatnonzero(hit)]


def _of_channel(reading: Reading, row: ChannelRow) -> Node:
    segments = reading.index.segments(reading.size, channels=[row.channel.fingerprint])
    acquisitions = sorted(
        {part.acquisition for s in segments for part in s.scope if part.channel == row.channel.fingerprint}
    )
    audits = [
        audit_node(reading, record)
        for record in audits_over(reading, segments)
        if asks(design_of(record), row.channel.fingerprint)
    ]
    return _with(
        channel_node(reading, row),
        [
            _logged(reading, row.event),
            *_acquisitions(reading, acquisitions),
            *(_checked_segment(reading, segment) for segment in segments),
            *audits,
        ],
    )


def _of_acquisition(reading: Reading, row: AcquisitionRow) -> Node:
    segments = reading.index.segments(reading.size, acquisitions=[row.id])
    asked = {part.channel for s in segments for part in s.scope if part.acquisition == row.id}
    channels = sorted(channel for channel in asked if channel is not None)
    audits = [
        audit_node(reading, record)
        for record in audits_over(reading, segments)
        if any(asks(design_of(record), c) and chosen(design_of(record), c, row.id) for c in asked)
    ]
    return _with(
        acquisition_node(reading, row),
        [
            _logged(reading, row.event),
            *_channels(reading, channels),
            *(_checked_segment(reading, segment) for segment in segments),
            *audits,
        ],
    )


def _plans(reading: Reading, digest: object) -> Iterator[Node]:
    """The plan an audit followed."""
    for row in reading.index.plans(reading.size):
        if row.digest == digest:
            reading.confirm(row.event)
            yield plan_node(reading, row)
            return


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
    return next((row for row in rows if row.event == event), found)


def _with(node: Node, children: Sequence[Node]) -> Node:
    return Node(node.kind, node.id, node.facts, tuple(children))


def _logged(reading: Reading, event: int) -> Node:
    """An event by its place in the log, and the head that commits to it."""
    facts = present(
        type=reading.event_row(event).type,
        time=reading.event_row(event).time,
        leaf=event,
        size=reading.size,
        path=reading.proof_length(event),
    )
    return Node("event", str(event), facts, (head_node(reading),))


def _checked_refusal(reading: Reading, refusal: RefusalRow) -> Node:
    reading.confirm(refusal.event)
    return refusal_node(reading, refusal)


def _checked_segment(reading: Reading, segment: SegmentRow) -> Node:
    reading.confirm(segment.event)
    return segment_node(reading, segment)


def _channels(reading: Reading, fingerprints: Sequence[str]) -> Iterator[Node]:
    """The channels of some fingerprints, each under the name it was first registered by."""
    first: dict[str, ChannelRow] = {}
    for row in reading.index.channel_rows(reading.size):
        first.setdefault(row.channel.fingerprint, row)
    for fingerprint in dict.fromkeys(fingerprints):
        if fingerprint in first:
            reading.confirm(first[fingerprint].event)
            yield channel_node(reading, first[fingerprint])


def _acquisitions(reading: Reading, ids: Sequence[str]) -> Iterator[Node]:
    for row in reading.index.acquisitions(reading.size):
        if row.id in ids:
            reading.confirm(row.event)
            yield acquisition_node(reading, row)
