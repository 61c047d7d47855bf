"""A second pass over the segments of a scope: ranges of whole trajectories, read one after the other.

Segments are sorted by trajectory, so a range is a few consecutive rows of each, and nothing is shuffled.
At any time there are in memory: the range, the row groups it shares with the next one as far as HELD_ROWS
allow (the others are read again), and the bytes of one segment. None of it grows with the number of
segments or of entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.schema import TRANSPORT, TYPES
from ledger.coded import Codes, places
from ledger.inventory import Runs
from ledger.matching import OUTSIDE, Matcher
from ledger.objects import Objects
from ledger.readings import CELLS, Readings
from ledger.segment_reader import SegmentReader
from ledger.segment_rows import SegmentRows

RANGE_ENTRIES = 1 << 17
HELD_ROWS = 1 << 20
# What rules and audits read of an entry, beside what the scope filters by.
COLUMNS = (
    "trajectory_id", "step", "endpoint", "view_source", "layout", "acquisition_id", "candidate", "energy",
    "target", "state_hash", "candidates_hash", "request_hash", "view_hash", "target_type", "position",
    "success", "label_mass",
)  # fmt: skip

# Text is coded as it is read, digests once a range is whole.
SCHEMA = pa.schema(
    [
        pa.field(c.name, pa.dictionary(pa.int32(), TYPES["text"]) if c.type == "text" else TYPES[c.type])
        for c in TRANSPORT.columns
        if c.name in COLUMNS
    ]
    + [pa.field("arm", pa.int8())]
)

NONE = Readings.of(SCHEMA.empty_table())


def cut(entries: Codes, limit: int) -> Iterator[tuple[int, int]]:
    """Consecutive ranges [low, high) of trajectories with at most `limit` entries, or one trajectory each."""
    total = np.cumsum(entries)
    low, done = 0, 0
    while low < len(entries):
        high = max(low + 1, int(np.searchsorted(total, done + limit, side="right")))
        yield low, high
        low, done = high, int(total[high - 1])


@dataclass(frozen=True)
class Trajectories:
    """All trajectories of a scope, ascending by UTF-8 bytes, and where each segment has them.

    `entries` counts the entries in scope by trajectory; `ranks[i]` are the trajectories of `runs[i]`.
    """

    names: pa.Array
    entries: Codes
    runs: Sequence[Runs]
    ranks: Sequence[Codes]

    @classmethod
    def of(cls, runs: Sequence[Runs], others: pa.Array) -> Trajectories:
        """Number the trajectories of all runs, and others that have no entries."""
        listed = [*(run.trajectories for run in runs), others]
        names = pc.unique(pa.chunked_array(listed))
        names = names.take(pc.sort_indices(names))
        ranks = [places(run.trajectories, names) for run in runs]
        entries = np.zeros(len(names), np.int64)
        for run, rank in zip(runs, ranks, strict=True):
            entries[rank] += run.entries
        return cls(names, entries, runs, ranks)

    def spans(self, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """The rows (run, first, last + 1) that hold the trajectories [low, high)."""
        for index, (run, rank) in enumerate(zip(self.runs, self.ranks, strict=True)):
            first, last = np.searchsorted(rank, [low, high]).tolist()
            if first < last:
                yield index, int(run.start[first]), int(run.stop[last - 1])

    def part(self, low: int, high: int) -> Trajectories:
        """The trajectories [low, high) alone, with no more of each segment than they need."""
        runs, ranks = [], []
        for run, rank in zip(self.runs, self.ranks, strict=True):
            first, last = np.searchsorted(rank, [low, high]).tolist()
            if first < last:
                runs.append(run.part(first, last))
                ranks.append(rank[first:last] - low)
        return Trajectories(_copied(self.names, low, high), self.entries[low:high], runs, ranks)


def _copied(names: pa.Array, first: int, last: int) -> pa.Array:
    """Part of an array in memory of its own: a slice would be pickled with all there is around it."""
    return names.take(pa.array(np.arange(first, last)))


@dataclass
class _Piece:
    """The readings in scope of part of a row group; the i-th begins at row `rows[i]` of its segment."""

    rows: Codes
    readings: Readings
    done: int = 0

    def before(self, last: int) -> Readings:
        """The readings not given yet that begin below row `last`."""
        start, self.done = self.done, int(np.searchsorted(self.rows, last))
        return self.readings.slice(start, self.done)


@dataclass
class RangeReader:
    """Reads ranges of trajectories, each once and in ascending order."""

    objects: Objects
    matcher: Matcher
    trajectories: Trajectories
    _held: dict[tuple[int, int], _Piece] = field(default_factory=dict)
    _open: tuple[int, SegmentReader] | None = None

    def read(self, low: int, high: int) -> Readings:
        """The readings in scope of the trajectories [low, high), with `arm`, by (trajectory_id, step)."""
        spans = list(self.trajectories.spans(low, high))
        parts = [NONE]
        for index, first, last in spans:
            for start, stop in self.trajectories.runs[index].pieces:
                if start < last and stop > first:
                    parts.append(self._piece(index, start, stop, first).before(last))
        self._drop()
        found = Readings.concat(parts).coded()
        return found if len(spans) < 2 else found.by_transition()

    def close(self) -> None:
        """Let go of everything that is open or held."""
        if self._open is not None:
            self._open[1].close()
        self._open = None
        self._held.clear()

    def _piece(self, index: int, start: int, stop: int, first: int) -> _Piece:
        """Part of a row group, from what is held or else read, with what lies before `first` given."""
        piece = self._held.get((index, start))
        if piece is None:
            table = self._reader(index).read(start, stop, self._columns)
            rows, readings = in_scope(table, self.matcher)
            piece = _Piece(start + rows, readings)
            piece.before(first)
            self._held[index, start] = piece
        return piece

    @property
    def _columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*COLUMNS, *self.matcher.columns)))

    def _reader(self, index: int) -> SegmentReader:
        """A reader of a segment. One is open at a time: a segment's bytes weigh more than a range."""
        if self._open is None or self._open[0] != index:
            if self._open is not None:
                self._open[1].close()
            segment = self.trajectories.runs[index].segment
            self._open = index, SegmentRows(self.objects, segment, self.matcher.trajectories).open()
        return self._open[1]

    def _drop(self) -> None:
        """Forget what is used up, and what would be too much to hold."""
        rows = 0
        for key, piece in list(self._held.items()):
            entries = piece.readings.cells.num_rows
            rows += entries
            if piece.done == len(piece.rows) or rows > HELD_ROWS:
                rows -= entries
                del self._held[key]


def in_scope(table: pa.Table, matcher: Matcher) -> tuple[Codes, Readings]:
    """The readings in scope of some rows, and the row each begins at."""
    found = Readings.of(table)
    arm = matcher.narrowed(found.table, matcher.arms(found.table))
    inside = arm != OUTSIDE
    rows = found.first[inside]
    found = found.where(inside)
    shared = found.table.select([name for name in COLUMNS if name not in CELLS])
    table = pa.Table.from_arrays([*shared.columns, pa.array(arm[inside])], schema=NONE.table.schema)
    cells = pa.Table.from_arrays(
        found.cells.select(NONE.cells.column_names).columns, schema=NONE.cells.schema
    )
    return rows, Readings(table, found.lengths, cells)
