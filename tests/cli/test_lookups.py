"""Ids can be copied: from the table of entries, from the log, from a pipe and from a narrow terminal."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from cli import main, render
from cli.entry_tables import _print_scores
from ledger.node import Node
from tests.audits.cohorts import Ledger, new_ledger, noisy, rows


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    made = new_ledger(tmp_path)
    made.ingest(rows(noisy(12, 1)))
    monkeypatch.setenv("LEDGER_HOME", str(made.home.path))
    monkeypatch.setenv("NO_COLOR", "1")
    return made


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    capsys.readouterr()
    assert main.dispatch(list(words)) == 0
    return capsys.readouterr().out.splitlines()


def test_an_entry_id_is_whole_in_the_table(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    head, *lines = printed(capsys, "scores", "--limit", "12")
    assert head.split()[0] == "entry"
    assert len(lines) == 12
    for line in lines:
        assert re.match(r"[0-9a-f]{16}:[0-9]+ ", line)
    assert printed(capsys, "show", lines[-1].split()[0])[0].startswith("entry ")


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("long", ["", "-2026-11-30T12:00-of-the-night-shift", "x" * 40], ids=len)
def test_entries_fit_the_screen_and_keep_what_identifies(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: bool, long: str
) -> None:
    row = {
        "entry": "0123456789abcdef:1048575", "energy": -1048575.5, "endpoint": "before", "layout": 11,
        "candidate": "north", "trajectory_id": f"traj000{long}", "step": 17, "channel": "generated@12",
        "acquisition_id": f"main-1{long}",
    }  # fmt: skip
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    _print_scores([row, {**row, "layout": 12}, {**row, "step": 18}])
    out = capsys.readouterr().out
    assert "…" not in out
    lines = out.splitlines()
    assert sum(line.startswith("0123456789abcdef:1048575  -1048575.500  before") for line in lines) == 3
    words = " ".join(out.split())
    for name in (row["channel"], row["acquisition_id"], f"{row['trajectory_id']}/17"):
        assert str(name) in words
    assert all(len(line) <= 80 or line.strip() in words.split(" ") for line in lines)


def test_numbers_that_name_are_as_they_are_typed_and_others_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    facts = {
        "seed": 20260928, "first": ["t", 12345], "rows": 4096, "proof": {"index": 10000, "path": 1234},
        "value": 0.12345678901234567, "draws": {"seed": 1234, "count": 10000}, "done": True,
    }  # fmt: skip
    node = Node("audit", "a", facts)
    assert " ".join(" ".join(render.tree(node)).split()) == (
        "audit a seed 20260928, first t, 12345, rows 4,096, proof (index 10000, path 1,234) value 0.123457, "
        "draws (seed 1234, count 10,000), done yes"
    )
    assert node.as_json()["facts"] == facts


def test_ids_of_the_log_are_whole_on_a_terminal_too(
    ledger: Ledger, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main.dispatch(["audit", "repeatability", "--channel", "direct", "--resamples", "100"]) in (0, 5)
    piped = printed(capsys, "log")
    assert not any("…" in line for line in piped)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown = printed(capsys, "log")
    assert re.search(r"record sha256:[0-9a-f]{12}, rep", shown[-1])
    assert all(len(line) <= 80 for line in shown)


def test_only_a_terminal_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "x" * 100
    assert render.clip(line) == line
    assert " ".join(part.strip() for part in render.one_line("y " * 60)) == " ".join("y" * 60)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert render.clip(line) == "x" * 79 + "…"
    assert len(render.one_line("y " * 60)) == 1


def test_status_says_which_refused_sides_are_still_missing(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    made = rows({("u001", 0): next(iter(noisy(1, 1).values()))})
    ledger.ingest(made[1:], "short.parquet")
    (line,) = [text for text in printed(capsys, "status") if text.startswith("refused sides")]
    assert "1 not completed later, of 1 ever refused" in line
    ledger.ingest(made, "whole.parquet")
    (line,) = [text for text in printed(capsys, "status") if text.startswith("refused sides")]
    assert "0 not completed later, of 1 ever refused" in line
