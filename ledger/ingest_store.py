"""What is stored of a judged call, and the events that name it."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from contracts.digest import blake3_digest
from contracts.order import ranks
from contracts.refusals import refused_sides
from contracts.schema import REFUSED
from ledger import segments
from ledger.event_types import RefusalEvent, ScopeRows, SegmentEvent, Source
from ledger.object_names import refusal_index_name
from ledger.objects import Store
from ledger.refusals import encode_index
from ledger.segments import WrittenSegment

CONTRACT = "ledger.transport-contract.v1"


def acquisitions(tables: Iterable[pa.Table]) -> set[str]:
    """The acquisitions that occur in some rows."""
    found: set[str] = set()
    for table in tables:
        if table.num_rows:
            found.update(ranks(table.column("acquisition_id")).values.to_pylist())
    return found


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


def store_refusal(
    objects: Store, refused: pa.Table, sides: pa.Table, sources: tuple[Source, ...]
) -> RefusalEvent:
    """Keeps refused rows with the list of their sides."""
    (written,) = segments.write(refused, REFUSED, objects, folder="refusals", cut=False)
    index = encode_index(refused_sides(sides))
    digest = blake3_digest(index)
    objects.put(refusal_index_name(digest), index)
    return RefusalEvent(
        schema=written.schema,
        file=written.file,
        size=written.bytes,
        root=written.root,
        rows=written.rows,
        leaves=written.leaves,
        rows_file=written.rows_file,
        sides=sides.num_rows,
        index=digest,
        sources=sources,
    )
