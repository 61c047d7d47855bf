"""Transitions without a face: the reason and the first cell of each, the flow, and what is told of none."""

from __future__ import annotations

from audits.faces import assemble
from audits.flow import Cell
from ledger.refusals import Fault
from ledger.snapshot import LEVEL, REVOKED, Arm, Level, ProvenanceCount, Scope
from tests.audits.face_ranges import (
    ALT,
    NAMES,
    REF,
    FakeSelection,
    entry,
    face,
    faces,
    first,
    reasons,
    refusal,
    side,
)


class TestReasons:
    def test_one_missing_score_removes_exactly_its_transition_and_names_the_cell(self):
        rows = face(step=5) + face(step=6)
        (gone,) = [
            r
            for r in rows
            if r["step"] == 5
            and r["arm"] == 0
            and r["endpoint"] == "after"
            and r["layout"] == 1
            and r["candidate"] == "B"
        ]
        found = faces([r for r in rows if r is not gone])
        assert found.step.tolist() == [6]
        assert reasons(found) == {"absent": 1}
        assert first(found) == "t0/step05: after, direct, layout 1, candidate B absent"

    def test_a_duplicate_cannot_hide_a_missing_cell(self):
        rows = face()
        rows[1] = rows[0] | {"energy": 9.0}
        found = faces(rows)
        assert reasons(found) == {"duplicated": 1}
        assert first(found) == "t0/step00: before, direct, layout 0, candidate A duplicated"

    def test_the_first_fault_is_by_endpoint_before_arm_before_layout(self):
        def without(*cells):
            return [r for r in face() if (r["endpoint"], r["arm"], r["layout"], r["candidate"]) not in cells]

        after_ref, before_alt = ("after", 0, 0, "A"), ("before", 1, 1, "B")
        assert first(faces(without(after_ref, before_alt))).startswith(
            "t0/step00: before, shown, layout 1, candidate B"
        )
        late, early = ("before", 1, 1, "A"), ("before", 1, 0, "B")
        assert "layout 0, candidate B" in first(faces(without(late, early)))

    def test_a_whole_side_missing_is_its_first_cell(self):
        assert first(faces(side())) == "t0/step00: before, shown, layout 0, candidate A absent"

    def test_acquisitions_are_named_where_an_arm_has_several(self):
        found = faces(face(), named=(("main",), ("main", "second")))
        assert first(found) == "t0/step00: before, shown, acquisition second, layout 0, candidate A absent"

    def test_an_entry_that_broke_a_rule_is_a_fault_of_its_cell(self):
        rows = face()
        rows[-1]["rule"] = "view-bound"
        found = faces(rows)
        assert reasons(found) == {"provenance:view-bound": 1}
        assert first(found) == "t0/step00: after, shown, layout 1, candidate B breaks view-bound"

    def test_what_is_left_of_a_revoked_arm_is_no_reason_while_others_are_whole(self):
        revoked = side(arm=1, acquisition_id="bad", rule=REVOKED)
        assert len(faces(face() + revoked)) == 1
        found = faces(side() + revoked)
        assert reasons(found) == {"provenance:acquisition-revoked": 1}
        found = faces(side() + side(arm=1)[:-1] + revoked)
        assert reasons(found) == {"absent": 1}

    def test_an_arm_whose_every_acquisition_was_revoked_completes_nothing(self):
        found = faces(side() + side(arm=1, rule=REVOKED), named=(("main",), ()))
        assert len(found) == 0
        assert reasons(found) == {"provenance:acquisition-revoked": 1}
        assert found.margins[1].shape == (0, 2, 2, 0)
        assert "1 times provenance:acquisition-revoked" in str(found.flow.shortfall)

    def test_candidates_that_differ_between_whole_sides(self):
        found = faces(side(candidates="AB") + side(candidates="ABC", arm=1))
        assert reasons(found) == {"candidates-differ": 1}
        assert first(found) == "t0/step00: candidates differ between sides"

    def test_targets_that_differ_or_are_no_candidate(self):
        assert reasons(faces(side() + side(arm=1, target="B"))) == {"targets-differ": 1}
        assert reasons(faces(face(target="Z"))) == {"target-no-candidate": 1}

    def test_no_competitor(self):
        assert reasons(faces(face(candidates="A"))) == {"single-candidate": 1}

    def test_a_layout_that_the_channel_does_not_have(self):
        rows = [*face(), entry(layout=2), entry(step=1, layout=-1)]
        assert reasons(faces(rows)) == {"layout-unknown": 1, "absent": 1}

    def test_several_donors_for_one_transition(self):
        scope = Scope("transport", (REF, Arm(REF.channel, "donor")))
        rows = side() + side(arm=1, view_source="donor:x")
        assert len(faces(rows, scope=scope)) == 1
        for row in rows[-2:]:
            row["view_source"] = "donor:y"
        found = faces(rows, scope=scope)
        assert reasons(found) == {"several-donors": 1}
        assert first(found) == "t0/step00: several donors for one transition"

    def test_the_face_contract_has_the_last_word(self):
        rows = side(state_hash="s") + side(arm=1, state_hash="s")
        assert len(faces(rows)) == 1
        changed = [r | {"state_hash": "other"} if r["arm"] and r["endpoint"] == "after" else r for r in rows]
        found = faces(changed + face(step=1))
        assert reasons(found) == {"face:state-not-frozen": 1}
        assert found.step.tolist() == [1]
        mixed = faces(side(candidates_hash="x") + side(arm=1, candidates_hash="y"))
        assert first(mixed) == "t0/step00: refused by the face contract (candidates-not-frozen)"

    def test_three_examples_and_an_exact_count(self):
        found = faces([r for step in range(7) for r in face(step=step)[1:]] + face(step=9))
        (excluded,) = found.flow.excluded
        assert (excluded.count, [e.step for e in excluded.examples]) == (7, [0, 1, 2])

    def test_exclusions_stand_by_count_then_reason(self):
        rows = [r for step in range(2) for r in face(step=step)[1:]]
        found = faces(rows + face(step=2, target="Z") + face(step=3, candidates="A"))
        assert list(reasons(found)) == ["absent", "single-candidate", "target-no-candidate"]


