"""How much of each reading's probability lay on the allowed labels, per arm.

One mass per cell, taken from the entry of the target; over the entries in scope that meet every rule.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from audits.statistics import label_mass
from contracts.order import ranks
from ledger.snapshot import TrajectoryRange


class LabelMasses:
    """Collects masses range by range; NaN stands for a cell that stores none."""

    def __init__(self, arms: int) -> None:
        self._found: list[list[npt.NDArray[np.float64]]] = [[] for _ in range(arms)]
        self.present = False

    def add(self, part: TrajectoryRange) -> None:
        """Take the masses of one range."""
        entries = part.entries
        self.present |= entries["label_mass"].null_count < entries.num_rows
        candidate, target = entries["candidate"], entries["target"]
        names = ranks(pa.chunked_array([*candidate.chunks, *target.chunks], candidate.type))
        of_target = names.codes[: entries.num_rows] == names.codes[entries.num_rows :]
        mass = np.asarray(entries["label_mass"].to_numpy(), np.float64)[of_target]
        arm = np.asarray(entries["arm"].to_numpy())[of_target]
        for index, masses in enumerate(self._found):
            masses.append(mass[arm == index])

    def tables(self) -> list[dict[str, Any]]:
        """The summary of each arm, as a record holds it."""
        empty = np.empty(0, np.float64)
        return [asdict(label_mass.table(np.concatenate([empty, *masses]))) for masses in self._found]
