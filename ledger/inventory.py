"""A first pass over the segments of a scope: which trajectories, acquisitions and refused sides are in it.

Reads a few narrow columns. What comes out is small (one line for each trajectory of a segment) and exact,
so the second pass knows for every range of trajectories which rows of which segments to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.labels import ABSENT
from ledger.coded import Codes, coded, numbers, pair, places
from ledger.index_rows import SegmentRow
from ledger.matching import OUTSIDE, Arms, Matcher
from ledger.objects import Objects
from ledger.refusals import RefusedRow
from ledger.scope import Scope
from ledger.segment_rows import SegmentRows

_STEP_BITS = 31


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
    objects: Objects, segments: Sequence[SegmentRow], refused: Iterable[RefusedRow], scope: Scope
) -> Inventory:
    """The inventory of a scope over segments and refused sides in the order of the log."""
    matcher = Matcher(scope)
    found = Inventory(scope, [], [set() for _ in scope.arms])
    latest = {side.key: side for side in refused if matcher.arm_of(side) is not None}
    admitted = _Admitted(latest, scope)
    for segment in segments:
        runs = _runs(SegmentRows(objects, segment, matcher.trajectories), matcher, found, admitted)
        if len(runs.start):
            found.runs.append(runs)
    found.refused = [side for key, side in latest.items() if key not in admitted.keys]
    for side in found.refused:
        arm = matcher.arm_of(side)
        assert arm is not None, "a refused side outside the scope was left out above"
        found.acquisitions[arm].add(side.acquisition_id)
    return found


def _runs(rows: SegmentRows, matcher: Matcher, found: Inventory, admitted: _Admitted) -> Runs:
    columns = (*matcher.columns, "step") if admitted.wanted else matcher.columns
    names, pieces = [pa.array([], pa.string())], []
    start, stop, entries = ([np.empty(0, np.int64)] for _ in range(3))
    for low, table in rows.tables(tuple(dict.fromkeys(columns))):
        arm = matcher.arms(table)
        admitted.see(table, arm)
        arm = matcher.narrowed(table, arm)
        at = np.flatnonzero(arm != OUTSIDE)
        if not len(at):
            continue
        pieces.append((low, low + table.num_rows))
        _note(table, arm, at, found)
        trajectory = coded(table["trajectory_id"])
        code = trajectory.codes[at]
        first = np.flatnonzero(np.append(True, code[1:] != code[:-1]))
        after = np.append(first[1:], len(at))
        names.append(trajectory.values.take(pa.array(code[first])).cast(pa.string()))
        start.append(low + at[first])
        stop.append(low + at[after - 1] + 1)
        entries.append(after - first)
    return _merged(
        rows.segment, tuple(pieces), pa.concat_arrays(names), *map(np.concatenate, (start, stop, entries))
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


def _note(table: pa.Table, arm: Arms, at: Codes, found: Inventory) -> None:
    """Remember the acquisitions and view sources of the rows in scope."""
    acquisition, source = coded(table["acquisition_id"]), coded(table["view_source"])
    width = len(acquisition.values)
    for code in np.unique(arm[at].astype(np.int64) * width + acquisition.codes[at]).tolist():
        found.acquisitions[code // width].add(acquisition.values[code % width].as_py())
    used = np.unique(source.codes[at])
    found.view_sources.update(source.values.take(pa.array(used)).to_pylist())


class _Admitted:
    """Which of the refused sides have entries in the ledger: a side refused once and whole later."""

    def __init__(self, refused: dict[tuple[str, int, str, str, str], RefusedRow], scope: Scope) -> None:
        self.wanted = bool(refused)
        self.keys: set[tuple[str, int, str, str, str]] = set()
        self._scope = scope
        self._names = pa.array(sorted({side.trajectory_id for side in refused.values()}), pa.string())
        place = {name: i for i, name in enumerate(self._names.to_pylist())}
        packed = [place[side.trajectory_id] << _STEP_BITS | side.step for side in refused.values()]
        self._transitions = np.unique(np.array(packed, np.int64))

    def see(self, table: pa.Table, arm: Arms) -> None:
        """Look for entries of the refused sides among rows whose arms are known, whatever else they are."""
        if not self.wanted:
            return
        trajectory = coded(table["trajectory_id"])
        place = places(trajectory.values, self._names)[trajectory.codes]
        at = np.flatnonzero((arm != OUTSIDE) & (place != ABSENT))
        packed = place[at] << _STEP_BITS | numbers(table["step"])[at]
        transition = np.searchsorted(self._transitions, packed)
        transition = np.minimum(transition, len(self._transitions) - 1)
        hit = self._transitions[transition] == packed
        at, transition = at[hit], transition[hit]
        acquisition, source = coded(table["acquisition_id"]), coded(table["view_source"])
        side = pair(pair(pair(transition, source.codes[at]), acquisition.codes[at]), arm[at].astype(np.int64))
        for row in at[np.unique(side, return_index=True)[1]].tolist():
            self.keys.add(
                (
                    trajectory.values[int(trajectory.codes[row])].as_py(),
                    table["step"][row].as_py(),
                    source.values[int(source.codes[row])].as_py(),
                    self._scope.arms[int(arm[row])].channel.fingerprint,
                    acquisition.values[int(acquisition.codes[row])].as_py(),
                )
            )
