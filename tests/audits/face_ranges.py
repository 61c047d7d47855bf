"""Ranges of entries made in memory, the faces assembled from them, and what these say of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from audits.faces import Faces, assemble
from contracts.channel import Channel
from contracts.digest import blake3_digest, pack
from ledger.range_tasks import TrajectoryRange
from ledger.ranges import SCHEMA
from ledger.refusals import Fault, RefusedRow
from ledger.snapshot import RULES, Arm, ProvenanceCount, Readings, Scope

NAMES = ("direct", "shown")


def channel(name: str, layouts: int = 2) -> Channel:
    spec = {"view": {"kind": "quote"}, "presentation": {"layouts": layouts}, "readout": {"kind": "label"}}
    return Channel(name, 1, spec, blake3_digest(name.encode()))


REF, ALT = (Arm(channel(name)) for name in NAMES)


@dataclass
class FakeSelection:
    """Ranges in memory, with what a selection says about them."""

    parts: Sequence[TrajectoryRange]
    named: tuple[tuple[str, ...], ...] = (("main",), ("main",))
    scope: Scope = field(default_factory=lambda: Scope("transport", (REF, ALT)))
    provenance: ProvenanceCount = field(default_factory=ProvenanceCount)

    @property
    def acquisitions(self):
        return dict(zip(self.scope.arms, self.named, strict=True))

    def map(self, work):
        return map(work, self.parts)


def entry(**given):
    row = {
        "trajectory_id": "t0", "step": 0, "endpoint": "before", "view_source": "own", "layout": 0,
        "acquisition_id": "main", "candidate": "A", "energy": 0.0, "target": "A", "target_type": None,
        "success": None, "arm": 0, "rule": None, "label_mass": None, "position": None, "state_hash": None,
        "candidates_hash": "c", "request_hash": None, "view_hash": None,
    }  # fmt: skip
    return row | given


def side(*, candidates="AB", layouts=2, **given):
    """Every cell of a side, with energies that differ everywhere."""
    return [
        entry(
            endpoint=endpoint,
            layout=layout,
            candidate=candidate,
            energy=0.25 * (2 * e + layout) + 0.5 * c + 0.125 * given.get("arm", 0),
            **given,
        )
        for e, endpoint in enumerate(("before", "after"))
        for layout in range(layouts)
        for c, candidate in enumerate(candidates)
    ]


def face(**given):
    return side(**given) + side(arm=1, **given)


def one_range(rows, refused: Sequence[RefusedRow] = ()) -> TrajectoryRange:
    """A range of entries; those with a `rule` broke it."""
    rows = sorted(rows, key=lambda row: (row["trajectory_id"].encode(), row["step"]))
    kept = [row for row in rows if row["rule"] is None]
    out = [row for row in rows if row["rule"] is not None]
    readings = Readings.of(_table(out))
    rule = np.array([RULES.index(row["rule"]) for row in out], np.int8)[readings.first]
    return TrajectoryRange(Readings.of(_table(kept)), readings, rule, tuple(refused))


def _table(rows) -> pa.Table:
    columns = []
    for column in SCHEMA:
        values = [row.get(column.name) for row in rows]
        if pa.types.is_fixed_size_binary(column.type):
            values = [None if v is None else pack(blake3_digest(v.encode())) for v in values]
        if pa.types.is_dictionary(column.type):
            columns.append(pa.array(values, column.type.value_type).dictionary_encode())
        else:
            columns.append(pa.array(values, column.type))
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def refusal(*faults: Fault, reason="cell-missing", **given) -> RefusedRow:
    return RefusedRow(
        **{
            "event": 1, "ordinal": 0, "trajectory_id": "t0", "step": 0, "view_source": "own",
            "channel": REF.channel.fingerprint, "acquisition_id": "main", "reason": reason, "faults": faults,
            "rows": 1, "digest": blake3_digest(b""), "step_kind": None, "target": "A", "target_type": None,
            "success": None, "absent": 1, "duplicated": 0, "failed": 0, "unknown": 0,
        }
        | given
    )  # fmt: skip


def faces(rows, refused: Sequence[RefusedRow] = (), **given) -> Faces:
    return assemble(FakeSelection([one_range(rows, refused)], **given))


def reasons(found: Faces) -> dict[str, int]:
    return {e.reason: e.count for e in found.flow.excluded}


def first(found: Faces) -> str:
    return found.flow.excluded[0].examples[0].text(NAMES)
