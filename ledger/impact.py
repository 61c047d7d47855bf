"""Which audits would change if something were wrong: an acquisition, a channel, a file, a segment, an entry.

An audit counts when the thing was in its scope: as entries it read, or as refused sides its flow counts.
Better one audit too many than one too few: whether a number would move is known only by computing it again.
"""

from __future__ import annotations

from collections.abc import Iterator

from ledger.audit_scope import all_audits, audits_over, design_of, head_size, reads
from ledger.design_scope import asks, chosen
from ledger.identify import EntryFound, EventFound, SourceFound, identify
from ledger.index_rows import AcquisitionRow, ChannelRow, PlanRow, RecordRow, RefusalRow, SegmentRow
from ledger.lineage import made_by, rows_of
from ledger.node import Node
from ledger.reading import Reading
from ledger.refusals import RefusedRow
from ledger.show import Record, audit_node, node_of, read_entry


def impact(reading: Reading, text: str) -> Node:
    """A node of kind `impact` with the audits in question below it, each once, in the order of the log."""
    found = identify(reading.index, text, reading.size)
    if isinstance(found, EventFound):
        found = made_by(reading, found)
    reading.confirm(found.event)
    match found:
        case AcquisitionRow() | ChannelRow():
            audits = _of_scope(reading, found)
        case SegmentRow():
            audits = audits_over(reading, [found])
        case EntryFound():
            audits = _of_entries(reading, [found])
        case SourceFound():
            audits = _of_source(reading, found)
        case RefusalRow():
            audits = _of_refused(reading, [s for s in _refused(reading) if s.event == found.event])
        case RecordRow():
            audits = (record for record in all_audits(reading) if record.row == found)
        case PlanRow():
            audits = (r for r in all_audits(reading) if design_of(r).get("plan") == found.digest)
        case EventFound():
            audits = iter(())
    once = {record.row.event: record for record in audits}
    below = [audit_node(reading, once[event]) for event in sorted(once)]
    return Node("impact", text, {"audits": len(below), "of": _kind(reading, found)}, tuple(below))


def _kind(reading: Reading, found: object) -> str:
    if isinstance(found, EntryFound):
        return "entry"
    if isinstance(found, SegmentRow | RefusalRow | AcquisitionRow | PlanRow | SourceFound):
        return node_of(reading, found).kind
    return {ChannelRow: "channel", RecordRow: "audit", EventFound: "event"}.get(type(found), "event")


def _of_scope(reading: Reading, row: AcquisitionRow | ChannelRow) -> Iterator[Record]:
    """The audits whose scope lets in an acquisition or asks about a channel, where there is any of it."""
    if isinstance(row, ChannelRow):
        fingerprint = row.channel.fingerprint
        segments = reading.index.segments(reading.size, channels=[fingerprint])
        sides = [side for side in _refused(reading) if side.channel == fingerprint]
        for record in audits_over(reading, segments):
            if asks(design_of(record), fingerprint):
                yield record
    else:
        segments = reading.index.segments(reading.size, acquisitions=[row.id])
        channels = {p.channel for s in segments for p in s.scope if p.acquisition == row.id}
        sides = [side for side in _refused(reading) if side.acquisition_id == row.id]
        for record in audits_over(reading, segments):
            design = design_of(record)
            if any(asks(design, channel) and chosen(design, channel, row.id) for channel in channels):
                yield record
    yield from _of_refused(reading, sides)


def _of_entries(reading: Reading, entries: list[EntryFound]) -> Iterator[Record]:
    for found in entries:
        values = read_entry(reading, found).values
        yield from (r for r in audits_over(reading, [found.segment]) if reads(r, values))


def _of_source(reading: Reading, found: SourceFound) -> Iterator[Record]:
    index, size = reading.index, reading.size
    segments = [s for s in index.segments(size) if any(f.digest == found.digest for f in s.sources)]
    if found.row is not None:
        entries = [EntryFound(s, row) for s in segments for row in rows_of(reading, s, found)]
        yield from _of_entries(reading, entries)
        return
    yield from audits_over(reading, segments)
    refusals = {r.event for r in index.refusals(size) if any(f.digest == found.digest for f in r.sources)}
    yield from _of_refused(reading, [side for side in _refused(reading) if side.event in refusals])


def _refused(reading: Reading) -> tuple[RefusedRow, ...]:
    return reading.index.refused_sides(reading.size)


def _of_refused(reading: Reading, sides: list[RefusedRow]) -> Iterator[Record]:
    """The audits whose flow counts a refused side: it was there, and its channel and acquisition in scope."""
    places = {(side.event, side.channel, side.acquisition_id) for side in sides}
    for record in all_audits(reading) if places else ():
        design, at = design_of(record), head_size(record.statement)
        if any(
            event < at and asks(design, channel) and chosen(design, channel, acquisition)
            for event, channel, acquisition in places
        ):
            yield record
