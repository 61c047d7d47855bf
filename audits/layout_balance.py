"""Whether the layouts behind an audit show every candidate in every place equally often.

Judged on the complete transitions: by the physical positions that the entries carry, or where a transition
carries none, by whether there are as many layouts as candidates, since a layout is a rotation of all labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from audits.cells import Grid, Ints
from contracts.layout_balance import balanced
from ledger.snapshot import TrajectoryRange

BALANCED, UNBALANCED, NOT_DECLARED = "balanced", "unbalanced", "not declared"
BY_POSITION, BY_COUNT, BY_BOTH = "position", "layouts-equal-candidates", "mixed"
_NONE = -1


@dataclass(frozen=True)
class RangeBalance:
    """Complete transitions of a range: those judged by position and by count, how many of each are not
    balanced, and those of which only some entries carry a position."""

    by_position: int = 0
    by_position_unbalanced: int = 0
    by_count: int = 0
    by_count_unbalanced: int = 0
    partly: int = 0

    def __add__(self, other: RangeBalance) -> RangeBalance:
        return RangeBalance(
            self.by_position + other.by_position,
            self.by_position_unbalanced + other.by_position_unbalanced,
            self.by_count + other.by_count,
            self.by_count_unbalanced + other.by_count_unbalanced,
            self.partly + other.partly,
        )


@dataclass(frozen=True)
class LayoutBalance:
    """What the record says of its layouts; `basis` is None where nothing could be judged.

    `unbalanced` transitions break the balance, `undeclared` ones carry a position on some entries only.
    """

    status: str
    basis: str | None
    unbalanced: int
    undeclared: int

    @classmethod
    def of(cls, parts: Sequence[RangeBalance]) -> LayoutBalance:
        """The balance of all ranges together."""
        total = sum(parts, RangeBalance())
        unbalanced = total.by_position_unbalanced + total.by_count_unbalanced
        judged = total.by_position + total.by_count
        status = BALANCED
        if unbalanced:
            status = UNBALANCED
        elif total.partly or not judged:
            status = NOT_DECLARED
        basis = BY_BOTH
        if not total.by_position:
            basis = BY_COUNT
        elif not total.by_count:
            basis = BY_POSITION
        return cls(status, basis if judged else None, unbalanced, total.partly)

    def as_json(self) -> dict[str, Any]:
        """As it stands in a record."""
        return {
            "status": self.status,
            "basis": self.basis,
            "unbalanced_transitions": self.unbalanced,
            "undeclared_transitions": self.undeclared,
        }


def of_range(part: TrajectoryRange, grid: Grid, done: Ints) -> RangeBalance:
    """The balance of the complete transitions `done` of a range."""
    layouts, width = grid.axes.layouts, grid.width[done]
    column = part.kept.cells["position"]
    if column.null_count == len(column):
        unequal = int(np.count_nonzero(width != layouts))
        return RangeBalance(by_count=len(done), by_count_unbalanced=unequal)
    stored = np.asarray(pc.fill_null(column, _NONE).to_numpy(), np.int64)
    position = grid.by_cell(stored, np.int64(_NONE))
    total = RangeBalance()
    for k in np.unique(width).tolist():
        base = grid.base[done[width == k]]
        shown = position[base[:, None] + np.arange(grid.axes.cells * k)]
        carried = np.count_nonzero(shown != _NONE, axis=1)
        whole, none = carried == shown.shape[1], carried == 0
        judged = balanced(shown[whole].reshape(-1, grid.axes.cells // layouts, layouts, k))
        total += RangeBalance(
            by_position=len(judged),
            by_position_unbalanced=int(np.count_nonzero(~judged)),
            by_count=int(np.count_nonzero(none)),
            by_count_unbalanced=int(np.count_nonzero(none)) if k != layouts else 0,
            partly=int(np.count_nonzero(~whole & ~none)),
        )
    return total
