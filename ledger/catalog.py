"""The catalog's tables and their write side: an index over the log that can be rebuilt from it.

Every row of a derived table carries `event`, the leaf index of the event that made it, so a reader goes
back to an older head by a comparison. Readers use `ledger.index`, which does not import this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import sqlalchemy as sa
from sqlmodel import Field, Session, SQLModel

from contracts.errors import StorageError
from ledger.catalog_file import REBUILD, catalog_error, wrong_revision
from ledger.derive import Rows
from migrations import runner
from migrations.engine import engine, sqlite_url
from migrations.revisions import LATEST, REVISIONS

BATCH = 5000


class Event(SQLModel, table=True):
    """One leaf of the log."""

    leaf_index: int = Field(primary_key=True)
    leaf_hash: bytes
    type: str
    time: str
    data: bytes


class Head(SQLModel, table=True):
    """A signed head: the root over the first `size` events, and the note that says so."""

    size: int = Field(primary_key=True)
    root: bytes
    note: bytes


class Derived(SQLModel):
    """The leaf index of the event that made a row."""

    event: int = Field(primary_key=True, foreign_key="event.leaf_index")


class StoredRows(Derived):
    """Rows in the object store: digests of their three files, and the root over them."""

    schema_id: str
    file: str
    size: int
    root: str
    rows: int
    leaves: str
    rows_file: str


class Channel(Derived, table=True):
    """A registered specification."""

    name: str
    version: int
    fingerprint: str
    spec: str


class Acquisition(Derived, table=True):
    """An acquisition at its first sight, and the one it corrects."""

    id: str
    kind: str
    supersedes: str | None


class Segment(StoredRows, table=True):
    """A segment and the range of trajectories in it; lists are JSON text."""

    kind: str
    contract: str
    sources: str
    channels: str
    acquisitions: str
    first_trajectory: str
    first_step: int
    last_trajectory: str
    last_step: int
    trajectories: int


class SegmentScope(Derived, table=True):
    """The rows of a segment by channel and acquisition."""

    __tablename__ = "segment_scope"
    ordinal: int = Field(primary_key=True)
    channel: str | None
    acquisition: str
    rows: int


class Refusal(StoredRows, table=True):
    """The rows of refused sides."""

    sides: int
    side_index: str
    sources: str


class RefusedSide(Derived, table=True):
    """One refused side; `faults` is JSON text."""

    __tablename__ = "refused_side"
    ordinal: int = Field(primary_key=True)
    trajectory_id: str
    step: int
    view_source: str
    channel: str
    acquisition_id: str
    reason: str
    faults: str
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


class Record(Derived, table=True):
    """A signed audit."""

    kind: str
    record: str
    result: str
    design: str


class Revocation(Derived, table=True):
    """Something later audits leave out."""

    target_kind: str
    target_id: str
    reason: str


class SigningKey(Derived, table=True):
    """A key that was named for a role, replaced another there, or was retired."""

    __tablename__ = "signing_key"
    action: str
    role: str
    vkey: str
    replaces: str | None


class Policy(Derived, table=True):
    """One role of a policy; `keys` is JSON text."""

    ordinal: int = Field(primary_key=True)
    role: str
    threshold: int
    keys: str


class Attestation(Derived, table=True):
    """A signed statement about an acquisition, a model checkpoint or a hosted stack."""

    kind: str
    subject: str
    statement: str


class AttestedFile(Derived, table=True):
    """A file that an attestation speaks about."""

    __tablename__ = "attested_file"
    ordinal: int = Field(primary_key=True)
    name: str
    blake3: str | None
    sha256: str | None


class Plan(Derived, table=True):
    """A design declared under a name, as canonical JSON, and its digest."""

    id: str
    digest: str
    plan: str


@contextmanager
def writing(path: Path, wait: float = 5.0) -> Iterator[Session]:
    """One transaction that holds the catalog's write lock from its start; committed when the block ends.

    An older catalog is migrated first. Anything raised inside rolls everything back.
    """
    if not path.is_file():
        raise StorageError("the catalog is missing", code="missing-file", where=path, next_step=REBUILD)
    made = engine(sqlite_url(str(path)), wait)
    try:
        with made.connect() as connection:
            revision = runner.current(connection)
        if revision not in REVISIONS:
            raise wrong_revision(revision, path)
        if revision != LATEST:
            runner.upgrade(sqlite_url(str(path)))
        with Session(made) as session, session.begin():
            session.connection()
            yield session
    except sa.exc.DBAPIError as error:
        raise catalog_error(error.orig, path) from error
    finally:
        made.dispose()


def migrate(path: Path, wait: float = 5.0) -> bool:
    """Plays an unfinished transaction back and brings an older catalog to this form; whether it was older."""
    if not path.is_file():
        raise StorageError("the catalog is missing", code="missing-file", where=path, next_step=REBUILD)
    made = engine(sqlite_url(str(path)), wait)
    try:
        with made.connect() as connection:
            before = runner.current(connection)
    except sa.exc.DBAPIError as error:
        raise catalog_error(error.orig, path) from error
    finally:
        made.dispose()
    with writing(path, wait):
        pass
    return before != LATEST


def create(path: Path) -> None:
    """A new, empty catalog file."""
    try:
        runner.upgrade(sqlite_url(str(path)))
    except sa.exc.DBAPIError as error:
        raise catalog_error(error.orig, path) from error


def append(session: Session, rows: Rows) -> None:
    """Adds rows to tables, thousands in one statement; they may be made while they are stored."""
    for table, items in rows.items():
        statement = sa.insert(SQLModel.metadata.tables[table])
        remaining = iter(items)
        while batch := list(islice(remaining, BATCH)):
            session.connection().execute(statement, batch)