class TestRefusedSides:
    def test_a_refused_side_blames_the_cell_that_its_contract_blamed(self):
        fault = Fault("after", 1, "B", "failed:parse_error")
        found = faces(side(arm=1), [refusal(fault)])
        assert reasons(found) == {"failed:parse_error": 1}
        assert first(found) == "t0/step00: after, direct, layout 1, candidate B failed (parse_error)"

    def test_its_first_fault_competes_with_those_of_other_sides(self):
        refused = [refusal(Fault("after", 0, "A", "absent"))]
        rows = [r for r in side(arm=1) if (r["endpoint"], r["layout"]) != ("before", 1)]
        assert first(faces(rows, refused)) == "t0/step00: before, shown, layout 1, candidate A absent"

    def test_a_side_refused_for_something_else_than_a_cell(self):
        found = faces(side(arm=1), [refusal(reason="two-targets")])
        assert reasons(found) == {"refused:two-targets": 1}
        assert first(found) == "t0/step00: before, direct in a refused side (two-targets)"

    def test_a_transition_that_was_only_ever_refused_is_counted(self):
        found = faces(face(), [refusal(Fault("before", 0, "A", "absent"), trajectory_id="t9", step=4)])
        assert (found.flow.transitions, found.flow.complete) == (2, 1)
        assert first(found) == "t9/step04: before, direct, layout 0, candidate A absent"

    def test_one_of_a_revoked_acquisition_is_as_gone_as_entries_are(self):
        gone = refusal(Fault("before", 0, "A", "absent"), acquisition_id="bad")
        assert len(faces(face(), [gone])) == 1
        assert reasons(faces(side(arm=1), [gone])) == {"provenance:acquisition-revoked": 1}

    def test_faults_of_both_endpoints_in_any_order(self):
        faults = (
            Fault("after", 0, "A", "absent"),
            Fault("before", 1, "B", "duplicated"),
            Fault("before", 1, "A", "unknown"),
        )
        assert (
            first(faces(side(arm=1), [refusal(*faults)]))
            == "t0/step00: before, direct, layout 1, candidate A unknown"
        )


