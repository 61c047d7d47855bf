"""Faces from trajectory ranges: which transitions are complete, in which order, and their margins."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from audits.faces import UNKNOWN, assemble
from contracts.errors import CannotAnswerError
from ledger.snapshot import REVOKED, Arm, Scope
from tests.audits.face_ranges import NAMES, REF, FakeSelection, channel, face, faces, one_range, refusal, side


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
