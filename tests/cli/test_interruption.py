"""Ctrl-C in a real process, at chosen moments of long work: the ledger stays clean, and the end is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.errors import LedgerError
from ledger.engine_spark import Spark
from ledger.index import Index
from ledger.ingest import ingest
from ledger.repair import repair
from ledger.verify import verify
from tests.ledger.homes import Place
from tests.ledger.score_files import place_with_channels, rows, write

# Presses Ctrl-C, or sends another signal, when the command tells that it is in a phase or at a crash point.
PRESSING = """
import os, signal, sys
from contextlib import contextmanager
from cli import render
from ledger import durable

def press(name):
    if name == moment:
        signal.raise_signal(number)

@contextmanager
def progress():
    yield lambda phase, done, total: press(phase)

if __name__ == "__main__":
    number, moment, words = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
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


def pressed(place: Place, moment: str, *words: str, number: int = 2) -> subprocess.CompletedProcess[str]:
    """A command that is interrupted at a moment."""
    folder = place.home.path.parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(
        [sys.executable, folder / "press.py", str(number), moment, "--home", place.home.path, *words],
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
    more = "; after an hour ledger repair clears what was not finished" if left else ""
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
    except LedgerError as error:
        pytest.skip(f"no Spark: {error}")
    before = size(place)
    done = pressed(place, moment, *words, "spark:local[2]")
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr.startswith(f"ledger: interrupted; the log has {before} events, as before")
    assert size(place) == before


# Signals the whole group of processes, as a terminal does, so long after a worker was started.
STARTING = """
import os, signal, sys, threading
from concurrent.futures import ProcessPoolExecutor

if __name__ == "__main__":
    number, delay = int(sys.argv[1]), float(sys.argv[2])
    spawn, first = ProcessPoolExecutor._spawn_process, [True]

    def watched(self):
        spawn(self)
        if first:
            first.clear()
            threading.Timer(delay, os.killpg, (0, number)).start()

    ProcessPoolExecutor._spawn_process = watched
    sys.argv = ["ledger", *sys.argv[3:]]
    from cli.main import run
    run()
"""


@pytest.mark.parametrize("delay", [0, pytest.param(0.1, marks=pytest.mark.sweep), 0.4])
@pytest.mark.parametrize(("number", "how", "code"), [(2, "interrupted", 130), (15, "terminated", 143)])
def test_workers_that_have_just_begun_say_nothing(
    place: Place, number: int, how: str, code: int, delay: float
) -> None:
    folder, before = place.home.path.parent, size(place)
    (folder / "starting.py").write_text(STARTING)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    words = [sys.executable, folder / "starting.py", str(number), str(delay), "--home", place.home.path]
    done = subprocess.run(
        [*words, *AUDIT, "--workers", "2"], start_new_session=True,
        capture_output=True, text=True, timeout=120, check=False, env=environment, cwd=folder,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (code, "")
    assert " ".join(done.stderr.split()) == f"ledger: {how}; the log has {before} events, as before"
    assert size(place) == before


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("read", ("ingest", "b.parquet")),
        ("judge", (*SHARED, "pool")),
        pytest.param("object-named", ("ingest", "b.parquet"), marks=pytest.mark.sweep),
        pytest.param("rows", ("verify", "--full", "--workers", "2"), marks=pytest.mark.sweep),
    ],
)
def test_terminated_ends_as_interrupted_does(place: Place, moment: str, words: tuple[str, ...]) -> None:
    before = size(place)
    done = pressed(place, moment, *words, number=15)
    assert (done.returncode, done.stdout) == (143, ""), done.stderr
    assert done.stderr.startswith(f"ledger: terminated; the log has {before} events, as before")
    assert len(done.stderr.splitlines()) <= 2
    assert size(place) == before
    assert moment == "object-named" or not list(place.home.staged())


def test_a_caller_that_ignores_termination_is_obeyed(place: Place) -> None:
    script = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{PRESSING}"
    (place.home.path.parent / "press.py").write_text(script)
    done = pressed(place, "read", "ingest", "b.parquet", number=15)
    assert (done.returncode, done.stderr) == (0, "")


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
