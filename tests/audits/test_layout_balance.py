"""Whether layouts are balanced, by physical positions or by their number."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from audits.face import face
from audits.transport import transport
from contracts.layout_balance import balanced
from tests.audits.cohorts import ENDPOINTS, Ledger, Row, new_ledger, noisy, rows
from tests.audits.family import family, side

PLACES = {"A": 0, "B": 1}


def rotated(row: Row) -> int:
    return (PLACES[row["candidate"]] + row["layout"]) % 2


def fixed(row: Row) -> int:
    return PLACES[row["candidate"]]


def status(ledger: Ledger) -> tuple[str, str | None, int, int]:
    found = transport(ledger.snapshot(), "direct", "generated", resamples=100).result["verdicts"]
    return tuple(found["layout_balance"].values())


@pytest.mark.parametrize(
    ("position", "wanted"),
    [
        (rotated, ("balanced", "position", 0, 0)),
        (lambda row: 5 + rotated(row), ("balanced", "position", 0, 0)),
        (fixed, ("unbalanced", "position", 4, 0)),
        (lambda row: None, ("balanced", "layouts-equal-candidates", 0, 0)),
        (lambda row: rotated(row) if row["layout"] else None, ("not declared", None, 0, 4)),
        (
            lambda row: rotated(row) if row["trajectory_id"] == "t000" else None,
            ("balanced", "mixed", 0, 0),
        ),
        (
            lambda row: fixed(row) if row["trajectory_id"] == "t000" else None,
            ("unbalanced", "mixed", 2, 0),
        ),
    ],
)
def test_positions_decide_where_there_are_any(
    tmp_path: Path, position: Callable[[Row], int | None], wanted: tuple[object, ...]
) -> None:
    ledger = new_ledger(tmp_path)
    ledger.ingest([row | {"position": position(row)} for row in rows(noisy(2, 2))])
    assert status(ledger) == wanted


def test_more_layouts_than_candidates_are_not_balanced(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path, layouts=3)
    ledger.ingest(rows(noisy(2, 2), layouts=3))
    assert status(ledger) == ("unbalanced", "layouts-equal-candidates", 4, 0)


def test_an_incomplete_transition_says_nothing(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    made = [
        row | {"position": fixed(row) if row["trajectory_id"] == "t000" else rotated(row)}
        for row in rows(noisy(2, 1))
    ]
    ledger.ingest(
        [r for r in made if (r["trajectory_id"], r["channel"], r["layout"]) != ("t000", "direct", 1)]
    )
    assert status(ledger) == ("balanced", "position", 0, 0)


def test_an_empty_cohort_declares_nothing(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.ingest([row for row in rows(noisy(2, 1)) if row["channel"] == "direct"])
    assert status(ledger) == ("not declared", None, 0, 0)


def test_other_audits_say_it_too(tmp_path: Path) -> None:
    ledger = family(tmp_path, {"frozen": {}})
    made = [
        row | {"position": fixed(row)}
        for view in ENDPOINTS
        for row in side("frozen", "t0", (0.0, 1.0), source=view, view=lambda _, v=view: v)
    ]
    ledger.ingest(made)
    found = face(ledger.snapshot(), "frozen", resamples=100).result
    assert found["verdicts"]["layout_balance"]["status"] == "unbalanced"
    assert "layouts-unbalanced" in {limit["id"] for limit in found["limits"]}


def test_each_candidate_in_each_place_once_is_a_latin_square() -> None:
    square = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    twice = np.array([[0, 1, 2], [1, 0, 2], [2, 0, 1]])  # the third candidate is last twice
    shared = np.array([[0, 0, 0], [1, 1, 1], [2, 2, 2]])  # every candidate everywhere, all at once
    apart = np.array([[3, 4, 5], [4, 5, 3], [5, 3, 4]])  # places that the first group does not have
    groups = np.array([[square, square], [square, twice], [square, shared], [square, apart]])
    assert balanced(groups).tolist() == [True, False, False, False]
    assert balanced(np.zeros((2, 1, 3, 2), int)).tolist() == [False, False]
