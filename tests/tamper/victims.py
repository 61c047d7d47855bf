"""Copies of one small home to do harm to, and the look that has to find it.

The harm is done as somebody would who can write the home and knows it: triggers are put back, and the
catalog is sealed again, so that what gives a change away is the signed log and not a checksum.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ledger import seal
from ledger.home import Home
from ledger.problems import KINDS
from ledger.verify import Report, verify
from migrations.append_only import TABLES
from tests.ledger.homes import Place
from tests.ledger.studies import Study

CATALOG, SETTINGS = "catalog.sqlite", "ledger.toml"
NOT_VERIFIED = 4


@dataclass(frozen=True)
class Victim:
    """A copy of the study's home with the pin of somebody who has seen all of it."""

    place: Place
    study: Study

    @property
    def home(self) -> Home:
        return self.place.home

    def path(self, name: str) -> Path:
        return self.home.path / name

    def names(self) -> list[str]:
        """Every file of the home that has a byte."""
        paths = (path for path in self.home.path.rglob("*") if path.is_file() and path.stat().st_size)
        return sorted(path.relative_to(self.home.path).as_posix() for path in paths)


def copy(study: Study, folder: Path) -> Victim:
    """A fresh copy, whose configuration the process then sees."""
    folder.mkdir(parents=True, exist_ok=True)
    return Victim(study.place.copy(folder).use(), study)


def look(victim: Victim) -> Report:
    return verify(victim.home)


def found(victim: Victim, *where: str, kinds: tuple[str, ...] = KINDS) -> Report:
    """A look that must find something, end with 4, and name one of the places (`file` or `file entry`)."""
    report = look(victim)
    error = report.error()
    assert error is not None, f"not found: {where}"
    assert error.exit_code == NOT_VERIFIED
    named = {text for p in report.findings for text in (p.where, f"{p.where} {p.entry}")}
    assert named & set(where), f"{where} not named, but {sorted(named)[:9]}"
    assert {p.kind for p in report.findings} & set(kinds), {p.kind for p in report.findings}
    assert report.pin == "left"
    return report


@contextmanager
def changed(victim: Victim, *names: str) -> Iterator[None]:
    """Puts some files back as they were, or away where they were not, when the block ends."""
    before = {name: victim.path(name).read_bytes() if victim.path(name).exists() else None for name in names}
    try:
        yield
    finally:
        for name, data in before.items():
            if data is None:
                victim.path(name).unlink(missing_ok=True)
            else:
                victim.path(name).parent.mkdir(parents=True, exist_ok=True)
                victim.path(name).write_bytes(data)


def flip(victim: Victim, name: str, spot: int, bit: int) -> None:
    data = bytearray(victim.path(name).read_bytes())
    data[spot] ^= 1 << bit
    victim.path(name).write_bytes(bytes(data))


@contextmanager
def edited(victim: Victim, work: Callable[[sqlite3.Connection], object]) -> Iterator[None]:
    """The catalog after some work on it, its triggers as they were and sealed anew; then put back."""
    with changed(victim, CATALOG, seal.SEAL):
        edit(victim, work)
        yield


def edit(victim: Victim, work: Callable[[sqlite3.Connection], object]) -> None:
    with closing(sqlite3.connect(victim.home.path / CATALOG, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("BEGIN")
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        work(connection)
        for _, sql in triggers:
            connection.execute(sql)
        connection.execute("COMMIT")
    victim.path(seal.SEAL).unlink()
    if rows_of(victim, "head"):  # a catalog without one cannot be sealed
        seal.write(victim.home)


def keys_of(table: str) -> tuple[str, ...]:
    """The primary key of a table of the catalog."""
    return tuple(TABLES[table][0])


def rows_of(victim: Victim, table: str) -> list[tuple[int, ...]]:
    """The keys of every row of a table."""
    names = ", ".join(keys_of(table))
    with closing(sqlite3.connect(victim.home.path / CATALOG)) as connection:
        found: list[tuple[int, ...]] = connection.execute(
            f"SELECT {names} FROM {table} ORDER BY {names}"
        ).fetchall()
    return found


def put_back(source: Path, victim: Victim) -> None:
    """A backup in the place of the home."""
    shutil.rmtree(victim.home.path)
    shutil.copytree(source, victim.home.path)
