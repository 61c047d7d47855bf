"""The scored readings of refused sides: no entries, yet all there is of a face that lacks a corner.

They are read from the objects a refusal event commits to, verified like a segment, and never mixed with
entries except where a question asks for them by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.digest import pack
from ledger.event_types import RefusalEvent
from ledger.matching import Matcher
from ledger.objects import Objects
from ledger.ranges import COLUMNS, NONE, in_scope
from ledger.readings import Readings
from ledger.refusals import RefusedRow
from ledger.segment_reader import SegmentReader

SIDE = ("trajectory_id", "step", "view_source", "channel", "acquisition_id")


@dataclass(frozen=True)
class RefusedReadings:
    """Where the rows of refused sides are: the refusals by their leaf index."""

    objects: Objects
    refusals: Mapping[int, RefusalEvent]

    def of(self, sides: Sequence[RefusedRow], matcher: Matcher) -> Readings:
        """The rows of some sides that were scored, as those of a range would be, in no order."""
        parts = [NONE]
        for event in sorted({side.event for side in sides}):
            wanted = _keys([side for side in sides if side.event == event])
            with SegmentReader.whole(self.objects, self.refusals[event], "refusals") as reader:
                names = dict.fromkeys((*COLUMNS, *matcher.columns, "status"))
                table = reader.read(columns=tuple(names))
            place = pa.array(np.arange(table.num_rows))
            keys = table.select(SIDE).append_column("place", place)
            for index, column in enumerate(SIDE):
                keys = keys.set_column(index, column, keys[column].cast(wanted.schema.field(column).type))
            found = keys.join(wanted, list(SIDE), join_type="left semi")["place"]
            table = table.take(found.combine_chunks().sort())
            table = table.filter(pc.equal(table["status"].cast(pa.string()), "ok"))
            parts.append(in_scope(table, matcher)[1])
        return Readings.concat(parts)


def _keys(sides: Sequence[RefusedRow]) -> pa.Table:
    return pa.table(
        {
            "trajectory_id": pa.array([side.trajectory_id for side in sides], pa.string()),
            "step": pa.array([side.step for side in sides], pa.int32()),
            "view_source": pa.array([side.view_source for side in sides], pa.string()),
            "channel": pa.array([pack(side.channel) for side in sides], pa.binary()),
            "acquisition_id": pa.array([side.acquisition_id for side in sides], pa.string()),
        }
    )
