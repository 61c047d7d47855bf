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
    side, endpoint = (
        values if grid.fits.all() else values[grid.fits] for values in (grid.side, grid.endpoint)
    )
    present = np.zeros(len(grid) * slots, bool)
    present[side] = True
    for refused in grid.refused:
        if refused.slot is not None:
            present[refused.transition * slots + refused.slot] = True

    def one_each(column: str, among: Mask) -> pl.Series:
        """The digest (as a code) that the entries of each side carry, null where they carry none."""
        codes = labelled(part.kept.table[column]).codes[grid.fits]
        carried = np.full(len(present), ABSENT, np.int32)
        carrying = among & (codes != ABSENT)
        carried[side[carrying]] = codes[carrying]
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
            "acquisition_id": pl.Series([name for _, name in named], dtype=pl.String).gather(slot),
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
        yield str(code), rows["trajectory_id"].to_numpy()
