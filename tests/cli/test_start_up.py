"""A look-up loads what it needs and no more: the start of a process is most of its time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from cli import main
from cli.plain_values import spared
from ledger.index import Index
from tests.audits.cohorts import new_ledger, noisy, rows

# What judges, what records, what converts options, and what other commands write with.
HEAVY = (
    "pandera", "polars", "pydantic", "sqlmodel", "sqlalchemy", "alembic", "prov", "pyarrow.csv",
    "pyarrow.json", "pyarrow.dataset", "importlib.metadata", "xml", "email", "urllib.request", "http",
    "csv", "zipfile", "concurrent.futures.process", "multiprocessing", "audits", "ledger.log",
    "ledger.catalog", "ledger.sources", "ledger.impact", "ledger.lineage_graph",
)  # fmt: skip


READ_NO_ENTRY = ("numpy", "pyarrow")


def loaded(names: Sequence[str], *words: str) -> list[str]:
    """Which of some modules a command loads, in a process of its own."""
    script = f"import sys; from cli import main; assert main.dispatch({list(words)!r}) == 0\n"
    script += f"print(*(name for name in {tuple(names)!r} if name in sys.modules))"
    root = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()[-1].split()


def test_a_look_up_loads_nothing_heavy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = new_ledger(tmp_path)
    ledger.ingest(rows(noisy(4, 1)))
    monkeypatch.setenv("LEDGER_HOME", str(ledger.home.path))
    with Index.open(ledger.home) as index:
        entry = f"{index.segments()[0].root.removeprefix('sha256:')[:16]}:0"
    assert loaded(HEAVY, "lineage", entry) == []
    assert loaded(HEAVY, "scores", "--trajectory", "traj000", "--format", "jsonl") == []
    assert loaded((*HEAVY, *READ_NO_ENTRY), "log") == []
    assert loaded((*HEAVY, *READ_NO_ENTRY), "verify") == []
    assert loaded(("pydantic", "ledger.impact"), "lineage", entry, "--impact") == ["ledger.impact"]


def parameters(command: Any) -> Iterator[Any]:
    yield from command.params
    for below in getattr(command, "commands", {}).values():
        yield from parameters(below)


def test_plain_values_are_what_the_parser_makes_of_them() -> None:
    compared = 0
    for param in parameters(typer.main.get_command(main.app)):
        if param.callback is not None or not hasattr(param, "type_descriptor"):
            continue
        ctx = typer.Context(typer.main.get_command(main.app))
        many = param.multiple or param.nargs != 1
        given: list[object] = [param.default] if param.default is not None or not param.required else []
        if param.type_descriptor.annotation in (str, list[str]):
            given.append(["a", ""] if many else "a")
        for value in given:
            (plain,) = spared([param])
            passed = plain.process_value(ctx, value)
            del param.process_value
            converted = param.process_value(ctx, value)
            assert (passed, type(passed)) == (converted, type(converted)), param.name
            compared += 1
    assert compared > 200


def test_a_parser_that_tells_no_types_is_left_alone() -> None:
    param = SimpleNamespace(name="x")
    assert spared([param]) == [param]
    assert not hasattr(param, "process_value")


def test_a_number_is_still_converted_and_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.dispatch(["scores", "--step", "x"]) == 2
    assert main.dispatch(["scores", "--kind", "other"]) == 2
    assert main.dispatch(["lineage"]) == 2
    told = capsys.readouterr().err
    assert "'--step'" in told
    assert "'--kind'" in told
    assert "Missing argument 'ID'" in told
