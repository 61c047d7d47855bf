"""Ids can be copied: from the table of entries, from the log, from a pipe and from a narrow terminal."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from cli import main, render
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
        assert re.match(r"[0-9a-f]{16}:[0-9]+  ", line)
    assert printed(capsys, "show", lines[-1].split()[0])[0].startswith("entry ")


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
