"""The refused sides of a call as one Arrow table, built column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from contracts.digest import unpack
from contracts.labels import Codes, Labels, Mask
from contracts.order import Ints
from contracts.records import Records
from contracts.refusals import ENDPOINTS, SIDES
from contracts.side_faults import Fault, SideFaults
from contracts.side_models import (
    CELL_DUPLICATED,
    CELL_MISSING,
    CELL_UNKNOWN,
    READING_FAILED,
    SIDE_CODES,
)
from contracts.side_sentences import Scene

_CODE_OF_FAULT = {
    Fault.ABSENT: CELL_MISSING,
    Fault.DUPLICATED: CELL_DUPLICATED,
    Fault.UNKNOWN: CELL_UNKNOWN,
    Fault.FAILED: READING_FAILED,
}


def side_table(
    scene: Scene,
    faults: SideFaults,
    refused: pa.Table,
    refused_side: Ints,
    of_side: Mapping[str, Mask],
    of_transition: Mapping[str, Mask],
) -> pa.Table:
    """A SIDES table, row i being side `faults.side[i]`.

    `refused` are the refused rows in their final order and `refused_side` the place of each row's side in
    `faults`.
    """
    keys, at = scene.rows.keys, scene.sides.first[faults.side]
    order = np.argsort(refused_side, kind="stable")
    counts = np.bincount(refused_side, minlength=len(at))
    spoken = refused.take(pa.array(order[np.cumsum(counts) - counts]))
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        "trajectory_id": keys.trajectory.at(at),
        "step": pa.array(keys.step[at]),
        "view_source": keys.view_source.at(at),
        "channel": _named(keys.channel.codes[at], [unpack(fp) for fp in keys.channel.values.to_pylist()]),
        "acquisition_id": keys.acquisition.at(at),
        "reason": _reasons(faults, keys.transition[at], of_side, of_transition),
        "rows": pa.array(counts),
        "absent": pa.array(faults.absent),
        "duplicated": pa.array(faults.duplicated),
        "failed": pa.array(faults.failed),
        "unknown": pa.array(faults.unknown),
        "digest": pa.array(Records(refused).digests(refused_side, len(at)), pa.string()),
        **{name: spoken.column(name) for name in ("step_kind", "target", "target_type", "success")},
    }
    for end, endpoint in enumerate(ENDPOINTS):
        kind = faults.first_kind[:, end]
        none = kind == Fault.NONE
        columns[f"{endpoint}_layout"] = pa.array(np.where(none, 0, faults.first_layout[:, end]), mask=none)
        candidate = np.where(none, -1, faults.first_candidate[:, end]).astype(np.int32)
        columns[f"{endpoint}_candidate"] = Labels(candidate, keys.candidate.values).array
        columns[f"{endpoint}_kind"] = _kinds(faults, end, scene.status)
    return pa.table({field.name: columns[field.name].cast(field.type) for field in SIDES}, schema=SIDES)


def _reasons(
    faults: SideFaults, transition: Codes, of_side: Mapping[str, Mask], of_transition: Mapping[str, Mask]
) -> pa.Array:
    """One code for each side: a contradiction of its transition, a wrong donor or number of candidates,
    else the kind of its first faulty cell."""
    first = np.where(faults.first_kind[:, 0] != Fault.NONE, faults.first_kind[:, 0], faults.first_kind[:, 1])
    codes = [*of_transition, *SIDE_CODES, *_CODE_OF_FAULT.values()]
    masks = [mask[transition] for mask in of_transition.values()]
    masks += [of_side[code][faults.side] for code in SIDE_CODES]
    masks += [first == kind for kind in _CODE_OF_FAULT]
    choice = np.argmax(np.stack(masks), axis=0).astype(np.int32)
    return _named(choice, codes)


def _kinds(faults: SideFaults, end: int, status: Labels) -> pa.Array:
    """The kind of the first faulty cell at one endpoint, a failed reading with its status."""
    cells = (Fault.ABSENT, Fault.DUPLICATED, Fault.UNKNOWN)
    failed = Fault.FAILED.name.lower()
    names = [None, *(fault.name.lower() for fault in cells)]
    names += [f"{failed}:{value}" for value in status.values.to_pylist()]
    kind, row = faults.first_kind[:, end], faults.first_row[:, end]
    code = np.where(kind == Fault.FAILED, Fault.FAILED + status.codes[row], kind).astype(np.int32)
    return _named(code, names)


def _named(codes: Codes, names: Sequence[str | None]) -> pa.Array:
    return pa.array(names, pa.string()).take(pa.array(codes))
