"""What is done to one range of trajectories wherever it is done: read, verify, judge, and hand on.

A task is some consecutive trajectories with what of the segments they need, so tasks are small and share
nothing. A kernel gives one result for every range of its task: Arrow in, and what `work` makes of it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ledger.coded import Codes, places
from ledger.inventory import Inventory
from ledger.matching import Matcher
from ledger.objects import Objects
from ledger.provenance import Judgement, ProvenanceCount, ScopeFacts, apply_rules
from ledger.ranges import RANGE_ENTRIES, RangeReader, Trajectories, cut
from ledger.readings import Readings
from ledger.refusals import RefusedRow

Value = TypeVar("Value")


@dataclass(frozen=True)
class TrajectoryRange:
    """Everything in scope of some consecutive trajectories.

    `kept` are the readings that meet every rule at the required level: canonical columns (text and digests
    coded) and `arm` int8, the index into `scope.arms`, sorted by (trajectory_id, step). `out` are all others
    in the same order, and `rule` int8 the index into RULES of the first rule each breaks. `refused` are the
    refused sides without entries, those of revoked acquisitions included.
    """

    kept: Readings
    out: Readings
    rule: npt.NDArray[np.int8]
    refused: tuple[RefusedRow, ...] = ()

    @property
    def entries(self) -> pa.Table:
        """What was kept, one row an entry."""
        return self.kept.entries


@dataclass(frozen=True)
class RangeTask:
    """Consecutive trajectories; `refused` are their refused sides, and `places` which one each belongs to."""

    trajectories: Trajectories
    refused: tuple[RefusedRow, ...]
    places: Codes

    def __str__(self) -> str:
        names = self.trajectories.names
        return f"trajectories {names[0].as_py()} to {names[-1].as_py()}" if len(names) else "no trajectories"

    @classmethod
    def of(cls, inventory: Inventory) -> RangeTask:
        """All that an inventory lists."""
        named = pa.array([side.trajectory_id for side in inventory.refused], pa.string())
        trajectories = Trajectories.of(inventory.runs, named)
        place = places(named, trajectories.names)
        order = np.argsort(place, kind="stable")
        return cls(trajectories, tuple(inventory.refused[i] for i in order.tolist()), place[order])

    @property
    def entries(self) -> int:
        """How many entries are in scope."""
        return int(self.trajectories.entries.sum())

    def split(self, pieces: int) -> list[RangeTask]:
        """The same in about so many tasks of about as many entries, in order."""
        if pieces < 2:
            return [self]
        share = max(-(-self.entries // pieces), 1)
        return [self._part(low, high) for low, high in cut(self.trajectories.entries, share)]

    def _part(self, low: int, high: int) -> RangeTask:
        first, last = np.searchsorted(self.places, [low, high]).tolist()
        return RangeTask(
            self.trajectories.part(low, high), self.refused[first:last], self.places[first:last] - low
        )

    def ranges(self, objects: Objects, matcher: Matcher) -> Iterator[tuple[Readings, tuple[RefusedRow, ...]]]:
        """The readings in scope and the refused sides of every range, not judged yet."""
        reader = RangeReader(objects, matcher, self.trajectories)
        try:
            for low, high in cut(self.trajectories.entries, RANGE_ENTRIES):
                first, last = np.searchsorted(self.places, [low, high]).tolist()
                yield reader.read(low, high), self.refused[first:last]
        finally:
            reader.close()


@dataclass(frozen=True)
class Worked(Generic[Value]):
    """What `work` made of a range, and what the rules said of its entries."""

    value: Value
    count: ProvenanceCount


@dataclass(frozen=True)
class RangeKernel(Generic[Value]):
    """Reads, verifies and judges every range of a task, and does `work` on it; pure but for reading."""

    objects: Objects
    facts: ScopeFacts
    work: Callable[[TrajectoryRange], Value]

    def __call__(self, task: RangeTask) -> Iterator[Worked[Value]]:
        """One result for every range, in order."""
        for readings, sides in task.ranges(self.objects, Matcher(self.facts.scope)):
            judged = apply_rules(readings.table, self.facts)
            count = ProvenanceCount()
            count.add(judged, readings.lengths)
            value = self.work(judged_range(readings, judged, sides))
            del readings, judged  # or they would stay while the next range is read
            pa.default_memory_pool().release_unused()  # else it keeps three times what a range takes
            yield Worked(value, count)
            del value


def judged_range(
    readings: Readings, judged: Judgement, refused: tuple[RefusedRow, ...] = ()
) -> TrajectoryRange:
    """A range of readings, divided by what the rules say of them."""
    out = ~judged.kept
    return TrajectoryRange(readings.where(~out), readings.where(out), judged.rule[out], refused)


def itself(part: TrajectoryRange) -> TrajectoryRange:
    """No work at all: the range as it is."""
    return part
