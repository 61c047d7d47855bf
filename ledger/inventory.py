"""A first pass over the segments of a scope: which trajectories, acquisitions and refused sides are in it.

Reads a few narrow columns. What comes out is small (one line for each trajectory of a segment) and exact,
so the second pass knows for every range of trajectories which rows of which segments to read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.labels import ABSENT
from ledger.coded import Codes, coded, numbers, pair, places
from ledger.engines import INLINE, Engine
from ledger.index_rows import SegmentRow
from ledger.matching import OUTSIDE, Arms, Matcher
from ledger.objects import Objects
from ledger.readings import Readings
from ledger.refusals import RefusedRow
from ledger.scope import Scope
from ledger.segment_rows import SegmentRows

_STEP_BITS = 31
SideKey = tuple[str, int, str, str, str]  # as RefusedRow.key


@dataclass(frozen=True)
class Runs:
    """Where the entries in scope of one segment stand, trajectory by trajectory in segment order.

    Those of `trajectories[i]` (ascending, distinct) lie in the rows `start[i]` to `stop[i] - 1`, of which
    `entries[i]` are in scope. `pieces` are the rows [start, stop) of row groups that hold any.
    """

    segment: SegmentRow
    pieces: tuple[tuple[int, int], ...]
    trajectories: pa.Array
    start: Codes
    stop: Codes
    entries: Codes

    def part(self, first: int, last: int) -> Runs:
        """The trajectories [first, last) alone; of the segment only what reading it takes."""
        low, high = int(self.start[first]), int(self.stop[last - 1])
        return Runs(
            replace(self.segment, sources=(), scope=()),
            tuple(piece for piece in self.pieces if piece[0] < high and piece[1] > low),
            self.trajectories.take(pa.array(np.arange(first, last))),
            self.start[first:last],
            self.stop[first:last],
            self.entries[first:last],
        )


@dataclass
class Inventory:
    """What a scope holds: runs by segment, acquisition ids by arm, view sources, refused sides.

    A refused side is listed while no entry has its key, by its latest refusal. Acquisitions are those
    with an entry or such a side in scope, revoked or not.
    """

    scope: Scope
    runs: list[Runs]
    acquisitions: list[set[str]]
    view_sources: set[str] = field(default_factory=set)
    refused: list[RefusedRow] = field(default_factory=list)


def take(
    objects: Objects,
    segments: Sequence[SegmentRow],
    refused: Iterable[RefusedRow],
    scope: Scope,
    engine: Engine = INLINE,
) -> Inventory:
    """The inventory of a scope over segments and refused sides in the order of the log."""
    matcher = Matcher(scope)
    latest = {side.key: side for side in refused if matcher.arm_of(side) is not None}
    kernel = _Kernel(objects, scope, _Refused.of(latest.values()) if latest else None)
    found, admitted = Inventory(scope, [], [set() for _ in scope.arms]), set()
    lean = [replace(segment, sources=(), scope=()) for segment in segments]
    parts = engine.map(kernel, _batches(lean, engine.pieces(sum(segment.rows for segment in lean))))
    for segment, (runs, seen) in zip(segments, parts, strict=True):
        if len(runs.start):
            found.runs.append(replace(runs, segment=segment))
        for number, names in enumerate(seen.acquisitions):
            found.acquisitions[number] |= names
        found.view_sources |= seen.view_sources
        admitted |= seen.admitted
    found.refused = [side for key, side in latest.items() if key not in admitted]
    for side in found.refused:
        arm = matcher.arm_of(side)
        assert arm is not None, "a refused side outside the scope was left out above"
        found.acquisitions[arm].add(side.acquisition_id)
    return found


@dataclass(frozen=True)
class _Batch:
    """Segments that are read one after the other."""

    segments: tuple[SegmentRow, ...]

    def __str__(self) -> str:
        first, last = self.segments[0].event, self.segments[-1].event
        return f"segment of event {first}" if first == last else f"segments of events {first} to {last}"


def _batches(segments: Sequence[SegmentRow], pieces: int) -> list[_Batch]:
    """The segments in order, in at most so many batches of about as many rows."""
    share = -(-sum(segment.rows for segment in segments) // pieces)
    batches: list[_Batch] = []
    held: list[SegmentRow] = []
    for segment in segments:
        held.append(segment)
        if sum(each.rows for each in held) >= share:
            batches.append(_Batch(tuple(held)))
            held = []
    return [*batches, _Batch(tuple(held))] if held else batches


@dataclass
class _Seen:
    """What was met in one segment beside its runs; `admitted` are the keys of refused sides it has."""

    acquisitions: list[set[str]]
    view_sources: set[str] = field(default_factory=set)
    admitted: set[SideKey] = field(default_factory=set)


@dataclass(frozen=True)
class _Kernel:
    """Takes the inventory of segments, one by one."""

    objects: Objects
    scope: Scope
    refused: _Refused | None

    def __call__(self, batch: _Batch) -> Iterator[tuple[Runs, _Seen]]:
        """The runs of every segment of a batch, and what else is in it."""
        matcher = Matcher(self.scope)
        for segment in batch.segments:
            seen = _Seen([set() for _ in self.scope.arms])
            rows = SegmentRows(self.objects, segment, matcher.trajectories)
            yield self._runs(rows, matcher, seen), seen

    def _runs(self, rows: SegmentRows, matcher: Matcher, seen: _Seen) -> Runs:
        columns = matcher.columns if self.refused is None else (*matcher.columns, "step")
        names, pieces = [pa.array([], pa.string())], []
        start, stop, counts = ([np.empty(0, np.int64)] for _ in range(3))
        for low, entries in rows.tables(tuple(dict.fromkeys(columns))):
            found = Readings.of(entries)
            table = found.table
            arm = matcher.arms(table)
            if self.refused is not None:
                seen.admitted |= self.refused.met(table, arm, self.scope)
            arm = matcher.narrowed(table, arm)
            at = np.flatnonzero(arm != OUTSIDE)
            if not len(at):
                continue
            pieces.append((low, low + entries.num_rows))
            _note(table, arm, at, seen)
            trajectory = coded(table["trajectory_id"])
            code = trajectory.codes[at]
            first = np.flatnonzero(np.append(True, code[1:] != code[:-1]))
            last = at[np.append(first[1:], len(at)) - 1]
            names.append(trajectory.values.take(pa.array(code[first])).cast(pa.string()))
            start.append(low + found.first[at[first]])
            stop.append(low + found.first[last] + found.lengths[last])
            counts.append(np.add.reduceat(found.lengths[at], first))
        return _merged(
            rows.segment, tuple(pieces), pa.concat_arrays(names), *map(np.concatenate, (start, stop, counts))
        )


def _merged(
    segment: SegmentRow,
    pieces: tuple[tuple[int, int], ...],
    names: pa.Array,
    start: Codes,
    stop: Codes,
    entries: Codes,
) -> Runs:
    """Runs with the two parts of a trajectory that goes on in the next row group made one."""
    if len(names) < 2:
        return Runs(segment, pieces, names, start, stop, entries)
    new = np.append(True, pc.not_equal(names[1:], names[:-1]).to_numpy(zero_copy_only=False))
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(names)) - 1
    return Runs(
        segment,
        pieces,
        names.take(pa.array(first)),
        start[first],
        stop[last],
        np.add.reduceat(entries, first),
    )


def _note(table: pa.Table, arm: Arms, at: Codes, seen: _Seen) -> None:
    """Remember the acquisitions and view sources of the rows in scope."""
    acquisition, source = coded(table["acquisition_id"]), coded(table["view_source"])
    width = len(acquisition.values)
    for code in np.unique(arm[at].astype(np.int64) * width + acquisition.codes[at]).tolist():
        seen.acquisitions[code // width].add(acquisition.values[code % width].as_py())
    used = np.unique(source.codes[at])
    seen.view_sources.update(source.values.take(pa.array(used)).to_pylist())


@dataclass(frozen=True)
class _Refused:
    """The transitions of refused sides, to find those that have entries: refused once and whole later.

    `names` are their trajectories, ascending, and `transitions` the distinct packed (trajectory, step).
    """

    names: pa.Array
    transitions: Codes

    @classmethod
    def of(cls, sides: Collection[RefusedRow]) -> _Refused:
        """Those of some refused sides."""
        names = sorted({side.trajectory_id for side in sides})
        place = {name: i for i, name in enumerate(names)}
        packed = [place[side.trajectory_id] << _STEP_BITS | side.step for side in sides]
        return cls(pa.array(names, pa.string()), np.unique(np.array(packed, np.int64)))

    def met(self, table: pa.Table, arm: Arms, scope: Scope) -> set[SideKey]:
        """The sides in these transitions among rows whose arms are known, whatever else they are."""
        trajectory = coded(table["trajectory_id"])
        place = places(trajectory.values, self.names)[trajectory.codes]
        at = np.flatnonzero((arm != OUTSIDE) & (place != ABSENT))
        packed = place[at] << _STEP_BITS | numbers(table["step"])[at]
        transition = np.searchsorted(self.transitions, packed)
        transition = np.minimum(transition, len(self.transitions) - 1)
        hit = self.transitions[transition] == packed
        at, transition = at[hit], transition[hit]
        acquisition, source = coded(table["acquisition_id"]), coded(table["view_source"])
        side = pair(pair(pair(transition, source.codes[at]), acquisition.codes[at]), arm[at].astype(np.int64))
        return {
            (
                trajectory.values[int(trajectory.codes[row])].as_py(),
                table["step"][row].as_py(),
                source.values[int(source.codes[row])].as_py(),
                scope.arms[int(arm[row])].channel.fingerprint,
                acquisition.values[int(acquisition.codes[row])].as_py(),
            )
            for row in at[np.unique(side, return_index=True)[1]].tolist()
        }
