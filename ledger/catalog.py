"""The catalog's tables and their write side: an index over the log that can be rebuilt from it.

Every row of a derived table carries `event`, the leaf index of the event that made it, so a reader goes
back to an older head by a comparison. Readers use `ledger.index`, which does not import this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path

import sqlalchemy as sa
from sqlmodel import Field, Session, SQLModel

from contracts.errors import LedgerError
from ledger.append import Appending
from ledger.catalog_file import absent, wrong_revision
from ledger.connection import Place, failure
from ledger.derive import Rows
from migrations import runner
from migrations.engine import engine, sqlite_url
from migrations.revisions import LATEST, REVISIONS

BATCH = 5000


class Event(SQLModel, table=True):
    """One leaf of the log."""

    leaf_index: int = Field(primary_key=True, sa_type=sa.BigInteger)
    leaf_hash: bytes
    type: str
    time: str
    data: bytes


class Head(SQLModel, table=True):
    """A signed head: the root over the first `size` events, and the note that says so."""

    size: int = Field(primary_key=True, sa_type=sa.BigInteger)
    root: bytes
    note: bytes


class Derived(SQLModel):
    """The leaf index of the event that made a row."""

    event: int = Field(primary_key=True, foreign_key="event.leaf_index", sa_type=sa.BigInteger)


class StoredRows(Derived):
    """Rows in the object store: digests of their three files, and the root over them."""

    schema_id: str
    file: str
    size: int = Field(sa_type=sa.BigInteger)
    root: str
    rows: int = Field(sa_type=sa.BigInteger)
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
    first_step: int = Field(sa_type=sa.BigInteger)
    last_trajectory: str
    last_step: int = Field(sa_type=sa.BigInteger)
    trajectories: int = Field(sa_type=sa.BigInteger)


class SegmentScope(Derived, table=True):
    """The rows of a segment by channel and acquisition."""

    __tablename__ = "segment_scope"
    ordinal: int = Field(primary_key=True)
    channel: str | None
    acquisition: str
    rows: int = Field(sa_type=sa.BigInteger)


class Refusal(StoredRows, table=True):
    """The rows of refused sides."""

    sides: int = Field(sa_type=sa.BigInteger)
    side_index: str
    sources: str


class RefusedSide(Derived, table=True):
    """One refused side; `faults` is JSON text."""

    __tablename__ = "refused_side"
    ordinal: int = Field(primary_key=True)
    trajectory_id: str
    step: int = Field(sa_type=sa.BigInteger)
    view_source: str
    channel: str
    acquisition_id: str
    reason: str
    faults: str
    rows: int = Field(sa_type=sa.BigInteger)
    absent: int = Field(sa_type=sa.BigInteger)
    duplicated: int = Field(sa_type=sa.BigInteger)
    failed: int = Field(sa_type=sa.BigInteger)
    unknown: int = Field(sa_type=sa.BigInteger)
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
def writing(place: Place, wait: float = 5.0) -> Iterator[Appending]:
    """One transaction that holds the catalog's write lock from its start; committed when the block ends.

    An older catalog is migrated first. Anything raised inside rolls everything back.
    """
    made = _engine(place, wait)
    try:
        revision = _revision(made, place)
        if revision != LATEST:
            runner.upgrade(made, None if isinstance(place, Path) else partial(_enter, place, wait))
        with Session(made) as session, session.begin():
            _enter(place, wait, session.connection())
            yield _Rows(session)
    except sa.exc.DBAPIError as error:
        raise failure(error.orig, place) from error
    finally:
        made.dispose()


def migrate(place: Place, wait: float = 5.0) -> bool:
    """Plays an unfinished transaction back and brings an older catalog to this form; whether it was older."""
    made = _engine(place, wait)
    try:
        before = _revision(made, place)
    except sa.exc.DBAPIError as error:
        raise failure(error.orig, place) from error
    finally:
        made.dispose()
    with writing(place, wait):
        pass
    return before != LATEST


def create(place: Place) -> None:
    """A new, empty catalog: a file, or tables in a schema that is new or empty."""
    made = sqlite(place) if isinstance(place, Path) else _engine(place, 5.0)
    try:
        if isinstance(place, Path):
            runner.upgrade(made)
        else:
            from ledger import server_schema

            runner.upgrade(made, partial(server_schema.prepare, place))
    except sa.exc.DBAPIError as error:
        raise failure(error.orig, place) from error
    finally:
        made.dispose()


def discard(place: Place) -> None:
    """Takes the tables of a home that did not come about off their server; a file goes with its home."""
    if not isinstance(place, Path):
        from ledger import server_schema

        with suppress(LedgerError):  # what stopped the home is what to tell
            server_schema.drop(place)


def sqlite(path: Path, wait: float = 5.0) -> sa.Engine:
    """An engine over a catalog file."""
    return engine(sqlite_url(str(path)), wait)


def _engine(place: Place, wait: float) -> sa.Engine:
    """An engine over a catalog that is there."""
    if not isinstance(place, Path):
        from ledger import server_schema

        return server_schema.engine(place, wait)
    if not place.is_file():
        raise absent(place)
    return sqlite(place, wait)


def _revision(made: sa.Engine, place: Place) -> str:
    """The revision a catalog stands at, one that this version knows."""
    with made.connect() as connection:
        revision = runner.current(connection)
    if revision is None or revision not in REVISIONS:
        raise wrong_revision(revision, place)
    return revision


def _enter(place: Place, wait: float, connection: sa.Connection) -> None:
    """Takes the write lock on a server; a transaction on a file has it since it began."""
    if not isinstance(place, Path):
        from ledger import server_lock

        server_lock.enter(server_lock.running(connection), place, wait)


class _Rows:
    """A transaction in which rows are added."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def append(self, rows: Rows) -> None:
        """See `ledger.append.Appending`; thousands of rows go in one statement."""
        for table, items in rows.items():
            statement = sa.insert(SQLModel.metadata.tables[table])
            remaining = iter(items)
            while batch := list(islice(remaining, BATCH)):
                self.session.connection().execute(statement, batch)
