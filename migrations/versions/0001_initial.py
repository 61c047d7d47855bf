"""The first catalog: the log's events and heads, and what readers look up about them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from migrations import append_only, columns

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = (
    "event", "head", "channel", "acquisition", "segment", "segment_scope", "refusal", "refused_side",
    "record", "revocation",
)  # fmt: skip


def upgrade() -> None:
    op.create_table(
        "event",
        sa.Column("leaf_index", columns.index(), primary_key=True, autoincrement=False),
        # The hash before the bytes: reading all leaves then never follows the long rows.
        sa.Column("leaf_hash", sa.LargeBinary(), nullable=False),
        sa.Column("type", columns.text(), nullable=False),
        sa.Column("time", columns.text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
    )
    op.create_index("event_leaf", "event", ["leaf_index", "leaf_hash"])
    op.create_table(
        "head",
        sa.Column("size", columns.index(), primary_key=True, autoincrement=False),
        sa.Column("root", sa.LargeBinary(), nullable=False),
        sa.Column("note", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "channel",
        _event(),
        sa.Column("name", columns.text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("fingerprint", columns.text(), nullable=False),
        sa.Column("spec", columns.text(), nullable=False),
        sa.UniqueConstraint("name", "version", name="channel_name_version"),
    )
    op.create_table(
        "acquisition",
        _event(),
        sa.Column("id", columns.text(), nullable=False),
        sa.Column("kind", columns.text(), nullable=False),
        sa.UniqueConstraint("id", "kind", name="acquisition_id_kind"),
    )
    op.create_table(
        "segment",
        _event(),
        sa.Column("kind", columns.text(), nullable=False),
        sa.Column("schema_id", columns.text(), nullable=False),
        sa.Column("contract", columns.text(), nullable=False),
        *_stored_rows(),
        sa.Column("sources", columns.text(), nullable=False),
        sa.Column("channels", columns.text(), nullable=False),
        sa.Column("acquisitions", columns.text(), nullable=False),
        sa.Column("first_trajectory", columns.text(), nullable=False),
        sa.Column("first_step", sa.BigInteger(), nullable=False),
        sa.Column("last_trajectory", columns.text(), nullable=False),
        sa.Column("last_step", sa.BigInteger(), nullable=False),
        sa.Column("trajectories", sa.BigInteger(), nullable=False),
    )
    op.create_index("segment_root", "segment", ["root"])
    op.create_index("segment_file", "segment", ["file"])
    op.create_table(
        "segment_scope",
        _event(),
        sa.Column("ordinal", sa.Integer(), primary_key=True),
        sa.Column("channel", columns.text(), nullable=True),
        sa.Column("acquisition", columns.text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        # A hidden row id would be a second key that INSERT OR REPLACE could hit.
        sqlite_with_rowid=False,
    )
    op.create_index("segment_scope_channel", "segment_scope", ["channel", "acquisition"])
    op.create_table(
        "refusal",
        _event(),
        sa.Column("schema_id", columns.text(), nullable=False),
        *_stored_rows(),
        sa.Column("sides", sa.BigInteger(), nullable=False),
        sa.Column("side_index", columns.text(), nullable=False),
        sa.Column("sources", columns.text(), nullable=False),
    )
    op.create_table(
        "refused_side",
        _event(),
        sa.Column("ordinal", sa.Integer(), primary_key=True),
        sa.Column("trajectory_id", columns.text(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("view_source", columns.text(), nullable=False),
        sa.Column("channel", columns.text(), nullable=False),
        sa.Column("acquisition_id", columns.text(), nullable=False),
        sa.Column("reason", columns.text(), nullable=False),
        sa.Column("faults", columns.text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("absent", sa.BigInteger(), nullable=False),
        sa.Column("duplicated", sa.BigInteger(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("unknown", sa.BigInteger(), nullable=False),
        sa.Column("digest", columns.text(), nullable=False),
        sa.Column("step_kind", columns.text(), nullable=True),
        sa.Column("target", columns.text(), nullable=True),
        sa.Column("target_type", columns.text(), nullable=True),
        sa.Column("success", sa.Boolean(), nullable=True),
        sqlite_with_rowid=False,
    )
    op.create_index("refused_side_channel", "refused_side", ["channel", "acquisition_id"])
    op.create_table(
        "record",
        _event(),
        sa.Column("kind", columns.text(), nullable=False),
        sa.Column("record", columns.text(), nullable=False),
        sa.Column("result", columns.text(), nullable=False),
        sa.Column("design", columns.text(), nullable=False),
    )
    op.create_index("record_design", "record", ["design", "result"])
    op.create_table(
        "revocation",
        _event(),
        sa.Column("target_kind", columns.text(), nullable=False),
        sa.Column("target_id", columns.text(), nullable=False),
        sa.Column("reason", columns.text(), nullable=False),
    )
    for table in TABLES:
        for statement in append_only.statements(table, op.get_bind().dialect.name):
            op.execute(statement)


def _event() -> sa.Column[int]:
    """The leaf index of the event that made the row; with it a reader goes back to an older head."""
    return sa.Column("event", columns.index(), sa.ForeignKey("event.leaf_index"), primary_key=True)


def _stored_rows() -> list[sa.Column[str] | sa.Column[int]]:
    """The digests and sizes of rows in the object store."""
    return [
        sa.Column("file", columns.text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("root", columns.text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("leaves", columns.text(), nullable=False),
        sa.Column("rows_file", columns.text(), nullable=False),
    ]
