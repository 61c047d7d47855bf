"""`ledger audit transport` as people and programs meet it: screens, JSON, exit codes, records."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli import audit_tables, main
from ledger import envelope
from ledger.index import Index
from tests.audits.cohorts import Ledger, Row, gains, new_ledger, noisy, rows

PAIR = ("audit", "transport", "--ref", "direct", "--alt", "generated", "--resamples", "200")


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


@dataclass(frozen=True)
class Command:
    """The program on one ledger."""

    ledger: Ledger
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> Answer:
        self.capsys.readouterr()
        code = main.dispatch(list(words))
        printed = self.capsys.readouterr()
        return Answer(code, printed.out, printed.err)


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    ledger = new_ledger(tmp_path)
    monkeypatch.setenv("LEDGER_HOME", str(ledger.home.path))
    monkeypatch.setenv("NO_COLOR", "1")
    return Command(ledger, capsys)


def incomplete(made: Sequence[Row]) -> list[Row]:
    return [r for r in made if (r["trajectory_id"], r["step"], r["layout"]) != ("t001", 1, 1)]


def test_the_first_screen_fits_and_begins_with_what_was_left_out(command: Command) -> None:
    command.ledger.ingest(incomplete(rows(noisy(24, 3))))
    found = command(*PAIR)
    lines = found.out.splitlines()
    assert found.code == 0
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in found.out
    assert lines[0].startswith("transport: ref direct, alt generated; level bound")
    assert lines[1] == "72 transitions: 71 complete in 24 trajectories, 1 left out"
    assert lines[2] == "left out: 1 absent (t001/step01)"
    order = [
        next(i for i, line in enumerate(lines) if line.startswith(start))
        for start in (
            "left out",
            "gain ref",
            "interaction",
            " median",
            "ref\\alt",
            "signs turn",
            "Verdict:",
            "Limits:",
        )
    ]
    assert order == sorted(order)
    assert lines[-1].startswith("signed and logged as sha256:")
    assert lines[-1].endswith("-v explains each term")


def test_an_acquisition_that_alone_removes_transitions_is_warned_of(command: Command) -> None:
    made = rows(noisy(24, 3), acquisitions={"generated": ("run-1", "run 2")})
    command.ledger.ingest([r for r in made if r["acquisition_id"] != "run 2" or r["step"] != 1])
    found = command(*PAIR)
    said = " ".join(found.out.split())
    assert len(found.out.splitlines()) <= 24
    assert "24 absent (t000/step01 under acquisition run 2)" in said
    wanted = (
        "acquisition run 2 of generated lacks 24 transitions that are otherwise complete; "
        "leave it out with --acquisition generated@run-1"
    )
    assert f"Warning: {wanted}" in said
    assert command(*PAIR, "--json").json["warnings"] == [wanted]
    mended = command(*PAIR, "--acquisition", "generated@run-1")
    assert "72 complete" in mended.out
    assert "Warning" not in mended.out
    other = command(*PAIR, "--acquisition", "generated@run 2")
    assert "48 complete" in other.out
    assert "Warning" not in other.out


def test_verbose_prints_every_table(command: Command) -> None:
    faces = {key: gains(1.0, -0.5, extra={"success": key[0] < "t006"}) for key in noisy(12, 2)}
    command.ledger.ingest(rows(faces, acquisitions={"generated": ("a", "b")}))
    found = command(*PAIR, "--verbose")
    for title in (
        "flow by acquisition", "provenance rules", "flips by quartile", "target types (target)",
        "repeatability", "stored success", "sensitivity", "diagnostics", "verdicts", "design",
    ):  # fmt: skip
        assert title in found.out, title
    assert "interaction.layout.1" in found.out
    assert "not the causal credit" in found.out
    assert "interaction leave-one-out: smallest" in found.out
    assert max(map(len, found.out.splitlines())) <= 80


def test_json_is_the_statement_with_its_place_in_the_log(command: Command) -> None:
    command.ledger.ingest(rows(noisy()))
    found = command(*PAIR, "--json").json
    assert found["_type"] == "https://in-toto.io/Statement/v1"
    assert found["predicateType"] == "urn:evaluator-ledger:audit:v1"
    assert found["subject"][0]["name"].endswith("@5")
    assert found["event"] == 5
    assert found["existed"] is False
    assert found["sentence"].endswith(".")
    with Index.open(command.ledger.home) as index:
        (record,) = index.records()
    assert found["record"] == record.record


def test_a_rerun_names_the_record_that_is_there(command: Command) -> None:
    command.ledger.ingest(rows(noisy()))
    first, second = command(*PAIR, "--json").json, command(*PAIR, "--json").json
    assert (second["record"], second["event"], second["existed"]) == (first["record"], first["event"], True)
    assert second["predicate"]["result"] == first["predicate"]["result"]
    assert "logged before as" in command(*PAIR).out


def test_output_is_the_envelope_that_was_logged(command: Command) -> None:
    command.ledger.ingest(rows(noisy()))
    file = command.ledger.folder / "audit.dsse.json"
    file.write_text("an older one")
    found = command(*PAIR, "--output", str(file), "--json").json
    received = envelope.parse(file.read_bytes())
    payload = json.loads(envelope.verify(received, [command.ledger.key.public]))
    assert payload == {name: part for name, part in found.items() if name in payload}
    assert [path.name for path in command.ledger.folder.iterdir() if path.suffix == ".part"] == []
    assert command(*PAIR, "--output", "/nowhere/at/all.json").code == 3


def test_nothing_is_signed_when_nothing_can_be(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    command.ledger.ingest(rows(noisy()))
    plain = command(*PAIR, "--no-record", "--json").json
    assert (plain["record"], plain["event"]) == (None, None)
    assert "unsigned, not logged (--no-record)" in command(*PAIR, "--no-record").out
    refused = command(*PAIR, "--no-record", "--output", "x.json")
    assert (refused.code, "unsigned" in refused.err) == (2, True)

    home = command.ledger.home
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != home.path)
    assert "unsigned, not logged (the home is read-only)" in command(*PAIR).out
    monkeypatch.undo()
    monkeypatch.setenv("LEDGER_HOME", str(home.path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(command.ledger.folder / "nobody"))
    unsigned = command(*PAIR, "--trust-first", "--json")
    assert unsigned.json["record"] is None
    assert unsigned.json["predicate"]["result"] == plain["predicate"]["result"]
    with Index.open(home) as index:
        assert index.records() == ()
    assert command(*PAIR, "--trust-first", "--key", "nowhere.pem").code == 3


def test_an_older_head_is_audited_as_it_was(command: Command) -> None:
    command.ledger.ingest(rows(noisy(12, 1)))
    command.ledger.ingest(rows({("t900", 0): gains(1.0, 1.0)}), "more.parquet")
    now, then = command(*PAIR, "--json").json, command(*PAIR, "--at", "5", "--json").json
    assert now["predicate"]["result"]["flow"]["transitions"] == 13
    assert then["predicate"]["result"]["flow"]["transitions"] == 12
    assert command(*PAIR, "--at", "4").code == 2


def test_a_revoked_acquisition_is_left_out_and_counted(command: Command) -> None:
    command.ledger.ingest(rows(noisy(12, 1), acquisitions={"generated": ("a", "b")}))
    assert command("revoke", "acquisition", "b", "--reason", "wrong file").code == 0
    found = command(*PAIR, "--json").json["predicate"]["result"]
    assert found["provenance"]["entries_out"]["acquisition-revoked"] == 96
    assert found["flow"]["complete"] == 12
    assert "96 of a revoked acquisition" in command(*PAIR).out


def test_what_is_all_revoked_is_said_with_what_helps(command: Command) -> None:
    command.ledger.ingest(rows(noisy(3, 1), acquisitions={"generated": ("a", "b")}))
    for name in ("a", "b"):
        assert command("revoke", "acquisition", name, "--reason", "wrong file").code == 0
    found = command(*PAIR)
    assert found.code == 5
    assert "every acquisition of channel generated in scope is revoked" in found.err
    assert "ingest the run again under a new acquisition id" in found.err


def test_what_cannot_be_answered_is_recorded_and_ends_with_5(command: Command) -> None:
    command.ledger.ingest([row for row in rows(noisy(3, 1)) if row["channel"] == "direct"])
    found = command(*PAIR, "--json")
    assert found.code == 5
    assert found.json["error"]["code"] == "not_identified"
    assert found.json["error"]["exit"] == 5
    assert found.json["event"] is not None
    shown = command(*PAIR)
    assert shown.code == 5
    assert "not identified" in shown.out
    assert "(generated, before)" in shown.err
    assert "undefined" in shown.out
    assert "nan" not in shown.out.lower().replace("--", "")


@pytest.mark.parametrize("words", [PAIR, ("audit", "jev"), ("audit", "face", "--channel", "generated")])
def test_before_any_score_an_audit_signs_nothing_and_says_what_to_do(
    command: Command, words: tuple[str, ...]
) -> None:
    size = command("status", "--json").json["size"]
    page, envelope = command.ledger.folder / "page.html", command.ledger.folder / "made.json"
    for more in ((), ("--no-record",), ("--report", str(page)), ("--output", str(envelope)), ("--plot",)):
        found = command(*words, *more)
        assert (found.code, found.out) == (5, ""), found.err
        assert "is in scope: nothing was signed; ingest scores first: ledger ingest FILE" in found.err
    told = command(*words, "--json").json
    assert (told["record"], told["event"], told["error"]["exit"]) == (None, None, 5)
    assert command("status", "--json").json["size"] == size
    assert not page.exists()
    assert not envelope.exists()


def test_a_level_nothing_reaches_ends_with_5_and_the_option_to_use(command: Command) -> None:
    command.ledger.ingest(rows(noisy(3, 1), bound=False))
    found = command(*PAIR)
    assert found.code == 5
    assert "--require declared" in found.err
    assert command(*PAIR, "--require", "declared").code == 0
    assert command(*PAIR, "--require", "attested").code == 5


def test_acquisitions_and_filters_narrow_the_scope(command: Command) -> None:
    faces = {key: gains(1.0, -0.5, extra={"step_kind": "ab"[key[1]]}) for key in noisy(12, 2)}
    command.ledger.ingest(rows(faces, acquisitions={"generated": ("a", "b@c"), "direct": ("a",)}))
    one = command(*PAIR, "--acquisition", "generated@b@c", "--acquisition", "direct@a", "--json").json
    assert len(one["predicate"]["result"]["design"]["scope"]["acquisitions"]) == 2
    names = {
        a["acquisition"] for a in one["predicate"]["result"]["flow"]["by_acquisition"] if a["arm"] == "alt"
    }
    assert names == {"b@c"}
    both = command(*PAIR, "--acquisition", "a", "--where", "step_kind=a", "--json").json["predicate"][
        "result"
    ]
    assert both["flow"]["complete"] == 12
    assert both["design"]["scope"]["acquisitions"] == [[None, "a"]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--acquisition", "nobody"), "unknown acquisition"),
        (("--acquisition", "generated@nobody"), "unknown acquisition"),
        (("--acquisition", "other@main-1"), "not a channel of this audit"),
        (("--where", "step_kind"), "COLUMN=VALUE"),
        (("--where", "energy=1"), "not a column to filter by"),
        (("--missing-corner-range", "one,two"), "LOW,HIGH"),
        (("--target-types", "A,,B"), "an empty name"),
        (("--weights", "mine"), "weights"),
        (("--seed", "-1"), "seed"),
        (("--at", "400"), "no head"),
    ],
)  # fmt: skip
def test_usage_errors_end_with_2_and_say_what_is_expected(
    command: Command, words: tuple[str, ...], said: str
) -> None:
    command.ledger.ingest(rows(noisy(2, 1)))
    found = command(*PAIR, *words)
    assert found.code == 2
    assert said in found.err
    as_json = command(*PAIR, *words, "--json")
    assert as_json.code == 2
    assert as_json.json["error"]["exit"] == 2


def test_an_unknown_channel_is_a_usage_error(command: Command) -> None:
    found = command("audit", "transport", "--ref", "direct", "--alt", "nobody")
    assert found.code == 2
    assert "nobody" in found.err


def test_few_trajectories_are_said_on_the_first_screen(command: Command) -> None:
    command.ledger.ingest(rows(noisy(12, 1)))
    assert "Percentile intervals are too short with 12 trajectories" in command(*PAIR).out.replace("\n", " ")
    command.ledger.ingest(rows({(f"u{t:03d}", 0): gains(1.0, 0.5) for t in range(20)}), "more.parquet")
    assert "too short" not in command(*PAIR).out


@pytest.mark.parametrize(("values", "said"), [((0.0, 0.0), "no sign"), ((-0.5, 0.5), "no common sign")])
def test_where_all_is_zero_there_is_no_sign_to_keep(values: tuple[float, float], said: str) -> None:
    out = {"min": values[0], "max": values[1], "sign_kept": not any(values), "reasons": {}}
    whole = {"value": 0.0, "ci95": [0.0, 0.0]}
    result: dict[str, Any] = {
        "estimates": {f"interaction.layout.{n}": {"value": value} for n, value in enumerate(values)}
        | {"flip_share": whole, "flip_direction_difference": whole},
        "tables": {"flips": {"pos_to_neg": 0, "neg_to_pos": 0}, "leave_one_trajectory_out": out},
        "verdicts": {"layouts": {"intervals_agree": False, "points_agree": False}},
    }
    *_, (layouts, _), (left, _) = audit_tables._beside(result)
    assert layouts.endswith(f", {said}")
    assert left.endswith("no sign" if said == "no sign" else "sign not kept")


@pytest.mark.parametrize(
    "words",
    [("--no-record",), ("--json",), ("--engine", "spark"), ("--at", "3"), ("-v",), ("--plan", "main")],
    ids=" ".join,
)
def test_an_option_before_the_kind_is_refused_with_its_place(command: Command, words: Sequence[str]) -> None:
    command.ledger.ingest(rows(noisy(3, 1)))
    before = size(command)
    for more in ((), ("-v",)):
        answer = command("audit", *words, *more, *PAIR[1:])
        assert answer.code == 2
        assert size(command) == before
        told = answer.json["error"]["where"] if words == ("--json",) else answer.err
        assert ("--verbose" if words == ("-v",) else words[0]) in told


def size(command: Command) -> int:
    with Index.open(command.ledger.home) as index:
        return index.size
