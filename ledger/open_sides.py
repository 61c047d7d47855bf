"""Refused sides that no later call completed: what is still missing, as against what was ever refused."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from contracts.schema import TRANSPORT
from ledger.index import Index
from ledger.index_rows import SegmentRow
from ledger.objects import Objects
from ledger.refusals import RefusedRow

if TYPE_CHECKING:
    import pyarrow as pa

# A side, as both a refusal and an entry name it.
KEY = ("trajectory_id", "step", "view_source", "channel", "acquisition_id")
Side = tuple[str, int, str, str, str]


def open_sides(index: Index, objects: Objects) -> int:
    """How many different refused sides have no entries.

    Only segments that may hold such entries are opened: those logged after a refusal, of the channel and
    acquisition of a refused side. TamperError or StorageError where one of them cannot be read as it was.
    """
    missing = {_side(row): row.event for row in reversed(index.refused_sides())}
    for segment in index.segments():
        wanted = {side for side, event in missing.items() if event < segment.event and _may(segment, side)}
        if wanted:
            for side in wanted.intersection(_sides(objects, segment, wanted)):
                del missing[side]
    return len(missing)


def _side(row: RefusedRow) -> Side:
    return (row.trajectory_id, row.step, row.view_source, row.channel, row.acquisition_id)


def _may(segment: SegmentRow, side: Side) -> bool:
    """Whether a segment can hold entries of a side, by what its event says of it."""
    first, last = segment.first[0].encode(), segment.last[0].encode()
    return (
        segment.kind == TRANSPORT.kind
        and first <= side[0].encode() <= last
        and any((part.channel, part.acquisition) == side[3:] for part in segment.scope)
    )


def _sides(objects: Objects, segment: SegmentRow, wanted: Collection[Side]) -> Iterator[Side]:
    """The sides of a segment among the trajectories that are wanted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from ledger.query import digest_text
    from ledger.segment_reader import SegmentReader

    with SegmentReader.whole(objects, segment) as reader:
        table = reader.read(columns=KEY)
    names = table["trajectory_id"].cast(pa.string())
    near = table.filter(pc.is_in(names, pa.array(sorted({side[0] for side in wanted}))))
    channel = digest_text(near["channel"].combine_chunks()).cast(pa.string())
    plain = pa.table({name: channel if name == "channel" else _decoded(near[name]) for name in KEY})
    for row in plain.group_by(list(KEY)).aggregate([]).to_pylist():
        yield row["trajectory_id"], row["step"], row["view_source"], row["channel"], row["acquisition_id"]


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
