"""The files people start from are valid as printed."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from contracts.admission import judge
from contracts.channel import ChannelBook
from contracts.errors import UsageError
from contracts.kinds import decide
from contracts.rows import canonicalise
from contracts.template import template
from ledger.sources import read_sources
from tests.contracts.score_book import BOOK, DIRECT, GENERATED


def test_the_score_template_is_admitted_whole(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(template("transport"))
    book = ChannelBook((DIRECT, GENERATED))
    rows = canonicalise(read_sources([path]), book)
    admission = judge(rows, book)
    assert admission.findings.total == 0
    assert admission.admitted.num_rows == rows.rows == 16
    assert rows.missing_digests == {}
    assert rows.ignored == ()


def test_the_score_template_rotates_its_requests() -> None:
    rows = list(csv.DictReader(io.StringIO(template("transport"))))
    cells = {(r["endpoint"], r["channel"], r["layout"]): r["request"] for r in rows}
    assert len(set(cells.values())) == len(cells) == 8


def test_a_slip_in_the_template_is_named(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(template("transport").replace("-0.75", "minus", 1))
    (finding,) = canonicalise(read_sources([path]), BOOK).findings.examples
    assert (finding.code, finding.rows, finding.got) == ("not-a-number", (1,), "minus")


def test_the_prediction_template_is_of_its_kind() -> None:
    lines = [json.loads(line) for line in template("jev").splitlines()]
    assert {decide(line) for line in lines} == {"jev"}
    assert all(line["before"].keys() == line["after"].keys() for line in lines)
    assert len({(line["year"], line["query_id"], line["scenario"]) for line in lines}) == len(lines)


def test_there_is_no_other_template() -> None:
    with pytest.raises(UsageError, match="transport or jev"):
        template("scores")
