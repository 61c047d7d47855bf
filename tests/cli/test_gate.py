"""`ledger gate` and `ledger export scores`: what passes, what does not, and what is handed on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cli import main
from tests.audits.cohorts import Ledger, new_ledger, noisy, rows

Call = Callable[..., tuple[int, str, str]]
PAIR = ("audit", "transport", "--ref", "direct", "--alt", "generated", "--resamples", "100")


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("NO_COLOR", "1")
    made = new_ledger(tmp_path)
    monkeypatch.setenv("LEDGER_HOME", str(made.home.path))
    whole = rows(noisy(12, 2))
    made.ingest([r for r in whole if (r["trajectory_id"], r["step"], r["layout"]) != ("t001", 1, 1)])
    return made


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main.dispatch(list(words))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_a_gate_is_an_exit_code_with_reasons(ledger: Ledger, call: Call) -> None:
    event = str(json.loads(call(*PAIR, "--json")[1])["event"])
    code, out, _ = call("gate", event, "--min-complete-share", "0.9", "--json")
    assert (code, json.loads(out)["passed"]) == (0, True)
    code, out, err = call("gate", event, "--min-complete-share", "0.99", "--prespecified")
    assert code == 5
    assert "no plan preceded the first entry" in out
    assert "the gate is not passed" in err
    assert call("gate", event)[0] == 2
    assert call("gate", "0", "--equivalence")[0] == 2
    assert call("revoke", "acquisition", "main-1", "--reason", "swapped")[0] == 0
    code, out, _ = call("gate", event, "--min-complete-share", "0.5", "--json")
    told = json.loads(out)
    assert (code, told["gates"][0]["passed"]) == (5, True)
    assert "acquisition main-1 was revoked" in told["reasons"][0]


def test_a_plan_names_its_audit_and_its_gates_hold(ledger: Ledger, call: Call) -> None:
    file = ledger.folder / "plan.toml"
    file.write_text(
        'name = "main"\naudit = "transport"\nref = "direct"\nalt = "generated"\nestimands = ["gain.*"]\n'
        "resamples = 100\n[gates]\nprespecified = true\n"
    )
    assert call("plan", "add", str(file))[0] == 0
    assert call("gate", "main")[0] == 2  # no audit followed it yet
    assert call("audit", "--plan", "main")[0] == 0
    assert call("gate", "main")[0] == 5  # it came late
    target = ledger.folder / "x.jsonl"
    assert call("export", "scores", "--channel", "direct", "--gate", "main", "-o", str(target))[0] == 5
    assert not target.exists()


def test_what_is_handed_on_is_what_the_audit_covers(ledger: Ledger, call: Call) -> None:
    told = json.loads(call(*PAIR, "--json")[1])
    record, event = told["record"], str(told["event"])
    ledger.ingest(rows(noisy(2, 4)), "later.parquet")  # not covered: the audit never saw it
    target = ledger.folder / "direct.parquet"
    words = ("export", "scores", "--channel", "direct", "--gate", event, "-o", str(target))
    assert call(*words)[0] == 0
    table = pq.read_table(target)
    assert "no gate was asked: the audit covers these entries, nothing was required" in call(*words)[1]
    assert table.num_rows == 23 * 8  # 2 endpoints x 2 layouts x 2 candidates
    assert set(table["channel"].to_pylist()) == {"direct@1"}
    assert set(table["audit"].to_pylist()) == {record}
    assert len(set(table["fingerprint"].to_pylist())) == 1
    assert len(set(table["entry"].to_pylist())) == table.num_rows
    places = set(zip(table["trajectory_id"].to_pylist(), table["step"].to_pylist(), strict=True))
    assert ("t001", 1) not in places
    lines = ledger.folder / "steps.jsonl"
    assert call(*words[:-1], str(lines), "--format", "trl")[0] == 0
    found = [json.loads(line) for line in lines.read_text().splitlines()]
    assert len(found) == 12
    for row in found:
        assert len(row["completions"]) == len(row["labels"]) == len(row["entries"]) == len(row["gains"])
        assert row["labels"] == [gain > 0 for gain in row["gains"]]
        assert all(len(ids) == 8 for ids in row["entries"])
    mean = told["predicate"]["result"]["estimates"]["gain.ref"]["value"]
    gains = [gain for row in found for gain in row["gains"]]
    assert sum(gains) / len(gains) == pytest.approx(mean)
    again = call(*words[:-1], str(ledger.folder / "direct.jsonl"), "--json")[1]
    assert json.loads(again)["entries"] == 23 * 8
    assert json.loads(again)["gates"] == []
    assert "no gate was asked" in json.loads(again)["note"]


def test_what_is_handed_on_behind_gates_names_them(ledger: Ledger, call: Call) -> None:
    file = ledger.folder / "plan.toml"
    file.write_text(
        'name = "main"\naudit = "transport"\nref = "direct"\nalt = "generated"\nestimands = ["gain.*"]\n'
        "resamples = 100\n[gates]\nmin_trajectories = 2\nmin_complete_share = 0.5\n"
    )
    assert call("plan", "add", str(file))[0] == 0
    assert call("audit", "--plan", "main")[0] == 0
    words = (
        "export",
        "scores",
        "--channel",
        "direct",
        "--gate",
        "main",
        "-o",
        str(ledger.folder / "x.jsonl"),
    )
    told = json.loads(call(*words, "--json")[1])
    assert (told["gates"], "note" in told) == (["min_complete_share", "min_trajectories"], False)
    assert "2 gates asked and passed" in call(*words)[1]


def test_nothing_is_handed_on_without_an_audit_of_that_channel(ledger: Ledger, call: Call) -> None:
    event = str(json.loads(call(*PAIR, "--json")[1])["event"])
    target = str(ledger.folder / "x.jsonl")
    (ledger.folder / "other.toml").write_text(
        (ledger.folder / "direct.toml").read_text().replace("direct", "other")
    )
    assert call("channel", "add", str(ledger.folder / "other.toml"))[0] == 0
    event_two = ("--gate", event, "-o", target)
    assert call("export", "scores", "--channel", "other", *event_two)[0] in (2, 5)
    assert call("export", "scores", "--channel", "direct", "--gate", "1", "-o", target)[0] == 2
    assert call("export", "scores", "--channel", "direct", "--gate", event, "-o", target + ".txt")[0] == 2
    assert call("revoke", "acquisition", "main-1", "--reason", "swapped")[0] == 0
    assert call("export", "scores", "--channel", "direct", *event_two)[0] == 5
    assert not Path(target).exists()


def test_a_verdict_is_exported_signed_in_the_form_of_the_proposal(ledger: Ledger, call: Call) -> None:
    from ledger import envelope

    event = str(json.loads(call(*PAIR, "--json")[1])["event"])
    target = ledger.folder / "verdict.dsse.json"
    assert call("export", "--format", "eval-result", event, "-o", str(target))[0] == 0
    payload = envelope.verify(envelope.parse(target.read_bytes()), [ledger.key.public])
    plain = json.loads(call("export", "record", event, "--unsigned")[1])
    assert json.loads(payload) == plain
    assert plain["predicateType"] == "https://in-toto.io/attestation/eval-result/v0.1"
    assert call("export", "record", event, "--format", "oms")[0] == 2
    assert call("export", "record", "0")[0] == 2
    assert call("revoke", "acquisition", "main-1", "--reason", "swapped")[0] == 0
    assert call("export", "--format=eval-result", event)[0] == 5
