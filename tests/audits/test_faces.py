"""Faces from trajectory ranges: which transitions are complete, why the others are not, and their margins."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from audits.faces import UNKNOWN, Faces, assemble
from audits.flow import Cell
from contracts.channel import Channel
from contracts.digest import blake3_digest, pack
from contracts.errors import CannotAnswerError
from ledger.range_tasks import TrajectoryRange
from ledger.ranges import SCHEMA
from ledger.refusals import Fault, RefusedRow
from ledger.snapshot import LEVEL, REVOKED, RULES, Arm, Level, ProvenanceCount, Readings, Scope

NAMES = ("direct", "shown")
TEXT = ("trajectory_id", "endpoint", "view_source", "acquisition_id", "candidate", "target", "target_type")


def channel(name: str, layouts: int = 2) -> Channel:
    spec = {"view": {"kind": "quote"}, "presentation": {"layouts": layouts}, "readout": {"kind": "label"}}
    return Channel(name, 1, spec, blake3_digest(name.encode()))


REF, ALT = (Arm(channel(name)) for name in NAMES)


@dataclass
class FakeSelection:
    """Ranges in memory, with what a selection says about them."""

    parts: Sequence[TrajectoryRange]
    named: tuple[tuple[str, ...], ...] = (("main",), ("main",))
    scope: Scope = field(default_factory=lambda: Scope("transport", (REF, ALT)))
    provenance: ProvenanceCount = field(default_factory=ProvenanceCount)

    @property
    def acquisitions(self):
        return dict(zip(self.scope.arms, self.named, strict=True))

    def map(self, work):
        return map(work, self.parts)


def entry(**given):
    row = {
        "trajectory_id": "t0", "step": 0, "endpoint": "before", "view_source": "own", "layout": 0,
        "acquisition_id": "main", "candidate": "A", "energy": 0.0, "target": "A", "target_type": None,
        "success": None, "arm": 0, "rule": None, "label_mass": None, "position": None, "state_hash": None,
        "candidates_hash": "c", "request_hash": None, "view_hash": None,
    }  # fmt: skip
    return row | given


def side(*, candidates="AB", layouts=2, **given):
    """Every cell of a side, with energies that differ everywhere."""
    return [
        entry(
            endpoint=endpoint,
            layout=layout,
            candidate=candidate,
            energy=0.25 * (2 * e + layout) + 0.5 * c + 0.125 * given.get("arm", 0),
            **given,
        )
        for e, endpoint in enumerate(("before", "after"))
        for layout in range(layouts)
        for c, candidate in enumerate(candidates)
    ]


def face(**given):
    return side(**given) + side(arm=1, **given)


def one_range(rows, refused: Sequence[RefusedRow] = ()) -> TrajectoryRange:
    """A range of entries; those with a `rule` broke it."""
    rows = sorted(rows, key=lambda row: (row["trajectory_id"].encode(), row["step"]))
    kept = [row for row in rows if row["rule"] is None]
    out = [row for row in rows if row["rule"] is not None]
    readings = Readings.of(_table(out))
    rule = np.array([RULES.index(row["rule"]) for row in out], np.int8)[readings.first]
    return TrajectoryRange(Readings.of(_table(kept)), readings, rule, tuple(refused))


def _table(rows) -> pa.Table:
    columns = []
    for column in SCHEMA:
        values = [row.get(column.name) for row in rows]
        if pa.types.is_fixed_size_binary(column.type):
            values = [None if v is None else pack(blake3_digest(v.encode())) for v in values]
        if pa.types.is_dictionary(column.type):
            columns.append(pa.array(values, column.type.value_type).dictionary_encode())
        else:
            columns.append(pa.array(values, column.type))
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def refusal(*faults: Fault, reason="cell-missing", **given) -> RefusedRow:
    return RefusedRow(
        **{
            "event": 1, "ordinal": 0, "trajectory_id": "t0", "step": 0, "view_source": "own",
            "channel": REF.channel.fingerprint, "acquisition_id": "main", "reason": reason, "faults": faults,
            "rows": 1, "digest": blake3_digest(b""), "step_kind": None, "target": "A", "target_type": None,
            "success": None, "absent": 1, "duplicated": 0, "failed": 0, "unknown": 0,
        }
        | given
    )  # fmt: skip


def faces(rows, refused: Sequence[RefusedRow] = (), **given) -> Faces:
    return assemble(FakeSelection([one_range(rows, refused)], **given))


def reasons(found: Faces) -> dict[str, int]:
    return {e.reason: e.count for e in found.flow.excluded}


def first(found: Faces) -> str:
    return found.flow.excluded[0].examples[0].text(NAMES)


class TestMargins:
    def test_a_margin_is_the_target_against_the_sum_of_its_competitors(self):
        rows = [
            r | {"energy": {"A": 2.0, "B": 0.0, "C": 0.0, "D": 0.0}[r["candidate"]]}
            for r in face(candidates="ABCD")
        ]
        assert faces(rows).margins[0][0, 0, 0, 0] == round((2 - math.log(3)) * 2**40)

    def test_every_cell_stands_at_its_endpoint_layout_and_acquisition(self):
        rows = face() + side(arm=1, acquisition_id="again")
        for r in rows:
            r["energy"] = (
                (
                    100 * r["arm"]
                    + 50 * (r["acquisition_id"] == "again")
                    + 10 * (r["endpoint"] == "after")
                    + r["layout"]
                )
                if r["candidate"] == "A"
                else 0.0
            )
        found = faces(rows, named=(("main",), ("again", "main")))
        assert found.acquisitions == (("main",), ("again", "main"))
        assert (found.margins[0] >> 40).tolist() == [[[[0], [1]], [[10], [11]]]]
        assert (found.margins[1] >> 40).tolist() == [[[[150, 100], [151, 101]], [[160, 110], [161, 111]]]]

    def test_transitions_may_have_different_numbers_of_candidates(self):
        found = faces(face(candidates="ABC", target="C") + face(step=1, candidates="BA", target="B"))
        assert len(found) == 2
        assert found.margins[0].shape == (2, 2, 2, 1)
        assert found.margins[0][1, 0, 0, 0] == round(-0.5 * 2**40)  # B stands first in side(): A is 0.5 above
        assert [found.target.names[c] for c in found.target.codes] == ["C", "B"]


class TestShape:
    def test_clusters_ascend_by_bytes_and_rows_by_trajectory_and_step(self):
        rows = face(trajectory_id="é") + face(trajectory_id="z", step=11) + face(trajectory_id="z", step=2)
        found = faces(rows + face(trajectory_id="Z")[1:])
        assert found.trajectories == ("z", "é")
        assert found.cluster.tolist() == [0, 0, 1]
        assert found.step.tolist() == [2, 11, 0]
        assert found.flow.trajectories == 2
        assert found.flow.transitions == 4
        assert found.layouts == 2

    @pytest.mark.parametrize("cuts", [(1,), (2,), (1, 2, 3), ()])
    def test_however_the_ranges_are_cut(self, cuts):
        per_trajectory = [face(trajectory_id=f"t{i}", target="AB"[i % 2], success=i != 2) for i in range(4)]
        per_trajectory[1].pop(3)
        bounds = [0, *cuts, 4]
        parts = [
            one_range([row for rows in per_trajectory[low:high] for row in rows])
            for low, high in itertools.pairwise(bounds)
        ]
        cut, whole = assemble(FakeSelection(parts)), faces([row for rows in per_trajectory for row in rows])
        assert cut.flow == whole.flow
        assert cut.trajectories == whole.trajectories == ("t0", "t2", "t3")
        assert cut.target.names == whole.target.names
        for name in ("cluster", "step", "success"):
            assert np.array_equal(getattr(cut, name), getattr(whole, name))
        for ours, theirs in zip(cut.margins, whole.margins, strict=True):
            assert np.array_equal(ours, theirs)

    def test_the_order_of_entries_within_a_transition_decides_nothing(self):
        rows = face(candidates="ABC") + face(step=1)[:-1]
        shuffled = [rows[i] for i in np.random.default_rng(3).permutation(len(rows))]
        assert faces(shuffled).flow == faces(rows).flow
        assert np.array_equal(faces(shuffled).margins[1], faces(rows).margins[1])

    def test_channels_with_other_layouts_cannot_be_compared(self):
        scope = Scope("transport", (REF, Arm(channel("more", 4))))
        with pytest.raises(CannotAnswerError, match=r"direct 2, more 4"):
            faces(face(), scope=scope)


class TestAttributes:
    def test_target_types_where_any_entry_gives_one(self):
        assert faces(face()).target_type is None
        found = faces(face(target_type="easy") + face(step=1))
        assert [found.target_type.names[c] for c in found.target_type.codes] == ["easy", "A"]

    def test_contradictory_target_types_are_set_aside(self):
        found = faces(side(target_type="x") + side(arm=1, target_type="y") + face(step=1, target_type="x"))
        assert [found.target_type.names[c] for c in found.target_type.codes] == ["A", "x"]
        (aside,) = found.flow.set_aside
        assert (aside.reason, aside.count) == ("target-types-differ", 1)
        assert aside.examples[0].text(NAMES) == "t0/step00: target types differ between entries"

    def test_success_is_one_per_trajectory(self):
        rows = face(success=True) + face(step=1) + face(trajectory_id="t1", success=False)
        rows += face(trajectory_id="t2") + face(trajectory_id="t3", success=True)
        rows += face(trajectory_id="t3", step=1, success=False)
        found = faces(rows)
        assert found.success.tolist() == [1, 1, 0, UNKNOWN, UNKNOWN, UNKNOWN]
        (aside,) = found.flow.set_aside
        assert (aside.reason, aside.count) == ("successes-differ", 1)
        assert aside.examples[0].text(NAMES) == "t3: success is stored as true and as false"


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


def complete_slowly(rows, named) -> list[tuple[str, int]]:
    """The complete transitions by looking at one after the other."""
    found = []
    for transition in sorted({(r["trajectory_id"], r["step"]) for r in rows}):
        mine = [r for r in rows if (r["trajectory_id"], r["step"]) == transition]
        kept = [r for r in mine if r["rule"] is None]
        counted = [r for r in mine if r["rule"] != REVOKED]
        candidates = {r["candidate"] for r in counted}
        wanted = sorted(
            (arm, acquisition, endpoint, layout, candidate)
            for arm, acquisitions in enumerate(named)
            for acquisition in acquisitions
            for endpoint in ("before", "after")
            for layout in range(2)
            for candidate in candidates
        )
        given_cells = sorted(
            (r["arm"], r["acquisition_id"], r["endpoint"], r["layout"], r["candidate"]) for r in kept
        )
        targets = {r["target"] for r in kept}
        sound = len(targets) == 1 and targets <= candidates and len(candidates) > 1
        sound = sound and len(kept) == len(counted)  # what breaks a rule spoils its cell, filled or not
        if wanted == given_cells and sound and all(named):
            found.append(transition)
    return found


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["drop", "twice", "break", "layout", "candidate", "target"]), st.integers(0, 10**6)
    ),
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(CHANGES, st.integers(0, 2))
@example([("twice", 0), ("break", 0)], 0)
def test_completeness_against_looking_at_every_transition(changes, repeats):
    named = (("main",), ("main", *(f"again{i}" for i in range(repeats))))
    rows = [
        row
        for trajectory in "pq"
        for step in range(2)
        for arm, names in enumerate(named)
        for name in names
        for row in side(trajectory_id=trajectory, step=step, arm=arm, acquisition_id=name)
    ]
    for change, number in changes:
        at = number % len(rows)
        if change == "drop":
            rows.pop(at)
        elif change == "twice":
            rows.append(dict(rows[at]))
        else:
            rows[at] |= {
                "break": {"rule": "state-frozen"}, "layout": {"layout": 1}, "candidate": {"candidate": "B"},
                "target": {"target": "B"},
            }[change]  # fmt: skip
    found = faces(rows, named=named)
    mine = [(found.trajectories[c], int(s)) for c, s in zip(found.cluster, found.step, strict=True)]
    assert mine == complete_slowly(rows, named)
    assert found.flow.transitions == found.flow.complete + sum(e.count for e in found.flow.excluded)


class TestRoom:
    NAMED = tuple(f"run-{number}" for number in range(9))

    def rows(self, steps: int):
        """Each step scored once by every run, or by one of them."""
        runs = [self.NAMED if steps == 1 else (self.NAMED[step],) for step in range(steps)]
        return [
            row
            for step, names in enumerate(runs)
            for name in names
            for row in face(step=step, acquisition_id=name)
        ]

    def test_acquisitions_that_few_transitions_have_are_refused_before_their_cells_are_made(
        self, monkeypatch
    ):
        monkeypatch.setattr("audits.cells._MOST_CELLS", 100)
        with pytest.raises(CannotAnswerError) as caught:
            faces(self.rows(9), named=(self.NAMED, self.NAMED))
        assert caught.value.code == "too-many-acquisitions"
        assert "9 acquisitions of direct" in str(caught.value)

    def test_refused_sides_alone_do_not_speak_of_acquisitions(self, monkeypatch):
        monkeypatch.setattr("audits.cells._MOST_CELLS", 0)
        found = faces([], [refusal(step=step) for step in range(9)])
        assert found.flow.transitions == 9

    def test_as_many_that_all_transitions_have_are_none_too_many(self, monkeypatch):
        monkeypatch.setattr("audits.cells._MOST_CELLS", 100)
        assert faces(self.rows(1), named=(self.NAMED, self.NAMED)).flow.complete == 1
