"""`--workers` and `--engine`: an audit by any engine leaves the same log, byte for byte."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.audit_run import _resampling
from cli.ingest import ALONE
from contracts.errors import LedgerError, UsageError
from contracts.template import template
from ledger.engine_pool import Pool
from ledger.engine_spark import Spark
from ledger.engines import MOST_PER_CORE, Inline, Means, cores
from ledger.engines import engine as engine_of
from ledger.index import Index
from ledger.ingest import ingest
from tests.cli.calls import called
from tests.gateway import Door
from tests.ledger.homes import Place
from tests.ledger.score_files import place_with_channels, rows, without, write

ROOT = Path(__file__).parents[2]
AUDIT = ("audit", "transport", "--ref", "direct", "--alt", "generated", "--resamples", "200", "--json")
SPARK = ("--engine", "spark:local[2]")
POOL = ("--workers", "2")
LARGE = 1_000_000


@pytest.fixture
def spark() -> tuple[str, ...]:
    try:
        Spark("local[2]")
    except LedgerError as error:
        pytest.skip(f"no Spark: {error}")
    return SPARK


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    made = place_with_channels(tmp_path / "first")
    whole = without(rows(range(7)), trajectory_id="traj002", step=0, channel="direct", layout=0)
    ingest(made.home, [write(tmp_path / "a.parquet", whole)], key=made.key)
    return made


def started(place: Place, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, in another directory than the home's."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(place.config)}
    return subprocess.run(
        [sys.executable, "-c", "from cli.main import run; run()", "--home", place.home.path, *words],
        capture_output=True, text=True, timeout=900, check=False, env=environment, cwd=place.config,
    )  # fmt: skip


def run(place: Place, *words: str) -> dict[str, Any]:
    """The object that a command prints, which ends well and says nothing else."""
    done = started(place, *words)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def same_log(place: Place, folder: Path, *engines: tuple[str, ...]) -> None:
    """Each engine audits and verifies a copy; all copies end with one head, one record, and no problem."""
    heads, answers = set(), []
    for number, engine in enumerate(engines):
        copy = place.copy(folder / str(number))
        answers.append(run(copy, *AUDIT, *engine))
        with Index.open(copy.home) as index:
            heads.add((index.head().size, index.head().root))
            segments = [row.root for row in index.segments()]
        verified = run(copy, "verify", "--full", "--json", *engine)
        assert (verified["ok"], verified["checked"]["recomputed"]) == (True, 1)
        assert segments == [row.root for row in _segments(place)]
        shutil.rmtree(folder / str(number))
    assert len(heads) == 1
    assert all(answer == answers[0] for answer in answers)


def _segments(place: Place) -> Any:
    with Index.open(place.home) as index:
        return index.segments()


def test_a_pool_leaves_the_same_log(place: Place, tmp_path: Path) -> None:
    same_log(place, tmp_path, ("--engine", "inline"), POOL)


@pytest.mark.parametrize("number", ["0", "-1", "1025", "9999", "9" * 20, "1e3"])
def test_numbers_of_workers_that_are_none(place: Place, number: str) -> None:
    for command in (AUDIT, ("verify", "--full", "--json"), ("ingest", "a.parquet", "--json")):
        done = called("--home", str(place.home.path), *command, "--workers", number)
        assert done.code == 2, done
        assert "--workers" in json.loads(done.out)["error"]["what"]


@pytest.mark.parametrize("number", [2, 300, 1024, 10**20])
def test_a_pool_is_no_larger_than_the_machine_can_use(number: int) -> None:
    made = engine_of(None, number)
    assert isinstance(made, Pool)
    assert made.pieces(1) <= MOST_PER_CORE * cores()
    made.close()


def test_predictions_are_taken_in_alone(place: Place, tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(template("jev"))
    done = called(
        "--home", str(place.home.path), "ingest", str(path), "--dry-run", "--workers", "2", "--json"
    )
    assert ALONE in json.loads(done.out)["warnings"]
    done = called("--home", str(place.home.path), "ingest", str(path), "--dry-run", "--json")
    assert ALONE not in json.loads(done.out)["warnings"]


def test_spark_leaves_the_same_log(place: Place, tmp_path: Path, spark: tuple[str, ...]) -> None:
    same_log(place, tmp_path, ("--engine", "inline"), spark)


def test_a_master_that_spark_does_not_know_is_said(place: Place, spark: tuple[str, ...]) -> None:
    done = started(place, *AUDIT, "--engine", "spark:nonsense")
    assert (done.returncode, done.stderr) == (3, "")
    error = json.loads(done.stdout)["error"]
    assert (error["code"], error["where"]) == ("no-engine", "--engine spark:nonsense")
    assert "Master must" in error["what"]


@pytest.mark.sweep
def test_a_million_entries(tmp_path: Path, spark: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    same_log(_large(tmp_path, monkeypatch, None), tmp_path, ("--engine", "inline"), POOL, spark)


@pytest.mark.sweep
def test_a_call_of_millions(tmp_path: Path, spark: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each engine takes the same files into a copy; the answers, the events and the head are the same."""
    place, scores = _prepared(tmp_path, monkeypatch, None, 1_700_000)
    found = []
    for number, engine in enumerate((("--engine", "inline"), POOL, spark)):
        copy = place.copy(tmp_path / str(number))
        answer = run(copy, "ingest", str(scores), "--json", *engine)
        with Index.open(copy.home) as index:
            found.append((answer, [row.data for row in index.events(0, index.size)], index.head().note))
        assert not list(copy.home.staged())
        shutil.rmtree(tmp_path / str(number))
    assert found[0] == found[1] == found[2]
    assert len(found[0][0]["segments"]) == 2


