"""What an audit was about, told from its record: its head, segments, channels, acquisitions and entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contracts.errors import TamperError
from ledger.design_scope import asks, chosen
from ledger.index_rows import SegmentRow
from ledger.reading import Reading
from ledger.scope import ANY_DONOR
from ledger.show import Record, read_envelope, read_record
from ledger.statement import Statement

_PARTS = ("channel", "intervention", "mode", "scenario")  # of predictions; a scope lists each as a plural


def all_audits(reading: Reading) -> Iterator[Record]:
    """Every logged audit, in the order of the log."""
    for row in reading.index.records(reading.size):
        reading.confirm(row.event)
        yield read_record(reading, row)


def audits_over(reading: Reading, segments: Sequence[SegmentRow]) -> Iterator[Record]:
    """The audits whose subjects name one of the segments, in the order of the log."""
    named = [digest.encode() for segment in segments for digest in digests_of(segment)]
    for row in reading.index.records(reading.size) if named else ():
        reading.confirm(row.event)
        signed = read_envelope(reading, row)
        # Most audits of a large ledger are about other segments; their bytes say so before they are parsed.
        if any(digest in signed.payload for digest in named):
            record = read_record(reading, row, signed)
            if any(is_named(segment, subjects(record)) for segment in segments):
                yield record


def subjects(record: Record) -> frozenset[str]:
    return frozenset(digest for subject in record.statement.subjects for digest in subject.digest.values())


def is_named(segment: SegmentRow, digests: frozenset[str]) -> bool:
    return any(digest in digests for digest in digests_of(segment))


def digests_of(segment: SegmentRow) -> tuple[str, str]:
    """What a subject may name a segment by: its file and its entries root, in hex."""
    return segment.file.removeprefix("blake3:"), segment.root.removeprefix("sha256:")


def design_of(record: Record) -> Mapping[str, Any]:
    """The design in a record's result; empty where the record has another shape."""
    result = record.statement.predicate.get("result")
    design = result.get("design") if isinstance(result, Mapping) else None
    return design if isinstance(design, Mapping) else {}


def reads(record: Record, values: Mapping[str, Any]) -> bool:
    """Whether an entry was in the scope of an audit over its segment: channel, view source, acquisition.

    A record of an unknown design counts as reading it: better one too many than one too few.
    """
    design = design_of(record)
    arms, view = design.get("arms"), values.get("view_source")
    if not arms or view is None:
        scope = design.get("scope")
        parts = scope if isinstance(scope, Mapping) else {}
        within = all(
            parts.get(f"{name}s") is None or values.get(name) in parts[f"{name}s"] for name in _PARTS
        )
        return within and chosen(design, values.get("channel"), values["acquisition_id"])
    return any(
        arm.get("channel") == values["channel"]
        and arm.get("view_source") in (view, ANY_DONOR if view.startswith(f"{ANY_DONOR}:") else view)
        and chosen(design, values["channel"], values["acquisition_id"])
        for arm in arms
    )


def segments_of(reading: Reading, record: Record) -> tuple[SegmentRow, ...]:
    """The segments an audit's subjects name, in the order of the log."""
    named = subjects(record)
    return tuple(segment for segment in reading.index.segments(reading.size) if is_named(segment, named))


def acquisitions_of(reading: Reading, record: Record) -> tuple[str, ...]:
    """The acquisitions in those segments that the audit's scope lets in, ascending."""
    design = design_of(record)
    parts = {part for segment in segments_of(reading, record) for part in segment.scope}
    return tuple(
        sorted(
            {
                part.acquisition
                for part in parts
                if asks(design, part.channel) and chosen(design, part.channel, part.acquisition)
            }
        )
    )


def channels_of(reading: Reading, record: Record) -> tuple[str, ...]:
    """The fingerprints of the channels an audit is about: its arms, or those its scope lets in."""
    design = design_of(record)
    arms = [str(arm.get("channel")) for arm in design.get("arms", ())]
    if arms:
        return tuple(dict.fromkeys(arms))
    parts = {part.channel for segment in segments_of(reading, record) for part in segment.scope}
    return tuple(sorted(channel for channel in parts if channel is not None and asks(design, channel)))


def head_size(stated: Statement) -> int:
    """The size of the head that an audit's first subject names; MalformedError when it names none."""
    origin, at, size = stated.subjects[0].name.rpartition("@")
    if not origin or not at or not size.isdecimal() or not size.isascii() or len(size) > 18:
        raise TamperError("the audit's first subject is no head", kind="record", expected="<origin>@<size>")
    return int(size)
