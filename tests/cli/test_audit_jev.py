"""`ledger audit jev` as people and programs meet it: groups, levels, precision, exit codes, records."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli import main
from tests.audits.cohorts import Ledger, new_ledger
from tests.audits.predictions import Pair, pair, study, write

FAST = ("audit", "jev", "--resamples", "200")
DECLARED = (*FAST, "--require", "declared")
NAMED = {"channel": "direct", "acquisition_id": "main-1"}
SHARED = Path(__file__).parents[2].parent / "shared"


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def result(self) -> dict[str, Any]:
        return self.json["predicate"]["result"]


@dataclass(frozen=True)
class Command:
    ledger: Ledger
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> Answer:
        self.capsys.readouterr()
        code = main.dispatch(list(words))
        printed = self.capsys.readouterr()
        return Answer(code, printed.out, printed.err)

    def ingest(self, pairs: Sequence[Pair | str], name: str = "pairs.jsonl", *more: str) -> Answer:
        return self("ingest", str(write(self.ledger.folder / name, pairs)), *more)


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    ledger = new_ledger(tmp_path)
    monkeypatch.setenv("LEDGER_HOME", str(ledger.home.path))
    monkeypatch.setenv("NO_COLOR", "1")
    return Command(ledger, capsys)


def joined(*parts: Sequence[Pair]) -> list[Pair]:
    return [row for part in parts for row in part]


def test_the_first_screen_fits_and_says_what_was_seen(command: Command) -> None:
    command.ingest(study(flips=3, intervention="questions", mode="joint", **NAMED))
    found = command(*FAST)
    lines = found.out.splitlines()
    assert found.code == 0
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("jev: request independence; level bound; head")
    assert lines[1] == "36 pairs in 1 group: 36 admitted, 12 queries"
    assert "2019: 3 of 72 answers are strict flips" in " ".join(found.out.split())
    assert "equal scenario weights" in found.out
    assert not any(line.endswith(" ") for line in lines)


def test_one_group_has_ids_by_year_alone_and_every_estimate_of_the_table(command: Command) -> None:
    command.ingest(joined(study(flips=3, **NAMED), study(11, year=2020, **NAMED)))
    estimates = command(*FAST, "--json").result["estimates"]
    metrics = {
        *("strict_flip", "tie", "action_change"),
        *(f"{kind}_accuracy_{part}" for kind in ("binary", "action") for part in ("before", "after")),
        *("binary_accuracy_difference", "action_accuracy_difference"),
    }
    assert set(estimates) == {f"{year}.{metric}" for year in (2019, 2020) for metric in metrics}
    flip = estimates["2019.strict_flip"]
    assert flip["value"] == 3 / 72
    assert flip["role"] == "primary"
    assert "verdict" not in flip
    assert flip["ci95_wilson"][0] < flip["value"] < flip["ci95_wilson"][1]
    none = estimates["2020.strict_flip"]
    assert (none["value"], none["ci95"], none["reason"]) == (0.0, None, "zero_events")
    assert none["zero_event_upper95"] == pytest.approx(1 - 0.05 ** (1 / 11), abs=1e-12)


def test_predictions_without_digests_need_the_option_and_the_error_names_it(command: Command) -> None:
    assert command.ingest(study(bound=False)).code == 0
    found = command(*FAST)
    assert found.code == 5
    assert "use --require declared" in found.err
    assert "declared 144" in found.err
    assert "signed and logged" in found.out
    at_declared = command(*DECLARED, "--json")
    assert at_declared.code == 0
    assert at_declared.result["provenance"]["level"] == "declared"
    assert at_declared.result["provenance"]["entries_by_level"] == {
        "declared": 144,
        "bound": 0,
        "attested": 0,
    }


def test_two_orders_of_keys_and_rows_give_the_same_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = study(14, flips=4, bound=False)
    other = [dict(reversed(row.items())) for row in rows]
    for row in other:
        row["before"] = dict(reversed(row["before"].items()))
    random.Random(7).shuffle(other)
    results = []
    for name, pairs in (("one", rows), ("two", other)):
        (tmp_path / name).mkdir()
        ledger = new_ledger(tmp_path / name)
        monkeypatch.setenv("LEDGER_HOME", str(ledger.home.path))
        command = Command(ledger, capsys)
        command.ingest(pairs)
        results.append(command(*DECLARED, "--json").json["predicate"]["result"])
    assert json.dumps(results[0]) == json.dumps(results[1])


def test_a_year_with_one_query_has_a_point_and_no_interval(command: Command) -> None:
    command.ingest(study(1, flips=1, **NAMED))
    found = command(*FAST, "--json").result["estimates"]["2019.strict_flip"]
    assert found["value"] == pytest.approx(1 / 6)
    assert (found["ci95"], found["reason"]) == (None, "one_cluster")
    assert "one query has no spread to resample" in " ".join(command(*FAST).out.split())


def test_modes_stand_side_by_side_with_paired_differences(command: Command) -> None:
    group = {"intervention": "questions", **NAMED}
    command.ingest(
        joined(
            study(flips=4, mode="joint", **group),
            study(flips=0, mode="independent", **group),
        )
    )
    result = command(*FAST, "--json").result
    estimates = result["estimates"]
    assert estimates["2019/questions/joint/direct.strict_flip"]["value"] == 4 / 72
    assert estimates["2019/questions/independent/direct.strict_flip"]["value"] == 0.0
    name = "2019.difference.questions/independent/direct-questions/joint/direct.strict_flip"
    difference = estimates[name]
    assert difference["value"] == -4 / 72
    assert difference["verdict"] == "negative"
    assert difference["role"] == "secondary"
    assert set(result["tables"]["series"]) == {"questions/independent/direct", "questions/joint/direct"}
    only = command(*FAST, "--mode", "joint", "--json").result["estimates"]
    assert only["2019.strict_flip"]["value"] == 4 / 72


def test_interventions_are_compared_on_the_queries_both_have(command: Command) -> None:
    command.ingest(
        joined(
            study(12, flips=6, intervention="questions", mode="joint", **NAMED),
            study(20, flips=2, intervention="evidence", mode="joint", **NAMED),
        )
    )
    estimates = command(*FAST, "--json").result["estimates"]
    found = estimates["2019.difference.evidence/joint/direct-questions/joint/direct.strict_flip"]
    assert (found["clusters"], found["value"]) == (12, (2 - 6) / 72)
    assert estimates["2019/evidence/joint/direct.strict_flip"]["clusters"] == 20


def test_scenarios_that_differ_are_not_compared_until_named(command: Command) -> None:
    part = [row for row in study(12, flips=3, mode="joint", **NAMED) if row["scenario"] != "two"]
    command.ingest(joined(part, study(12, flips=1, mode="visible-schema", **NAMED)))
    result = command(*FAST, "--json").result
    assert not any(".difference." in name for name in result["estimates"])
    assert any("their scenarios differ" in limit["text"] for limit in result["limits"])
    named = command(*FAST, "--scenarios", "one,zero", "--json").result
    found = named["estimates"][
        "2019.difference.undeclared/joint/direct-undeclared/visible-schema/direct.strict_flip"
    ]
    assert found["value"] == 2 / 48
    assert named["tables"]["counts"]["2019/undeclared/joint/direct"]["scenarios"] == ["one", "zero"]
    refused = command(*FAST, "--scenarios", "two", "--mode", "joint")
    assert refused.code == 5
    assert "no pair is in scope: nothing was signed" in refused.err


def test_precision_says_which_flips_vanish(command: Command) -> None:
    low = {"channel": "direct", "acquisition_id": "bf16-1"}
    high = {"channel": "generated", "acquisition_id": "fp32-1"}
    command.ingest(joined(study(flips=5, **low), study(flips=2, **high)))
    found = command(*FAST, "--precision", "direct:generated", "--json")
    row = found.result["tables"]["precision"]["2019/undeclared/undeclared"]
    assert row["flips"] == {"first": 5, "second": 2}
    assert (row["both"], row["vanish"], row["appear"]) == (2, 3, 0)
    assert found.result["estimates"][row["difference"][0]]["value"] == 3 / 72
    assert found.result["verdicts"]["precision"] == {"2019/undeclared/undeclared": "some_vanish"}
    assert "is not evidence of semantic dependence" in found.json["sentence"]
    turned = command(*FAST, "--precision", "generated:direct", "--json").result["tables"]["precision"]
    assert (
        turned["2019/undeclared/undeclared"]["vanish"],
        turned["2019/undeclared/undeclared"]["appear"],
    ) == (0, 3)
    assert "3 vanish" in command(*FAST, "--precision", "direct:generated").out


def test_precision_needs_two_known_channels_with_the_same_pairs(command: Command) -> None:
    command.ingest(study(**NAMED))
    assert command(*FAST, "--precision", "direct").code == 2
    assert command(*FAST, "--precision", "direct:nobody").code == 2
    assert command(*FAST, "--precision", "direct:direct").code == 2
    absent = command(*FAST, "--precision", "direct:generated")
    assert absent.code == 5
    assert "both channels" in absent.err


def test_added_candidates_are_judged_on_preferences(command: Command) -> None:
    rows = [
        pair(
            f"q{q:02d}",
            before={"A": 0.5, "B": 0.25},
            after={"A": 0.25 if q < 3 else 0.5, "B": 0.375, "C": 0.25},
            positive_labels=["A"],
            intervention="candidates",
            mode="joint",
            before_request_hash="sha256:" + "a" * 64,
            after_request_hash="sha256:" + "b" * 64,
            **NAMED,
        )
        for q in range(12)
    ]
    command.ingest(rows)
    result = command(*FAST, "--json").result
    assert result["estimates"]["2019.preference_flip"]["value"] == 3 / 12
    assert "2019.strict_flip" not in result["estimates"]
    assert result["estimates"]["2019.preference_flip"]["role"] == "primary"


def test_ties_of_actions_follow_the_order_that_was_given(command: Command) -> None:
    rows = [
        pair(f"q{q:02d}", before={"A": 0.75, "B": 0.75}, after={"A": 0.75, "B": 0.75}, positive_labels=["B"])
        for q in range(10)
    ]
    command.ingest(rows)
    by_bytes = command(*DECLARED, "--json").result
    assert by_bytes["estimates"]["2019.action_accuracy_before"]["value"] == 0.0
    assert by_bytes["tables"]["label_order"] == {"utf-8 bytes": 10}
    given = command(*DECLARED, "--label-order", "B,A", "--json").result
    assert given["estimates"]["2019.action_accuracy_before"]["value"] == 1.0
    assert given["tables"]["label_order"] == {"--label-order": 10}
    lacking = command(*DECLARED, "--label-order", "B")
    assert lacking.code == 2
    assert "lacks a label" in lacking.err


def test_the_order_in_the_file_is_used_and_named(command: Command) -> None:
    arms = {"A": 0.75, "B": 0.75}
    command.ingest(
        [
            pair(f"q{q}", before=arms, after=arms, positive_labels=["B"], label_order=["B", "A"])
            for q in range(10)
        ]
    )
    result = command(*DECLARED, "--json").result
    assert result["estimates"]["2019.action_accuracy_after"]["value"] == 1.0
    assert result["tables"]["label_order"] == {"label_order of the file": 10}


def test_the_threshold_moves_actions_and_accuracies_but_no_flip(command: Command) -> None:
    command.ingest(study(flips=3, **NAMED))
    low, high = (command(*FAST, "--threshold", t, "--json").result["estimates"] for t in ("0.5", "0.8"))
    assert low["2019.strict_flip"]["value"] == high["2019.strict_flip"]["value"]
    assert high["2019.action_accuracy_before"]["value"] == pytest.approx(1 / 3)
    assert command(*FAST, "--threshold", "1.5").code == 2


def test_actions_changed_without_any_flip_are_counted(command: Command) -> None:
    rows = [
        pair(f"q{q:02d}", before={"p1": 0.75, "p2": 0.625}, after={"p1": 0.625, "p2": 0.75})
        for q in range(10)
    ]
    command.ingest(rows)
    counts = command(*DECLARED, "--json").result["tables"]["counts"]["2019"]
    assert (counts["strict_flip"], counts["action_change"]) == (0, 10)
    assert counts["actions_changed_without_flip"] == 10
    assert "actions changed without any flip: 10 in 2019" in command(*DECLARED).out


def test_several_acquisitions_are_named_and_one_has_to_be_chosen(command: Command) -> None:
    command.ingest(study(channel="direct", acquisition_id="first"))
    command.ingest(study(flips=2, channel="direct", acquisition_id="second"), "more.jsonl")
    found = command(*FAST)
    assert found.code == 5
    assert "first, second" in found.err
    assert "--acquisition second" in found.err
    chosen = command(*FAST, "--acquisition", "direct@second", "--json")
    assert chosen.result["estimates"]["2019.strict_flip"]["value"] == 2 / 72
    assert command(*FAST, "--acquisition", "nobody").code == 2


def test_a_request_that_did_not_change_keeps_its_group_out(command: Command) -> None:
    rows = study(intervention="evidence", mode="joint", **NAMED)
    rows[5]["after_request_hash"] = rows[5]["before_request_hash"]
    command.ingest(joined(rows, study(intervention="questions", mode="independent", **NAMED)))
    result = command(*FAST, "--json").result
    (excluded,) = result["flow"]["excluded"]
    assert (excluded["reason"], excluded["pairs"]) == ("request-changed", 36)
    assert result["provenance"]["groups_out"]["request-changed"] == 1
    assert "2019/questions/independent/direct.strict_flip" in result["estimates"]


def test_asked_alone_a_request_may_stay_as_it_was(command: Command) -> None:
    rows = study(intervention="questions", mode="independent", **NAMED)
    for row in rows:
        row["after_request_hash"] = row["before_request_hash"]
    command.ingest(rows)
    assert command(*FAST).code == 0


def test_a_digest_in_one_arm_only_keeps_its_group_out_at_any_level(command: Command) -> None:
    rows = study(**NAMED)
    del rows[0]["after_request_hash"]
    command.ingest(rows)
    found = command(*DECLARED)
    assert found.code == 5
    assert "request-bound" in found.err


def test_label_mass_is_told_by_arm_and_never_made_up(command: Command) -> None:
    vocabulary = {"vocabulary": [2.0, 1.0, 0.5, -1.0], "labels": {"p1": 0, "p2": 1}}
    rows = [pair(f"q{q:02d}", before_logits=vocabulary, after_label_mass=0.25) for q in range(10)]
    for row in rows:
        del row["before"]
    command.ingest([{**row, "before": None} for row in rows])
    table = command(*DECLARED, "--json").result["tables"]["label_mass"]
    assert table["before"]["min"] == pytest.approx(0.83366786, abs=1e-8)
    assert (table["before"]["n"], table["before"]["unavailable"]) == (10, 0)
    assert table["after"] == {
        "n": 10, "unavailable": 0, "lower_bounds": 0, "min": 0.25, "median": 0.25, "share_below_half": 1.0
    }  # fmt: skip


def test_top_logprobs_are_a_lower_bound_and_never_averaged(command: Command) -> None:
    top = {"top": {"p1": -0.5, "p2": -1.5}}
    command.ingest([pair(f"q{q:02d}", before_logits=top) for q in range(10)])
    table = command(*DECLARED, "--json").result["tables"]["label_mass"]
    assert table["before"] == {
        "n": 10, "unavailable": 0, "lower_bounds": 10, "min": None, "median": None, "share_below_half": None
    }  # fmt: skip
    assert table["after"]["unavailable"] == 10


def test_the_record_is_logged_once_and_computed_again(command: Command) -> None:
    command.ingest(joined(study(flips=3, mode="joint", **NAMED), study(mode="independent", **NAMED)))
    first, second = (command(*FAST, "--json").json for _ in range(2))
    assert first["record"] == second["record"]
    assert second["existed"]
    assert command("verify", "--full").code == 0
    traced = command("lineage", first["record"], "--json")
    assert traced.code == 0
    assert "segment" in traced.out
    assert command("show", str(first["event"])).code == 0
    assert "jev" in command("status").out


def test_an_older_head_is_audited_as_it_was(command: Command) -> None:
    command.ingest(study(flips=1, year=2019, **NAMED))
    size = command("status", "--json").json["size"]
    command.ingest(study(flips=1, year=2020, **NAMED), "later.jsonl")
    then = command(*FAST, "--at", str(size), "--json").result["estimates"]
    assert not any(name.startswith("2020") for name in then)


def test_an_unsigned_audit_says_so_and_writes_nothing(command: Command) -> None:
    command.ingest(study(**NAMED))
    size = command("status", "--json").json["size"]
    found = command(*FAST, "--no-record")
    assert "unsigned, not logged" in found.out
    assert command("status", "--json").json["size"] == size


def test_the_envelope_is_written_where_it_was_asked_for(command: Command, tmp_path: Path) -> None:
    command.ingest(study(**NAMED))
    assert command(*FAST, "--output", str(tmp_path / "jev.dsse.json")).code == 0
    assert (
        json.loads((tmp_path / "jev.dsse.json").read_text())["payloadType"] == "application/vnd.in-toto+json"
    )


def test_nothing_in_scope_is_exit_5(command: Command) -> None:
    assert command(*FAST).code == 5
    command.ingest(study(**NAMED))
    assert command(*FAST, "--channel", "generated").code == 5
    assert command(*FAST, "--channel", "undeclared").code == 5
    assert command(*FAST, "--channel", "nobody").code == 2
    assert command(*FAST, "--mode", "sideways").code == 2


def test_an_undeclared_channel_is_compared_with_no_other(command: Command) -> None:
    command.ingest(study(flips=2, bound=False, intervention="questions", mode="joint"))
    command.ingest(study(intervention="questions", mode="independent", **NAMED), "named.jsonl")
    result = command(*DECLARED, "--json").result
    assert not any(".difference." in name for name in result["estimates"])
    assert any("undeclared channel" in limit["text"] for limit in result["limits"])


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared cohort is not here")
def test_the_cohort_gives_the_independent_answers(command: Command) -> None:
    answers = json.loads((SHARED / "cohort" / "answers.json").read_text())["jev"]
    assert command("ingest", str(SHARED / "cohort" / "jev_pairs.jsonl")).code == 0
    estimates = command("audit", "jev", "--require", "declared", "--json").result["estimates"]
    for year, wanted in answers.items():
        for name, key in (("strict_flip", "strict_flip"), ("binary_accuracy_difference", "binary_acc_diff")):
            found = estimates[f"{year}.{name}"]
            assert found["value"] == pytest.approx(next(iter(wanted[key].values())), abs=1e-9)
            assert found["ci95"] == pytest.approx(wanted[key]["ci95"], abs=1e-9)
