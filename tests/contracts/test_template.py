"""The files people start from are valid as printed."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from contracts.admission import judge
from contracts.channel import Channel, ChannelBook, fingerprint
from contracts.channel_file import load_spec
from contracts.errors import UsageError
from contracts.kinds import decide
from contracts.rows import canonicalise
from contracts.template import template
from ledger.sources import read_sources

EXAMPLES = Path(__file__).parents[2] / "examples" / "channels"


def _book() -> ChannelBook:
    """The example channels, as `ledger channel add` would register them."""
    specs = [load_spec(path) for path in sorted(EXAMPLES.glob("*.toml"))]
    return ChannelBook(tuple(Channel(name, 1, spec, fingerprint(spec)) for name, spec in specs))


def test_the_score_template_fits_the_example_channels(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(template("transport"))
    book = _book()
    rows = canonicalise(read_sources([path]), book)
    admission = judge(rows, book)
    assert admission.findings.total == 0
    assert admission.admitted.num_rows == rows.rows == 64
    assert rows.missing_digests == {}
    assert rows.ignored == ()


def test_the_score_template_rotates_its_requests() -> None:
    rows = list(csv.DictReader(io.StringIO(template("transport"))))
    cells = {(r["endpoint"], r["channel"], r["layout"]): r["request"] for r in rows}
    assert len(set(cells.values())) == len(cells) == 16


def test_a_slip_in_the_template_is_named(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(template("transport").replace("-1.5", "minus", 1))
    (finding,) = canonicalise(read_sources([path]), _book()).findings.examples
    assert (finding.code, finding.rows, finding.got) == ("not-a-number", (1,), "minus")


def test_the_prediction_template_is_of_its_kind() -> None:
    lines = [json.loads(line) for line in template("jev").splitlines()]
    assert {decide(line) for line in lines} == {"jev"}
    assert all(line["before"].keys() == line["after"].keys() for line in lines)
    assert len({(line["year"], line["query_id"], line["scenario"]) for line in lines}) == len(lines)


def test_there_is_no_other_template() -> None:
    with pytest.raises(UsageError, match="transport or jev"):
        template("scores")
