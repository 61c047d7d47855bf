"""The rows of one segment that a scope needs, a row group at a time, each verified when it is read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ledger.index_rows import SegmentRow
from ledger.objects import Objects
from ledger.segment_reader import SegmentReader


@dataclass(frozen=True)
class SegmentRows:
    """A segment, or its rows from the first to the last trajectory of `between`, both included.

    A whole segment is checked once by the digest of its file, which costs less than encoding its pages
    again; where only some trajectories are wanted, just their pages are read and checked.
    """

    objects: Objects
    segment: SegmentRow
    between: tuple[str, str] | None = None

    def tables(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """The rows as (number of the first row, table), cut where row groups end."""
        if not self.reachable:
            return
        with self.open() as reader:
            first, last = (0, self.segment.rows) if self.between is None else reader.find(*self.between)
            for start, stop in pieces(reader.group_starts, first, last):
                yield start, reader.read(start, stop, columns)

    def open(self) -> SegmentReader:
        """A verifying reader of the segment, the cheapest for how much is wanted of it."""
        opened = SegmentReader.whole if self.between is None else SegmentReader.ranged
        return opened(self.objects, self.segment)

    @property
    def reachable(self) -> bool:
        """Whether the event of the segment lets any wanted trajectory be in it."""
        if self.between is None:
            return True
        first, last = (name.encode() for name in self.between)
        return self.segment.first[0].encode() <= last and self.segment.last[0].encode() >= first


def pieces(group_starts: Sequence[int], first: int, last: int) -> Iterator[tuple[int, int]]:
    """The rows [first, last) cut where row groups end."""
    for start, stop in itertools.pairwise(group_starts):
        if start < last and stop > first:
            yield max(start, first), min(stop, last)
