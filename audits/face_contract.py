"""The face-level contract, asked about every side of a range: is what was found complete really a face?

The contract sees one row per side (whole or not, and which frozen inputs its entries carry), never a
score. What it refuses is excluded whatever else was concluded.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from audits.cells import Grid, Ints, Mask
from audits.flow import ENDPOINTS
from contracts.faces import judge_faces
from contracts.labels import ABSENT
from contracts.order import labelled
from ledger.snapshot import TrajectoryRange


def refused_faces(part: TrajectoryRange, grid: Grid, faulty: Mask) -> Iterator[tuple[str, Ints]]:
    """The transitions the contract refuses, by the code of the first rule broken.

    `faulty[t, slot]` says which sides are not whole.
    """
    slots = len(grid.axes.slots)
    placed = np.flatnonzero(grid.place >= 0)
    owner = grid.owner[placed]
    within = (grid.place[placed] - grid.base[owner]) // (grid.width[owner] * grid.axes.layouts)
    endpoint, slot = np.divmod(within, slots)
    side = owner * slots + slot
    present = np.zeros(len(grid) * slots, bool)
    present[side] = True
    for refused in grid.refused:
        if refused.slot is not None:
            present[refused.transition * slots + refused.slot] = True

    def one_each(column: str, among: Mask) -> pl.Series:
        """The digest (as a code) that the entries of each side carry, null where they carry none."""
        codes = labelled(part.entries[column]).codes[placed]
        carried = np.full(len(present), ABSENT, np.int32)
        carried[side[among & (codes != ABSENT)]] = codes[among & (codes != ABSENT)]
        return pl.Series(carried[sides]).replace(ABSENT, None)

    sides = np.flatnonzero(present)
    transition, slot = np.divmod(sides, slots)
    everywhere = np.ones(len(side), bool)
    named = [(arm, name or "") for arm, name in grid.axes.slots]
    summary = pl.DataFrame(
        {
            "trajectory_id": transition,
            "step": grid.step[transition],
            "arm": np.array([arm for arm, _ in named])[slot],
            "acquisition_id": [named[i][1] for i in slot.tolist()],
            "complete": ~faulty.reshape(-1)[sides],
            **{f"state_{name}": one_each("state_hash", endpoint == e) for e, name in enumerate(ENDPOINTS)},
            "candidates": one_each("candidates_hash", everywhere),
        }
    )
    if any(group is not None for group in grid.axes.same_view):
        group = pl.Series("view_group", grid.axes.same_view, pl.Int32)
        summary = summary.with_columns(
            group.gather(summary["arm"]),
            **{f"view_{name}": one_each("view_hash", endpoint == e) for e, name in enumerate(ENDPOINTS)},
        )
    broken = judge_faces(summary, len(grid.axes.arms), grid.axes.acquisitions).broken
    for (code,), rows in broken.group_by(["code"], maintain_order=True):
        yield str(code), rows["trajectory_id"].cast(pl.Int64).to_numpy()
