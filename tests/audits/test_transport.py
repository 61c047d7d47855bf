"""The transport audit on ledgers whose gains are known exactly, and on the study's cohort."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from audits.recompute import recompute
from audits.record import statement
from audits.statistics.flips import table
from contracts.errors import MalformedError, TamperError
from ledger.statement import Statement
from tests.audits.cohorts import Face, Ledger, Row, gains, new_ledger, noisy, rows
from tests.audits.transport_runs import ledger, result, run

__all__ = ["ledger"]  # fixtures

SHARED = Path(__file__).parents[2].parent / "shared"


# Against numbers worked out by hand.

SIX = {
    ("t1", 0): gains(1.0, -1.0),
    ("t1", 1): gains(2.0, 1.0),
    ("t2", 0): gains(-1.0, 2.0),
    ("t2", 1): gains(0.0, -1.0),
    ("t3", 0): gains(-0.0, 3.0),
    ("t3", 1): gains(2**-39, -(2**-39)),
}


def test_six_transitions_by_hand(ledger: Ledger) -> None:
    ledger.ingest(rows(SIX))
    found = result(ledger)
    assert found["flow"]["transitions"] == found["flow"]["complete"] == 6
    estimates, tables = found["estimates"], found["tables"]
    assert estimates["gain.ref"]["value"] == float(Fraction(2 * 2**39 + 1, 6 * 2**39))
    assert estimates["interaction"]["value"] == pytest.approx(1 / 3, abs=1e-11)
    assert tables["flips"] == {
        "pos_to_neg": 2, "neg_to_pos": 1, "both_pos": 1, "both_neg": 0, "zero_involved": 2
    }  # fmt: skip
    assert tables["interaction_signs"] == {"negative": 4, "zero": 0, "positive": 2}
    left = tables["leave_one_trajectory_out"]
    assert (left["min_without"], left["max_without"], left["sign_kept"]) == ("t3", "t1", False)
    assert left["min"] == -0.25
    assert estimates["interaction"]["reason"] == "too_few_clusters"
    assert "verdict" not in estimates["interaction"]
    assert found["verdicts"]["strict_mean_reversal"]["supported"] is None
    assert found["verdicts"]["location_agrees"] is None


def test_layouts_average_to_the_interaction_and_the_diagonal_adds_up_exactly(ledger: Ledger) -> None:
    shift = {"direct": (0.5, -0.25), "generated": (-1.0, 2.0)}
    ledger.ingest(rows(noisy(), shift=lambda channel, layout, _: shift[channel][layout]))
    pair = run(ledger).pair
    means = [vector.mean for vector in pair.layouts]
    assert None not in means
    assert sum(means, Fraction(0)) / 2 == pair.interaction.mean  # type: ignore[arg-type]
    parts = pair.parts
    assert parts.diagonal.mean == sum(
        (v.mean for v in (parts.reference_gain, parts.baseline_shift, parts.interaction)),  # type: ignore[misc]
        Fraction(0),
    )


def test_a_positive_slope_keeps_gain_signs_and_an_offset_changes_nothing(
    ledger: Ledger, tmp_path: Path
) -> None:
    faces = noisy()
    ledger.ingest(rows(faces))
    stretched = {
        key: Face(face.ref, (4 * face.alt[0] + 8, 4 * face.alt[1] + 8)) for key, face in faces.items()
    }
    other = new_ledger(_folder(tmp_path, "other"))
    other.ingest(rows(stretched))
    first, second = run(ledger), run(other)
    assert table(first.pair.ref, first.pair.alt) == table(second.pair.ref, second.pair.alt)
    assert first.pair.ref.mean == second.pair.ref.mean
    verdicts = [r.audit.result["verdicts"]["strict_mean_reversal"] for r in (first, second)]
    assert verdicts[0] == verdicts[1]


def test_sensitivity_tells_where_signs_turn(ledger: Ledger) -> None:
    ledger.ingest(rows({(f"t{t:02d}", 0): gains(1.0, -3.0) for t in range(12)}))
    found = result(ledger)["tables"]["sensitivity"]
    assert found["pooled_sign_threshold"] == 0.25
    assert found["recalibration_ratio"] is None
    assert found["reasons"] == {
        "recalibration_ratio": "means_do_not_agree", "tipping_mean_of_excluded": "no_excluded"
    }  # fmt: skip


# Complete cases.


def without(made: list[Row], **where: object) -> list[Row]:
    return [row for row in made if any(row[key] != value for key, value in where.items())]


def test_deleting_one_score_removes_that_transition_and_names_the_cell(ledger: Ledger) -> None:
    cell = {"endpoint": "after", "channel": "generated", "layout": 1, "candidate": "B"}
    ledger.ingest(without(rows(noisy()), trajectory_id="t003", step=1, **cell))
    flow = result(ledger)["flow"]
    assert (flow["transitions"], flow["complete"]) == (36, 35)
    (excluded,) = flow["excluded"]
    assert (excluded["reason"], excluded["transitions"]) == ("absent", 1)
    assert excluded["examples"] == ["t003/step01: after, alt, layout 1, candidate B absent"]


def test_excluded_transitions_have_a_mean_that_would_turn_the_sign(ledger: Ledger) -> None:
    made = rows({(f"t{t:02d}", 0): gains(1.0, 0.5) for t in range(12)})
    ledger.ingest(without(made, trajectory_id="t00", endpoint="after", layout=0, channel="direct"))
    tipping = result(ledger)["tables"]["sensitivity"]["tipping_mean_of_excluded"]
    assert tipping == {"gain.ref": -11.0, "gain.alt": -5.5, "interaction": 5.5}


def test_where_keeps_transitions_and_stands_in_the_design(ledger: Ledger) -> None:
    kinds = {key: gains(1.0, 0.5, extra={"step_kind": "ab"[key[1] % 2]}) for key in noisy()}
    ledger.ingest(rows(kinds))
    found = result(ledger, where={"step_kind": ["a"]})
    assert found["flow"]["transitions"] == 24
    assert found["design"]["scope"]["where"] == [["step_kind", ["a"]]]


# The same bytes, however the rows came.


def _folder(path: Path, name: str) -> Path:
    folder = path / name
    folder.mkdir()
    return folder


def test_order_and_splits_of_the_input_do_not_change_a_byte(tmp_path: Path) -> None:
    made = rows(noisy(steps=2), acquisitions={"generated": ("a", "b")})
    kept = without(made, trajectory_id="t001", step=0, layout=0, channel="direct", endpoint="before")
    arrangements = [
        [kept],
        [kept[::-1]],
        [[row for row in kept if int(row["trajectory_id"][1:]) % 3 == k] for k in (2, 0, 1)],
    ]
    found = set()
    for place, files in enumerate(arrangements):
        names = ("direct", "generated") if place % 2 else ("generated", "direct")
        ledger = new_ledger(_folder(tmp_path, str(place)), names=names)
        for part, rows_of_file in enumerate(files):
            ledger.ingest(rows_of_file, f"part{part}.parquet")
        found.add(run(ledger).audit.result_bytes)
    assert len(found) == 1


def test_a_rerun_and_a_recomputation_give_the_same_bytes(ledger: Ledger) -> None:
    ledger.ingest(rows(noisy()))
    first = run(ledger, weights="equal-target", target_types=["A"], where={"target": ["A"]}).audit
    again = run(ledger, weights="equal-target", target_types=["A"], where={"target": ["A"]}).audit
    assert first.result_bytes == again.result_bytes
    stored = statement(first, versions={}, time="2026-01-01T00:00:00Z")
    assert recompute(ledger.snapshot(), stored) == first.result_bytes


def test_recomputing_refuses_what_it_cannot_stand_for(ledger: Ledger) -> None:
    ledger.ingest(rows(noisy(2, 1)))
    made = statement(run(ledger).audit, versions={}, time="2026-01-01T00:00:00Z")
    with pytest.raises(TamperError, match="another head"):
        recompute(ledger.snapshot(at=3), made)

    def changed(**parts: Any) -> Statement:
        predicate = json.loads(made.to_bytes())["predicate"]
        for path, value in parts.items():
            at = predicate
            *folders, name = path.split("__")
            for folder in folders:
                at = at[folder]
            at[name] = value
        return Statement(made.subjects, made.predicate_type, predicate)

    snapshot = ledger.snapshot()
    assert recompute(snapshot, changed(audit="oracle")) is None
    assert recompute(snapshot, changed(result__design__method={"formula": "v9"})) is None
    for broken in (
        changed(result=3),
        changed(result__design=[]),
        changed(result__design__resamples="many"),
        changed(result__design__extra=1),
        changed(result__design__scope={}),
    ):
        with pytest.raises(MalformedError):
            recompute(snapshot, broken)


# Target weights.


def test_equal_target_weights_average_the_types(ledger: Ledger) -> None:
    faces = {
        (f"t{t:02d}", 0): gains(1.0 if t < 9 else -3.0, 0.0, target="A" if t < 9 else "B") for t in range(12)
    }
    ledger.ingest(rows(faces))
    found = result(ledger)
    assert found["estimates"]["gain.ref"]["value"] == 0.0
    assert found["estimates"]["gain.ref@equal-target"]["value"] == -1.0
    targets = found["tables"]["targets"]
    assert targets["column"] == "target"
    assert targets["types"] == [
        {"type": "A", "transitions": 9, "clusters": 9, "few": True},
        {"type": "B", "transitions": 3, "clusters": 3, "few": True},
    ]


def test_declared_types_stand_as_declared(ledger: Ledger) -> None:
    faces = {
        (f"t{t:02d}", 0): gains(float(t % 3), 0.0, extra={"target_type": "xyz"[t % 3]}) for t in range(12)
    }
    ledger.ingest(rows(faces))
    found = result(ledger, target_types=["z", "y"])
    assert found["estimates"]["gain.ref@equal-target"]["value"] == 1.5
    assert found["tables"]["targets"]["column"] == "target_type"
    assert found["tables"]["targets"]["unweighted"] == 4
    assert found["design"]["weights"]["target_types"] == ["y", "z"]
    empty = result(ledger, target_types=["z", "never"])["estimates"]["interaction@equal-target"]
    assert (empty["value"], empty["ci95"], empty["reason"]) == (None, None, "empty_type")


def test_too_many_types_are_not_weighed(ledger: Ledger) -> None:
    faces = {(f"t{t:02d}", 0): gains(1.0, 0.0, extra={"target_type": f"k{t}"}) for t in range(21)}
    ledger.ingest(rows(faces))
    found = result(ledger)
    assert found["estimates"]["interaction@equal-target"]["reason"] == "too_many_types"
    assert found["tables"]["targets"]["types"] is None
    assert found["verdicts"]["strict_mean_reversal"]["supported@equal-target"] is None
    assert result(ledger, target_types=["k1"])["estimates"]["gain.ref@equal-target"]["value"] == 1.0


# Stored success, repeats, label mass.


def test_auc_uses_the_trajectories_that_store_success(ledger: Ledger) -> None:
    stored = [True, True, False, None]
    faces = {
        (f"t{t}", 0): gains([3.0, 1.0, 2.0, 9.0][t], 0.0, extra={"success": stored[t]}) for t in range(4)
    }
    ledger.ingest(rows(faces))
    found = result(ledger)
    assert found["estimates"]["auc.ref"]["value"] == 0.5
    assert found["estimates"]["auc.alt"]["value"] == 0.5
    assert found["estimates"]["auc_gap"]["clusters"] == 3
    assert found["tables"]["auc"]["positives"] == 2
    assert found["tables"]["auc"]["trajectories_without_success"] == 1
    assert "own-cohort:auc.ref, auc.alt, auc_gap" in {row["id"] for row in found["limits"]}


def test_without_success_the_auc_is_absent_and_the_limits_say_so(ledger: Ledger) -> None:
    ledger.ingest(rows(noisy(3)))
    found = result(ledger)
    assert not {"auc.ref", "auc.alt", "auc_gap"} & set(found["estimates"])
    assert "absent:auc.ref, auc.alt, auc_gap" in {row["id"] for row in found["limits"]}


def test_repeats_show_how_often_a_channel_disagrees_with_itself(ledger: Ledger) -> None:
    faces = {(f"t{t:02d}", 0): gains(1.0, 1.0 if t < 9 else -1.0) for t in range(12)}
    turn = {"b": -2.0}
    made = rows(
        faces,
        acquisitions={"generated": ("a", "b")},
        shift=lambda channel, _, acquisition: turn.get(acquisition, 0.0),
    )
    ledger.ingest(made)
    found = result(ledger)["tables"]["repeatability"]
    assert set(found) == {"alt"}
    assert found["alt"]["pairwise_sign_disagreement"] == 0.75
    assert found["alt"]["sign_agreement"]["value"] == 0.25
    assert found["alt"]["acquisitions"] == 2


def test_label_mass_is_summarised_per_reading(ledger: Ledger) -> None:
    made = rows(noisy(2, 1))
    for row in made:
        row["label_mass"] = {"direct": 0.25, "generated": None}[row["channel"]]
    ledger.ingest(made)
    masses = result(ledger)["tables"]["label_mass"]
    assert masses["ref"] | {"lower_bounds": 0} == {
        "n": 8, "unavailable": 0, "lower_bounds": 0, "min": 0.25, "median": 0.25, "share_below_half": 1.0
    }  # fmt: skip
    assert masses["alt"]["unavailable"] == 8
    assert masses["alt"]["median"] is None


# Against the independent answers on the study's cohort.


@pytest.mark.skipif(not (SHARED / "cohort").is_dir(), reason="../shared/cohort is not here")
def test_the_study_cohort(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path, names=())
    from ledger import channels
    from ledger.ingest import ingest

    files = [SHARED / "cohort" / "channels" / f"{name}.toml" for name in ("direct", "generated")]
    channels.add(ledger.home, ledger.key, files)
    ingest(ledger.home, [SHARED / "cohort" / "scores.parquet"], key=ledger.key)
    found = result(ledger, resamples=10_000)
    answers = json.loads((SHARED / "cohort" / "answers.json").read_text())["asv"]
    wrong = json.loads((SHARED / "cohort" / "traps.json").read_text())["wrong"]
    interaction = found["estimates"]["interaction"]
    assert interaction["value"] == pytest.approx(answers["omega"]["mean"], abs=1e-9)
    assert interaction["ci95"] == pytest.approx(answers["omega"]["ci95"], abs=1e-9)
    extra = answers["extra"]
    left = found["tables"]["leave_one_trajectory_out"]
    assert left["min_without"] == extra["leave_one_out_without"]["min"][1]
    assert left["max_without"] == extra["leave_one_out_without"]["max"][1]
    tipping = found["tables"]["sensitivity"]["tipping_mean_of_excluded"]
    for name, value in extra["tipping_mean_of_excluded"].items():
        assert tipping[name] == pytest.approx(value, abs=5e-4)
    assert found["tables"]["diagnostics"]["design_effect"] == pytest.approx(extra["design_effect"], abs=5e-4)
    counts = {t["type"]: t["transitions"] for t in found["tables"]["targets"]["types"]}
    assert counts == answers["target_counts"]
    assert found["verdicts"]["location_agrees"] is False
    assert found["verdicts"]["layouts"] == {"points_agree": True, "intervals_agree": True}
    printed = json.dumps(found["estimates"]["interaction"])
    for trap in (wrong["mean_of_trajectory_means"], *wrong["row_level_ci95"]):
        assert str(trap)[:12] not in printed
