"""The house stays as it is drawn: its folders, the length of its modules, the lock, the help pages."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from cli import commands, main

ROOT = Path(__file__).parents[2]
ROOMS = ("ledger", "contracts", "audits", "cli", "migrations")
BESIDE = {
    *ROOMS, "tests", "docs", "examples", "benchmarks", ".ci", ".gitignore",
    "README.md", "CHANGELOG.md", "LICENSE", "Makefile", "constraints.txt", "pyproject.toml",
}  # fmt: skip
LONGEST = 350


def tracked() -> list[str]:
    """The files of the repository, or of an unpacked archive of it."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return listed.stdout.split("\n")[:-1]


def leaves(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Every command and group of the application with the words that reach it."""
    if path:
        yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from leaves(child, (*path, name))


def application() -> object:
    return get_command(main.app)


def test_nothing_stands_beside_the_rooms_that_a_newcomer_would_wonder_about() -> None:
    assert {name.split("/")[0] for name in tracked()} <= BESIDE


def test_modules_are_short_enough_to_read() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST
    }
    assert long == {}


def test_no_module_is_called_after_nothing() -> None:
    vague = {"utils", "util", "helpers", "helper", "base", "manager", "common", "misc"}
    assert not [p for room in ROOMS for p in (ROOT / room).rglob("*.py") if p.stem in vague]


def test_the_lock_holds_names_and_versions_and_no_address() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert lines
    assert all(re.match(r"[a-z0-9._-]+==[^\s;]+( ; .+)?$", line) for line in lines)


def test_the_lock_covers_every_declared_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [
        *project["dependencies"],
        *(d for extra in project["optional-dependencies"].values() for d in extra),
    ]
    names = {re.split(r"[\[<>=! ]", d)[0].lower() for d in declared}
    locked = {
        line.split("==")[0] for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    }
    assert names <= locked


@pytest.mark.parametrize(
    ("path", "command"),
    list(leaves(application())),
    ids=lambda v: "-".join(v) if isinstance(v, tuple) else "",
)
def test_every_command_explains_itself_with_an_example(path: tuple[str, ...], command: object) -> None:
    assert (getattr(command, "help", None) or "").strip(), f"{path} has no help"
    assert "Example" in (getattr(command, "epilog", None) or ""), f"{path} has no example"
    for option in getattr(command, "params", []):
        if option.param_type_name == "option" and option.name != "help":
            assert option.help, f"{path} {option.name} has no help"


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = set(
        re.findall(r"\((\d{4}-[a-z0-9-]+\.md)\)", (folder / "README.md").read_text(encoding="utf-8"))
    )
    assert listed == {path.name for path in folder.glob("[0-9]*.md")}


def test_the_first_help_page_names_every_command_and_loads_none() -> None:
    script = "import sys; sys.argv[1:] = ['--help']; from cli import main; main.dispatch(['--help'])\n"
    script += "print(sorted(n for n in sys.modules if n.startswith('cli.') or n == 'rich'))"
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    page, loaded = ran.stdout.rsplit("\n[", 1)
    assert loaded == "'cli.commands', 'cli.main', 'cli.plain_values', 'cli.render', 'cli.state']\n"
    assert all(len(line) <= 80 for line in page.splitlines())
    for name in commands.COMMANDS:
        assert re.search(rf"^│ {name} +\S.*│$", page, re.MULTILINE), name
