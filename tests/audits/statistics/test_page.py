"""docs/statistics.md names functions and tests that exist, and leaves no test file of this folder unnamed."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from audits.statistics.estimate import Reason

HERE = Path(__file__).parent
PAGE = (HERE.parents[2] / "docs" / "statistics.md").read_text(encoding="utf-8")
TESTS = sorted(set(re.findall(r"`(test_\w+\.py(?:::\w+)+)`", PAGE)))
ROWS = [
    line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| ") and "---" not in line
]
# the second cell from the right says what computes the number
FUNCTIONS = sorted({pair for row in ROWS for pair in re.findall(r"`([a-z_]+)\.(\w+)`", row[-2])})


@pytest.mark.parametrize("name", TESTS)
def test_tests_exist(name: str) -> None:
    file, *parts = name.split("::")
    path = next((folder / file for folder in (HERE, HERE.parent) if (folder / file).exists()), None)
    assert path is not None, f"{file} is not there"
    body: list[ast.stmt] = ast.parse(path.read_text(encoding="utf-8")).body
    for part in parts:
        found = [
            node for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == part
        ]
        assert found, f"{part} is not in {file}"
        body = found[0].body


@pytest.mark.parametrize(("module", "name"), FUNCTIONS)
def test_functions_exist(module: str, name: str) -> None:
    place = "audits.statistics" if importlib.util.find_spec(f"audits.statistics.{module}") else "audits"
    assert hasattr(importlib.import_module(f"{place}.{module}"), name)


def test_the_page_covers_the_package() -> None:
    assert len(FUNCTIONS) > 40
    named = {name.split("::")[0] for name in TESTS}
    assert {path.name for path in HERE.glob("test_*.py")} - named == {"test_page.py"}


def test_every_reason_is_named() -> None:
    assert {reason for reason in Reason if f"`{reason}`" not in PAGE} == set()
