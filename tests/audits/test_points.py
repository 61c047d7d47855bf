"""The rows behind a record: read again as they were, and refused where they no longer give the record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audits import transport
from audits.jev import run
from audits.jev_design import JevDesign
from audits.points import pair_points, prediction_points
from audits.statistics.jev_outcomes import Pairs, by_preference, preferences
from contracts.errors import TamperError
from ledger.ingest import ingest
from ledger.snapshot import Level, PredictionScope
from tests.audits.cohorts import new_ledger, noisy, rows


def stored(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result as it comes back from a record."""
    found: dict[str, Any] = json.loads(json.dumps(result))
    return found


def test_points_are_the_gains_behind_the_estimates(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.ingest(rows(noisy(12, 2)))
    snapshot = ledger.snapshot()
    audit = transport(snapshot, "direct", "generated", resamples=100)
    points = pair_points(snapshot, stored(audit.result))
    assert points is not None
    assert points.ref.mean() == pytest.approx(audit.estimates["gain.ref"]["value"], abs=1e-12)
    assert np.allclose(points.alt - points.ref, points.interaction)
    flips = audit.result["tables"]["flips"]
    assert points.opposed.sum() == flips["pos_to_neg"] + flips["neg_to_pos"]
    other = stored(audit.result)
    other["estimates"]["gain.alt"]["value"] += 2**-40
    with pytest.raises(TamperError, match=r"gain\.alt"):
        pair_points(snapshot, other)
    other["design"]["method"]["trim"] = "another"
    assert pair_points(snapshot, other) is None


def test_predictions_come_back_by_scenario(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    lines = [
        {
            "year": 2020, "query_id": f"q{q:02d}", "scenario": s, "intervention": "candidates",
            "before": {"a": 0.5, "b": 0.25}, "after": {"a": 0.125 if q < 2 else 0.5, "b": 0.25, "c": 0.25},
            "positive_labels": ["a"],
        }
        for q in range(10)
        for s in ("one", "two")
    ]  # fmt: skip
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, lines)))
    ingest(ledger.home, [tmp_path / "p.jsonl"], key=ledger.key)
    snapshot = ledger.snapshot()
    audit = run(snapshot, JevDesign(scope=PredictionScope(require=Level.DECLARED), resamples=100))
    found = prediction_points(snapshot, stored(audit.result))
    assert found is not None
    (part,) = found
    assert [(s.scenario, s.flips, s.units, s.pairs) for s in part.scenes] == [
        ("one", 2, 10, 10),
        ("two", 2, 10, 10),
    ]
    assert part.shares
    assert set(part.before.tolist()) == {2 / 3}
    assert sorted(set(part.after.tolist())) == [1 / 3, 2 / 3]
    other = stored(audit.result)
    other["tables"]["counts"]["2020"]["preference_flip"] += 1
    with pytest.raises(TamperError, match="preference_flip"):
        prediction_points(snapshot, other)


def test_a_preference_share_lies_on_the_side_that_is_judged() -> None:
    rng = np.random.default_rng(5)
    values = rng.random((2, 12))
    start = np.array([0, 3, 7, 12])
    pairs = Pairs(
        query=np.arange(3), scenario=np.zeros(3, int), variant=np.zeros(3, int), start=start,
        before=values[0], after=values[1], positive=np.zeros(12, bool), order=np.arange(12),
        base=np.arange(12) % 7 != 6,
    )  # fmt: skip
    sides, (before, after) = by_preference(pairs), preferences(pairs)
    assert np.array_equal(np.sign(before - 0.5), sides.before)
    assert np.array_equal(np.sign(after - 0.5), sides.after)
