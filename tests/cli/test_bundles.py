"""`ledger bundle`, `verify FILE` and `lineage --proof` as people and programs meet them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli import main
from ledger.vkey import VerifierKey
from tests.audits.cohorts import Ledger, new_ledger, noisy, rows

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("NO_COLOR", "1")
    made = new_ledger(tmp_path)
    monkeypatch.setenv("LEDGER_HOME", str(made.home.path))
    made.ingest(rows(noisy(12, 1)))
    return made


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main.dispatch(list(words))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def vkey(ledger: Ledger) -> str:
    return str(VerifierKey(ledger.home.origin, ledger.key.public.raw))


def test_an_audit_goes_to_another_machine_and_is_checked_there(
    ledger: Ledger, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = str(tmp_path / "audit.bundle")
    pair = ("audit", "transport", "--ref", "direct", "--alt", "generated", "--resamples", "200", "--json")
    record = json.loads(call(*pair)[1])["record"]
    code, out, _ = call("bundle", record, "-o", file)
    assert (code, max(map(len, out.splitlines())) <= 80 + len(file)) == (0, True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))
    monkeypatch.delenv("LEDGER_HOME")
    code, out, _ = call("verify", file, "--key", vkey(ledger), "--json")
    told = json.loads(out)
    assert (code, told["ok"], told["recomputed"], told["record"]) == (0, True, True, record)
    code, out, _ = call("verify", file, "--key", vkey(ledger))
    assert out.splitlines()[-1].startswith("verified  every event, every page")
    assert call("verify", file)[0] == 4
    code, _, err = call(
        "verify", file, "--key", "other+5d4b1a1d+AaaaAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    )
    assert code == 4, err
    data = Path(file).read_bytes()
    Path(file).write_bytes(data[: len(data) // 2])
    assert call("verify", file, "--key", vkey(ledger))[0] == 4


def test_an_entry_is_proved_in_one_file(ledger: Ledger, call: Call, tmp_path: Path) -> None:
    file = str(tmp_path / "entry.tlog-proof")
    entry = json.loads(call("scores", "--limit", "1", "--json")[1])["entries"][0]
    assert call("lineage", entry["entry"], "--proof", file)[0] == 0
    told = json.loads(call("verify", file, "--json")[1])
    assert (told["entry"], told["values"]["energy"]) == (entry["entry"], entry["energy"])
    code, _, err = call("lineage", "direct", "--proof", file)
    assert (code, "only an entry has a proof" in err) == (2, True)


def test_what_is_no_bundle_is_said_to_be_none(ledger: Ledger, call: Call, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert call("verify", str(tmp_path / "notes.txt"))[0] == 2
    assert call("verify", str(tmp_path / "nothing"))[0] == 3
    assert call("bundle", "0", "-o", str(tmp_path / "x"))[0] == 2
    assert call("bundle", "0", "-o", str(tmp_path / "no" / "x"))[0] == 3
    assert not (tmp_path / "x").exists()