class TestFlow:
    def test_which_acquisitions_are_lacking_and_which_alone(self):
        named = (("a",), ("x", "y"))
        rows = (
            face(acquisition_id="a")[:8] + side(arm=1, acquisition_id="x") + side(arm=1, acquisition_id="y")
        )
        rows += side(step=1, acquisition_id="a") + side(step=1, arm=1, acquisition_id="x")
        rows += side(step=2, acquisition_id="a")
        found = faces(rows, named=named)
        assert [(a.arm, a.acquisition, a.lacking, a.alone) for a in found.flow.by_acquisition] == [
            (0, "a", 0, 0),
            (1, "x", 1, 0),
            (1, "y", 2, 1),
        ]

    def test_corners_that_nobody_scored_have_no_transition(self):
        refused = [
            refusal(Fault("after", 0, "A", "absent"), channel=ALT.channel.fingerprint, step=step)
            for step in range(2)
        ]
        found = faces(side() + side(step=1), refused)
        assert found.flow.corners == ((2, 2), (2, 0))

    def test_the_flow_of_a_record_names_arms_as_it_is_told(self):
        flow = faces(face()[1:] + face(step=1)).flow.as_json(("ref", "alt"))
        assert flow["excluded"] == [
            {
                "reason": "absent",
                "transitions": 1,
                "examples": ["t0/step00: before, ref, layout 0, candidate A absent"],
            }
        ]
        assert flow["by_acquisition"][0] == {
            "arm": "ref",
            "acquisition": "main",
            "lacking": 1,
            "removed_alone": 1,
        }
        assert (flow["transitions"], flow["complete"], flow["trajectories"]) == (2, 1, 1)

    def test_a_cell_is_said_as_far_as_it_is_known(self):
        assert Cell("after", 1).text(NAMES) == "after, shown"


class TestShortfall:
    def test_none_while_anything_is_complete(self):
        assert faces(face()).flow.shortfall is None

    def test_nothing_in_scope(self):
        empty = assemble(FakeSelection([], named=((), ())))
        assert len(empty) == 0
        assert empty.flow.transitions == 0
        assert empty.flow.shortfall.code == "no-scores"
        assert empty.flow.shortfall.exit_code == 5

    def test_an_arm_without_scores(self):
        error = faces(side(), named=(("main",), ())).flow.shortfall
        assert error.code == "no-scores"
        assert "channel shown" in str(error)

    def test_a_level_that_nothing_reaches_says_how_many_reach_which(self):
        count = ProvenanceCount(entries_in=16)
        count.entries_out[LEVEL] = 16
        count.levels[Level.DECLARED] = 16
        count.absent["request_hash"] = 16
        error = faces(face(rule=LEVEL), provenance=count).flow.shortfall
        assert error.code == "level-not-reached"
        assert "declared 16, bound 0" in str(error)
        assert "request_hash 16" in str(error)
        assert "--require declared" in str(error)

    def test_a_level_that_too_few_entries_reach_to_complete_anything(self):
        count = ProvenanceCount(entries_in=16)
        count.entries_out[LEVEL] = 1
        count.levels |= {Level.DECLARED: 1, Level.BOUND: 15}
        rows = face()
        rows[-1]["rule"] = LEVEL
        error = faces(rows, provenance=count).flow.shortfall
        assert error.code == "level-not-reached"
        assert "declared 1, bound 15" in str(error)

    def test_one_acquisition_that_empties_the_cohort_on_its_own(self):
        named = (("main",), ("main", "second", "third"))
        rows = [
            r for step in range(3) for r in face(step=step) + side(arm=1, step=step, acquisition_id="third")
        ]
        error = faces(rows, named=named).flow.shortfall
        assert error.code == "acquisition-empties"
        assert "acquisition second of channel shown alone" in str(error)
        assert "--acquisition shown@main --acquisition shown@third" in str(error)

    def test_no_single_one_is_named_where_several_are_missing(self):
        rows = [r for step in range(2) for r in face(step=step)]
        error = faces(rows, named=(("main",), ("main", "second", "third"))).flow.shortfall
        assert error.code == "empty-cohort"

    def test_otherwise_the_commonest_reason(self):
        error = faces(face()[1:]).flow.shortfall
        assert error.code == "empty-cohort"
        assert "1 times absent" in str(error)
        assert "before, direct, layout 0, candidate A absent" in str(error)
