"""Whose view each transition was shown, for the arms that take the view of any donor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from audits.faces import Faces
from ledger.snapshot import ANY_DONOR, Arm, TrajectoryRange

_MARK = "donor:"
RangeDonors = dict[int, dict[tuple[str, int], str]]  # by arm, then by (trajectory, step)


def of_range(part: TrajectoryRange, arms: Sequence[int]) -> RangeDonors:
    """The donor of every transition of a range in some arms."""
    table = part.kept.table
    arm = np.asarray(table["arm"].to_numpy())
    found: RangeDonors = {}
    for index in arms:
        rows = table.filter(pa.array(arm == index))
        named = rows.select(["trajectory_id", "step", "view_source"]).group_by(
            ["trajectory_id", "step", "view_source"]
        )
        found[index] = {
            (row["trajectory_id"], row["step"]): row["view_source"].removeprefix(_MARK)
            for row in named.aggregate([]).to_pylist()
        }
    return found


class DonorMap:
    """Collects the donors of a selection range by range."""

    def __init__(self, arms: Sequence[Arm]) -> None:
        self._found: RangeDonors = {
            index: {} for index, arm in enumerate(arms) if arm.view_source == ANY_DONOR
        }

    @property
    def look(self) -> Callable[[TrajectoryRange], RangeDonors]:
        """What is taken from one range."""
        return partial(of_range, arms=tuple(self._found))

    def add(self, found: RangeDonors) -> None:
        """Take the donors of the next range."""
        for index, donors in found.items():
            self._found[index].update(donors)

    def table(self, roles: Sequence[str], faces: Faces) -> dict[str, Any]:
        """The donor of every complete transition by arm, as [trajectory, step, donor]; nothing without one.

        A complete transition has one donor: with several it was left out.
        """
        if not self._found:
            return {}
        transitions = [
            (faces.trajectories[cluster], step)
            for cluster, step in zip(faces.cluster.tolist(), faces.step.tolist(), strict=True)
        ]
        return {
            "donors": {
                roles[index]: [[name, step, donors[name, step]] for name, step in transitions]
                for index, donors in self._found.items()
            }
        }
