"""A judged call as durable objects and the events that name them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from contracts.digest import blake3_digest
from contracts.order import ranks
from contracts.refusals import refused_sides
from contracts.schema import REFUSED, TRANSPORT
from ledger import segments
from ledger.event_types import AcquisitionEvent, Event, RefusalEvent, ScopeRows, SegmentEvent, Source
from ledger.object_names import refusal_index_name
from ledger.objects import Objects
from ledger.receipt import Receipt
from ledger.refusals import encode_index
from ledger.segments import WrittenSegment

Progress = Callable[[str, int, int], None]  # phase, done, total
CONTRACT = "ledger.transport-contract.v1"


@dataclass(frozen=True)
class Prepared:
    """A call judged against a log of `size` events: the events that record it, whose objects are stored."""

    size: int
    events: tuple[Event, ...]
    receipt: Receipt


@dataclass(frozen=True)
class NewRows:
    """What a call adds: sorted entries, and the refused sides not recorded before with their rows."""

    admitted: pa.Table
    refused: pa.Table
    sides: pa.Table

    def __bool__(self) -> bool:
        return bool(self.admitted.num_rows or self.refused.num_rows)

    def acquisitions(self, known: Collection[str]) -> list[str]:
        """The acquisitions that occur here and are not known, by UTF-8 bytes."""
        found: set[str] = set()
        for table in (self.admitted, self.refused):
            if table.num_rows:
                found.update(ranks(table.column("acquisition_id")).values.to_pylist())
        return sorted(found.difference(known), key=str.encode)


def store(
    objects: Objects,
    new: NewRows,
    sources: tuple[Source, ...],
    known: Collection[str],
    progress: Progress,
) -> tuple[Event, ...]:
    """Writes segments and refusal; the events are acquisitions, then segments, then the refusal."""
    total = new.admitted.num_rows + new.refused.num_rows
    done = 0

    def wrote(rows: int) -> None:
        nonlocal done
        done += rows
        progress("write", done, total)

    progress("write", 0, total)
    acquired = [AcquisitionEvent(name, TRANSPORT.kind) for name in new.acquisitions(known)]
    written = segments.write(new.admitted, TRANSPORT, objects, in_order=True, progress=wrote)
    events: list[Event] = [
        *acquired,
        *(segment_event(segment, TRANSPORT.kind, CONTRACT, sources) for segment in written),
    ]
    events += _refusal(objects, new, sources, wrote)
    return tuple(events)


def segment_event(
    written: WrittenSegment, kind: str, contract: str, sources: tuple[Source, ...]
) -> SegmentEvent:
    """The event of a written segment; `sources` are all files of its call, as its row file counts them."""
    return SegmentEvent(
        kind=kind,
        schema=written.schema,
        contract=contract,
        file=written.file,
        size=written.bytes,
        root=written.root,
        rows=written.rows,
        leaves=written.leaves,
        rows_file=written.rows_file,
        sources=sources,
        channels=tuple(dict.fromkeys(channel for channel, _, _ in written.scope if channel is not None)),
        acquisitions=tuple(sorted({acquisition for _, acquisition, _ in written.scope}, key=str.encode)),
        scope=tuple(ScopeRows(*part) for part in written.scope),
        first=written.first,
        last=written.last,
        trajectories=written.trajectories,
    )


def _refusal(
    objects: Objects, new: NewRows, sources: tuple[Source, ...], wrote: Callable[[int], None]
) -> Iterator[RefusalEvent]:
    if not new.refused.num_rows:
        return
    (written,) = segments.write(new.refused, REFUSED, objects, folder="refusals", cut=False, progress=wrote)
    index = encode_index(refused_sides(new.sides))
    digest = blake3_digest(index)
    objects.put(refusal_index_name(digest), index)
    yield RefusalEvent(
        schema=written.schema,
        file=written.file,
        size=written.bytes,
        root=written.root,
        rows=written.rows,
        leaves=written.leaves,
        rows_file=written.rows_file,
        sides=new.sides.num_rows,
        index=digest,
        sources=sources,
    )


def roots(admitted: pa.Table) -> Sequence[str]:
    """The entries roots the rows would get."""
    return tuple(segments.commitments(admitted, TRANSPORT))
