"""Which refused sides of a call the log has not recorded yet: the same rows refused again are no news."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from contracts.digest import pack as packed
from contracts.labels import Mask
from contracts.order import column, pack, ranks
from ledger.refusals import RefusedRow

SIDE = ("trajectory_id", "step", "view_source", "channel", "acquisition_id")


def new_refusals(sides: pa.Table, rows: pa.Table, known: Sequence[RefusedRow]) -> tuple[pa.Table, pa.Table]:
    """The refused sides no earlier refusal holds with the same digest, and their rows.

    `sides` is a SIDES table, `rows` the rows of all of them.
    """
    seen = {(*row.key, row.digest) for row in known}
    keys = zip(*(sides.column(name).to_pylist() for name in (*SIDE, "digest")), strict=True)
    new = np.array([key not in seen for key in keys], bool)
    if new.all():
        return sides, rows
    kept = sides.filter(pa.array(new))
    return kept, rows.filter(pa.array(_rows_of(kept, rows)))


def _rows_of(sides: pa.Table, rows: pa.Table) -> Mask:
    """Which rows belong to one of the sides."""
    fingerprints = pa.array([packed(text) for text in sides.column("channel").to_pylist()], pa.binary(33))
    named = sides.select(SIDE).set_column(SIDE.index("channel"), "channel", fingerprints)
    steps = np.concatenate([named.column("step").to_numpy(), rows.column("step").to_numpy()])
    parts = [(steps, int(steps.max(initial=0)) + 1)]
    for name in SIDE:
        if name != "step":
            labels = ranks(column([named, rows], name))
            parts.append((labels.codes, len(labels.values)))
    codes, _ = pack(parts)
    mask: Mask = np.isin(codes[len(sides) :], codes[: len(sides)])
    return mask
