"""A large call that dies at any durable step was recorded whole or not at all, and can be made again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ledger import repair, verify
from ledger.index import Index
from tests.ledger import score_files
from tests.ledger.homes import Place
from tests.ledger.score_files import rows, without, write

KILLED = 77
# A call in parts of about 100 rows and segments of 64, in a process that dies at its step argv[3].
SCRIPT = """
import os, sys
from pathlib import Path
from ledger import durable, home, ingest, score_rows, segments
ingest.LARGE = ingest.DIVIDED_ROWS = 0
score_rows.BATCH_ROWS, score_rows.PART_ROWS, segments.SEGMENT_ROWS = 50, 100, 64
steps = []
def count(name):
    steps.append(name)
    if len(steps) == int(sys.argv[3]):
        os._exit(77)
durable.hook = count
place = home.read(Path(sys.argv[1]))
ingest.ingest(place, [sys.argv[2]], key=home.signing_key(place))
print(len(steps))
"""
MADE = without(rows(range(4)), trajectory_id="traj002", endpoint="after", layout=1, candidate="C")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return score_files.place_with_channels(tmp_path_factory.mktemp("template"))


def run(place: Place, source: Path, step: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, str(place.home.path), str(source), str(step)],
        env=dict(os.environ), capture_output=True, text=True, check=False,
    )  # fmt: skip


def size_of(place: Place) -> int:
    with Index.open(place.home) as index:
        return index.size


def assert_dies_well(template: Place, folder: Path, source: Path, step: int, whole: int) -> None:
    place = template.copy(folder / str(step)).use()
    before = size_of(place)
    assert run(place, source, step).returncode == KILLED
    repair.repair(place.home, grace=0)
    assert size_of(place) in (before, whole)
    assert verify.verify(place.home, key=place.key.public, full=True).findings == ()
    assert run(place, source, 0).returncode == 0
    assert size_of(place) == whole
    assert verify.verify(place.home, key=place.key.public, full=True).findings == ()
    assert not [path for path in place.home.staged() if path.exists()]


def steps_of(template: Place, folder: Path, source: Path) -> tuple[int, int]:
    """How many durable steps the call takes, and the size of the log after it."""
    place = template.copy(folder / "count").use()
    done = run(place, source, 0)
    assert done.returncode == 0, done.stderr
    return int(done.stdout), size_of(place)


def test_at_some_steps(template: Place, tmp_path: Path) -> None:
    source = write(tmp_path / "scores.parquet", MADE)
    steps, whole = steps_of(template, tmp_path, source)
    assert steps > 20
    for step in (steps // 2, steps - 6, steps - 2):
        assert_dies_well(template, tmp_path, source, step, whole)


@pytest.mark.sweep
def test_at_more_steps(template: Place, tmp_path: Path) -> None:
    source = write(tmp_path / "scores.parquet", MADE)
    steps, whole = steps_of(template, tmp_path, source)
    for step in sorted({*range(1, steps, 4), *range(steps - 12, steps + 1)}):
        assert_dies_well(template, tmp_path, source, step, whole)
