"""`ledger audit repeatability`, `pool`, `mixture` and `redundancy` as people and programs meet them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from audits.wording import named
from cli import main
from tests.audits.cohorts import Ledger, gains, new_ledger, rows

FEW = ("--resamples", "200")
PAIR = ("--ref", "direct", "--alt", "generated")
KINDS: Sequence[tuple[str, ...]] = (
    ("repeatability", "--channel", "direct"),
    ("pool", "--channels", "direct,generated", "--weights", "generated=1,direct=3"),
    ("mixture", *PAIR, "--weights", "A=0.5,B=0.5"),
    ("redundancy", *PAIR),
)

MEANINGLESS: Sequence[tuple[str, ...]] = (
    ("pool", "--channels", "direct"),
    ("pool", "--channels", "direct,generated", "--weights", "direct=1"),
    ("pool", "--channels", "direct,generated", "--weights", "direct=1,generated=x"),
    ("pool", "--channels", "direct,,generated"),
    ("mixture", *PAIR, "--weights", "A=0"),
    ("mixture", *PAIR, "--weights", "A"),
    ("redundancy", "--ref", "direct", "--alt", "direct"),
    ("redundancy", "--ref", "direct:elsewhere", "--alt", "direct"),
    ("repeatability", "--channel", "nobody"),
)


@dataclass(frozen=True)
class Answer:
    """What a call printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json["predicate"]["result"]
        return found


@dataclass(frozen=True)
class Command:
    """The program on one ledger: 24 trajectories, two targets, two repeats of direct."""

    ledger: Ledger
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> Answer:
        self.capsys.readouterr()
        code = main.dispatch(list(words))
        printed = self.capsys.readouterr()
        return Answer(code, printed.out, printed.err)

    def audit(self, *words: str) -> Answer:
        return self("audit", *words, *FEW)


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    ledger = new_ledger(tmp_path)
    monkeypatch.setenv("LEDGER_HOME", str(ledger.home.path))
    monkeypatch.setenv("NO_COLOR", "1")
    faces = {
        (f"t{t:03d}", s): gains(
            1.0 + (t % 5) / 8, -0.5 + (t % 3) / 16, target="AB"[s % 2], extra={"success": t % 2 == 0}
        )
        for t in range(24)
        for s in range(3)
    }
    ledger.ingest(rows(faces, acquisitions={"direct": ("one", "two")}))
    return Command(ledger, capsys)


@pytest.mark.parametrize("kind", KINDS, ids=lambda words: words[0])
def test_the_whole_walk_of_each_audit(command: Command, kind: tuple[str, ...]) -> None:
    first = command.audit(*kind)
    lines = first.out.splitlines()
    assert first.code == 0, first.err
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith(f"{kind[0]}: ")
    assert lines[1].startswith("72 transitions: 72 complete in 24 trajectories, 0 left out")
    assert any(line.startswith("Verdict: ") for line in lines)
    assert lines[-1].startswith("signed and logged as sha256:")

    told = command.audit(*kind, "--json")
    assert told.json["existed"] is True
    assert told.json["predicate"]["audit"] == kind[0]
    assert set(told.result) == {
        "design", "flow", "provenance", "estimates", "tables", "verdicts", "limits"
    }  # fmt: skip
    primary = [name for name, fields in told.result["estimates"].items() if fields["role"] == "primary"]
    assert primary == [told.result["design"]["primary"]]

    verbose = command.audit(*kind, "--verbose", "--no-record")
    assert verbose.code == 0, verbose.err
    assert max(map(len, verbose.out.splitlines())) <= 80
    assert "unsigned, not logged (--no-record)" in verbose.out

    size = told.json["predicate"]["environment"]["head"]["size"]
    verified = command("verify", "--full", "--json")
    assert verified.code == 0, verified.out
    assert command.audit(*kind, "--at", str(size - 1), "--no-record", "--json").result == told.result
    traced = command("lineage", told.json["record"])
    assert traced.code == 0
    assert f"audit {kind[0]}" in traced.out


