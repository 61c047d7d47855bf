"""Two views against the redundancy benchmark: detected, not detected, undefined, and never a mechanism."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audits import redundancy
from audits.recompute import recompute
from audits.record import statement
from audits.results import Audited
from ledger.statement import parse
from tests.audits.cohorts import Face, Ledger, new_ledger, rows


def faces(*, before: float, after: float, n: int = 24, success: bool = True) -> dict[tuple[str, int], Face]:
    """Margins that vary by trajectory; the second view's are shifted at each endpoint."""
    made = {}
    for t in range(n):
        low, high = (t * 5 % 9) / 8, 1.0 + (t * 7 % 11) / 8
        extra = {"success": t % 2 == 0} if success else {}
        made[f"t{t:02d}", 0] = Face((low, high), (low + before, high + after), extra=extra)
    return made


def ingested(folder: Path, made: dict[tuple[str, int], Face]) -> Ledger:
    ledger = new_ledger(folder)
    ledger.ingest(rows(made))
    return ledger


def run(ledger: Ledger, **options: Any) -> Audited:
    options.setdefault("resamples", 400)
    return redundancy(ledger.snapshot(), "direct", "generated", **options)


def by_formula(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Energy distance over all ordered pairs, and the largest gap of the distribution functions."""

    def spread(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
        return float(np.abs(a[:, None] - b[None, :]).mean())

    pooled = np.concatenate([x, y])
    steps = [abs((x <= z).mean() - (y <= z).mean()) for z in pooled]
    return 2 * spread(x, y) - spread(x, x) - spread(y, y), float(max(steps))


def test_distances_are_those_of_the_formula_at_each_endpoint(tmp_path: Path) -> None:
    made = faces(before=0.0, after=2.0)
    found = run(ingested(tmp_path, made))
    for place, endpoint in enumerate(("before", "after")):
        x, y = (np.array([getattr(face, arm)[place] for face in made.values()]) for arm in ("ref", "alt"))
        table = found.result["tables"]["redundancy"][endpoint]
        energy, ks = by_formula(x, y)
        assert table["energy"]["value"] == pytest.approx(energy, abs=1e-9)
        assert table["ks"]["value"] == pytest.approx(ks, abs=1e-12)
        assert found.estimates[f"shift.{endpoint}"]["value"] == pytest.approx((0.0, 2.0)[place], abs=1e-9)


def test_each_endpoint_is_a_test_of_its_own(tmp_path: Path) -> None:
    found = run(ingested(tmp_path, faces(before=0.0, after=2.0)))
    assert found.result["verdicts"]["redundancy"] == {
        "before": {"energy": "not_detected", "ks": "not_detected"},
        "after": {"energy": "departure_detected", "ks": "departure_detected"},
    }
    table = found.result["tables"]["redundancy"]
    assert table["before"]["energy"]["p"] == 1.0
    assert table["after"]["energy"]["p"] == pytest.approx(1 / 401)
    assert "departure from the redundancy benchmark detected (energy distance after" in found.sentence
    assert "which is no support for redundancy" in found.sentence
    assert {"not-detected-is-no-support", "tests-unadjusted"} <= {
        limit["id"] for limit in found.result["limits"]
    }


def test_the_auc_gap_of_stored_success_goes_with_it(tmp_path: Path) -> None:
    found = run(ingested(tmp_path, faces(before=0.0, after=2.0)))
    assert found.estimates["auc_gap"]["value"] == 0.0
    assert found.result["tables"]["auc"]["positives"] == 12
    assert "paired AUC gap unresolved" in found.sentence


def test_without_stored_success_the_gap_is_absent_with_a_reason(tmp_path: Path) -> None:
    found = run(ingested(tmp_path, faces(before=0.0, after=2.0, success=False)))
    assert "auc_gap" not in found.estimates
    assert "absent:auc.ref, auc.alt, auc_gap" in [limit["id"] for limit in found.result["limits"]]


def test_one_trajectory_has_no_permutation(tmp_path: Path) -> None:
    found = run(ingested(tmp_path, faces(before=0.0, after=2.0, n=1)))
    table = found.result["tables"]["redundancy"]["after"]
    assert (table["energy"], table["reason"], table["permutations"]) == (None, "one_cluster", 0)
    assert found.result["verdicts"]["redundancy"]["after"] == {"energy": None, "ks": None}
    assert "undefined (energy distance before" in found.sentence


def test_an_empty_cohort_is_undefined(tmp_path: Path) -> None:
    found = run(ingested(tmp_path, faces(before=0.0, after=0.0)), where={"target": ["Z"]})
    assert found.audit.shortfall is not None
    assert found.result["verdicts"]["redundancy"] == {}
    assert found.sentence == "The distance of the views is undefined (no complete transition)."


def test_permuted_rows_give_the_same_bytes(tmp_path: Path) -> None:
    made = faces(before=0.25, after=0.5)
    first = ingested(tmp_path, made)
    other = tmp_path / "other"
    other.mkdir()
    again, cells = new_ledger(other), rows(made)
    again.ingest([cells[i] for i in np.random.default_rng(11).permutation(len(cells))])
    assert run(first).audit.result_bytes == run(again).audit.result_bytes


def test_a_record_is_computed_again_to_the_byte(tmp_path: Path) -> None:
    ledger = ingested(tmp_path, faces(before=0.25, after=0.5))
    audit = run(ledger).audit
    kept = statement(audit, versions={}, time="2026-01-01T00:00:00Z").to_bytes()
    assert recompute(ledger.snapshot(), parse(kept)) == audit.result_bytes
