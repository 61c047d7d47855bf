"""Ctrl-C in a real process, at chosen moments of long work: the ledger stays clean, and the end is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.errors import StorageError
from ledger.engine_spark import Spark
from ledger.index import Index
from ledger.ingest import ingest
from ledger.repair import repair
from ledger.verify import verify
from tests.ledger.homes import Place
from tests.ledger.score_files import place_with_channels, rows, write

# Presses Ctrl-C when the command tells that it is in a phase; `after` names a crash point instead.
PRESSING = """
import os, signal, sys
from contextlib import contextmanager
from cli import render
from ledger import durable

moment, words = sys.argv[1], sys.argv[2:]

def press(name):
    if name == moment:
        signal.raise_signal(signal.SIGINT)

@contextmanager
def progress():
    yield lambda phase, done, total: press(phase)

if __name__ == "__main__":
    if "ingest" in words and "--engine" in words:  # then workers take part in the smallest call
        from ledger import ingest, score_rows
        ingest.DIVIDED_ROWS = 0
        score_rows.BATCH_ROWS = score_rows.PART_ROWS = 50
    render.progress = progress
    durable.hook = press
    sys.argv = ["ledger", *words]
    from cli.main import run
    run()
"""
SHARED = ("ingest", "b.parquet", "--engine")
AUDIT = ("audit", "transport", "--ref", "direct", "--alt", "generated", "--resamples", "200")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = place_with_channels(tmp_path)
    ingest(made.home, [write(tmp_path / "a.parquet", rows(range(4)))], key=made.key)
    write(tmp_path / "b.parquet", rows(range(4, 8)))
    (tmp_path / "press.py").write_text(PRESSING)
    return made


def size(place: Place) -> int:
    with Index.open(place.home) as index:
        return index.size


def pressed(place: Place, moment: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A command that is interrupted at a moment."""
    folder = place.home.path.parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(
        [sys.executable, folder / "press.py", moment, "--home", place.home.path, *words],
        capture_output=True, text=True, timeout=120, check=False, env=environment, cwd=folder,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("moment", "words", "left"),
    [
        ("read", ("ingest", "b.parquet"), False),
        ("read", (*SHARED, "pool"), False),
        ("judge", (*SHARED, "pool"), False),
        pytest.param("write", (*SHARED, "pool"), False, marks=pytest.mark.sweep),
        ("object-named", (*SHARED, "pool"), True),
        ("object-named", ("ingest", "b.parquet"), True),
        ("appended", ("ingest", "b.parquet"), True),
        ("entries", AUDIT, False),
        ("entries", (*AUDIT, "--workers", "2"), False),
        pytest.param("resampling", AUDIT, False, marks=pytest.mark.sweep),
        ("rows", ("verify", "--full"), False),
        pytest.param("rows", ("verify", "--full", "--workers", "2"), False, marks=pytest.mark.sweep),
        ("events", ("rebuild",), False),
    ],
)
def test_what_was_there_is_kept_and_nothing_else(
    place: Place, moment: str, words: tuple[str, ...], left: bool
) -> None:
    before = size(place)
    done = pressed(place, moment, *words)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    told = " ".join(done.stderr.split())
    more = "; ledger repair clears what was not finished" if left else ""
    assert told == f"ledger: interrupted; the log has {before} events, as before{more}"
    assert size(place) == before
    assert verify(place.home, full=True).ok
    repair(place.home, grace=0.0)
    report = verify(place.home, full=True)
    assert (report.ok, report.notices) == (True, ())


@pytest.mark.parametrize(
    ("moment", "words"), [("entries", (*AUDIT, "--engine")), ("judge", SHARED)], ids=["audit", "ingest"]
)
def test_spark_is_interrupted_too(place: Place, moment: str, words: tuple[str, ...]) -> None:
    try:
        Spark("local[2]")
    except StorageError as error:
        pytest.skip(f"no Spark: {error}")
    before = size(place)
    done = pressed(place, moment, *words, "spark:local[2]")
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr.startswith(f"ledger: interrupted; the log has {before} events, as before")
    assert size(place) == before


def test_what_was_recorded_before_is_told(place: Place) -> None:
    before = size(place)
    done = pressed(place, "published log/checkpoint", "ingest", "b.parquet")
    assert done.returncode == 130, done.stderr
    assert size(place) == before + 1
    assert done.stderr.startswith(f"ledger: interrupted; 1 of the log's {before + 1} events are new and kept")
    assert verify(place.home, full=True).ok


def test_an_interruption_before_any_work(place: Place) -> None:
    done = pressed(place, "events", "verify")
    assert done.returncode == 130
