"""`ledger verify` as a person meets it: each damage once, in lines that fit, and what to do about a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli import main
from tests.audits.cohorts import Ledger, new_ledger, noisy, rows


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    made = new_ledger(tmp_path)
    made.ingest(rows(noisy(12, 1)))
    monkeypatch.setenv("LEDGER_HOME", str(made.home.path))
    monkeypatch.setenv("NO_COLOR", "1")
    return made


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


def test_one_flipped_byte_is_one_problem(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    pair = ["audit", "transport", "--ref", "direct", "--alt", "generated", "--resamples", "100"]
    assert main.dispatch(pair) == 0
    (segment,) = (ledger.home.path / "objects" / "segments").glob("*.parquet")
    flip(segment, segment.stat().st_size // 2)
    capsys.readouterr()
    assert main.dispatch(["verify", "--full"]) == 4
    printed = capsys.readouterr()
    assert printed.out.count("PROBLEM") == 1
    assert "was not computed again" in printed.err
    assert printed.err.splitlines()[-1] == "ledger: not verified: 1 problem, exit 4"
    long = [line for line in printed.out.splitlines() if len(line) > 80]
    assert [line.strip() for line in long] == [f"objects/segments/{segment.name}"]


def test_a_fault_of_the_catalog_is_told_with_its_consequences(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    flip(ledger.home.catalog, 20)
    capsys.readouterr()
    assert main.dispatch(["verify"]) == 4
    printed = capsys.readouterr()
    assert printed.out.count("PROBLEM") == 1
    assert "PROBLEM   catalog.sqlite: sqlite finds a fault" in printed.out
    assert "also there: the file is not the one that catalog.seal names" in " ".join(printed.out.split())
    assert printed.err.splitlines()[-1] == "ledger: not verified: 1 problem in 2 findings, exit 4"
