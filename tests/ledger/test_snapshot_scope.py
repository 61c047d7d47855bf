"""What a scope selects of a snapshot: entries, refused sides, what was revoked, provenance."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from audits.faces import assemble
from contracts.errors import UsageError
from contracts.refusals import CellFault
from ledger.revocations import revoke_acquisition
from ledger.scope import Arm, Level, Scope
from ledger.snapshot import RULES
from tests.ledger.unjudged_homes import (
    ALT,
    DIRECT,
    REF,
    SCOPE,
    SHOWN,
    face,
    ledger,
    refused_side,
    same,
    side,
    template,
)

__all__ = ["ledger", "template"]  # fixtures


class TestScope:
    def test_acquisitions_are_those_with_an_entry_or_a_refused_side(self, ledger):
        ledger.enter(face() + side(SHOWN, acquisition="b"))
        ledger.refuse(refused_side(CellFault("before", 0, "A", "absent"), acquisition="a", step=3))
        found = ledger.snapshot().select(SCOPE)
        assert found.acquisitions == {REF: ("a", "main"), ALT: ("b", "main")}
        assert list(found.acquisitions) == [REF, ALT]

    def test_named_acquisitions_for_all_channels_or_for_one(self, ledger):
        ledger.enter(face() + face(acquisition="b") + side(SHOWN, acquisition="c"))

        def named(*acquisitions):
            return list(
                ledger.snapshot().select(replace(SCOPE, acquisitions=acquisitions)).acquisitions.values()
            )

        assert named((None, "b")) == [("b",), ("b",)]
        assert named((SHOWN.fingerprint, "c")) == [("b", "main"), ("c",)]
        assert named((None, "b"), (SHOWN.fingerprint, "c")) == [("b",), ("b", "c")]
        with pytest.raises(UsageError, match=r"unknown acquisition nobody; expected one of b, main, c"):
            named((None, "nobody"))

    def test_view_sources_make_arms_of_one_channel(self, ledger):
        ledger.enter(side(SHOWN), side(SHOWN, view_source="before", view_hash="v", acquisition="frozen"))
        scope = Scope("transport", (ALT, Arm(SHOWN, "before")))
        found = ledger.snapshot().select(scope)
        assert list(found.acquisitions.values()) == [("main",), ("frozen",)]
        assert len(assemble(found)) == 1

    @pytest.mark.parametrize(
        ("where", "steps"),
        [
            ({"step_kind": ("search",)}, [1]),
            ({"step_kind": ("search", "reason")}, [0, 1]),
            ({"success": ("true",)}, [1]),
            ({"success": ("false", "true")}, [0, 1]),
            ({"step": ("0", "2")}, [0, 2]),
            ({"target": ("A",), "step": ("2",)}, [2]),
            ({"target": ("Z",)}, []),
            ({"trajectory_id": ("t0",)}, [0, 1, 2]),
            ({"trajectory_id": ("t", "u")}, []),
        ],
    )
    def test_where_keeps_the_entries_with_one_of_the_values(self, ledger, where, steps):
        rows = face(step=0, step_kind="reason", success=False) + face(
            step=1, step_kind="search", success=True
        )
        ledger.enter(rows + face(step=2))
        found = ledger.faces(replace(SCOPE, where=tuple(where.items())))
        assert found.step.tolist() == steps
        assert found.flow.transitions == len(steps)

    @pytest.mark.parametrize("where", [("step", ("one",)), ("success", ("1",)), ("step", ("-1",))])
    def test_values_that_no_entry_could_have(self, ledger, where):
        ledger.enter(face())
        with pytest.raises(UsageError, match=f"--where {where[0]}"):
            ledger.faces(replace(SCOPE, where=(where,)))

    def test_columns_that_are_not_for_filtering(self):
        with pytest.raises(UsageError, match="energy"):
            replace(SCOPE, where=(("energy", ("0",)),))

    def test_where_comes_before_acquisitions(self, ledger):
        ledger.enter(face(step_kind="reason") + side(SHOWN, step=1, acquisition="other", step_kind="search"))
        scope = replace(SCOPE, where=(("step_kind", ("reason",)),))
        assert ledger.snapshot().select(scope).acquisitions == {REF: ("main",), ALT: ("main",)}
        assert len(ledger.faces(scope)) == 1
        assert len(ledger.faces()) == 0

    def test_segments_that_give_nothing_are_no_subjects(self, ledger):
        ledger.enter(face(), side(DIRECT, "t1", acquisition="other"), face("t2", step_kind="search"))
        scope = replace(SCOPE, acquisitions=((None, "main"),), where=(("trajectory_id", ("t0",)),))
        snapshot = ledger.snapshot()
        assert snapshot.select(scope).used_segments == snapshot.segments[:1]
        assert snapshot.select(SCOPE).used_segments == snapshot.segments


class TestRefusedSides:
    def test_they_count_by_the_same_attributes(self, ledger):
        ledger.enter(face(step_kind="reason"))
        ledger.refuse(
            refused_side(CellFault("before", 0, "A", "failed:timeout"), step=1, step_kind="reason"),
            refused_side(CellFault("before", 0, "A", "absent"), step=2, step_kind="search"),
            refused_side(CellFault("before", 0, "A", "absent"), step=3, view_source="after"),
        )
        found = ledger.faces(replace(SCOPE, where=(("step_kind", ("reason",)),)))
        assert found.flow.transitions == 2
        assert [e.reason for e in found.flow.excluded] == ["failed:timeout"]
        assert ledger.faces().flow.transitions == 3

    def test_one_that_came_whole_later_is_complete(self, ledger):
        ledger.enter(side(SHOWN))
        ledger.refuse(refused_side(CellFault("before", 0, "A", "absent")))
        assert len(ledger.faces()) == 0
        ledger.enter(side(DIRECT))
        found = ledger.faces()
        assert (len(found), found.flow.transitions) == (1, 1)

    def test_the_latest_refusal_says_why(self, ledger):
        ledger.enter(side(SHOWN))
        ledger.refuse(refused_side(CellFault("before", 0, "A", "absent")))
        ledger.refuse(refused_side(CellFault("after", 1, "C", "failed:refused")))
        assert [e.reason for e in ledger.faces().flow.excluded] == ["failed:refused"]

    def test_an_entry_of_another_acquisition_does_not_replace_it(self, ledger):
        ledger.enter(face())
        ledger.refuse(refused_side(CellFault("before", 0, "A", "absent"), acquisition="second"))
        found = ledger.faces()
        assert len(found) == 0
        assert found.flow.shortfall.code == "acquisition-empties"

    def test_those_of_other_acquisitions_are_outside(self, ledger):
        ledger.enter(face() + side(SHOWN, acquisition="b"))
        ledger.refuse(refused_side(CellFault("before", 0, "A", "absent"), acquisition="b", step=1))
        assert ledger.faces(replace(SCOPE, acquisitions=((None, "main"),))).flow.transitions == 1
        assert ledger.faces(replace(SCOPE, acquisitions=((None, "b"),))).flow.transitions == 2

    def test_trajectories_without_any_entry_are_in_some_range(self, ledger):
        ledger.enter(face("m"))
        ledger.refuse(
            *(refused_side(CellFault("before", 0, "A", "absent"), trajectory=t) for t in ("a", "z", "é"))
        )
        assert ledger.faces().flow.transitions == 4
        only = replace(SCOPE, where=(("trajectory_id", ("z",)),))
        assert ledger.faces(only).flow.transitions == 1


class TestRevocation:
    def test_entries_are_left_out_and_counted(self, ledger):
        before = ledger.enter(face() + side(SHOWN, acquisition="bad", state_hash="wrong"))
        ledger.refuse(refused_side(CellFault("before", 0, "A", "absent"), acquisition="bad", step=5))
        assert len(ledger.faces()) == 0
        revoke_acquisition(ledger.home, ledger.key, "bad", "wrong prompt")
        found = ledger.snapshot().select(SCOPE)
        assert found.acquisitions == {REF: ("main",), ALT: ("main",)}
        faces = assemble(found)
        assert (len(faces), faces.flow.transitions) == (1, 2)
        assert [e.reason for e in faces.flow.excluded] == ["provenance:acquisition-revoked"]
        assert found.provenance.entries_in == 36
        assert found.provenance.entries_out["acquisition-revoked"] == 12
        assert found.provenance.entries_out["state-frozen"] == 0
        assert found.provenance.refused_sides_revoked == 1
        assert ledger.snapshot(at=before).revoked == frozenset()

    def test_naming_it_does_not_bring_it_back(self, ledger):
        ledger.enter(face() + side(SHOWN, acquisition="bad"))
        revoke_acquisition(ledger.home, ledger.key, "bad", "wrong prompt")
        found = ledger.faces(replace(SCOPE, acquisitions=((SHOWN.fingerprint, "bad"),)))
        assert len(found) == 0
        assert found.acquisitions == (("main",), ())


class TestProvenance:
    def test_broken_entries_never_reach_a_range_and_keep_their_place(self, ledger):
        ledger.enter(face() + face(step=1), side(SHOWN, "t1", candidates_hash="other") + side(DIRECT, "t1"))
        found = ledger.snapshot().select(SCOPE)
        parts = list(found.ranges())
        assert sum(part.entries.num_rows for part in parts) == 48
        assert [RULES[rule] for part in parts for rule in part.rule.tolist()].count("candidates-frozen") == 8
        out = pa.concat_tables([part.out.entries for part in parts])
        assert out.num_rows == 24
        assert set(out["trajectory_id"].to_pylist()) == {"t1"}
        assert found.provenance.entries_out["candidates-frozen"] == 24
        assert found.provenance.transitions_out["candidates-frozen"] == 1

    def test_counts_start_anew_with_every_pass(self, ledger):
        ledger.enter(face())
        found = ledger.snapshot().select(SCOPE)
        assert same(assemble(found), assemble(found))
        assert found.provenance.entries_in == 24

    def test_entries_without_digests_need_a_lower_level(self, ledger):
        ledger.enter([r | {"request_hash": None} for r in face()])
        found = ledger.faces()
        assert found.flow.shortfall.code == "level-not-reached"
        assert "--require declared" in str(found.flow.shortfall)
        assert len(ledger.faces(replace(SCOPE, require=Level.DECLARED))) == 1

    def test_a_donor_in_another_segment_outside_every_filter(self, ledger):
        donor = side(SHOWN, "d", acquisition="long-ago", view_hash="theirs", step_kind="reason")
        shown = side(
            SHOWN, "t0", view_source="donor:d", acquisition="control", view_hash="theirs", step_kind="search"
        )
        wrong = [
            row | {"view_hash": "not theirs"} if row["endpoint"] == "after" else row
            for row in side(
                SHOWN,
                "t1",
                view_source="donor:d",
                acquisition="control",
                view_hash="theirs",
                step_kind="search",
            )
        ]
        frozen = side(SHOWN, "d", view_source="before", acquisition="frozen", view_hash="before")
        ledger.enter(donor + frozen, shown + side(DIRECT) + side(DIRECT, "t1"), wrong)
        scope = Scope("transport", (REF, Arm(SHOWN, "donor")))
        found = ledger.faces(scope)
        assert found.trajectories == ("t0",)
        assert [e.reason for e in found.flow.excluded] == ["provenance:view-bound"]
        narrowed = replace(scope, where=(("trajectory_id", ("t1",)),))
        assert [e.reason for e in ledger.faces(narrowed).flow.excluded] == ["provenance:view-bound"]
        revoke_acquisition(ledger.home, ledger.key, "long-ago", "lost")
        assert ledger.faces(scope).trajectories == ("t0", "t1")
