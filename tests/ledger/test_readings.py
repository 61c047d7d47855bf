"""Entries by reading: taking rows apart and together again loses nothing, whatever is done in between."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.readings import Readings

DIGESTS = (None, b"a" * 33, b"b" * 33, b"a" * 32 + b"b")
ROW = st.fixed_dictionaries(
    {
        "trajectory_id": st.sampled_from(["t", "u", "ü"]),
        "step": st.integers(0, 2),
        "success": st.sampled_from([None, True, False]),
        "state_hash": st.sampled_from(DIGESTS),
        "target_type": st.sampled_from([None, "x", "y"]),
        "candidate": st.sampled_from("AB"),
        "energy": st.floats(allow_nan=False),
    }
)
ROWS = st.lists(st.tuples(ROW, st.integers(1, 4)), max_size=12).map(
    lambda runs: [row | {"energy": row["energy"] + i} for row, times in runs for i in range(times)]
)
TYPES = {
    "trajectory_id": pa.dictionary(pa.int32(), pa.string()),
    "step": pa.int32(),
    "success": pa.bool_(),
    "state_hash": pa.binary(33),
    "target_type": pa.dictionary(pa.int32(), pa.string()),
    "candidate": pa.dictionary(pa.int32(), pa.string()),
    "energy": pa.float64(),
}


def table(rows: list[dict], chunk: int = 1 << 20) -> pa.Table:
    """The rows in chunks with dictionaries of their own."""
    parts = [rows[at : at + chunk] for at in range(0, len(rows), chunk)]
    return pa.concat_tables(
        [
            pa.table({name: pa.array([row[name] for row in part], kind) for name, kind in TYPES.items()})
            for part in parts or [[]]
        ]
    )


def listed(readings: Readings) -> list[dict]:
    return readings.entries.to_pylist()


@given(ROWS, st.integers(1, 5))
def test_rows_taken_apart_are_the_same_rows(rows, chunk):
    readings = Readings.of(table(rows, chunk))
    assert listed(readings) == rows
    assert (readings.lengths > 0).all()
    assert listed(readings.coded()) == rows


@given(ROWS)
def test_a_reading_ends_where_anything_but_its_candidate_changes(rows):
    shared = [{k: v for k, v in row.items() if k not in ("candidate", "energy")} for row in rows]
    changes = sum(a != b for a, b in itertools.pairwise(shared)) + bool(rows)
    assert len(Readings.of(table(rows))) == changes


@given(ROWS, st.randoms())
def test_some_readings_are_all_of_their_entries(rows, random):
    readings = Readings.of(table(rows))
    kept = np.array([random.random() < 0.5 for _ in range(len(readings))], bool)
    wanted = [row for row, of in zip(rows, readings.of_entry, strict=True) if kept[of]]
    assert listed(readings.where(kept)) == wanted


@given(ROWS, st.integers(0, 12), st.integers(0, 12))
def test_a_slice_is_what_lies_between(rows, start, stop):
    readings = Readings.of(table(rows))
    start, stop = sorted((min(start, len(readings)), min(stop, len(readings))))
    wanted = [row for row, of in zip(rows, readings.of_entry, strict=True) if start <= of < stop]
    assert listed(readings.slice(start, stop)) == wanted


@given(ROWS, ROWS)
def test_parts_joined_and_sorted_are_the_rows_sorted(first, second):
    found = Readings.concat([Readings.of(table(first)), Readings.of(table(second))]).coded().by_transition()
    wanted = sorted(first + second, key=lambda row: (row["trajectory_id"].encode(), row["step"]))
    assert listed(found) == wanted


@pytest.mark.parametrize("name", ["state_hash", "success", "target_type"])
def test_absent_beside_present_is_a_difference(name):
    value = {"state_hash": b"a" * 33, "success": False, "target_type": "x"}[name]
    plain = {
        "trajectory_id": "t", "step": 0, "success": None, "state_hash": None, "target_type": None,
        "candidate": "A", "energy": 0.0,
    }  # fmt: skip
    for values in ([None, value], [value, None]):
        assert len(Readings.of(table([plain | {name: each} for each in values]))) == 2
