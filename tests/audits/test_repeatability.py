"""One channel against itself: by hand, by the study's repeats, permuted, and on edges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audits import repeatability, transport
from audits.recompute import recompute
from audits.record import statement
from audits.results import Audited
from contracts.errors import MalformedError
from ledger import channels
from ledger.home import init, signing_key
from ledger.ingest import ingest
from ledger.snapshot import open_snapshot
from ledger.statement import Statement, parse
from tests.audits.cohorts import Ledger, gains, new_ledger, noisy, rows

SHARED = Path(__file__).parents[2].parent / "shared"
SHIFTS = {"a": 0.0, "b": 0.5, "c": -0.25}


def shift(channel: str, layout: int, acquisition: str) -> float:
    """Another offset in each acquisition of `direct`, and more of it in layout 1."""
    return SHIFTS.get(acquisition, 0.0) * (1 + layout) if channel == "direct" else 0.0


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = new_ledger(tmp_path)
    made.ingest(rows(noisy(), acquisitions={"direct": tuple(SHIFTS)}, shift=shift))
    return made


def run(ledger: Ledger, channel: str = "direct", **options: Any) -> Audited:
    options.setdefault("resamples", 200)
    return repeatability(ledger.snapshot(), channel, **options)


def by_formula(x: np.ndarray[Any, Any]) -> tuple[float, float, float]:
    """within_sd, icc1 and sign agreement of gains [n, k], as Shrout and Fleiss write them."""
    k = x.shape[1]
    within = x.var(axis=1, ddof=1).mean()
    between = k * x.mean(axis=1).var(ddof=1)
    steady = (x > 0).all(axis=1) | (x < 0).all(axis=1)
    return (
        float(np.sqrt(within)),
        float((between - within) / (between + (k - 1) * within)),
        float(steady.mean()),
    )


def test_the_three_numbers_are_those_of_the_formula(ledger: Ledger) -> None:
    found = run(ledger)
    base = np.array([face.ref[1] - face.ref[0] for face in noisy().values()])
    gains_by_acquisition = np.stack([base + 1.5 * offset for offset in SHIFTS.values()], axis=1)
    wanted = by_formula(gains_by_acquisition)
    for name, value in zip(("within_sd", "icc1", "sign_agreement"), wanted, strict=True):
        estimate = found.estimates[f"direct.{name}"]
        assert estimate["value"] == pytest.approx(value, abs=1e-9), name
        assert "verdict" not in estimate
        low, high = estimate["ci95"]
        assert low <= estimate["value"] <= high


def test_each_acquisition_stands_beside_them(ledger: Ledger) -> None:
    tables = run(ledger).result["tables"]
    assert [row["acquisition"] for row in tables["acquisitions"]] == ["a", "b", "c"]
    means = [row["gain"]["value"] for row in tables["acquisitions"]]
    assert means[1] - means[0] == pytest.approx(0.75, abs=1e-9)
    assert [(p["first"], p["second"]) for p in tables["pairs"]] == [("a", "b"), ("a", "c"), ("b", "c")]
    base = np.array([face.ref[1] - face.ref[0] for face in noisy().values()])
    opposite = int(np.count_nonzero(np.sign(base + 0.75) * np.sign(base - 0.375) == -1))
    assert tables["pairs"][2]["opposite_signs"] == opposite > 0


def test_it_never_offers_itself_as_transport(ledger: Ledger) -> None:
    found = run(ledger)
    assert found.result["verdicts"]["evidence_of_transport"] is False
    said = {limit["id"] for limit in found.result["limits"]}
    other = {limit["id"] for limit in transport(ledger.snapshot(), "direct", "generated").result["limits"]}
    assert "no-evidence-of-transport" in said - other
    assert "not-repeatability" in other - said
    assert found.sentence.endswith("this is no evidence of transport.")


def test_one_acquisition_is_undefined_and_says_what_to_bring(ledger: Ledger) -> None:
    for found in (run(ledger, "generated"), run(ledger, acquisitions=[(None, "b")])):
        assert {fields["reason"] for fields in found.estimates.values()} == {"one_acquisition"}
        assert found.audit.shortfall is not None
        assert found.audit.shortfall.code == "one-acquisition"
        assert found.audit.shortfall.exit_code == 5
        assert "undefined (one acquisition only)" in found.sentence


def test_a_transition_that_lacks_an_acquisition_is_left_out(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    made = rows(noisy(), acquisitions={"direct": ("a", "b")})
    ledger.ingest(
        [r for r in made if (r["trajectory_id"], r["step"], r["acquisition_id"]) != ("t001", 1, "b")]
    )
    flow = run(ledger).result["flow"]
    assert (flow["transitions"], flow["complete"]) == (36, 35)
    assert flow["excluded"][0]["examples"][0].startswith("t001/step01")


def test_equal_gains_have_no_icc(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    faces = {(f"t{t:02d}", 0): gains(1.0, 1.0) for t in range(12)}
    ledger.ingest(rows(faces, acquisitions={"direct": ("a", "b")}))
    found = run(ledger).estimates
    assert found["direct.within_sd"]["value"] == 0.0
    assert (found["direct.icc1"]["value"], found["direct.icc1"]["reason"]) == (None, "zero_denominator")
    assert found["direct.sign_agreement"]["value"] == 1.0


def test_permuted_rows_give_the_same_bytes(ledger: Ledger, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    again = new_ledger(other)
    made = rows(noisy(), acquisitions={"direct": tuple(SHIFTS)}, shift=shift)
    again.ingest([made[i] for i in np.random.default_rng(3).permutation(len(made))])
    assert run(again).audit.result_bytes == run(ledger).audit.result_bytes


def test_a_record_is_computed_again_to_the_byte(ledger: Ledger) -> None:
    audit = run(ledger).audit
    made = statement(audit, versions={}, time="2026-01-01T00:00:00Z")
    assert recompute(ledger.snapshot(), parse(made.to_bytes())) == audit.result_bytes


def test_a_design_without_its_name_is_no_design(ledger: Ledger) -> None:
    audit = run(ledger).audit
    result = json.loads(audit.result_bytes)
    del result["design"]["options"]
    made = statement(audit, versions={}, time="2026-01-01T00:00:00Z")
    forged = Statement(made.subjects, made.predicate_type, {**made.predicate, "result": result})
    with pytest.raises(MalformedError):
        recompute(ledger.snapshot(), forged)


def test_the_repeats_of_the_study(tmp_path: Path) -> None:
    if not (SHARED / "cohort/bridge.parquet").is_file():
        pytest.skip("the study's cohort is not beside the checkout")
    home = init(tmp_path / ".ledger")
    key = signing_key(home)
    channels.add(home, key, sorted((SHARED / "cohort/channels").glob("bridge_*.toml")))
    ingest(home, [SHARED / "cohort/bridge.parquet"], key=key)
    answers = json.loads((SHARED / "cohort/answers.json").read_text())["bridge"]
    snapshot = open_snapshot(home)
    for kind in ("quote", "generated"):
        name = f"bridge/B-{kind}"
        found = repeatability(snapshot, name, resamples=100).estimates
        for number, wanted in answers["B"][f"repeat_{kind}"].items():
            assert found[f"{name}.{number}"]["value"] == pytest.approx(wanted, abs=1e-9)
