"""The retrieval face: its split, its paths, its missing corners."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from audits.face import face
from audits.recompute import recompute
from audits.record import statement
from audits.sentence import sentence
from tests.audits.cohorts import ENDPOINTS, Ledger, Row
from tests.audits.family import family, shuffled, side

# F by (state, view): the whole change is 1, the state's share 3/4, the view's 1/4.
MARGINS = {
    ("before", "before"): 0.5,
    ("before", "after"): 0.25,
    ("after", "before"): 0.75,
    ("after", "after"): 1.5,
}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return family(tmp_path, {"frozen": {"view": "generated"}})


def rows(trajectories: int = 12, shift: float = 0.0) -> list[Row]:
    made: list[Row] = []
    for t in range(trajectories):
        for view in ENDPOINTS:
            margins = tuple(
                MARGINS[state, view] + shift * (t % 3 - 1) * (state == "after") for state in ENDPOINTS
            )
            made += side("frozen", f"t{t:03d}", margins, source=view, view=lambda _, v=view: v)
    return made


def test_shares_and_paths_are_those_of_a_face_worked_by_hand(ledger: Ledger) -> None:
    ledger.ingest(rows())
    found = face(ledger.snapshot(), "frozen", resamples=200)
    values = {name: fields["value"] for name, fields in found.estimates.items()}
    assert values == {
        "state": 0.75, "view": 0.25, "diagonal": 1.0,
        "state.view_before": 0.25, "state.view_after": 1.25,
        "view.state_before": -0.25, "view.state_after": 0.75,
    }  # fmt: skip
    assert found.result["verdicts"]["paths"]["state"] == {"points_agree": True, "intervals_agree": True}
    assert found.result["verdicts"]["paths"]["view"]["points_agree"] is False
    assert [e["role"] for e in found.estimates.values()].count("primary") == 1


def test_the_shares_add_up_to_the_diagonal_in_every_transition_exactly(ledger: Ledger) -> None:
    ledger.ingest(rows(shift=1 / 3))
    found = face(ledger.snapshot(), "frozen", resamples=200)
    state, view, diagonal = (found.vectors[name] for name in ("state", "view", "diagonal"))
    for i in range(len(diagonal)):
        parts = [Fraction(int(v.numerators[i]), v.denominator) for v in (state, view, diagonal)]
        assert parts[0] + parts[1] == parts[2]
    assert found.result["tables"]["split"] == {"shares_add_up_in": 12, "transitions": 12}


def test_a_corner_nobody_scored_is_named_and_no_number_is_given(ledger: Ledger) -> None:
    missing = [r for r in rows() if (r["endpoint"], r["view_source"]) != ("after", "before")]
    ledger.ingest(missing)
    found = face(ledger.snapshot(), "frozen", resamples=200).audit
    assert found.shortfall is not None
    assert found.shortfall.exit_code == 5
    assert found.shortfall.code == "not_identified"
    assert "(state after, view before)" in str(found.shortfall)
    assert all(fields["value"] is None for fields in found.result["estimates"].values())
    assert found.result["verdicts"]["identification"]["missing"] == [["view_before", "after"]]
    said = sentence(found.result, **found.names)
    assert said == "The split is not identified: no complete scores of the corner (state after, view before)."


def test_a_view_nobody_showed_leaves_both_its_corners_missing(ledger: Ledger) -> None:
    ledger.ingest([r for r in rows() if r["view_source"] == "before"])
    found = face(ledger.snapshot(), "frozen", resamples=200).audit
    assert found.result["verdicts"]["identification"]["missing"] == [
        ["view_after", "before"],
        ["view_after", "after"],
    ]


def test_a_corner_missing_in_one_transition_removes_that_transition_only(ledger: Ledger) -> None:
    made = [
        r
        for r in rows()
        if (r["trajectory_id"], r["endpoint"], r["view_source"]) != ("t003", "before", "after")
    ]
    ledger.ingest(made)
    flow = face(ledger.snapshot(), "frozen", resamples=200).result["flow"]
    assert (flow["transitions"], flow["complete"]) == (12, 11)
    assert flow["excluded"][0]["examples"] == [
        "t003/step00: before, view_after, layout 0, candidate A absent"
    ]


def test_own_views_are_another_question(ledger: Ledger) -> None:
    ledger.ingest(rows() + list(side("frozen", "t000", (0.0, 9.0), view=lambda e: e)))
    flow = face(ledger.snapshot(), "frozen", resamples=200).result["flow"]
    assert flow["transitions"] == 12


def test_the_result_is_the_same_bytes_for_permuted_rows_and_when_computed_again(tmp_path: Path) -> None:
    made = rows(shift=0.125)
    results = []
    for place, given in enumerate((made, shuffled(made))):
        folder = tmp_path / str(place)
        folder.mkdir()
        ledger = family(folder, {"frozen": {"view": "generated"}})
        ledger.ingest(given)
        snapshot = ledger.snapshot()
        found = face(snapshot, "frozen", resamples=200, band=0.5).audit
        results.append(found.result_bytes)
        stated = statement(found, versions={}, time="2026-02-03T04:05:06Z")
        assert recompute(snapshot, stated) == found.result_bytes
    assert results[0] == results[1]


def test_a_band_is_about_the_share_of_the_view(ledger: Ledger) -> None:
    ledger.ingest(rows())
    found = face(ledger.snapshot(), "frozen", resamples=200, band=0.5).result
    assert found["verdicts"]["equivalence"] == {
        "of": "view", "band": 0.5, "prespecified": False, "established": True, "smallest_band": 0.25,
    }  # fmt: skip
