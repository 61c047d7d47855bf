"""A checksum of the catalog's file, beside it: `catalog.seal`, written after every commit.

What the catalog says is compared with the log, but much of its file says nothing: unused space, the text of
its definitions. A byte that changed there changes no answer, and yet it tells that the disk or a hand was at
work. The seal is no evidence against anybody who can write the home: that is what signatures are for.
A server keeps checksums of its own, and its files are not ours to read: a catalog there has no seal.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from contracts.canonical import canonical, parse_canonical
from contracts.errors import MalformedError
from ledger import durable
from ledger.catalog_file import open_readonly
from ledger.fields import Fields
from ledger.home import Home
from ledger.objects import file_digest

SEAL = "catalog.seal"
MAX_SEAL = 4096


@dataclass(frozen=True)
class Seal:
    """The newest head in a catalog, and the digest of the file that holds it."""

    size: int
    root: str
    catalog: str

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        return canonical({"size": self.size, "root": self.root, "catalog": self.catalog})

    @classmethod
    def parse(cls, data: bytes) -> Seal:
        """The seal in a file's bytes; MalformedError when they are anything else."""
        fields = Fields.of(parse_canonical(data, limit=MAX_SEAL), "seal")
        seal = cls(fields.whole("size"), fields.digest("root", "sha256"), fields.digest("catalog", "blake3"))
        fields.close()
        return seal


def write(home: Home) -> None:
    """Seals a catalog file as it stands; the caller keeps every other writer out."""
    catalog = home.catalog
    if not isinstance(catalog, Path):
        return
    with closing(open_readonly(catalog)) as connection:
        data = _seal(connection, catalog).to_bytes()
    path = home.path / SEAL
    with durable.storage("sealing the catalog", path):
        if path.is_file() and path.read_bytes() == data:
            return
        staged = path.with_name(durable.temporary_name(".seal-new"))
        durable.create(staged, data)
        durable.replace(staged, path)


def check(connection: sqlite3.Connection, home: Home, catalog: Path) -> str | None:
    """Compares an open catalog with its seal; MalformedError where they differ.

    Returns a notice where the seal is of an older head, as a crash after a commit leaves it, and where there
    is none, so that there is nothing to compare.
    """
    stated = read(home)
    if stated is None:
        return f"{SEAL} is missing; the next commit or `ledger repair` writes it"
    found = _seal(connection, catalog)
    if stated == found:
        return None
    older = connection.execute("SELECT root FROM head WHERE size = ?", (stated.size,)).fetchone()
    if stated.size < found.size and older is not None and stated.root == _text(older[0]):
        return f"{SEAL} is of an older head; the next commit or `ledger repair` renews it"
    raise _broken(stated, found.catalog)


def check_unopened(home: Home, catalog: Path) -> None:
    """The same for a catalog that cannot be opened, so that nobody takes damage for another version."""
    stated = read(home)
    if stated is not None and (found := file_digest(catalog, "blake3")) != stated.catalog:
        raise _broken(stated, found)


def read(home: Home) -> Seal | None:
    """The seal of a home, None where there is none."""
    path = home.path / SEAL
    try:
        with path.open("rb") as file:
            return Seal.parse(file.read(MAX_SEAL + 1))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise durable.storage_error(error, "reading the seal", path) from error


def _broken(stated: Seal, found: str) -> MalformedError:
    return MalformedError(
        f"the file is not the one that {SEAL} names; one of the two changed since",
        expected=stated.catalog,
        got=found,
    )


def _seal(connection: sqlite3.Connection, catalog: Path) -> Seal:
    """The seal of the file as it is; a read lock keeps writers from its pages meanwhile."""
    connection.execute("BEGIN")
    try:
        row = connection.execute("SELECT size, root FROM head ORDER BY size DESC LIMIT 1").fetchone()
        if row is None:
            raise MalformedError("the catalog has no head")
        with durable.storage("reading the catalog", catalog):
            return Seal(int(row[0]), _text(row[1]), file_digest(catalog, "blake3"))
    finally:
        connection.execute("ROLLBACK")


def _text(root: bytes) -> str:
    return "sha256:" + bytes(root).hex()
