"""What the shell is offered: channel names of the ledger at hand, and nothing where anything is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli import main
from cli.completion import channels
from tests.audits.cohorts import new_ledger


def test_channels_complete_by_their_first_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = new_ledger(tmp_path)
    monkeypatch.setenv("LEDGER_HOME", str(ledger.home.path))
    assert channels("g") == ["generated"]
    assert set(channels("")) >= {"direct", "generated"}
    assert channels("nobody") == []
    ledger.home.catalog.chmod(0o644)
    ledger.home.catalog.write_bytes(b"no catalog")
    assert channels("") == []
    monkeypatch.setenv("LEDGER_HOME", str(tmp_path / "nowhere"))
    assert channels("") == []


@pytest.mark.parametrize(
    "shell", ["complete_bash", "complete_zsh", "complete_fish", "complete_", "complete_x", "x"]
)
@pytest.mark.parametrize("number", [None, "", "abc", "-1", "99999999999999999999", "1"])
def test_a_shell_that_asks_wrongly_hears_nothing_of_an_error(shell: str, number: str | None) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMP_")}
    environment["_LEDGER_COMPLETE"] = shell
    if number is not None:
        environment |= {"COMP_WORDS": "ledger i", "COMP_CWORD": number}
    done = subprocess.run(
        [sys.executable, "-c", "from cli.main import run; run()"], env=environment, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode in {0, 1}, done
    assert "unexpected" not in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_the_variable_is_the_one_of_the_parser() -> None:
    assert f"_{main.app.info.name}_COMPLETE".upper() == main.COMPLETING