@pytest.mark.sweep
def test_a_call_of_millions_in_a_bucket(
    tmp_path: Path, door: Door, spark: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for number, engine in enumerate((("--engine", "inline"), POOL, spark)):
        place, scores = _prepared(
            tmp_path / str(number), monkeypatch, f"s3://{door.gateway.bucket()}/lab", 1_700_000
        )
        answer = run(place, "ingest", str(scores), "--json", *engine)
        found.append((answer["segments"], answer["admitted"]))
        assert not list(place.home.staged())
    assert found[0] == found[1] == found[2]


@pytest.mark.sweep
def test_a_million_entries_in_a_bucket(
    tmp_path: Path, door: Door, spark: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _large(tmp_path, monkeypatch, f"s3://{door.gateway.bucket()}/lab")
    engines = (("--engine", "inline"), POOL, spark)
    answers = [run(place, *AUDIT, "--no-record", *engine) for engine in engines]
    assert all(answer == answers[0] for answer in answers)
    assert all(run(place, "verify", "--full", "--json", *engine)["ok"] for engine in engines)


def _large(folder: Path, monkeypatch: pytest.MonkeyPatch, objects: str | None) -> Place:
    """A home with the scores of the benchmarks."""
    place, scores = _prepared(folder, monkeypatch, objects, LARGE)
    ingest(place.home, [scores], key=place.key)
    return place


def _prepared(
    folder: Path, monkeypatch: pytest.MonkeyPatch, objects: str | None, entries: int
) -> tuple[Place, Path]:
    """A home with the channels of the benchmarks, and a file of scores."""
    from ledger import channels, home

    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    data = folder / "data"
    words = [sys.executable, ROOT / "benchmarks" / "data.py", data, "--entries", str(entries)]
    subprocess.run(words, check=True, timeout=300)
    made = home.init(folder / ".ledger", origin="large", objects=objects)
    key = home.signing_key(made)
    channels.add(made, key, sorted((data / "channels").iterdir()))
    return Place(made, folder / "config", key), data / "scores.parquet"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*AUDIT, "--engine", "dask"), "unknown engine"),
        ((*AUDIT, "--engine", ""), "unknown engine"),
        ((*AUDIT, "--engine", ":local[2]"), "unknown engine"),
        (("ingest", "a.parquet", "--engine", "", "--json"), "unknown engine"),
        (("ingest", "a.parquet", "--engine", "dask", "--json"), "unknown engine"),
        (("ingest", "a.parquet", *SPARK, "--workers", "2", "--json"), "workers of its own"),
        (("verify", "--workers", "2", "--json"), "add --full"),
        (("verify", "any.bundle", "--workers", "2", "--json"), "leave it out"),
        (("verify", "any.bundle", "--engine", "nonsense", "--json"), "leave it out"),
        (("verify", "any.bundle", "--engine", "", "--full", "--json"), "leave it out"),
        ((*AUDIT, *SPARK, "--workers", "2"), "workers of its own"),
    ],
)
def test_what_makes_no_sense_is_refused(place: Place, words: tuple[str, ...], said: str) -> None:
    refused = called("--home", str(place.home.path), *words)
    assert refused.code == 2
    assert said in refused.out


def test_spark_that_is_not_installed_is_said(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused = called("--home", str(place.home.path), *AUDIT, *SPARK)
    assert (refused.code, json.loads(refused.out)["error"]["code"]) == (2, "missing-extra")
    assert "evaluator-ledger[spark]" in refused.out


def test_spark_is_asked_for_by_files_that_need_it_alone(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, scores = tmp_path / "pairs.jsonl", write(tmp_path / "more.parquet", rows(range(9, 10)))
    pairs.write_text(template("jev"))
    monkeypatch.setattr("ledger.engine_spark._require_spark", _no_spark)
    words = ("--home", str(place.home.path), "ingest", "--dry-run", "--json", *SPARK)
    taken = called(*words, str(pairs))
    assert (taken.code, json.loads(taken.out)["warnings"]) == (0, [ALONE])
    assert called(*words, str(scores)).code == 2


def _no_spark() -> None:
    raise UsageError("Spark is not installed", code="missing-extra")


def test_workers_are_let_go_once_when_the_resamples_begin() -> None:
    told: list[tuple[str, int, int | None]] = []

    class Closing(Inline):
        def close(self) -> None:
            told.append(("closed", 0, 0))

    hear = _resampling(Means(Closing()), lambda *step: told.append(step))
    hear(10, 20)
    hear(20, 20)
    assert told == [("closed", 0, 0), ("resampling", 10, 20), ("resampling", 20, 20)]
