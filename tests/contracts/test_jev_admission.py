"""Predictions are judged as whole groups: right files become entries, each fault is named with its line."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.statistics import label_mass
from contracts.channel import ChannelBook
from contracts.findings import Findings
from contracts.jev_admission import JevAdmission, judge_pairs
from contracts.jev_rows import gather, judge_rows
from contracts.jev_source import LabelReader
from contracts.schema import JEV, JEV_POSITIVES
from ledger.source_predictions import read

SHARED = Path(__file__).parents[2].parent / "shared"
BOOK = ChannelBook(())
SCENARIOS = ("zero", "one", "two")


def line(**parts: Any) -> dict[str, Any]:
    return {
        "year": 2019,
        "query_id": "q1",
        "scenario": "zero",
        "before": {"p1": 0.2, "p2": 0.7},
        "after": {"p1": 0.6, "p2": 0.5},
        "positive_labels": [],
        **parts,
    }


def study(queries: int = 3) -> list[dict[str, Any]]:
    return [
        line(query_id=f"q{q}", scenario=s, positive_labels=["p1", "p2"][:n])
        for q in range(queries)
        for n, s in enumerate(SCENARIOS)
    ]


def judge(
    lines: Sequence[dict[str, Any] | str],
    existing: JevAdmission | None = None,
    reader: LabelReader | None = None,
    **defaults: str,
) -> JevAdmission:
    text = "\n".join(item if isinstance(item, str) else json.dumps(item) for item in lines)
    source = read(io.BytesIO(text.encode()), "p.jsonl", "blake3:" + "ab" * 32, reader)
    predictions, findings = judge_rows(gather([source], **defaults), BOOK)
    return judge_pairs(
        predictions,
        findings,
        existing=existing.entries if existing else None,
        existing_positives=existing.positives if existing else None,
    )


def codes(findings: Findings) -> dict[str, int]:
    return dict(findings.by_code)


def test_a_right_file_becomes_entries_and_scorer_only_labels() -> None:
    found = judge(study())
    assert found.findings.total == 0
    assert (len(found.entries), len(found.positives)) == (3 * 3 * 4, 3 * 3)
    plain = found.entries.select(list(JEV.names)).cast(JEV.arrow)
    assert set(plain["acquisition_id"].to_pylist()) == {"file:" + "ab" * 6}
    assert set(plain["channel"].to_pylist()) == {None}
    assert "positive" not in " ".join(JEV.names)
    assert found.positives.column_names == [*JEV_POSITIVES.names, "source_file", "source_row"]
    assert plain["arm"].to_pylist()[:4] == ["after", "before"] * 2
    assert plain["probability"].to_pylist()[:4] == [0.6, 0.2, 0.5, 0.7]


@pytest.mark.parametrize("name", ["jev_pairs.jsonl", "jev_pairs_uneven.jsonl"])
def test_the_cohorts_are_accepted(name: str) -> None:
    path = SHARED / "cohort" / name
    if not path.exists():
        pytest.skip("shared/cohort is not here")
    source = read(io.BytesIO(path.read_bytes()), name, "blake3:" + "00" * 32)
    predictions, findings = judge_rows(gather([source]), BOOK)
    assert judge_pairs(predictions, findings).findings.total == 0
    assert len(predictions) == 276


BAD: list[tuple[str, dict[str, Any], int]] = [
    ("probability-range", {"before": {"p1": 1.5, "p2": 0.1}}, 1),
    ("probability-range", {"before": {"p1": -1e-9, "p2": 0.1}}, 1),
    ("number-as-text", {"before": {"p1": "0.5", "p2": 0.1}}, 1),
    ("number-as-text", {"before": {"p1": True, "p2": 0.1}}, 1),
    ("number-as-text", {"before": {"p1": None, "p2": 0.1}}, 1),
    ("wrong-type", {"before": [0.1, 0.2]}, 1),
    ("wrong-type", {"year": "2019"}, 1),
    ("wrong-type", {"year": 2019.0}, 1),
    ("wrong-type", {"positive_labels": "p1"}, 1),
    ("wrong-type", {"before_label_mass": "0.5"}, 1),
    ("empty-arm", {"before": {}, "after": {}}, 2),
    ("year-range", {"year": -1}, 1),
    ("null", {"query_id": None}, 1),
    ("empty", {"query_id": ""}, 1),
    ("control-character", {"query_id": "q\u00071"}, 1),
    ("outer-space", {"query_id": "q1 "}, 1),
    ("not-nfc", {"query_id": "e\u0301"}, 1),
    ("label-mass-range", {"after_label_mass": 1.2}, 1),
    ("bad-digest", {"before_request_hash": "md5:0"}, 2),
    ("bad-digest", {"evidence_hash": "blake3:XY"}, 1),
    ("intervention-unknown", {"intervention": "wording"}, 1),
    ("mode-unknown", {"mode": "loud"}, 1),
    ("unknown-channel", {"channel": "nobody", "acquisition_id": "a"}, 1),
    ("label-lost", {"after": {"p1": 0.1}}, 1),
    ("label-gained", {"after": {"p1": 0.1, "p2": 0.1, "p3": 0.1}}, 1),
    ("positive-no-target", {"positive_labels": ["p9"]}, 1),
    ("duplicate-label", {"label_order": ["p1", "p1", "p2"]}, 1),
    ("label-not-ordered", {"label_order": ["p1"]}, 2),
]


@pytest.mark.parametrize(
    ("code", "change", "count"), BAD, ids=[f"{c}-{i}" for i, (c, _, _) in enumerate(BAD)]
)
def test_every_bad_line_refuses_the_file_and_is_named(code: str, change: dict[str, Any], count: int) -> None:
    lines = study()
    lines[4] |= change
    found = judge(lines)
    assert codes(found.findings).get(code) == count
    assert len(found.entries) == 0
    example = next(f for f in found.findings.examples if f.code == code)
    assert example.rows == (5,)
    assert "line 5" in example.message
    assert found.findings.rejects(JEV).num_rows == found.findings.total


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("not-json", "{"),
        ("not-an-object", "[1]"),
        ("duplicate-key", '{"year": 1, "year": 2}'),
        ("duplicate-key", json.dumps(line())[:-1].replace('"p1": 0.2', '"p1": 0.2, "p1": 0.3') + "}"),
        ("not-json", json.dumps(line()).replace("0.2", "NaN")),
        ("not-json", json.dumps(line()).replace("0.2", "1e999")),
        ("too-deep", "[" * 100_000),
    ],
)
def test_a_line_that_is_no_pair_is_named(code: str, text: str) -> None:
    assert codes(judge([*study(), text]).findings) == {code: 1}


def test_duplicates_and_missing_scenarios_are_told_apart() -> None:
    lines = study()
    assert codes(judge([*lines, lines[0]]).findings) == {"pair-duplicate": 2}
    assert codes(judge(lines[1:]).findings) == {"scenario-missing": 2}
    # The count of lines is right, and still one cell is missing behind a duplicate.
    assert codes(judge([lines[1], *lines[1:]]).findings) == {"pair-duplicate": 2, "scenario-missing": 3}


def test_groups_are_judged_apart() -> None:
    joint = [item | {"mode": "joint"} for item in study(2)]
    hidden = [item | {"mode": "independent", "scenario": "only"} for item in study(1)[:1]]
    assert judge([*joint, *hidden]).findings.total == 0


def test_candidates_must_expand_and_keep_a_preference() -> None:
    def expand(**parts: Any) -> dict[str, int]:
        return codes(judge([line(intervention="candidates", **parts)]).findings)

    wide = {"p1": 0.2, "p2": 0.2, "p3": 0.6}
    assert expand(after=wide) == {}
    assert expand() == {"nothing-expanded": 1}
    assert expand(after={"p1": 0.5, "p3": 0.5}) == {"label-lost": 1}
    assert expand(before={"p1": 1.0}, after=wide) == {"no-preference": 1}
    assert expand(after={"p1": 0.0, "p2": 0.0, "p3": 1.0}) == {"no-preference": 1}
    assert expand(before={"p1": 0.0, "p2": 1.0}, after=wide) == {}


def test_identical_pairs_are_skipped_and_changed_ones_conflict() -> None:
    first = judge(study())
    again = judge(list(reversed(study())), existing=first)
    assert (again.findings.total, len(again.entries), again.skipped) == (0, 0, len(first.entries))
    for change in (
        {"before": {"p1": 0.3, "p2": 0.7}},
        {"positive_labels": ["p2"]},
        {"evidence_hash": "blake3:" + "0" * 64},
    ):
        lines = study()
        lines[3] |= change
        found = judge(lines, existing=first)
        assert codes(found.findings) == {"conflict": 1}
        assert "line 4" in found.findings.examples[0].message
    more = judge([line(query_id="q9", scenario=s) for s in SCENARIOS], existing=first)
    assert more.findings.total == 0
    other = judge([line(query_id="q9", scenario=s) for s in (*SCENARIOS, "three")], existing=first)
    assert set(codes(other.findings)) == {"scenario-missing"}


def test_a_named_acquisition_needs_a_channel() -> None:
    assert codes(judge([line(acquisition_id="a1")]).findings) == {"channel-missing": 1}
    assert codes(judge([line()], acquisition="a1").findings) == {"channel-missing": 1}


def test_logits_give_probability_and_mass_and_top_k_only_a_bound() -> None:
    logits = {"vocabulary": [1.0, 2.0, -3.0], "labels": {"p1": 0, "p2": 2}}
    given = line(before_logits=logits, after_logits={"top": {"p1": -0.7, "p2": -3.0, "the": -4.0}})
    del given["before"]
    found = judge([given], reader=label_mass)
    assert found.findings.total == 0
    rows = found.entries.to_pylist()
    whole = sum(math.exp(z) for z in logits["vocabulary"])
    labels = math.exp(1.0) + math.exp(-3.0)
    before = {r["label"]: r for r in rows if r["arm"] == "before"}
    assert before["p1"]["probability"] == pytest.approx(math.exp(1.0) / labels, abs=1e-12)
    assert before["p2"]["label_mass"] == pytest.approx(labels / whole, abs=1e-12)
    assert {(r["arm"], r["mass_kind"]) for r in rows} == {("before", "exact"), ("after", "lower_bound")}
    assert all(r["label_mass"] < 1.0 for r in rows)


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("wrong-type", {"before_logits": {"vocabulary": [1.0, "x"], "labels": {"p1": 0}}}),
        ("wrong-type", {"before_logits": {"vocabulary": [1.0], "labels": {"p1": 1}}}),
        ("wrong-type", {"before_logits": {"vocabulary": [-math.inf], "labels": {"p1": 0}}}),
        ("wrong-type", {"before_logits": {"top": {"p1": "x"}}}),
        ("labels-disagree", {"before_logits": {"vocabulary": [1.0, 2.0], "labels": {"p1": 0, "p9": 1}}}),
        (
            "no-label-mass",
            {"before_logits": {"vocabulary": [-math.inf, 0.0, -math.inf], "labels": {"p1": 0, "p2": 2}}},
        ),
    ],
)
def test_logits_that_say_nothing_are_named(code: str, change: dict[str, Any]) -> None:
    assert codes(judge([line(**change)], reader=label_mass).findings) == {code: 1}


@settings(max_examples=20)
@given(order=st.permutations(range(9)))
def test_the_order_of_lines_and_keys_changes_nothing(order: list[int]) -> None:
    lines = [dict(reversed(study()[i].items())) for i in order]

    def rows(found: JevAdmission) -> set[str]:
        table = (
            found.entries.drop_columns(["source_file", "source_row"]).select(list(JEV.names)).cast(JEV.arrow)
        )
        return {str(row) for row in table.to_pylist()}

    assert rows(judge(lines, channel=None, acquisition=None)) == rows(judge(study()))


def test_every_finding_is_a_rejected_row() -> None:
    lines = [line(query_id=f"q{i}", before={"p1": 2.0, "p2": 0.1}) for i in range(300)]
    found = judge(lines)
    assert codes(found.findings) == {"probability-range": 300}
    assert len(found.findings.examples) < 300
    rejects = found.findings.rejects(JEV)
    assert rejects.num_rows == 300
    assert rejects["row"].to_pylist() == list(range(1, 301))
    assert isinstance(rejects, pa.Table)
