"""Runs the migrations inside the one transaction that the runner opened."""

from __future__ import annotations

from alembic import context

# SQLite rolls back DDL, which Alembic does not assume of it.
context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
