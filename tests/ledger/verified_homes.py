"""A home with everything that verification looks at, copies of it to damage, and what a report names."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ledger import seal
from ledger.home import Home
from ledger.ingest import ingest
from ledger.records import log_record
from ledger.revocations import revoke_acquisition
from ledger.statement import AUDIT, Statement, Subject
from ledger.verify import Report
from tests.ledger import homes
from tests.ledger.homes import FILE, SERVER, Place, chosen
from tests.ledger.score_files import place_with_channels, rows, without, write

RESULT = {"design": {"seed": 1}, "n": 3}
STATEMENT = Statement(
    (Subject("tree-head", {"sha256": "00" * 32}),),
    AUDIT,
    {"audit": "transport", "schema": "s", "result": RESULT, "environment": {}},
)


on_file = pytest.mark.parametrize("made", [FILE], indirect=True, scope="module")


@pytest.fixture(scope="module", params=[FILE, pytest.param(SERVER, marks=pytest.mark.sweep)])
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Place, Place]]:
    """A home with entries, a refusal, a record and a revocation, and the same home before the last two."""
    before = os.environ.get("XDG_CONFIG_HOME")
    folder = tmp_path_factory.mktemp("verify")
    place = place_with_channels(folder, chosen(request))
    scores = without(rows(), trajectory_id="traj003", step=1, endpoint="after", layout=1, candidate="B")
    ingest(place.home, [write(folder / "scores.parquet", scores)], key=place.key)
    (folder / "older").mkdir()
    older = place.copy(folder / "older")
    log_record(place.home, place.key, STATEMENT)
    revoke_acquisition(place.home, place.key, "main-1", "the server was swapped")
    seal.write(place.home)
    yield place, older
    if before is not None:
        os.environ["XDG_CONFIG_HOME"] = before


@pytest.fixture
def place(made: tuple[Place, Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A copy to damage."""
    copy = made[0].copy(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(copy.config))
    yield copy
    if copy.cluster is not None:
        copy.cluster.drop(copy.database)


def stored(home: Home, pattern: str) -> list[Path]:
    found = sorted(home.path.glob(pattern))
    assert found, pattern
    return found


def kinds(report: Report) -> set[str]:
    return {problem.kind for problem in report.findings}


def named(report: Report) -> set[str]:
    return {problem.where for problem in report.findings}


def unsealed(place: Place) -> Place:
    """Without its seal, so that only what the catalog says can give a change away."""
    (place.home.path / seal.SEAL).unlink(missing_ok=place.cluster is not None)
    return place


def by_hand(place: Place, statement: str, *values: object, drop: bool = True) -> None:
    """Changes the catalog as somebody with a database shell would, without its triggers when `drop`."""
    if place.cluster is not None:
        homes.by_hand(place, statement, *values, drop=drop)
        return
    with closing(sqlite3.connect(place.home.catalog, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in names if drop else []:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement, values)
        connection.execute("COMMIT")
