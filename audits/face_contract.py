"""The face-level contract, asked about every side of a range: is what was found complete really a face?

The contract sees one row per side (whole or not, and which frozen inputs its entries carry), never a
score. What it refuses is excluded whatever else was concluded.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
import pyarrow as pa

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

    def one_each(column: str, among: Mask) -> pa.Array:
        """The digest (as a code) that the entries of each side carry, null where they carry none."""
        codes = labelled(part.kept.table[column]).codes[grid.fits]
        carried = np.full(len(present), ABSENT, np.int32)
        carrying = among & (codes != ABSENT)
        carried[side[carrying]] = codes[carrying]
        return pa.array(carried[sides], mask=carried[sides] == ABSENT)

    sides = np.flatnonzero(present)
    transition, slot = np.divmod(sides, slots)
    everywhere = np.ones(len(side), bool)
    named = [(arm, name or "") for arm, name in grid.axes.slots]
    arm = np.array([arm for arm, _ in named])[slot]
    columns = {
        "trajectory_id": pa.array(transition),
        "step": pa.array(grid.step[transition]),
        "arm": pa.array(arm),
        "acquisition_id": pa.array([name for _, name in named], pa.string()).take(pa.array(slot)),
        "complete": pa.array(~faulty.reshape(-1)[sides]),
        **{f"state_{name}": one_each("state_hash", endpoint == e) for e, name in enumerate(ENDPOINTS)},
        "candidates": one_each("candidates_hash", everywhere),
    }
    if any(group is not None for group in grid.axes.same_view):
        columns["view_group"] = pa.array(grid.axes.same_view, pa.int32()).take(pa.array(arm))
        for e, name in enumerate(ENDPOINTS):
            columns[f"view_{name}"] = one_each("view_hash", endpoint == e)
    summary = pl.DataFrame(pa.table(columns))
    verdict = judge_faces(summary, len(grid.axes.arms), grid.axes.acquisitions)
    for code, broken in verdict.broken.items():
        yield code, broken["trajectory_id"].to_numpy()
