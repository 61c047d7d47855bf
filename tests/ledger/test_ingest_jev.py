"""Predictions through `ledger ingest`: whole groups or nothing, every fault with its line, labels apart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cli import main
from ledger import segments as segments_module
from ledger.index import Index
from ledger.receipt import RefusedCallError
from ledger.segment_reader import SegmentReader
from tests.audits.cohorts import Ledger, new_ledger, noisy, rows
from tests.audits.predictions import Pair, pair, study, take_in, write

NAMED: dict[str, Any] = {"channel": "direct", "acquisition_id": "main-1"}


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Command:
    ledger: Ledger
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> Answer:
        self.capsys.readouterr()
        code = main.dispatch(list(words))
        printed = self.capsys.readouterr()
        return Answer(code, printed.out, printed.err)

    def ingest(self, pairs: Sequence[Pair | str], *more: str) -> Answer:
        return self("ingest", str(write(self.ledger.folder / "pairs.jsonl", pairs)), *more)


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    ledger = new_ledger(tmp_path)
    monkeypatch.setenv("LEDGER_HOME", str(ledger.home.path))
    monkeypatch.setenv("NO_COLOR", "1")
    return Command(ledger, capsys)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """A home without entries, for the calls that leave it so; its keys and pin are in `config` beside it."""
    folder = tmp_path_factory.mktemp("empty")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        return new_ledger(folder)


@pytest.fixture
def unchanged(empty: Ledger, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(empty.folder / "config"))
    monkeypatch.setenv("LEDGER_HOME", str(empty.home.path))
    monkeypatch.setenv("NO_COLOR", "1")
    return Command(empty, capsys)


def segments(ledger: Ledger, kind: str) -> list[pa.Table]:
    found = []
    with Index.open(ledger.home) as index:
        for segment in index.segments(kind=kind):
            with SegmentReader.whole(ledger.home.objects, segment) as reader:
                found.append(reader.read())
    return found


def size(ledger: Ledger) -> int:
    with Index.open(ledger.home) as index:
        return index.size


def text(value: dict[str, Any]) -> str:
    return json.dumps(value)


def replaced(line: int, **parts: Any) -> list[Pair]:
    made = study(4, bound=False)
    made[line - 1] = {**made[line - 1], **parts}
    return made


BAD: dict[str, tuple[Sequence[Pair | str], int, str]] = {
    "a pair twice": ([*study(4, bound=False), study(4, bound=False)[2]], 3, "occurs again"),
    "a missing scenario": (study(4, bound=False)[:-1], 10, "lacks a scenario"),
    "other targets after": (replaced(5, after={"p1": 0.5, "p3": 0.5}), 5, "lacks a label of before"),
    "a target more": (
        replaced(5, after={"p1": 0.5, "p2": 0.5, "p3": 0.5}),
        5,
        "has a label that before lacks",
    ),
    "p above 1": (replaced(6, before={"p1": 1.5, "p2": 0.5}), 6, "out of range"),
    "p below 0": (replaced(6, after={"p1": -0.5, "p2": 0.5}), 6, "out of range"),
    "p as text": (replaced(7, before={"p1": "0.5", "p2": 0.5}), 7, "number as text"),
    "p null": (replaced(7, before={"p1": None, "p2": 0.5}), 7, "expected a JSON number"),
    "an empty before": (replaced(8, before={}, after={}), 8, "empty arm"),
    "a positive that is no target": (replaced(9, positive_labels=["p9"]), 9, "no target"),
    "a positive twice": (replaced(9, positive_labels=["p1", "p1"]), 9, "twice"),
    "a key twice": (
        [
            *study(4, bound=False)[:3],
            '{"year": 2019, "year": 2020, "query_id": "q", "before": {}, "after": {}}',
        ],
        4,
        "every key once",
    ),
    "no JSON": ([*study(4, bound=False), "{"], 13, "one JSON object"),
    "NaN": ([*study(4, bound=False)[:4], text(pair("q", before={"p1": float("nan")}))], 5, "NaN"),
    "a year as text": (replaced(3, year="2019"), 3, "expected an integer"),
    "an unknown mode": (replaced(3, mode="sideways"), 3, "is no mode"),
    "an unregistered channel": (replaced(3, channel="nobody", acquisition_id="a"), 3, "nobody"),
    "all labels at minus infinity": (
        replaced(2, before=None, before_logits={"vocabulary": [float("-inf"), 1.0], "labels": {"p1": 0}}),
        2,
        "above minus infinity",
    ),
    "a space behind an id": (replaced(4, query_id="q01 "), 4, "q01"),
    "candidates without an addition": (replaced(4, intervention="candidates"), 4, "expands no candidate"),
    "a bad digest": (replaced(4, before_request_hash="md5:1"), 4, "before_request_hash"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_predictions_are_refused_with_their_line(unchanged: Command, name: str) -> None:
    command = unchanged
    pairs, line, said = BAD[name]
    before = size(command.ledger)
    found = command.ingest(pairs, "--format", "json")
    assert found.code == 1, found
    report = json.loads(found.out)
    where = [example for example in report["findings"]["findings"] if line in (example.get("rows") or [])]
    assert where, report["findings"]
    told = " ".join(str(example["message"]) for example in where)
    assert said in told or said.replace("before_request_hash", "request_hash") in told
    assert size(command.ledger) == before
    assert not segments(command.ledger, "jev")


def test_a_refusal_reads_as_a_line_with_its_place(command: Command) -> None:
    found = command.ingest(replaced(6, before={"p1": 1.5, "p2": 0.5}))
    assert found.code == 1
    assert "line 6" in found.err
    assert "expected 0 to 1" in " ".join(found.err.split())


WHOLE_FILES: dict[str, tuple[bytes, str]] = {
    "an array": (b'[{"year": 2019}]', "JSON Lines"),
    "no byte": (b"", "empty"),
    "blank lines": (b"\n\n", "blank"),
    "other bytes": (b'{"year": 2019, "query_id": "\xff"}\n', "UTF-8"),
    "UTF-16": ('{"year": 2019}\n'.encode("utf-16"), "UTF-16"),
    "a line without end": (text(pair(note="x" * (20 << 20))).encode(), "too long"),
}


@pytest.mark.parametrize("name", WHOLE_FILES)
def test_a_file_that_is_no_predictions_is_refused_whole(unchanged: Command, name: str) -> None:
    data, said = WHOLE_FILES[name]
    path = unchanged.ledger.folder / "whole.jsonl"
    path.write_bytes(data)
    before = size(unchanged.ledger)
    found = unchanged("ingest", str(path))
    assert found.code in {1, 3}
    assert said in " ".join(found.err.split())
    assert "whole.jsonl" in found.err
    assert size(unchanged.ledger) == before


def test_line_ends_and_a_byte_order_mark_do_not_matter(unchanged: Command) -> None:
    pairs = study(2, **NAMED)
    plain = unchanged.ingest(pairs, "--dry-run")
    path = unchanged.ledger.folder / "windows.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(json.dumps(pair).encode() for pair in pairs))
    windows = unchanged("ingest", str(path), "--dry-run")
    roots = [[line for line in found.out.splitlines() if "root" in line] for found in (plain, windows)]
    assert roots[0]
    assert roots[0] == roots[1]


def test_every_finding_is_a_row_of_the_rejects(command: Command, tmp_path: Path) -> None:
    target = tmp_path / "rejects.jsonl"
    command.ingest(replaced(6, before={"p1": 1.5, "p2": -0.5}), "--rejects", str(target))
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert {(line["row"], line["code"]) for line in lines} == {(6, "probability-range")}


def test_entries_and_what_only_the_scorer_may_see_stand_apart(command: Command) -> None:
    assert command.ingest(study(4, **NAMED)).code == 0
    (entries,), (positives,) = segments(command.ledger, "jev"), segments(command.ledger, "jev-positives")
    assert entries.num_rows == 4 * 3 * 2 * 2
    assert positives.num_rows == 4 * (0 + 1 + 2)
    assert not any("positive" in name for name in entries.column_names)
    shown = command("scores", "--kind", "jev", "--json").out
    assert "positive" not in shown
    assert json.loads(command("scores", "--json").out)["count"] == 0
    labels = json.loads(command("scores", "--kind", "jev-positives", "--json").out)["entries"]
    assert {(row["scenario"], row["label"]) for row in labels} == {
        ("one", "p1"),
        ("two", "p1"),
        ("two", "p2"),
    }
    assert command("scores", "--kind", "jev", "--layout", "1").code == 2


def test_the_same_pairs_again_append_nothing_and_other_content_is_a_conflict(command: Command) -> None:
    command.ingest(study(4, **NAMED))
    before = size(command.ledger)
    again = command.ingest(list(reversed(study(4, **NAMED))))
    assert again.code == 0
    assert "skipped   48 entries already in the ledger" in again.out
    assert size(command.ledger) == before
    other = command.ingest(study(4, flips=1, **NAMED))
    assert other.code == 1
    assert "other content" in " ".join(other.err.split())


def test_order_of_rows_and_keys_gives_the_same_roots(tmp_path: Path) -> None:
    made = []
    for name, turned in (("one", False), ("two", True)):
        (tmp_path / name).mkdir()
        pairs = study(5, flips=2, **NAMED)
        if turned:
            pairs = [dict(reversed(row.items())) for row in reversed(pairs)]
        made.append([s.root for s in take_in(new_ledger(tmp_path / name), pairs).segments])
    assert made[0] == made[1]


def test_a_file_that_names_nothing_is_undeclared_and_says_what_that_needs(command: Command) -> None:
    found = command.ingest(study(4, bound=False))
    assert found.code == 0
    assert "needs --require declared" in " ".join(found.out.split()) or "declared" in found.out
    (entries,) = segments(command.ledger, "jev")
    assert entries["channel"].null_count == entries.num_rows
    assert entries["acquisition_id"][0].as_py().startswith("file:")
    assert "undeclared" in command("acquisition", "list").out


def test_options_stand_for_absent_columns(command: Command) -> None:
    assert command.ingest(study(4, bound=False), "--channel", "direct", "--acquisition", "a1").code == 0
    (entries,) = segments(command.ledger, "jev")
    assert entries["channel"].null_count == 0
    assert set(entries["acquisition_id"].to_pylist()) == {"a1"}
    alone = command.ingest(study(3, bound=False), "--channel", "direct")
    assert alone.code == 1


def test_a_dry_run_writes_nothing_and_ends_the_same(command: Command) -> None:
    before = size(command.ledger)
    found = command.ingest(study(4, **NAMED), "--dry-run")
    assert found.code == 0
    assert "would be recorded" in found.out
    assert size(command.ledger) == before
    assert command.ingest(replaced(6, before={"p1": 2, "p2": 0}), "--dry-run").code == 1


def test_files_of_one_call_are_one_set_and_of_one_kind(command: Command, tmp_path: Path) -> None:
    whole = study(4, **NAMED)
    halves = [write(tmp_path / f"{n}.jsonl", part) for n, part in enumerate((whole[:5], whole[5:]))]
    assert command("ingest", str(halves[0])).code == 1
    assert command("ingest", *map(str, halves)).code == 0
    (tmp_path / "mixed").mkdir()
    command.ledger.ingest(rows(noisy(2, 1)))
    mixed = command("ingest", str(halves[0]), str(command.ledger.folder / "scores.parquet"))
    assert mixed.code == 2
    assert "one kind" in mixed.err


def test_a_scenario_that_a_later_call_adds_must_come_for_every_query(command: Command) -> None:
    first = [row for row in study(4, **NAMED) if row["scenario"] == "zero"]
    assert command.ingest(first).code == 0
    part = [row for row in study(4, **NAMED) if row["scenario"] == "one"][:2]
    assert command.ingest(part).code == 1
    assert command.ingest([row for row in study(4, **NAMED) if row["scenario"] == "one"]).code == 0


def test_the_receipt_of_a_refused_call_counts_exactly(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    bad = [{**row, "before": {"p1": 2.0, "p2": 0.5}} for row in study(40, bound=False)]
    with pytest.raises(RefusedCallError) as caught:
        take_in(ledger, bad)
    assert caught.value.receipt.findings.total == 120
    assert caught.value.receipt.admitted == 0


@pytest.mark.parametrize(("bound", "wanted"), [(True, "ledger audit jev\n"), (False, "--require declared\n")])
def test_the_receipt_names_the_audit_that_comes_next(command: Command, bound: bool, wanted: str) -> None:
    named = {"channel": "direct", "acquisition_id": "main-1"} if bound else {}
    pairs = study(3, bound=bound, **named)
    assert "next:" not in command.ingest(pairs, "--dry-run").out
    found = command.ingest(pairs)
    assert found.code == 0, found
    assert "next: ledger audit jev" in found.out
    assert found.out.endswith(wanted)


def test_targets_that_two_row_groups_share_are_whole(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 20 entries a query: groups of 7 and segments of 21 cut targets between their arms
    monkeypatch.setattr(segments_module, "GROUP_ROWS", 7)
    monkeypatch.setattr(segments_module, "SEGMENT_ROWS", 21)
    assert command.ingest(study(9, flips=2, bound=False)).code == 0
    cut = command("audit", "jev", "--require", "declared", "--no-record", "--json", "--resamples", "100")
    assert cut.code == 0, cut
    flips = json.loads(cut.out)["predicate"]["result"]["estimates"]["2019.strict_flip"]
    assert flips["value"] == pytest.approx(2 / (9 * 3 * 2))
    assert len(segments(command.ledger, "jev")) == -(-9 * 3 * 4 // 21)
