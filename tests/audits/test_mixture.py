"""Reweighted targets: which verdicts survive, which do not, and where there is nothing to survive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audits import bridge, mixture, pool, transport
from audits.bridge_vertices import Vertex
from audits.design import Design
from audits.design import parse as parse_design
from audits.mixture import reweigh
from audits.recompute import recompute
from audits.record import statement
from audits.results import Audited
from contracts.errors import UsageError
from ledger.snapshot import Snapshot
from ledger.statement import parse
from tests.audits.cohorts import Face, Ledger, gains, new_ledger, noisy, rows

FEW = 200


def by_target(a: tuple[float, float], b: tuple[float, float], rare: int = 4) -> dict[tuple[str, int], Face]:
    """20 trajectories with gains `a` at target A; every `rare`th step has target B and gains `b`."""
    made = {}
    for t in range(20):
        for s in range(rare):
            kind, (ref, alt) = ("B", b) if s == 0 else ("A", a)
            wobble = (t % 5 - 2) / 32
            made[f"t{t:02d}", s] = gains(ref + wobble, alt + wobble, target=kind)
    return made


def ingested(folder: Path, faces: dict[tuple[str, int], Face]) -> Ledger:
    ledger = new_ledger(folder)
    ledger.ingest(rows(faces))
    return ledger


def run(ledger: Ledger, **options: Any) -> Audited:
    options.setdefault("resamples", FEW)
    return mixture(ledger.snapshot(), "direct", "generated", **options)


def design_of(found: Audited, snapshot: Snapshot) -> Design:
    """The design of a result as its record would give it back."""
    made = parse_design(json.loads(found.audit.result_bytes)["design"], snapshot.book)
    assert made is not None
    return made


def survival(found: Audited) -> dict[str, Any]:
    return {row["of"]: row for row in found.result["tables"]["survival"]}


def test_cohort_and_equal_weights_are_those_of_the_transport_audit(tmp_path: Path) -> None:
    ledger = ingested(tmp_path, noisy(20, 3))
    mine = run(ledger).estimates
    theirs = transport(ledger.snapshot(), "direct", "generated", resamples=FEW).estimates
    for name in ("gain.ref", "gain.alt", "interaction"):
        for suffix in ("", "@equal-target"):
            assert mine[name + suffix] == theirs[name + suffix]


def test_user_weights_are_the_weighted_mean_of_the_type_means(tmp_path: Path) -> None:
    ledger = ingested(tmp_path, by_target((1.0, -1.0), (-2.0, 0.5)))
    found = run(ledger, weights={"A": 3, "B": 1})
    assert found.estimates["gain.ref@target:A"]["value"] == 1.0
    assert found.estimates["gain.ref@target:B"]["value"] == -2.0
    assert found.estimates["gain.ref@user"]["value"] == pytest.approx(0.25)
    assert found.estimates["gain.ref@equal-target"]["value"] == -0.5
    assert found.result["tables"]["user_weights"]["weights"] == {"A": 0.75, "B": 0.25}


def test_a_reversal_that_hangs_on_the_mixture_does_not_survive(tmp_path: Path) -> None:
    found = run(ingested(tmp_path, by_target((1.0, -1.0), (-2.0, -1.0))))
    rows_ = survival(found)
    assert rows_["strict_mean_reversal"]["under"] == {"cohort": True, "equal-target": False}
    assert rows_["strict_mean_reversal"]["survives"] is False
    assert rows_["gain.ref"]["under"] == {"cohort": "positive", "equal-target": "negative"}
    assert rows_["gain.alt"]["survives"] is True
    assert found.result["verdicts"]["every_mixture"]["gain.alt"] == "negative"
    assert found.result["verdicts"]["every_mixture"]["gain.ref"] == "depends_on_weights"
    assert "does not survive equal-target weights" in found.sentence


def test_a_verdict_that_is_not_strict_has_nothing_to_survive(tmp_path: Path) -> None:
    faces = {(f"t{t:02d}", 0): gains((t % 5 - 2) / 4, 1.0, target="AB"[t % 2]) for t in range(20)}
    found = run(ingested(tmp_path, faces))
    row = survival(found)["gain.ref"]
    assert (row["survives"], row["reason"]) == (None, "no_strict_verdict")
    assert "supported under none" in found.sentence


def test_a_type_without_transitions_is_undefined_and_leaves_survival_open(tmp_path: Path) -> None:
    found = run(ingested(tmp_path, by_target((1.0, -1.0), (1.0, -1.0))), weights={"A": 1, "Z": 1})
    assert found.estimates["interaction@user"]["reason"] == "empty_type"
    row = survival(found)["interaction"]
    assert (row["survives"], row["reason"]) == (None, "no_verdict")
    assert "no verdict under user weights" in found.sentence


def test_a_type_without_weight_is_counted(tmp_path: Path) -> None:
    found = run(ingested(tmp_path, by_target((1.0, -1.0), (-2.0, 0.5))), weights={"A": 1})
    assert found.estimates["gain.ref@user"]["value"] == 1.0
    assert found.result["tables"]["user_weights"]["unweighted_transitions"] == 20


def test_it_is_post_hoc_and_says_so(tmp_path: Path) -> None:
    found = run(ingested(tmp_path, noisy()))
    assert "post-hoc-weights" in [limit["id"] for limit in found.result["limits"]]
    assert found.sentence.endswith("the weights are post hoc.")


def test_an_empty_cohort_is_undefined(tmp_path: Path) -> None:
    found = run(ingested(tmp_path, noisy()), where={"target": ["Z"]}, weights={"A": 1})
    assert found.audit.shortfall is not None
    assert {fields["reason"] for fields in found.estimates.values()} == {"empty_cohort"}
    assert found.sentence == "What survives reweighting is undefined (no complete transition)."


def test_more_than_twenty_types_are_not_weighed(tmp_path: Path) -> None:
    faces = {(f"t{t:02d}", 0): gains(1.0, -1.0, extra={"target_type": f"k{t}"}) for t in range(21)}
    found = run(ingested(tmp_path, faces))
    assert found.estimates["interaction@equal-target"]["reason"] == "too_many_types"
    assert found.result["verdicts"]["every_mixture"] == {
        "gain.ref": None,
        "gain.alt": None,
        "interaction": None,
    }


def test_a_bridge_is_reweighted_with_its_conjunctions(tmp_path: Path) -> None:
    snapshot = ingested(tmp_path, by_target((1.0, -1.0), (-2.0, -1.0))).snapshot()
    channels = [snapshot.book.resolve(name) for name in ("direct", "generated")]
    vertices = [Vertex("P", *channels), Vertex("Q")]
    asked = design_of(bridge(snapshot, vertices, resamples=FEW), snapshot)
    found = reweigh(snapshot, asked, resamples=FEW)
    rows_ = survival(found)
    assert rows_["all_interactions_negative"]["survives"] is True
    assert rows_["strict_reversal_everywhere"]["survives"] is False
    assert rows_["P.gain.alt"]["survives"] is True
    assert found.estimates["P.gain.ref@equal-target"]["value"] == -0.5
    assert "every interaction negative is supported under cohort weights and survives" in found.sentence
    assert "a strict reversal everywhere is supported under cohort weights and does not" in found.sentence
    kept = statement(found.audit, versions={}, time="2026-01-01T00:00:00Z").to_bytes()
    assert recompute(snapshot, parse(kept)) == found.audit.result_bytes


def test_an_audit_without_means_over_targets_is_refused(tmp_path: Path) -> None:
    snapshot = ingested(tmp_path, noisy(3, 1)).snapshot()
    design = design_of(pool(snapshot, ["direct", "generated"], resamples=FEW), snapshot)
    with pytest.raises(UsageError):
        reweigh(snapshot, design)


def test_weights_of_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        run(ingested(tmp_path, noisy(3, 1)), weights={"A": 0})


def test_permuted_rows_and_scaled_weights_give_the_same_bytes(tmp_path: Path) -> None:
    first = ingested(tmp_path, by_target((1.0, -1.0), (-2.0, 0.5)))
    other = tmp_path / "other"
    other.mkdir()
    again = new_ledger(other)
    cells = rows(by_target((1.0, -1.0), (-2.0, 0.5)))
    again.ingest([cells[i] for i in np.random.default_rng(7).permutation(len(cells))])
    one, two = run(first, weights={"A": 1, "B": 3}), run(again, weights={"B": 0.75, "A": 0.25})
    assert one.audit.result_bytes == two.audit.result_bytes


def test_a_record_is_computed_again_to_the_byte(tmp_path: Path) -> None:
    ledger = ingested(tmp_path, noisy())
    for options in ({}, {"weights": {"A": 1}}, {"target_types": ["A"]}):
        audit = run(ledger, **options).audit
        kept = statement(audit, versions={}, time="2026-01-01T00:00:00Z").to_bytes()
        assert recompute(ledger.snapshot(), parse(kept)) == audit.result_bytes
