"""What an entry is made of: the columns of each kind of segment, in their normative order.

The order is that of the page bytes (docs/format.md). `key` columns identify an entry and give the
sort order of a segment: text by UTF-8 bytes, an absent (null) part before every present one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from contracts.digest import WIDTH

TYPES = {
    "text": pa.string(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "digest": pa.binary(WIDTH),
}


@dataclass(frozen=True)
class Column:
    """One column; its type is one of TYPES."""

    name: str
    type: str
    key: bool = False
    nullable: bool = False


@dataclass(frozen=True)
class SegmentSchema:
    """The columns of one kind of segment. `id` is committed to by every segment event."""

    id: str
    kind: str
    columns: tuple[Column, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def key(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.key)

    @cached_property
    def arrow(self) -> pa.Schema:
        """The plain (not dictionary-encoded) Arrow schema."""
        return pa.schema([pa.field(c.name, TYPES[c.type], nullable=c.nullable) for c in self.columns])


TRANSPORT = SegmentSchema(
    id="ledger.transport.v1",
    kind="transport",
    columns=(
        Column("trajectory_id", "text", key=True),
        Column("step", "int32", key=True),
        Column("endpoint", "text", key=True),
        Column("view_source", "text", key=True),
        Column("channel", "digest", key=True),
        Column("layout", "int16", key=True),
        Column("acquisition_id", "text", key=True),
        Column("candidate", "text", key=True),
        Column("energy", "float64"),
        Column("target", "text"),
        Column("state_hash", "digest", nullable=True),
        Column("candidates_hash", "digest", nullable=True),
        Column("request_hash", "digest", nullable=True),
        Column("view_hash", "digest", nullable=True),
        Column("target_type", "text", nullable=True),
        Column("position", "int16", nullable=True),
        Column("step_kind", "text", nullable=True),
        Column("success", "bool", nullable=True),
        Column("label_mass", "float64", nullable=True),
        Column("response_hash", "digest", nullable=True),
    ),
)
# The rows of refused sides: what the contract saw, failed readings included.
REFUSED = SegmentSchema(
    id="ledger.transport-refused.v1",
    kind="transport-refused",
    columns=(
        *TRANSPORT.columns[:8],
        Column("energy", "float64", nullable=True),
        Column("status", "text"),
        *TRANSPORT.columns[9:],
    ),
)
# One probability of one label in one arm of a before/after pair. Absent parts of a group are null. The
# query comes first as the trajectory does above: a text and an integer bound what a segment holds.
_JEV_PAIR = (
    Column("query_id", "text", key=True),
    Column("year", "int32", key=True),
    Column("scenario", "text", key=True),
    Column("intervention", "text", key=True, nullable=True),
    Column("mode", "text", key=True, nullable=True),
    Column("variant", "text", key=True, nullable=True),
    Column("channel", "digest", key=True, nullable=True),
    Column("acquisition_id", "text", key=True),
    Column("label", "text", key=True),
)
JEV = SegmentSchema(
    id="ledger.jev.v1",
    kind="jev",
    columns=(
        *_JEV_PAIR,
        Column("arm", "text", key=True),
        Column("probability", "float64"),
        Column("label_position", "int16", nullable=True),
        Column("request_hash", "digest", nullable=True),
        Column("evidence_hash", "digest", nullable=True),
        Column("label_mass", "float64", nullable=True),
        Column("mass_kind", "text", nullable=True),
    ),
)
# What only the scorer may see, in a segment of its own: which labels of a pair are positive.
JEV_POSITIVES = SegmentSchema(id="ledger.jev-positives.v1", kind="jev-positives", columns=(*_JEV_PAIR,))
SCHEMAS = {schema.id: schema for schema in (TRANSPORT, REFUSED, JEV, JEV_POSITIVES)}
