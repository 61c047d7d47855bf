"""Mixtures of channels: exact weights, the sign map, and when a pooled sign may not be called stable."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audits import pool
from audits.recompute import recompute
from audits.record import statement
from audits.results import Audited
from audits.weights import matched, parse_weights, shares
from contracts.errors import UsageError
from ledger.statement import parse
from tests.audits.cohorts import Face, Ledger, gains, new_ledger, noisy, rows

BOTH = ("direct", "generated")


def steady(ref: float, alt: float, *, spread: float = 0.25, n: int = 20) -> dict[tuple[str, int], Face]:
    """Gains of these means that vary a little by trajectory."""
    offsets = [spread * (t % 5 - 2) / 2 for t in range(n)]
    return {(f"t{t:02d}", 0): gains(ref + o, alt + o) for t, o in enumerate(offsets)}


def made(folder: Path, faces: dict[tuple[str, int], Face]) -> Ledger:
    ledger = new_ledger(folder)
    ledger.ingest(rows(faces))
    return ledger


def run(ledger: Ledger, **options: Any) -> Audited:
    options.setdefault("resamples", 200)
    return pool(ledger.snapshot(), options.pop("channels", BOTH), **options)


def test_the_pooled_gain_is_the_weighted_mean_of_the_gains(tmp_path: Path) -> None:
    found = run(made(tmp_path, steady(1.0, -0.5)), weights=[2, 1])
    estimates = found.estimates
    assert estimates["gain.direct"]["value"] == 1.0
    assert estimates["gain.generated"]["value"] == -0.5
    assert estimates["pooled"]["value"] == 0.5
    assert estimates["pooled"]["role"] == "primary"
    assert found.vectors["pooled"].mean == Fraction(1, 2)


def test_opposite_components_depend_on_the_weights_and_turn_where_they_cancel(tmp_path: Path) -> None:
    found = run(made(tmp_path, steady(1.0, -0.5)))
    mapped = found.result["tables"]["sign_map"]
    assert mapped["vertices"] == {"direct": "positive", "generated": "negative"}
    assert mapped["edges"] == [
        {"first": "direct", "second": "generated", "turns_at": 2 / 3, "sign": "depends_on_weights"}
    ]
    assert found.result["verdicts"]["pooled_sign"] == "depends_on_weights"
    assert "turn at weight 0.667 of generated" in found.sentence
    at = run(made(_folder(tmp_path), steady(1.0, -0.5)), weights={"direct": 1, "generated": 2})
    assert at.estimates["pooled"]["value"] == 0.0


def test_a_component_that_straddles_zero_makes_no_pool_stable(tmp_path: Path) -> None:
    found = run(made(tmp_path, {k: gains(1.0, (t % 5 - 2) / 8) for t, k in enumerate(steady(0, 0))}))
    assert found.estimates["gain.generated"]["verdict"] == "unresolved"
    assert found.estimates["pooled"]["verdict"] == "positive"
    assert found.result["verdicts"]["pooled_sign"] == "depends_on_weights"
    assert "not stable" in found.sentence
    assert found.result["tables"]["sign_map"]["edges"][0]["turns_at"] is None


def test_components_of_one_sign_pool_to_that_sign(tmp_path: Path) -> None:
    found = run(made(tmp_path, steady(1.0, 2.0)))
    assert found.result["verdicts"]["pooled_sign"] == "positive"
    assert "so is every mixture of them" in found.sentence


def test_too_few_trajectories_make_no_sign_stable(tmp_path: Path) -> None:
    found = run(made(tmp_path, steady(1.0, 2.0, n=5)))
    assert found.result["verdicts"]["pooled_sign"] == "depends_on_weights"
    assert found.estimates["pooled"]["reason"] == "too_few_clusters"


def test_three_channels_have_three_edges(tmp_path: Path) -> None:
    names = ("direct", "generated", "third")
    ledger = new_ledger(tmp_path, names=names)
    two = rows(steady(1.0, -0.5))
    third = [{**r, "channel": "third", "request_hash": f"sha256:{i:064x}"} for i, r in enumerate(two)]
    ledger.ingest(
        two
        + [
            r
            for r in third
            if r["request_hash"] and two[int(r["request_hash"][7:], 16)]["channel"] == "direct"
        ]
    )
    found = run(ledger, channels=names)
    edges = found.result["tables"]["sign_map"]["edges"]
    assert [(e["first"], e["second"]) for e in edges] == [
        ("direct", "generated"), ("direct", "third"), ("generated", "third")
    ]  # fmt: skip
    assert [e["sign"] for e in edges] == ["depends_on_weights", "positive", "depends_on_weights"]
    assert found.result["tables"]["weights"] == dict.fromkeys(names, pytest.approx(1 / 3))


def test_an_empty_cohort_has_no_signs(tmp_path: Path) -> None:
    found = run(made(tmp_path, steady(1.0, 2.0)), where={"target": ["Z"]})
    assert found.audit.shortfall is not None
    assert found.result["verdicts"]["pooled_sign"] is None
    assert found.estimates["pooled"]["reason"] == "empty_cohort"
    assert found.to_arrow().num_rows == 0
    assert "undefined (no complete transition)" in found.sentence


def test_weights_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    ledger = made(tmp_path, steady(1.0, 2.0, n=2))
    meaningless: list[Any] = [{"direct": 1}, [1], {"direct": -1, "generated": 2}, [0, 0], [1, float("nan")]]
    for weights in meaningless:
        with pytest.raises(UsageError):
            run(ledger, weights=weights)


def test_one_channel_is_no_pool(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        run(made(tmp_path, steady(1.0, 2.0, n=2)), channels=["direct"])


def test_weights_are_read_exactly_and_brought_to_one() -> None:
    assert parse_weights("A=0.1,B=1/3") == {"A": "0.1", "B": "1/3"}
    assert shares({"A": "0.1", "B": 0.1, "C": "1/5"}) == {
        "A": Fraction(1, 4),
        "B": Fraction(1, 4),
        "C": Fraction(1, 2),
    }
    assert matched({"b": 1, "a": 2}, ["a", "b"]) == {"a": 2, "b": 1}


@pytest.mark.parametrize("text", ["", "A", "A=", "=1", "A=1,A=2", "A=-1", "A=1e9", "A=nan", "A=1/2/3", "A=٣"])
def test_texts_that_are_no_weights_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_weights(text)


def test_permuted_rows_and_scaled_weights_give_the_same_bytes(tmp_path: Path) -> None:
    first = made(tmp_path, noisy())
    again = new_ledger(_folder(tmp_path))
    cells = rows(noisy())
    again.ingest([cells[i] for i in np.random.default_rng(5).permutation(len(cells))])
    one, two = run(first, weights=[2, 1]), run(again, weights={"generated": 0.1, "direct": "0.2"})
    assert one.audit.result_bytes == two.audit.result_bytes


def test_a_record_is_computed_again_to_the_byte(tmp_path: Path) -> None:
    ledger = made(tmp_path, noisy())
    audit = run(ledger, weights=[1, 3]).audit
    kept = statement(audit, versions={}, time="2026-01-01T00:00:00Z").to_bytes()
    assert recompute(ledger.snapshot(), parse(kept)) == audit.result_bytes


def _folder(parent: Path) -> Path:
    made = parent / "other"
    made.mkdir()
    return made
