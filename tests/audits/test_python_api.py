"""Audits from Python: names that are functions, frozen results, rows in Arrow, a view for notebooks."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path
from xml.etree import ElementTree

import pytest

import audits
from audits import pool, repeatability, transport
from audits.results import Audited
from ledger.snapshot import Snapshot
from tests.audits.cohorts import gains, new_ledger, rows

ROOT = Path(__file__).parents[2]


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    ledger = new_ledger(tmp_path)
    faces = {}
    for t in range(12):
        for s in range(2):
            more = {"success": t % 2 == 0 if t else None, "target_type": "<b>&" if s else None}
            faces[f"t{t:03d}", s] = gains(1.0 + t / 8, -0.5, extra=more)
    ledger.ingest(rows(faces))
    return ledger.snapshot()


def test_the_package_costs_nothing_until_an_audit_is_used() -> None:
    heavy = "numpy", "pyarrow", "pandera", "sqlmodel", "polars", "typer", "ledger"
    printed = python(f"import sys, audits; print([m for m in {heavy!r} if m in sys.modules])")
    assert printed.strip() == "[]"


def test_a_name_is_the_audit_whatever_was_imported_first() -> None:
    code = "import audits.recompute, audits.{0}; from audits import {1}; print({1}.__name__, callable({1}))"
    for name in ("transport", "pool"):
        assert python(code.format(name, name)).split() == [name, "True"]


def test_every_offered_audit_is_there() -> None:
    for name in audits.__all__:
        assert callable(getattr(audits, name)), name
        assert getattr(audits, name).__name__ == name


def test_a_result_is_frozen_and_reads_as_the_record_does(snapshot: Snapshot) -> None:
    found = transport(snapshot, ref="direct", alt="generated", resamples=200)
    assert isinstance(found, Audited)
    with pytest.raises(FrozenInstanceError):
        found.audit = found.audit  # type: ignore[misc]
    assert found.estimates is found.audit.result["estimates"]
    assert found.sentence.startswith("Cohort-weighted, the mean interaction is negative")
    assert len(found.faces) == len(found.pair.interaction) == 24


def test_arrow_has_a_row_per_transition_with_the_vectors_behind_the_estimates(snapshot: Snapshot) -> None:
    found = transport(snapshot, ref="direct", alt="generated", resamples=200)
    table = found.to_arrow()
    assert table.num_rows == found.result["flow"]["complete"] == 24
    assert table["trajectory_id"].to_pylist() == sorted(table["trajectory_id"].to_pylist())
    assert table["step"].to_pylist() == [0, 1] * 12
    assert table["success"].to_pylist()[:4] == [None, None, False, False]
    assert set(table["target_type"].to_pylist()) == {"A", "<b>&"}
    assert table["gain.ref"].to_pylist()[2] == 1.125
    for name in ("gain.ref", "gain.alt", "interaction", "interaction.layout.1", "diagonal"):
        values = table[name].to_pylist()
        assert sum(values) / len(values) == pytest.approx(found.estimates[name]["value"])


def test_a_notebook_shows_the_flow_the_sentence_and_every_estimate(snapshot: Snapshot) -> None:
    for found in (
        transport(snapshot, ref="direct", alt="generated", resamples=200),
        pool(snapshot, ["direct", "generated"], resamples=200),
        repeatability(snapshot, "direct", resamples=200),
    ):
        page = ElementTree.fromstring(found._repr_html_())
        shown = [row[0].text for row in page.iterfind(".//tbody/tr")]
        assert shown == list(found.estimates)
        text = "".join(page.itertext())
        assert "24 of 24 transitions complete, 12 trajectories" in text
        assert found.sentence in text
    assert "undefined (one acquisition only)" in text


def test_the_example_runs_as_it_stands(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/transport_in_python.py")],
        cwd=tmp_path, env=os.environ | {"TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "67,328 entries admitted" in done.stdout
    assert "a strict reversal of the mean gain is supported, +0.163 under direct" in done.stdout
    assert "240 transitions gain under direct and lose under generated" in done.stdout
