"""Output that nobody can take is said, costs nothing that was recorded, and keeps the exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LEDGER = Path(sys.executable).with_name("ledger")
pytestmark = pytest.mark.skipif(not LEDGER.exists(), reason="the command is not installed beside this Python")


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("streams")
    made = {**os.environ, "LEDGER_HOME": str(folder / "home"), "XDG_CONFIG_HOME": str(folder / "config")}
    subprocess.run([LEDGER, "init"], env=made, check=True, capture_output=True)
    return made


def shell(command: str, env: dict[str, str]) -> tuple[int, str]:
    line = f"set -o pipefail; {command.replace('ledger', str(LEDGER), 1)}"
    done = subprocess.run(
        ["bash", "-c", line], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", ["ledger status", "ledger log --json", "ledger show nothing --json"])
def test_a_full_disk_behind_the_output_is_one_line(command: str, env: dict[str, str]) -> None:
    code, text = shell(f"{command} >/dev/full", env)
    assert code in {2, 3}
    assert "Traceback" not in text
    assert len(text.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("ledger status >&-", 0),
        ("ledger log --json >&-", 0),
        ("ledger verify 2>&-", 0),
        ("ledger verify >&- 2>&-", 0),
        ("ledger show nothing >&- 2>&-", 2),
        ("ledger verify -x >&- 2>&-", 2),
        ("ledger --help | head -1", 0),
        ("ledger ingest --template transport | head -1", 0),
    ],
)
def test_a_closed_stream_keeps_the_exit_code(command: str, code: int, env: dict[str, str]) -> None:
    found, text = shell(command, env)
    assert found == code, text
    assert "Traceback" not in text
