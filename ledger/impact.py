"""Which audits would change if something were wrong: an acquisition, a channel, a file, a checkpoint …

See `lineage_scope` for when an audit hangs on a thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ledger import lineage_scope
from ledger.audit_scope import all_audits, audits_over, design_of, reads
from ledger.checkpoints import CheckpointFound
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
from ledger.lineage import made_by, rows_of
from ledger.node import Node
from ledger.reading import Reading
from ledger.show import Record, audit_node, read_entry

_KINDS: dict[type, str] = {
    EntryFound: "entry",
    SegmentRow: "segment",
    RefusalRow: "refusal",
    AcquisitionRow: "acquisition",
    PlanRow: "plan",
    SourceFound: "source",
    ChannelRow: "channel",
    RecordRow: "audit",
    AttestationRow: "attestation",
    CheckpointFound: "checkpoint",
    EventFound: "event",
}


def impact(reading: Reading, text: str) -> Node:
    """A node of kind `impact` with the audits in question below it, each once, in the order of the log."""
    found = identify(reading.index, text, reading.size, reading.objects)
    if isinstance(found, EventFound):
        found = made_by(reading, found)
    reading.confirm(found.event)
    audits = lineage_scope.in_order(_audits(reading, found))
    below = tuple(audit_node(reading, record) for record in audits)
    return Node("impact", text, {"audits": len(below), "of": _KINDS[type(found)]}, below)


def _audits(reading: Reading, found: Found) -> Iterable[Record]:
    audits: Iterable[Record]
    match found:
        case AcquisitionRow():
            audits = lineage_scope.of_acquisition(reading, found.id)
        case ChannelRow():
            audits = lineage_scope.of_channel(reading, found.channel.fingerprint)
        case CheckpointFound():
            audits = lineage_scope.of_checkpoint(reading, found)
        case AttestationRow():
            audits = lineage_scope.of_attestation(reading, found)
        case SegmentRow():
            audits = audits_over(reading, [found])
        case EntryFound():
            audits = _of_entries(reading, [found])
        case SourceFound():
            audits = _of_source(reading, found)
        case RefusalRow():
            audits = _of_refusals(reading, {found.event})
        case RecordRow():
            audits = (record for record in all_audits(reading) if record.row == found)
        case PlanRow():
            audits = (r for r in all_audits(reading) if design_of(r).get("plan") == found.digest)
        case EventFound():
            audits = ()
    return audits


def _of_entries(reading: Reading, entries: list[EntryFound]) -> Iterator[Record]:
    for found in entries:
        values = read_entry(reading, found).values
        yield from (r for r in audits_over(reading, [found.segment]) if reads(r, values))


def _of_source(reading: Reading, found: SourceFound) -> Iterator[Record]:
    """The audits over what a file became, or one row of it: entries, or refused sides."""
    index, size = reading.index, reading.size
    segments = [s for s in index.segments(size) if any(f.digest == found.digest for f in s.sources)]
    refusals = [r for r in index.refusals(size) if any(f.digest == found.digest for f in r.sources)]
    if found.row is None:
        yield from audits_over(reading, segments)
    else:
        entries = [EntryFound(s, row) for s in segments for row in rows_of(reading, s, found)]
        yield from _of_entries(reading, entries)
        refusals = [r for r in refusals if rows_of(reading, r, found)]
    yield from _of_refusals(reading, {r.event for r in refusals})


def _of_refusals(reading: Reading, made: set[int]) -> Iterator[Record]:
    sides = [side for side in lineage_scope.refused(reading) if side.event in made] if made else []
    yield from lineage_scope.of_refused(reading, sides)
