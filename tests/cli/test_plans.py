"""`ledger plan` and `ledger audit --plan` as people and programs meet them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli import main
from tests.audits.cohorts import Ledger, new_ledger, noisy, rows

Call = Callable[..., tuple[int, str, str]]
PLAN = """name = "main"
audit = "transport"
ref = "direct"
alt = "generated"
estimands = ["interaction", "gain.*"]
resamples = 100
[gates]
max_flip_share = 0.9
"""


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("NO_COLOR", "1")
    made = new_ledger(tmp_path)
    monkeypatch.setenv("LEDGER_HOME", str(made.home.path))
    (tmp_path / "plan.toml").write_text(PLAN)
    return made


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main.dispatch(list(words))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_a_plan_is_declared_listed_shown_and_run(ledger: Ledger, call: Call) -> None:
    file = str(ledger.folder / "plan.toml")
    assert call("plan", "list")[1].startswith("no plan is declared")
    made = json.loads(call("plan", "add", file, "--json")[1])
    assert (made["id"], made["event"], made["existed"], made["entries_before"]) == ("main", 3, False, 0)
    assert call("plan", "add", file)[1].startswith("known already: plan main")
    assert json.loads(call("plan", "list", "--json")[1])["plans"][0]["digest"] == made["digest"]
    shown = call("plan", "show", "main")[1]
    assert "ref direct@1, alt generated@1" in shown
    assert max(map(len, call("plan", "list")[1].splitlines())) <= 80
    ledger.ingest(rows(noisy(12, 1)))
    code, out, _ = call("audit", "transport", "--plan", "main", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["sentence"].startswith("By plan main, declared 2 events before the first entry: ")
    assert told["predicate"]["result"]["design"]["plan"] == made["digest"]
    again = json.loads(call("audit", "--plan", made["digest"][:20], "--json")[1])
    assert (again["existed"], again["record"]) == (True, told["record"])
    assert call("verify", "--full")[0] == 0
    assert len(call("audit", "--plan", "main")[1].splitlines()) <= 25


def test_a_plan_leaves_nothing_else_to_be_asked(ledger: Ledger, call: Call) -> None:
    call("plan", "add", str(ledger.folder / "plan.toml"))
    ledger.ingest(rows(noisy(12, 1)))
    assert call("audit", "transport", "--plan", "main", "--ref", "direct")[0] == 2
    assert call("audit", "face", "--plan", "main")[0] == 2
    assert call("audit", "--plan", "other")[0] == 2
    assert call("audit", "--json")[0] == 2
    assert call("plan", "show", "other")[0] == 2
    assert call("plan", "add", str(ledger.folder / "missing.toml"))[0] == 3
    (ledger.folder / "plan.toml").write_text("name = ")
    assert call("plan", "add", str(ledger.folder / "plan.toml"))[0] == 2
    (ledger.folder / "plan.toml").write_text(PLAN + "bravery = 1\n")
    code, _, err = call("plan", "add", str(ledger.folder / "plan.toml"))
    assert (code, "unknown gate" in err) == (2, True)
    (ledger.folder / "plan.toml").write_text(PLAN.replace("0.9", "0.8"))
    assert call("plan", "add", str(ledger.folder / "plan.toml"))[0] == 1
