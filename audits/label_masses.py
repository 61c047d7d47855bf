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
    """The masses that the cells of one range store, by arm, and how many cells of the arm store none."""

    by_arm: tuple[Masses, ...]
    absent: tuple[int, ...]


def of_range(part: TrajectoryRange, arms: int) -> RangeMasses:
    """The mass of every cell of a range, from the entry of its target."""
    stored = part.kept.cells["label_mass"]
    candidate, target = part.kept.cells["candidate"], part.kept.table["target"]
    names = ranks(pa.chunked_array([*candidate.chunks, *target.chunks], candidate.type))
    of_candidate, of_reading = np.split(names.codes, [len(candidate)])
    of_target = of_candidate == of_reading[part.kept.of_entry]
    arm = np.asarray(part.kept.table["arm"].to_numpy())[part.kept.of_entry[of_target]]
    cells = np.bincount(arm, minlength=arms).tolist()
    if stored.null_count == len(stored):
        return RangeMasses((np.empty(0, np.float64),) * arms, tuple(cells))
    mass = np.asarray(stored.to_numpy(), np.float64)[of_target]
    present = ~np.isnan(mass)
    found = tuple(mass[present & (arm == index)] for index in range(arms))
    return RangeMasses(found, tuple(cells[index] - len(found[index]) for index in range(arms)))


class LabelMasses:
    """Collects masses range by range."""

    def __init__(self, arms: int) -> None:
        self._found: list[list[Masses]] = [[] for _ in range(arms)]
        self._absent = [0] * arms

    @property
    def present(self) -> bool:
        """Whether any cell stores a mass."""
        return any(len(masses) for found in self._found for masses in found)

    @property
    def look(self) -> Callable[[TrajectoryRange], RangeMasses]:
        """What is taken from one range."""
        return partial(of_range, arms=len(self._found))

    def add(self, found: RangeMasses) -> None:
        """Take the masses of the next range."""
        for arm, masses in enumerate(found.by_arm):
            self._found[arm].append(masses)
            self._absent[arm] += found.absent[arm]

    def tables(self) -> list[dict[str, Any]]:
        """The summary of each arm, as a record holds it; NaN stands for a cell that stores none."""
        return [
            asdict(label_mass.table(np.concatenate([np.full(absent, np.nan), *masses])))
            for masses, absent in zip(self._found, self._absent, strict=True)
        ]
