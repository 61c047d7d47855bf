"""Keys and policy, attestations, plans, and what a correction supersedes."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

from migrations import append_only, columns

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = ("signing_key", "policy", "attestation", "attested_file", "plan")


def upgrade() -> None:
    op.add_column("acquisition", sa.Column("supersedes", columns.text(), nullable=True))
    op.create_table(
        "signing_key",
        _event(),
        sa.Column("action", columns.text(), nullable=False),
        sa.Column("role", columns.text(), nullable=False),
        sa.Column("vkey", columns.text(), nullable=False),
        sa.Column("replaces", columns.text(), nullable=True),
    )
    op.create_table(
        "policy",
        _event(),
        sa.Column("ordinal", sa.Integer(), primary_key=True),
        sa.Column("role", columns.text(), nullable=False),
        sa.Column("threshold", sa.Integer(), nullable=False),
        sa.Column("keys", columns.text(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "attestation",
        _event(),
        sa.Column("kind", columns.text(), nullable=False),
        sa.Column("subject", columns.text(), nullable=False),
        sa.Column("statement", columns.text(), nullable=False),
    )
    op.create_table(
        "attested_file",
        _event(),
        sa.Column("ordinal", sa.Integer(), primary_key=True),
        sa.Column("name", columns.text(), nullable=False),
        sa.Column("blake3", columns.text(), nullable=True),
        sa.Column("sha256", columns.text(), nullable=True),
        sqlite_with_rowid=False,
    )
    op.create_index("attested_file_blake3", "attested_file", ["blake3"])
    op.create_index("attested_file_sha256", "attested_file", ["sha256"])
    op.create_table(
        "plan",
        _event(),
        sa.Column("id", columns.text(), nullable=False),
        sa.Column("digest", columns.text(), nullable=False),
        sa.Column("plan", columns.text(), nullable=False),
    )
    _take_over_keys()
    for table in TABLES:
        for statement in append_only.statements(table, op.get_bind().dialect.name):
            op.execute(statement)


def _take_over_keys() -> None:
    """Rows for the keys that logs of the older form name: each log's first event, the key of its heads."""
    connection = op.get_bind()
    for leaf_index, data in connection.execute(
        sa.text("SELECT leaf_index, data FROM event WHERE type = 'key'")
    ):
        said = json.loads(bytes(data))
        connection.execute(
            sa.text(
                "INSERT INTO signing_key (event, action, role, vkey, replaces) "
                "VALUES (:event, 'begin', :role, :vkey, NULL)"
            ),
            {"event": leaf_index, "role": said["role"], "vkey": said["vkey"]},
        )


def _event() -> sa.Column[int]:
    """The leaf index of the event that made the row; with it a reader goes back to an older head."""
    return sa.Column("event", columns.index(), sa.ForeignKey("event.leaf_index"), primary_key=True)
