"""The first catalog: the log's events and heads, and what readers look up about them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from migrations.append_only import triggers

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
        sa.Column("leaf_index", sa.Integer(), primary_key=True),
        # The hash before the bytes: reading all leaves then never follows the long rows.
        sa.Column("leaf_hash", sa.LargeBinary(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("time", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
    )
    op.create_index("event_leaf", "event", ["leaf_index", "leaf_hash"])
    op.create_table(
        "head",
        sa.Column("size", sa.Integer(), primary_key=True),
        sa.Column("root", sa.LargeBinary(), nullable=False),
        sa.Column("note", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "channel",
        _event(),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.UniqueConstraint("name", "version", name="channel_name_version"),
    )
    op.create_table(
        "acquisition",
        _event(),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.UniqueConstraint("id", "kind", name="acquisition_id_kind"),
    )
    op.create_table(
        "segment",
        _event(),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("schema_id", sa.Text(), nullable=False),
        sa.Column("contract", sa.Text(), nullable=False),
        *_stored_rows(),
        sa.Column("sources", sa.Text(), nullable=False),
        sa.Column("channels", sa.Text(), nullable=False),
        sa.Column("acquisitions", sa.Text(), nullable=False),
        sa.Column("first_trajectory", sa.Text(), nullable=False),
        sa.Column("first_step", sa.BigInteger(), nullable=False),
        sa.Column("last_trajectory", sa.Text(), nullable=False),
        sa.Column("last_step", sa.BigInteger(), nullable=False),
        sa.Column("trajectories", sa.BigInteger(), nullable=False),
    )
    op.create_index("segment_root", "segment", ["root"])
    op.create_index("segment_file", "segment", ["file"])
    op.create_table(
        "segment_scope",
        _event(),
        sa.Column("ordinal", sa.Integer(), primary_key=True),
        sa.Column("channel", sa.Text(), nullable=True),
        sa.Column("acquisition", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        # A hidden row id would be a second key that INSERT OR REPLACE could hit.
        sqlite_with_rowid=False,
    )
    op.create_index("segment_scope_channel", "segment_scope", ["channel", "acquisition"])
    op.create_table(
        "refusal",
        _event(),
        sa.Column("schema_id", sa.Text(), nullable=False),
        *_stored_rows(),
        sa.Column("sides", sa.BigInteger(), nullable=False),
        sa.Column("side_index", sa.Text(), nullable=False),
        sa.Column("sources", sa.Text(), nullable=False),
    )
    op.create_table(
        "refused_side",
        _event(),
        sa.Column("ordinal", sa.Integer(), primary_key=True),
        sa.Column("trajectory_id", sa.Text(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("view_source", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("acquisition_id", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("faults", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("absent", sa.BigInteger(), nullable=False),
        sa.Column("duplicated", sa.BigInteger(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("unknown", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("step_kind", sa.Text(), nullable=True),
        sa.Column("target", sa.Text(), nullable=True),
        sa.Column("target_type", sa.Text(), nullable=True),
        sa.Column("success", sa.Boolean(), nullable=True),
        sqlite_with_rowid=False,
    )
    op.create_index("refused_side_channel", "refused_side", ["channel", "acquisition_id"])
    op.create_table(
        "record",
        _event(),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("design", sa.Text(), nullable=False),
    )
    op.create_index("record_design", "record", ["design", "result"])
    op.create_table(
        "revocation",
        _event(),
        sa.Column("target_kind", sa.Text(), nullable=False),
        sa.Column("target_id", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
    )
    for table in TABLES:
        for statement in triggers(table).values():
            op.execute(statement)


def _event() -> sa.Column[int]:
    """The leaf index of the event that made the row; with it a reader goes back to an older head."""
    return sa.Column("event", sa.Integer(), sa.ForeignKey("event.leaf_index"), primary_key=True)


def _stored_rows() -> list[sa.Column[str] | sa.Column[int]]:
    """The digests and sizes of rows in the object store."""
    return [
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("root", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("leaves", sa.Text(), nullable=False),
        sa.Column("rows_file", sa.Text(), nullable=False),
    ]
