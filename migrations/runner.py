"""Brings a catalog to the newest revision, or refuses one that a newer program wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa


def upgrade(made: sa.Engine, prepare: Callable[[sa.Connection], None] | None = None) -> None:
    """Creates or extends the tables of a catalog, all or nothing; never touches a row.

    `prepare` goes first, in the same transaction. Raises alembic's CommandError for a catalog at a revision
    this version does not know.
    """
    # Alembic takes a fifth of a second to import, and every writer passes here; few of them migrate.
    from alembic import command
    from alembic.config import Config

    with made.begin() as connection:
        if prepare is not None:
            prepare(connection)
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def current(connection: sa.Connection) -> str | None:
    """The revision a catalog stands at; None for an empty database."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    revision = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    return None if revision is None else str(revision)
