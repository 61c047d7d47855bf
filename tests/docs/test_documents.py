"""Every console session in README and docs is run, and prints what the page says it prints.

A block marked ```console is a session: `$ ` starts a command, the lines below are its output. All blocks
of one page share a folder and a home. Digests, keys and times differ between machines, so hex of eight
digits or more, key texts and times are compared as placeholders; `...` stands for lines left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]+)(?:#[^)]*)?\)")
VOLATILE = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)"), "TIME"),
    (re.compile(r"[0-9a-f]{8,}"), "HEX"),
    (re.compile(r"\+[A-Za-z0-9+/=]{40,}"), "+KEY"),
    (re.compile(r"[ \t]+"), " "),
)


def normal(text: str) -> list[str]:
    """The lines that must agree: volatile parts replaced, blank lines and trailing space dropped."""
    for pattern, stand_in in VOLATILE:
        text = pattern.sub(stand_in, text)
    return [line.strip() for line in text.splitlines() if line.strip()]


def sessions(page: Path) -> list[tuple[str, str]]:
    """(command, expected output) for every command of a page, in order."""
    found: list[tuple[str, str]] = []
    for block in FENCE.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            while command.endswith("\\"):
                more, _, output = output.partition("\n")
                command = command[:-1].rstrip() + " " + more.strip()
            found.append((command, output))
    return found


def matches(want: list[str], got: list[str]) -> bool:
    """Whether `got` is `want`, where `...` in `want` stands for any number of lines."""
    if not want:
        return not got
    if want[0] == "...":
        return any(matches(want[1:], got[i:]) for i in range(len(got) + 1))
    return bool(got) and got[0] == want[0] and matches(want[1:], got[1:])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_sessions_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    commands = sessions(page)
    if not commands:
        pytest.skip(f"{page.name} has no console session")
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "NO_COLOR": "1",
        "COLUMNS": "80",
    }
    env.pop("LEDGER_HOME", None)
    work = tmp_path / "study"
    work.mkdir()
    for command, output in commands:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=work,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        got = done.stdout + done.stderr
        assert matches(normal(output), normal(got)), f"$ {command}\n--- page\n{output}\n--- printed\n{got}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = [t for t in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in t]
    missing = [t for t in targets if not (page.parent / t).exists()]
    assert not missing
