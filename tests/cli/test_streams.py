"""Output that nobody can take is said, costs nothing that was recorded, and keeps the exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.commands import COMMANDS

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
    encoding = env.get("PYTHONIOENCODING", "utf-8").partition(":")[0]
    done = subprocess.run(
        ["bash", "-c", line], env=env, capture_output=True, encoding=encoding, errors="replace", timeout=120,
        check=False,
    )  # fmt: skip
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


@pytest.mark.parametrize(
    "command",
    [
        "ledger --help", "ledger ingest --help", "ledger audit --help", "ledger audit transport --help",
        "ledger channel add --help", "ledger scores --help", "ledger demo", "ledger status", "ledger log",
        "ledger show Straße", "ledger show Straße --json", "ledger nothing日本",
    ],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["ascii", "ascii:strict", "latin-1"])
def test_a_stream_that_cannot_take_every_letter(command: str, encoding: str, env: dict[str, str]) -> None:
    code, text = shell(command, {**env, "PYTHONIOENCODING": encoding})
    assert "ledger: unexpected" not in text
    assert code == (2 if "show" in command or "nothing" in command else 0), text
    if "--json" in command:
        assert "Straße" in json.loads(text)["error"]["what"] + str(json.loads(text)["error"].get("got"))


@pytest.mark.parametrize("width", [1, 0, -5, 20, 40, 41, 57, 80, 500])
def test_the_help_page_fits_whatever_the_terminal(width: int, env: dict[str, str]) -> None:
    for command in ("ledger --help", "ledger audit --help", "ledger ingest --help"):
        code, text = shell(command, {**env, "COLUMNS": str(width)})
        assert code == 0, text
    _, text = shell("ledger --help", {**env, "COLUMNS": str(width)})
    room = 80 if width <= 0 else min(max(width, 40), 80)
    assert max(map(len, text.splitlines())) <= room
    assert all(name in text.split() for name in COMMANDS)
