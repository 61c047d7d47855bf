"""A refused side: which it is, why, its first faulty cells and how many there are, and its digest.

The sides of a call live in one Arrow table (SIDES), because a bad file can have hundreds of thousands of
them; `RefusedSide` is one row of it as a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

ENDPOINTS: tuple[Literal["before"], Literal["after"]] = ("before", "after")

SIDES = pa.schema(
    [
        pa.field("trajectory_id", pa.string(), nullable=False),
        pa.field("step", pa.int32(), nullable=False),
        pa.field("view_source", pa.string(), nullable=False),
        pa.field("channel", pa.string(), nullable=False),
        pa.field("acquisition_id", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        *(
            pa.field(kind, pa.int64(), nullable=False)
            for kind in ("absent", "duplicated", "failed", "unknown")
        ),
        *(
            field
            for endpoint in ENDPOINTS
            for field in (
                pa.field(f"{endpoint}_layout", pa.int32()),
                pa.field(f"{endpoint}_candidate", pa.string()),
                pa.field(f"{endpoint}_kind", pa.string()),
            )
        ),
        pa.field("digest", pa.string(), nullable=False),
        pa.field("step_kind", pa.string()),
        pa.field("target", pa.string()),
        pa.field("target_type", pa.string()),
        pa.field("success", pa.bool_()),
    ]
)


@dataclass(frozen=True)
class CellFault:
    """One faulty cell; `kind` is absent, duplicated, unknown, or `failed:` and the status."""

    endpoint: str
    layout: int
    candidate: str
    kind: str


@dataclass(frozen=True)
class RefusedSide:
    """One refused side; `channel` is the fingerprint and `reason` the code of its finding.

    `faults` are the first faulty cell of each endpoint that has one, before then after, in the order of
    layout and candidate; the four counts are over all its cells. `digest` is the BLAKE3 of its rows, the
    same for the same rows whatever file or order they come in. The last four are what its rows say of the
    transition, None where absent.
    """

    trajectory_id: str
    step: int
    view_source: str
    channel: str
    acquisition_id: str
    reason: str
    faults: tuple[CellFault, ...]
    rows: int
    absent: int
    duplicated: int
    failed: int
    unknown: int
    digest: str
    step_kind: str | None
    target: str | None
    target_type: str | None
    success: bool | None

    def as_object(self) -> dict[str, object]:
        """The side as one JSON object; absent parts are left out."""
        parts = {name: value for name, value in vars(self).items() if value is not None}
        return {**parts, "faults": [dict(vars(fault)) for fault in self.faults]}


def refused_sides(table: pa.Table) -> Iterator[RefusedSide]:
    """The rows of a SIDES table as values, one batch of rows in memory at a time."""
    for batch in table.to_batches(max_chunksize=8192):
        for row in batch.to_pylist():
            faults = tuple(
                CellFault(end, row[f"{end}_layout"], row[f"{end}_candidate"], row[f"{end}_kind"])
                for end in ENDPOINTS
                if row[f"{end}_kind"] is not None
            )
            own = {name: value for name, value in row.items() if not name.startswith(("before_", "after_"))}
            yield RefusedSide(faults=faults, **own)