def test_an_empty_scope_ends_with_exit_5_and_is_not_signed(command: Command) -> None:
    size = command("status", "--json").json["size"]
    for kind in KINDS:
        found = command.audit(*kind, "--where", "target=Z", "--json")
        assert found.code == 5
        assert found.json["error"]["exit"] == 5
        assert (found.json["record"], found.json["event"]) == (None, None)
        assert "undefined" in found.json["sentence"]
        shown = command.audit(*kind, "--where", "target=Z", "--verbose")
        assert shown.code == 5
        assert shown.out == ""
        assert "no transition is in scope: nothing was signed" in shown.err
        assert "check --where" in shown.err
    assert command("status", "--json").json["size"] == size


def test_repeatability_narrows_to_the_acquisitions_named(command: Command) -> None:
    found = command.audit("repeatability", "--channel", "direct", "--acquisition", "direct@one", "--json")
    assert found.code == 5
    assert found.json["error"]["code"] == "one-acquisition"
    assert {f["reason"] for f in found.result["estimates"].values()} == {"one_acquisition"}


def test_a_pool_says_where_its_sign_turns_and_takes_weights_by_name(command: Command) -> None:
    found = command.audit(*KINDS[1], "--json")
    assert found.result["tables"]["weights"] == {"direct": 0.75, "generated": 0.25}
    assert found.result["verdicts"]["pooled_sign"] == "depends_on_weights"
    edge = found.result["tables"]["sign_map"]["edges"][0]
    assert 0 < edge["turns_at"] < 1
    assert f"turn at weight {edge['turns_at']:.3f} of generated" in found.json["sentence"]


def test_a_logged_audit_is_reweighted_by_its_record(command: Command) -> None:
    record = command("audit", "transport", *PAIR, *FEW, "--json").json["record"]
    found = command.audit("mixture", "--of", record[:20], "--weights", "A=0.5,B=0.5", "--json")
    assert found.code == 0, found.out
    asked = command.audit(*KINDS[2], "--json")
    assert found.result["estimates"] == asked.result["estimates"]
    assert found.result["design"]["options"]["of"] == "transport"
    assert command("verify", "--full").code == 0
    for words in (("--of", "0" * 16), ("--of", record, "--where", "target=A"), ("--of", record, *PAIR), ()):
        assert command.audit("mixture", *words).code == 2


def test_what_means_nothing_is_a_usage_error(command: Command) -> None:
    for words in MEANINGLESS:
        found = command.audit(*words)
        assert (found.code, found.out) == (2, ""), words
        assert found.err.startswith("ledger: ")
        assert len(found.err.splitlines()) == 1


def test_a_transport_record_links_to_the_repeatability_of_its_channels(command: Command) -> None:
    alone = command("audit", "transport", *PAIR, *FEW, "--no-record", "--json").json
    assert alone["predicate"]["environment"]["repeatability"] == {}
    record = command.audit("repeatability", "--channel", "direct", "--json").json["record"]
    found = command("audit", "transport", *PAIR, *FEW, "--json").json
    assert found["predicate"]["environment"]["repeatability"] == {"ref": [record]}
    assert found["predicate"]["result"] == alone["predicate"]["result"]
    said = command("audit", "transport", *PAIR, *FEW, "--verbose").out
    assert f"repeatability of ref: {record}" in " ".join(said.split())


@pytest.mark.parametrize("kind", KINDS, ids=lambda words: words[0])
def test_the_screen_of_weights_has_words_and_no_ids_of_the_record(
    command: Command, kind: tuple[str, ...]
) -> None:
    out = command.audit(*kind, "--no-record").out
    if kind[0] in ("mixture", "pool"):
        assert not re.search(r"gain\.(ref|alt)|[a-z]_(on|mean|interactions|reversal)_", out), out


def test_ids_in_words_keep_the_names_of_a_user() -> None:
    said = {
        "gain.ref": "gain ref", "a.b_c.gain.alt": "a.b_c gain alt", "interaction": "interaction",
        "strict_mean_reversal": "strict reversal of the mean", "x@2.gain.ref@user": "x@2 gain ref@user",
        "depends_on_weights": "depends on the weights", "my_name": "my_name", "my@name": "my@name",
    }  # fmt: skip
    assert {code: named(code) for code in said} == said
