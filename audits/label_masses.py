"""How much of each reading's probability lay on the allowed labels, per arm.

One mass per cell, taken from the entry of the target; over the entries in scope that meet every rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from audits.statistics import label_mass
from contracts.order import ranks
from ledger.snapshot import TrajectoryRange

Masses = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RangeMasses:
    """The masses of one range by arm, and whether any entry of it stores one."""

    by_arm: tuple[Masses, ...]
    present: bool


def of_range(part: TrajectoryRange, arms: int) -> RangeMasses:
    """The mass of every cell of a range, from the entry of its target."""
    stored = part.kept.cells["label_mass"]
    candidate, target = part.kept.cells["candidate"], part.kept.table["target"]
    names = ranks(pa.chunked_array([*candidate.chunks, *target.chunks], candidate.type))
    of_candidate, of_reading = np.split(names.codes, [len(candidate)])
    of_target = of_candidate == of_reading[part.kept.of_entry]
    arm = np.asarray(part.kept.table["arm"].to_numpy())[part.kept.of_entry[of_target]]
    present = stored.null_count < len(stored)
    if not present:
        counts = np.bincount(arm, minlength=arms).tolist()
        return RangeMasses(tuple(np.full(count, np.nan) for count in counts), present)
    mass = np.asarray(stored.to_numpy(), np.float64)[of_target]
    return RangeMasses(tuple(mass[arm == index] for index in range(arms)), present)


class LabelMasses:
    """Collects masses range by range; NaN stands for a cell that stores none."""

    def __init__(self, arms: int) -> None:
        self._found: list[list[Masses]] = [[] for _ in range(arms)]
        self.present = False

    @property
    def look(self) -> Callable[[TrajectoryRange], RangeMasses]:
        """What is taken from one range."""
        return partial(of_range, arms=len(self._found))

    def add(self, found: RangeMasses) -> None:
        """Take the masses of the next range."""
        self.present |= found.present
        for masses, of_arm in zip(self._found, found.by_arm, strict=True):
            masses.append(of_arm)

    def tables(self) -> list[dict[str, Any]]:
        """The summary of each arm, as a record holds it."""
        empty = np.empty(0, np.float64)
        return [asdict(label_mass.table(np.concatenate([empty, *masses]))) for masses in self._found]
