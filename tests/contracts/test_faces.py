"""A transition is a face only with every arm and acquisition whole, over the same frozen inputs."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandera.config import config_context

from contracts.faces import FaceVerdict, judge_faces

Row = dict[str, Any]
SCHEMA = {
    "trajectory_id": pl.String,
    "step": pl.Int32,
    "arm": pl.Int8,
    "acquisition_id": pl.String,
    "complete": pl.Boolean,
    "state_before": pl.Binary,
    "state_after": pl.Binary,
    "candidates": pl.Binary,
}


def sides(
    trajectory: str, step: int = 0, arms: int = 2, acquisitions: tuple[str, ...] = ("run-1",)
) -> list[Row]:
    return [
        {
            "trajectory_id": trajectory,
            "step": step,
            "arm": arm,
            "acquisition_id": acquisition,
            "complete": True,
            "state_before": b"b",
            "state_after": b"a",
            "candidates": b"c",
        }
        for arm in range(arms)
        for acquisition in acquisitions
    ]


def verdict(rows: list[Row], arms: int = 2, **more: Any) -> FaceVerdict:
    return judge_faces(pl.DataFrame(rows, schema=SCHEMA), arms, **more)


def broken(found: FaceVerdict) -> list[tuple[str, int, str]]:
    rows = zip(found.transitions.rows(), found.codes.tolist(), strict=True)
    told = [(*row, code) for row, code in rows if code is not None]
    by_code = [(*row, code) for code, frame in found.broken.items() for row in frame.rows()]
    assert sorted(by_code) == sorted(told)
    return told


def whole(found: FaceVerdict) -> list[tuple[str, int]]:
    rows = zip(found.transitions.rows(), found.codes.tolist(), strict=True)
    return [row for row, code in rows if code is None]


def test_complete_faces_in_the_order_of_bytes() -> None:
    found = verdict(sides("é", 3) + sides("z", 10) + sides("z", 9))
    assert whole(found) == [("z", 9), ("z", 10), ("é", 3)]
    assert broken(found) == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"complete": False}, "side-incomplete"),
        ({"state_before": b"x"}, "state-not-frozen"),
        ({"state_after": b"x"}, "state-not-frozen"),
        ({"candidates": b"x"}, "candidates-not-frozen"),
        ({"acquisition_id": "run-2"}, "acquisition-missing"),
        ({"complete": False, "candidates": b"x", "state_after": b"x"}, "side-incomplete"),
    ],
)
def test_each_way_to_break(change: Row, code: str) -> None:
    wounded = sides("t0")
    wounded[1] |= change
    sound = sides("t1", acquisitions=("run-1", "run-2")) if "acquisition_id" in change else sides("t1")
    found = verdict(wounded + sound)
    assert broken(found) == [("t0", 0, code)]
    assert whole(found) == [("t1", 0)]


def test_an_acquisition_in_scope_that_one_transition_lacks() -> None:
    found = verdict(sides("t0", acquisitions=("run-1", "run-2")) + sides("t1"))
    assert broken(found) == [("t1", 0, "acquisition-missing")]


def test_a_part_of_a_scope_is_told_the_whole_scope() -> None:
    part = sides("t0")
    assert len(whole(verdict(part))) == 1
    found = verdict(part, acquisitions=[["run-1"], ["run-1", "run-2"]])
    assert broken(found) == [("t0", 0, "acquisition-missing")]


def test_a_side_given_twice_does_not_stand_for_another() -> None:
    rows = sides("t0") + sides("t1")
    found = verdict([*rows[:1], rows[0], *rows[2:]])
    assert broken(found) == [("t0", 0, "acquisition-missing")]
    assert broken(verdict([*rows, rows[0]])) == [("t0", 0, "side-twice")]


def test_an_arm_without_any_side() -> None:
    assert broken(verdict(sides("t0"), arms=3)) == [("t0", 0, "acquisition-missing")]
    assert broken(verdict(sides("t0", arms=1), acquisitions=[["run-1"], []])) == [
        ("t0", 0, "acquisition-missing")
    ]


def test_more_than_two_arms() -> None:
    assert len(whole(verdict(sides("t0", arms=5), arms=5))) == 1


def test_absent_digests_are_not_frozen_and_not_thawed() -> None:
    rows = sides("t0")
    for row in rows:
        row |= {"state_before": None, "state_after": None, "candidates": None}
    assert len(whole(verdict(rows))) == 1


def test_nothing() -> None:
    found = verdict([])
    assert whole(found) == broken(found) == []


def test_settings_of_the_caller_switch_nothing_off() -> None:
    wounded = sides("t0")
    wounded[0]["complete"] = False
    with config_context(validation_enabled=False):
        assert len(broken(verdict(wounded))) == 1


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 1), st.booleans(), st.sampled_from([b"s", b"t"])),
        max_size=12,
    )
)
def test_against_a_count_by_hand(given_sides: list[tuple[int, int, bool, bytes]]) -> None:
    rows = []
    for transition, arm, complete, state in given_sides:
        (row,) = [r for r in sides(f"t{transition}") if r["arm"] == arm]
        rows.append({**row, "complete": complete, "state_before": state})
    found = verdict(rows, acquisitions=[["run-1"], ["run-1"]])
    by_hand = [
        (f"t{t}", 0)
        for t in range(4)
        if sorted(arm for transition, arm, *_ in given_sides if transition == t) == [0, 1]
        and all(complete for transition, _, complete, _ in given_sides if transition == t)
        and len({state for transition, *_, state in given_sides if transition == t}) == 1
    ]
    assert whole(found) == by_hand
    assert len(whole(found)) + len(broken(found)) == len({t for t, *_ in given_sides})
