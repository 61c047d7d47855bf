"""What every engine has to give alike: audits and verifications of a home, whole or damaged."""

from __future__ import annotations

from pathlib import Path

from audits import transport
from contracts.canonical import canonical
from contracts.errors import StorageError, TamperError
from ledger.engines import Engine, Means
from ledger.index import Index
from ledger.ingest import ingest
from ledger.problems import Problem
from ledger.snapshot import open_snapshot
from ledger.verify import verify
from tests.ledger.homes import Place
from tests.ledger.score_files import place_with_channels, rows, without, write

TAMPERED = TamperError("segment file changed", kind="data", where="segments/x", expected="a", got="b")
UNREADABLE = StorageError("cannot be read", code="unreadable", where="segments/x")


def filled(folder: Path) -> Place:
    """Two calls with refused sides and a revised trajectory, in several segments each."""
    place = place_with_channels(folder)
    first = without(rows(range(8)), trajectory_id="traj003", step=1, channel="generated", layout=1)
    files = [write(folder / "a.parquet", first), write(folder / "b.parquet", rows(range(8, 13)))]
    for file in files:
        ingest(place.home, [file], key=place.key)
    return place


def audited(place: Place, engine: Engine) -> bytes:
    """The canonical bytes of an audit's result."""
    snapshot = open_snapshot(place.home, means=Means(engine))
    return canonical(transport(snapshot, "direct", "generated", resamples=100).audit.result)


def verified(place: Place, engine: Engine) -> tuple[tuple[Problem, ...], tuple[str, ...], int]:
    """Everything that a full verification finds."""
    report = verify(place.home, full=True, engine=engine)
    return report.findings, report.notices, report.total


def damaged(place: Place) -> None:
    """One byte of the second segment is another."""
    with Index.open(place.home) as index:
        name = f"segments/{index.segments()[1].file.removeprefix('blake3:')}.parquet"
    path = place.home.path / "objects" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
