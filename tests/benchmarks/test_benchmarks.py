"""The benchmarks themselves: what a row says, what is kept, that the suite still runs. Nothing is timed."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import audit_bench  # noqa: E402
import data  # noqa: E402
import ingest_bench  # noqa: E402
import kept  # noqa: E402
import peers  # noqa: E402
import run  # noqa: E402
import table  # noqa: E402
from case import Bar, Case, Fact, fact, faster, megabytes, seconds, share, times  # noqa: E402
from kept import Kept, Result, Results, Run  # noqa: E402

MILLIONS = 10_000_000
KEY = [
    (name, "ascending") for name in ("trajectory_id", "step", "endpoint", "channel", "layout", "candidate")
]


def result(entries: int = MILLIONS, **cases: float) -> Result:
    """A suite in which each case took so many seconds, once, and as many hundred megabytes."""
    made = {name: Kept([Run(took, took, 100 * took)], entries, grows=True) for name, took in cases.items()}
    return Result("read", entries, made)


def one(bar: Bar, of: Result) -> table.Row:
    return next(iter(table.rows_of(of, [bar])))


def test_a_bar_is_met_up_to_its_edge() -> None:
    assert one(seconds("a", 2.0), result(a=2.0)).verdict == "met"
    assert one(seconds("a", 2.0), result(a=2.01)).verdict == "NOT MET"
    assert one(megabytes("a", 200), result(a=2.0)).verdict == "met"
    assert one(times("r", "a", "b", at_least=3.0), result(a=6.0, b=2.0)).value == 3.0
    assert one(times("r", "a", "b", at_least=3.0), result(a=6.0, b=2.1)).verdict == "NOT MET"


def test_rates_are_compared_whatever_number_of_entries_each_had() -> None:
    found = result(ours=10.0, theirs=10.0)
    found.cases["theirs"].entries = 99_840  # whole trajectories
    row = one(faster("ours / theirs", "ours", "theirs", 100.0), found)
    assert (row.verdict, row.name) == ("met", "ours / theirs (that on 100k)")
    assert row.value == pytest.approx(MILLIONS / 99_840)


def test_a_suite_without_entries_says_nothing_of_their_number() -> None:
    assert one(seconds("a", 2.0), result(0, a=1.0)).name == "a: seconds"


def test_facts_are_held_against_bars_like_times() -> None:
    found = Result("read", MILLIONS, facts={"ours": 12.0, "theirs": 10.0})
    assert one(share("bytes", "ours", "theirs", 1.1), found).verdict == "NOT MET"
    assert one(fact("ours", 12.0), found).verdict == "met"


def test_a_bar_of_another_size_is_shown_and_not_judged() -> None:
    row = one(seconds("a", 2.0, of=MILLIONS), result(1_000_000, a=9.0))
    assert (row.verdict, row.number, row.note) == ("", "9 s", "stated for 10M")
    assert "met" not in table.terminal([row]).lower()


def test_of_two_sizes_of_one_bar_the_one_that_ran_counts() -> None:
    bars = [seconds("a", 1.5, of=MILLIONS), seconds("a", 1.0, of=1_000_000)]
    assert [row.wanted for row in table.rows_of(result(1_000_000, a=1.2), bars)] == ["<= 1 s"]
    assert [row.wanted for row in table.rows_of(result(a=1.2), bars)] == ["<= 1.5 s"]
    assert [row.wanted for row in table.rows_of(result(100_000, a=1.2), bars)] == ["<= 1.5 s"]


def test_what_is_not_installed_is_not_measured_and_never_met() -> None:
    found = result(ours=1.0)
    found.missing["theirs"] = "duckdb: not installed"
    row = one(times("ours / theirs", "ours", "theirs", at_most=2.5), found)
    assert (row.value, row.verdict, row.number) == (None, "absent", "-")
    assert "duckdb: not installed" in table.terminal([row])


def test_growth_is_judged_between_the_sizes_it_is_stated_for() -> None:
    small, large = result(a=1.0, audit=1.0), result(5 * MILLIONS, a=6.5, audit=1.1)
    rows = {row.name: row for row in table.growths([small, large])}
    assert rows["time from 10M to 50M: a"].verdict == "NOT MET"
    assert rows["time from 10M to 50M: audit"].verdict == "met"
    assert rows["memory from 10M to 50M: audit"].verdict == "met"
    assert "memory from 10M to 50M: a" not in rows
    assert [row.verdict for row in table.growths([result(1_000_000, a=1.0), small])] == [""]


def test_every_line_fits_a_terminal() -> None:
    found = result(**{"a case whose name is longer than a column of it could ever be": 2_345.0})
    found.facts["a fact of many digits"] = 1_733_483_000.0
    found.missing["nobody"] = "not installed " * 9
    bars = [*(bar for bars in run.BARS.values() for bar in bars)]
    text = table.times(found) + "\n" + table.terminal(table.rows_of(found, bars))
    assert max(map(len, text.splitlines())) <= 80


def test_the_page_keeps_what_stands_around_its_table(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n")
    results = Results("2026-11-30", "a machine", {"Python": "3"}, [result(help=0.2)])
    for _ in range(2):
        table.put(page, table.markdown(results, run.BARS))
        text = page.read_text()
        assert text.startswith("before\n")
        assert text.endswith("after\n")
        assert "old" not in text
        assert text.count("| help: seconds | 10M | 0.2 s | <= 0.3 s | met |") == 1


def test_medians_and_the_most_memory_are_kept_and_read_back(tmp_path: Path) -> None:
    runs = [Run(3.0, 1.0, 10.0), Run(1.0, 3.0, 30.0), Run(2.0, 2.0, 20.0)]
    results = Results("2026-11-30", "a machine", {}, [Result("read", 5, {"a": Kept(runs, 5)})])
    results.write(tmp_path / "kept.json")
    again = kept.read(tmp_path / "kept.json")
    assert again == results
    found = again.results[0].found()["a"]
    assert (found.seconds, found.processor, found.megabytes, found.runs) == (2.0, 2.0, 30.0, 3)


@pytest.mark.parametrize(("took", "runs"), [(1.0, 5), (29.9, 5), (30.0, 3), (119.0, 3), (120.0, 1)])
def test_what_takes_long_is_run_less_often(took: float, runs: int) -> None:
    assert run.runs_for(took, None) == runs
    assert run.runs_for(took, 2) == 2


def test_large_suites_run_only_where_the_size_is_large() -> None:
    assert list(run.plan((), [100_000])) == [
        ("jev", 100_000), ("ingest", 100_000), ("read", 100_000), ("audit", 100_000),
    ]  # fmt: skip
    large = list(run.plan((), [50_000_000, MILLIONS]))
    assert large[:2] == [("jev", 1_000_000), ("statistics", 0)]
    assert [size for name, size in large if name == "audit"] == [MILLIONS, 50_000_000]
    assert large[-1] == ("checksum", 120_000_000)


def test_a_command_that_fails_is_named_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Suite:
        BARS: tuple[Bar, ...] = ()

        @staticmethod
        def cases(_folder: Path, _entries: int) -> list[Case | Fact]:
            wrong = Case("wrong", [sys.executable, "-c", "import sys; sys.exit('no luck')"])
            absent = Case("absent", ["nothing"], missing="not installed")
            return [wrong, absent, Case("right", [sys.executable, "-c", ""]), Fact("fact", lambda: 4.0)]

    monkeypatch.setitem(run.SUITES, "read", Suite)
    results = Results("2026-11-30", "a machine", {})
    given = argparse.Namespace(repeats=2, json=tmp_path / "kept.json")
    done = run.run("read", 1280, tmp_path, results, given)
    assert done.failed
    assert "no luck" in done.missing["wrong"]
    assert done.missing["absent"] == "not installed"
    assert list(done.found()) == ["right", "fact"]
    assert done.found()["right"].runs == 2
    assert json.loads(given.json.read_text())["results"][0]["done"] is True


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what all processes hold together")
def test_memory_is_that_of_all_processes(tmp_path: Path) -> None:
    held = "b = bytearray(60 << 20); import time; time.sleep(1.5)"
    started = f"[subprocess.Popen([sys.executable, '-c', {held!r}]) for _ in 'ab']"
    script = f"import subprocess, sys\nfor p in {started}: p.wait()"
    case = Case("two", [sys.executable, "-c", script])
    found = run.measure(case, tmp_path / "report.json")
    assert 120 < found.megabytes < 400
    assert found.seconds > 0.4


@pytest.mark.parametrize("order", ["requests", "rows", "sorted"])
def test_blocks_add_up_to_the_same_rows(order: data.Order, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "BLOCK", 5 * data.PER_TRAJECTORY)
    blocks = list(data.blocks(15_000, order))
    assert len(blocks) >= 3
    rows = pa.concat_tables(blocks).sort_by(KEY).combine_chunks()
    assert rows == data.scores(15_000, order="sorted").sort_by(KEY).combine_chunks()
    if order == "rows":
        everybody = data.trajectories_of(15_000)
        assert all(len(block["trajectory_id"].unique()) == everybody for block in blocks)


def test_peers_take_every_row(tmp_path: Path) -> None:
    source = data.write(tmp_path / "scores.parquet", 1280)
    peers.rewrite(str(source), str(tmp_path / "again.parquet"))
    assert pq.read_table(tmp_path / "again.parquet") == pq.read_table(source)
    import sqlite3

    for peer in (peers.sqlite, peers.sqlmodel):
        peer(str(source), str(tmp_path / peer.__name__))
        with sqlite3.connect(tmp_path / peer.__name__) as connection:
            assert connection.execute("SELECT count(*) FROM entry").fetchone() == (1280,)
        connection.close()


def test_a_query_that_answers_something_else_ends_the_benchmark() -> None:
    query = Case("query", [sys.executable, "-c", "print(0.25)"])
    assert audit_bench._difference(0.25 + 5e-10, query) < 1e-9
    with pytest.raises(SystemExit, match=r"0\.26, that of the query 0\.25"):
        audit_bench._difference(0.26, query)


def test_every_suite_names_what_its_bars_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_bench.server, "address", lambda: ("", "no server"))
    made = ingest_bench.cases(tmp_path, 1280)
    names = {case.name for case in made}
    assert {need for bar in ingest_bench.BARS for need in bar.needs} <= names


def test_the_suite_runs_at_its_smallest(tmp_path: Path) -> None:
    words = ["checksum", "--entries", "1280", "--repeats", "1", "--json", str(tmp_path / "kept.json")]
    words += ["--folder", str(tmp_path), "--markdown", str(tmp_path / "page.md")]
    ran = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "run.py"), *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert kept.read(tmp_path / "kept.json").finished
    assert "| verify, no entries |" in (tmp_path / "page.md").read_text()
    assert not list(tmp_path.glob("ledger-bench-*"))
