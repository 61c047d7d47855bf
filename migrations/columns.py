"""Columns that two databases declare differently.

PostgreSQL compares text by its collation, and the order of the ledger is that of UTF-8 bytes: "C". Its
INTEGER ends at 2^31; SQLite's has no such end, and only a column of exactly that type is its row id.
"""

from __future__ import annotations

import sqlalchemy as sa

SERVER = "postgresql"


def text() -> sa.types.TypeEngine[str]:
    """Text that is compared by its UTF-8 bytes."""
    return sa.Text().with_variant(sa.Text(collation="C"), SERVER)


def index() -> sa.types.TypeEngine[int]:
    """A place in the log."""
    return sa.Integer().with_variant(sa.BigInteger(), SERVER)
