"""Sides are judged cell by cell, whatever their size and in whatever order their rows come."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.admission import Admission, judge
from contracts.digest import pack
from contracts.order import dense, keys, permuted, ranks
from contracts.order import pack as pack_columns
from contracts.reporting import to_lines
from contracts.schema import TRANSPORT
from tests.contracts.score_rows import (
    BOOK,
    GENERATED,
    LABELLED,
    LETTERS,
    MANY,
    Row,
    channel,
    drop,
    entries,
    face,
    pick,
    result,
    side,
)


def judged(rows: list[Row], existing: list[Row] | None = None, **more: Any) -> Admission:
    held = None if existing is None else entries(existing)
    return judge(result(rows, shuffled=1), BOOK, held, files=["scores.csv"], **more)


def codes(admission: Admission) -> dict[str, int]:
    return dict(admission.findings.by_code)


def first_line(admission: Admission) -> str:
    return to_lines(admission.findings, 1)[0]


class TestEachFaultIsNamed:
    def test_whole_sides_are_admitted(self) -> None:
        admission = judged(face() + face("t1", 3))
        assert admission.admitted.num_rows == len(face()) * 2
        assert codes(admission) == {}
        assert admission.refused.num_rows == admission.sides.num_rows == 0
        assert admission.hint is None

    def test_missing_layout(self) -> None:
        rows = face() + face("traj000", 5)
        at = {"trajectory_id": "traj000", "channel": pack(GENERATED.fingerprint), "endpoint": "after"}
        admission = judged(drop(rows, **at, layout=1))
        assert codes(admission) == {"cell-missing": 1}
        assert first_line(admission) == (
            "face traj000/step05: layout 1 missing in (after, generated); expected 2 layouts, found 1"
        )
        assert admission.hint == (
            "bring each of these sides whole and ingest again; what are entries already is skipped; cells in "
            "another file come in the same call: ledger ingest scores.csv OTHER"
        )
        (refused,) = admission.refused_sides
        assert (refused.absent, refused.rows, refused.reason) == (3, 9, "cell-missing")
        assert [vars(fault) for fault in refused.faults] == [
            {"endpoint": "after", "layout": 1, "candidate": "A", "kind": "absent"}
        ]

    def test_missing_candidate_and_what_else_is_missing(self) -> None:
        rows = drop(side(), endpoint="before", layout=1, candidate="B")
        admission = judged(drop(rows, endpoint="after", layout=0, candidate="C"))
        assert first_line(admission) == (
            "face t0/step00: candidate B of layout 1 missing in (before, direct); expected 3 candidates, "
            "found 2, and 1 more cell missing"
        )
        (refused,) = admission.refused_sides
        assert [(f.endpoint, f.layout, f.candidate) for f in refused.faults] == [
            ("before", 1, "B"),
            ("after", 0, "C"),
        ]

    def test_endpoints_in_different_acquisitions(self) -> None:
        rows = pick(side(acquisition="run-1"), endpoint="before")
        admission = judged(rows + pick(side(acquisition="run-2"), endpoint="after"))
        assert codes(admission) == {"cell-missing": 2}
        assert first_line(admission) == (
            "face t0/step00: after missing in (direct, run-1); expected before and after, found before; "
            "after stands under acquisition run-2, one acquisition must bring both"
        )

    def test_a_duplicate_does_not_hide_a_missing_cell(self) -> None:
        rows = drop(side(), endpoint="after", layout=1, candidate="B")
        twin = pick(rows, endpoint="after", layout=1, candidate="A")
        admission = judged(rows + twin)
        assert len(rows + twin) == len(side())
        assert codes(admission) == {"cell-duplicated": 1, "cell-missing": 1}
        (refused,) = admission.refused_sides
        assert (refused.duplicated, refused.absent) == (1, 1)
        duplicate = next(f for f in admission.findings.examples if f.code == "cell-duplicated")
        assert duplicate.rows == (10, 12)
        assert "given 2 times in (after, direct) (scores.csv row 10, scores.csv row 12)" in duplicate.message

    def test_duplicates_over_files(self) -> None:
        rows = [*side(), {**side()[4], "source_file": 1, "source_row": 7}]
        admission = judge(result(rows), BOOK, files=["a.csv", "b.csv"])
        assert "a.csv row 5, b.csv row 7" in first_line(admission)
        assert admission.findings.rejects().column("file").to_pylist() == ["a.csv", "b.csv"]
        assert admission.findings.rejects().column("got").to_pylist() == ["2 times"] * 2

    def test_failed_readings(self) -> None:
        rows = [
            {**row, "status": "timeout", "energy": None}
            if (row["endpoint"], row["layout"]) == ("after", 1)
            else row
            for row in side()
        ]
        admission = judged(rows)
        assert codes(admission) == {"reading-failed": 1}
        assert "layout 1 failed in (after, direct) with status timeout" in first_line(admission)
        (refused,) = admission.refused_sides
        assert [fault.kind for fault in refused.faults] == ["failed:timeout"]
        assert admission.refused.column("status").to_pylist().count("timeout") == 3
        rejects = admission.findings.rejects()
        assert rejects.column("row").to_pylist() == [10, 11, 12]
        assert rejects.column("got").to_pylist() == ["timeout"] * 3

    def test_one_failed_reading(self) -> None:
        rows = side()
        rows[7] |= {"status": "refused", "energy": None}
        assert "reading of candidate B, layout 0 failed in (after, direct) with status refused" in first_line(
            judged(rows)
        )

    def test_a_misspelt_candidate_blames_its_own_row(self) -> None:
        rows = face()
        rows[4] = {**rows[4], "candidate": "b"}
        admission = judged(rows)
        assert codes(admission) == {"cell-missing": 1, "cell-unknown": 1, "candidates-differ": 2}
        unknown = next(f for f in admission.findings.examples if f.code == "cell-unknown")
        assert unknown.rows == (5,)
        assert "unknown candidate b of layout 1 in (before, direct)" in unknown.message
        assert "expected one of A, B, C" in unknown.message
        assert admission.admitted.num_rows == 0

    def test_a_candidate_that_fills_a_side_is_one(self) -> None:
        admission = judged(side() + side(of=GENERATED, candidates=(*LETTERS, "D"), candidates_hash=None))
        assert codes(admission) == {"cell-missing": 1}
        assert "candidate D of layout 0 missing in (before, direct)" in first_line(admission)
        assert admission.admitted.num_rows == 16

    def test_several_views_stand_apart(self) -> None:
        rows = side(view_source="before") + side(view_source="after")
        admission = judged(drop(rows, view_source="after", endpoint="before", layout=0))
        assert "layout 0 missing in (before, direct, after)" in first_line(admission)
        assert admission.admitted.num_rows == len(side())


class TestLargeSides:
    """40 layouts x 2 endpoints x 3 candidates are 240 cells, more than an int64 has bits."""

    def test_whole(self) -> None:
        assert judged(side(of=MANY)).admitted.num_rows == 240

    @pytest.mark.parametrize("cell", [0, 61, 62, 63, 64, 127, 128, 239])
    def test_one_missing(self, cell: int) -> None:
        rows = side(of=MANY)
        lost = rows.pop(cell)
        (refused,) = judged(rows).refused_sides
        fault = (lost["endpoint"], lost["layout"], lost["candidate"], "absent")
        assert [tuple(vars(f).values()) for f in refused.faults] == [fault]

    def test_each_cell_replaced_by_a_twin_of_another(self) -> None:
        rows = side(of=MANY)
        for cell in range(0, 240, 37):
            hidden = [*rows[:cell], rows[(cell + 63) % 240], *rows[cell + 1 :]]
            (refused,) = judged(hidden).refused_sides
            assert (refused.absent, refused.duplicated) == (1, 1)

    def test_too_many_cells_to_lay_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("contracts.side_sentences._LARGEST_GRID", 100)
        line = first_line(judged(side(of=MANY)[1:]))
        assert line == "face t0/step00: 1 cells missing in (many); expected 240"


class TestCandidates:
    def test_fewer_than_the_labels(self) -> None:
        admission = judged(side(of=LABELLED, candidates=("A", "B")))
        assert codes(admission) == {"candidates-not-labels": 1}
        assert "2 candidates (A, B) in (labelled); expected 3" in first_line(admission)

    def test_fewer_than_two(self) -> None:
        assert codes(judged(side(candidates=("A",)))) == {"candidates-too-few": 1}

    def test_labels_vouch_for_a_rare_candidate(self) -> None:
        rows = drop(side(of=LABELLED), candidate="C", endpoint="before")
        admission = judged(drop(rows, candidate="C", layout=0))
        assert codes(admission) == {"cell-missing": 1}

    def test_ledger_knows_the_candidates(self) -> None:
        held = side()
        more = side(of=GENERATED, candidates=(*LETTERS, "D"), candidates_hash=None)
        admission = judged(more, held)
        assert codes(admission) == {"cell-unknown": 1}
        assert admission.sides.column("unknown").to_pylist() == [4]

    def test_more_cells_of_a_side_in_the_ledger(self) -> None:
        extra = side(candidates=("D",), target="A", candidates_hash=None)
        admission = judged(side() + extra[:1], side())
        assert codes(admission) == {"cell-unknown": 1}
        assert "expected no more cells, the side is whole in the ledger" in first_line(admission)
        assert admission.skipped == len(side())
        (refused,) = admission.refused_sides
        assert (refused.absent, refused.unknown) == (0, 1)

    def test_one_digest_for_two_sets(self) -> None:
        same: Row = {"candidates_hash": b"\x1e" + b"c" * 32}
        sets = [face(f"t{i}", **same) for i in range(3)] + [face("t3", candidates=("A", "B"), **same)]
        admission = judged([row for rows in sets for row in rows])
        assert codes(admission) == {"candidates-rebound": 2}
        assert {s.trajectory_id for s in admission.refused_sides} == {"t3"}

    def test_on_a_tie_neither_set_is_right(self) -> None:
        same: Row = {"candidates_hash": b"\x1e" + b"c" * 32}
        admission = judged(face("t1", **same) + face("t2", candidates=("A", "B"), **same))
        assert {s.trajectory_id for s in admission.refused_sides} == {"t1", "t2"}

    def test_a_transition_that_lost_its_candidates_has_no_vote(self) -> None:
        same: Row = {"candidates_hash": b"\x1e" + b"c" * 32}
        admission = judged(face("t1", **same) + face("t2", candidates=("A",), **same))
        assert codes(admission) == {"candidates-too-few": 2}
        assert admission.admitted.num_rows == len(face())

    def test_the_ledger_speaks_first(self) -> None:
        same: Row = {"candidates_hash": b"\x1e" + b"c" * 32}
        call = face("t1", **same) + face("t2", candidates=("A", "B"), **same) + face("t3", **same)
        admission = judged(call, face("t0", candidates=("A", "B"), **same))
        assert {s.trajectory_id for s in admission.refused_sides} == {"t1", "t3"}


class TestContradictions:
    @pytest.mark.parametrize(
        ("column", "values", "code"),
        [
            ("target", ("A", "B"), "two-targets"),
            ("target_type", ("x", "y"), "two-target-types"),
            ("step_kind", ("think", "act"), "two-step-kinds"),
        ],
    )
    def test_said_once_per_step(self, column: str, values: tuple[str, str], code: str) -> None:
        rows = side() + side(of=GENERATED)
        for row in rows:
            row[column] = values[0]
        rows[-1][column] = values[1]
        admission = judged(rows + face("t1"))
        assert codes(admission) == {code: 2}
        (finding,) = admission.findings.examples
        assert finding.rows == (24,)
        assert f"2 values of {column}; expected one {column} per step" in finding.message
        assert [s.trajectory_id for s in admission.refused_sides] == ["t0", "t0"]
        assert {s.reason for s in admission.refused_sides} == {code}

    def test_absent_values_contradict_nothing(self) -> None:
        rows = side(step_kind="think") + side(of=GENERATED, step_kind=None)
        assert codes(judged(rows)) == {}

    def test_the_ledger_has_another_target(self) -> None:
        admission = judged(side(of=GENERATED, target="B"), side())
        assert codes(admission) == {"two-targets": 1}
        assert f"A in {len(side())} rows and B in {len(side())} rows (the ledger has A)" in first_line(
            admission
        )

    def test_target_is_no_candidate(self) -> None:
        admission = judged(side(target="Z") + side("t1"))
        assert codes(admission) == {"target-no-candidate": 1}
        assert "found Z (scores.csv row 7, scores.csv row 8, scores.csv row 9, …)" in first_line(admission)
        assert "expected one of A, B, C, found Z" in first_line(admission)

    @pytest.mark.parametrize("wrong", ["0", "Z"])  # before and after the right one
    def test_one_wrong_target_accuses_no_other_row(self, wrong: str) -> None:
        rows = side("t1") + side()
        rows[-5] |= {"target": wrong}
        admission = judged(rows)
        assert codes(admission) == {"two-targets": 1, "target-no-candidate": 1}
        two, none = (f.message for f in admission.findings.examples)
        counted = {wrong: f"{wrong} in 1 row", "A": f"A in {len(side()) - 1} rows"}
        assert f"found {' and '.join(counted[name] for name in sorted(counted))} (" in two
        assert f"expected one of A, B, C, found {wrong} (scores.csv row {len(rows) - 4})" in none
        assert [s.reason for s in admission.refused_sides] == ["two-targets"]
        listed = admission.findings.rejects(TRANSPORT).to_pylist()
        (row,) = (row for row in listed if row["code"] == "target-no-candidate")
        assert (row["row"], row["got"], row["wanted"]) == (len(rows) - 4, wrong, "A, B, C")
        assert sum(row["code"] == "two-targets" for row in listed) == len(side())

    def test_success_changes_within_a_trajectory(self) -> None:
        rows = side("t0", 0, success=True) + side("t0", 1, success=None) + side("t0", 2, success=False)
        admission = judged(rows + side("t1", success=False))
        assert codes(admission) == {"two-successes": 3}
        assert {s.trajectory_id for s in admission.refused_sides} == {"t0"}


class TestDonors:
    @pytest.mark.parametrize("donor", ["donor:t0", "donor:t0/0"])
    def test_oneself(self, donor: str) -> None:
        admission = judged(side(view_source=donor) + side())
        assert codes(admission) == {"donor-self": 1}
        assert admission.admitted.num_rows == len(side())

    @pytest.mark.parametrize("donor", ["donor:t1", "donor:t0/1", "donor:t00", "donor:nobody/0"])
    def test_another(self, donor: str) -> None:
        assert codes(judged(side(view_source=donor) + side() + side("t1"))) == {}

    @pytest.mark.parametrize("in_ledger", [True, False])
    def test_the_view_is_the_donors(self, in_ledger: bool) -> None:
        donor = [{**row, "view_hash": b"\x1e" + row["endpoint"][:1].encode() * 32} for row in side("t1", 4)]
        shown = [
            {**row, "view_hash": b"\x1e" + row["endpoint"][:1].encode() * 32}
            for row in side("t0", 4, view_source="donor:t1")
        ]
        call, held = (shown, donor) if in_ledger else (shown + donor, None)
        assert codes(judged(call, held)) == {}
        call[-1] = call[-1] if not in_ledger else {**call[-1], "view_hash": b"\x1e" + b"z" * 32}
        call[0] = {**call[0], "view_hash": b"\x1e" + b"z" * 32}
        assert codes(judged(call, held)) == {"donor-view": 1}


@st.composite
def wounded(draw: st.DrawFn) -> tuple[list[Row], dict[tuple[str, bytes], set[str]]]:
    """Six whole faces with some cells taken out, doubled or failed; what was done to which side."""
    rows = [row for i in range(6) for row in face(f"t{i}")]
    done: dict[tuple[str, bytes], set[str]] = {}
    count = draw(st.integers(0, 5))
    for index in sorted(
        draw(st.sets(st.integers(0, len(rows) - 1), min_size=count, max_size=count)), reverse=True
    ):
        fault = draw(st.sampled_from(["cell-missing", "cell-duplicated", "reading-failed"]))
        row = rows[index]
        done.setdefault((row["trajectory_id"], row["channel"]), set()).add(fault)
        if fault == "cell-missing":
            del rows[index]
        elif fault == "cell-duplicated":
            rows.append({**row, "energy": draw(st.sampled_from([row["energy"], 9.0]))})
        else:
            rows[index] = {**row, "status": "error", "energy": None}
    return rows, done


@settings(max_examples=40)
@given(wounded(), st.integers(0, 9))
def test_exactly_the_planted_faults_are_found(
    case: tuple[list[Row], dict[tuple[str, bytes], set[str]]], seed: int
) -> None:
    rows, done = case
    admission = judge(result(rows, shuffled=seed), BOOK)
    refused = {(s.trajectory_id, pack(s.channel)) for s in admission.refused_sides}
    assert refused == done.keys()
    found: dict[tuple[str, bytes], set[str]] = {}
    names = {c.name: pack(c.fingerprint) for c in BOOK.channels}
    for finding in admission.findings.examples:
        assert finding.key is not None
        key = (str(finding.key["trajectory_id"]), names[str(finding.key["channel"])])
        found.setdefault(key, set()).add(finding.code)
    assert found == done
    kept = [row for row in rows if (row["trajectory_id"], row["channel"]) not in done]
    assert admission.admitted.num_rows == len(kept)
    assert admission.refused.num_rows == len(rows) - len(kept)
    assert sum(admission.sides.column("rows").to_pylist()) == len(rows) - len(kept)


class TestOrder:
    def test_canonical_order_is_that_of_bytes(self) -> None:
        names = ["é", "z", "Z", "a\u0301", "𝄞", "\uffff"]
        table = result([row for name in names for row in side(name)], shuffled=3).table
        order = keys([table])
        ordered = [table.column("trajectory_id")[int(i)].as_py() for i in order.positions(order.starts[:-1])]
        assert ordered == sorted(names, key=str.encode)

    @given(st.lists(st.tuples(*[st.integers(0, 2**30)] * 5), min_size=1, max_size=40))
    def test_packing_keeps_the_order_past_63_bits(self, rows: list[tuple[int, ...]]) -> None:
        columns = [np.array(values, dtype=np.int64) for values in zip(*rows, strict=True)]
        packed, limit = pack_columns([(values, 2**31) for values in columns])
        assert packed.max() < limit
        pairs = itertools.combinations(range(len(rows)), 2)
        assert all((rows[i] < rows[j]) == (packed[i] < packed[j]) for i, j in pairs)
        assert all(
            (rows[i] == rows[j]) == (packed[i] == packed[j])
            for i, j in itertools.combinations(range(len(rows)), 2)
        )

    @given(st.data())
    def test_permuting_columns_together_is_permuting_each(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(1, 30))
        limits = data.draw(st.lists(st.sampled_from([1, 2, 7, 2**20, 2**31]), min_size=1, max_size=6))
        columns = [
            np.array(data.draw(st.lists(st.integers(0, limit - 1), min_size=count, max_size=count)), np.int32)
            for limit in limits
        ]
        order = np.array(data.draw(st.permutations(range(count))), dtype=np.int64)
        for column, moved in zip(
            columns, permuted(list(zip(columns, limits, strict=True)), order), strict=True
        ):
            assert (column[order] == moved).all()

    @pytest.mark.parametrize("limit", [10, 10**9])
    def test_dense_numbers_either_way(self, limit: int) -> None:
        numbers, values = dense(np.array([7, 3, 7, 9, 3]), limit)
        assert values.tolist() == [3, 7, 9]
        assert numbers.tolist() == [1, 0, 1, 2, 0]

    def test_ranks_of_chunks_with_other_dictionaries(self) -> None:
        chunks = pa.chunked_array(
            [pa.array(["b", None, "a"]).dictionary_encode(), pa.array(["c", "b"]).dictionary_encode()]
        )
        ranked = ranks(chunks)
        assert ranked.values.to_pylist() == ["a", "b", "c"]
        assert ranked.codes.tolist() == [1, -1, 0, 2, 1]

    def test_every_order_of_a_few_rows(self) -> None:
        rows = drop(side(of=channel("direct", 2)), layout=1)[:4]
        seen = {
            str(keys([result([rows[i] for i in order]).table]).candidate.codes.tolist())
            for order in itertools.permutations(range(4))
        }
        assert len(seen) == 1


def test_no_rows_at_all() -> None:
    admission = judge(result([]), BOOK)
    assert admission.admitted.num_rows == admission.refused.num_rows == 0
    assert admission.counts["sides"] == 0
