"""A call is admitted as a set: what is new and whole enters, what is known is skipped, the rest is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandera.config import ValidationDepth, config_context

from contracts.admission import Admission, judge
from contracts.channel import Channel, ChannelBook, fingerprint
from contracts.channel_file import load_spec
from contracts.digest import is_digest, pack
from contracts.findings import Finding, rejects_schema
from contracts.records import Records
from contracts.reporting import to_lines
from contracts.rows import canonicalise
from contracts.schema import REFUSED, TRANSPORT
from contracts.source_table import SourceTable
from contracts.transitions import candidate_set_digest
from tests.contracts.score_rows import BOOK, GENERATED, Row, drop, entries, face, result, side

COHORT = Path(__file__).parents[2].parent / "shared" / "cohort"
ORIGIN = ["source_file", "source_row"]


def plain(table: pa.Table, names: tuple[str, ...]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = table.select(names).to_pylist()
    return rows


class TestAgainstTheLedger:
    def test_the_same_rows_are_skipped_and_counted(self) -> None:
        admission = judge(result(face() + side("t1"), shuffled=1), BOOK, entries(face()))
        assert admission.skipped == len(face())
        assert admission.admitted.num_rows == len(side())
        assert admission.findings.total == 0

    def test_everything_known(self) -> None:
        admission = judge(result(face()), BOOK, entries(face()), strict=True)
        assert (admission.skipped, admission.admitted.num_rows, admission.sides.num_rows) == (24, 0, 0)
        assert not admission.refuses_call
        assert admission.error() is None
        assert admission.admitted.schema.names == [*TRANSPORT.names, *ORIGIN]

    def test_a_known_row_given_twice_is_skipped_twice(self) -> None:
        admission = judge(result(side() + side()), BOOK, entries(side()))
        assert admission.skipped == 2 * len(side())

    @pytest.mark.parametrize(
        ("column", "value"),
        [
            ("energy", 0.25),
            ("energy", None),
            ("target", "B"),
            ("state_hash", None),
            ("state_hash", b"\x12" + b"s" * 32),
            ("success", False),
            ("position", 3),
            ("label_mass", 0.0),
            ("step_kind", "think"),
        ],
    )
    def test_other_content_is_a_conflict(self, column: str, value: object) -> None:
        row = {**side()[7], column: value}
        if column == "energy" and value is None:
            row["status"] = "timeout"
        held = entries(side()).append_column("source", pa.array([f"old.csv row {i}" for i in range(12)]))
        admission = judge(result([row], shuffled=1), BOOK, held, files=["new.csv"])
        assert dict(admission.findings.by_code) == {"conflict": 1}
        (finding,) = admission.findings.examples
        assert (finding.level, finding.column) == ("file", column)
        assert "in new.csv row 1 and" in finding.message
        assert "in the ledger (old.csv row 7)" in finding.message
        assert admission.refuses_call
        error = admission.error()
        assert error is not None
        assert error.code == "conflict"
        assert error.exit_code == 1
        rejects = admission.findings.rejects().to_pylist()
        assert [(r["file"], r["row"], r["level"], r["column"]) for r in rejects] == [
            ("new.csv", 1, "file", column)
        ]

    def test_minus_zero_is_another_content(self) -> None:
        held = entries([{**side()[0], "energy": 0.0}])
        assert judge(result([{**side()[0], "energy": 0.0}]), BOOK, held).skipped == 1
        other = judge(result([{**side()[0], "energy": -0.0}]), BOOK, held)
        assert dict(other.findings.by_code) == {"conflict": 1}

    def test_all_conflicts_are_counted(self) -> None:
        rows = [row for i in range(20) for row in side(f"t{i:02d}")]
        admission = judge(result([{**row, "energy": 7.0} for row in rows]), BOOK, entries(rows))
        assert admission.findings.by_code["conflict"] == 240
        assert len(admission.findings.examples) == 100
        assert admission.findings.rejects().num_rows == 240
        assert admission.admitted.num_rows == 0

    def test_entries_may_be_coded_or_plain(self) -> None:
        held = entries(face())
        fields = [
            column.dictionary_encode() if not pa.types.is_primitive(column.type) else column
            for column in held.columns
        ]
        coded = pa.table(fields, names=held.column_names)
        assert judge(result(face()), BOOK, coded).skipped == judge(result(face()), BOOK, held).skipped == 24

    def test_sets_the_caller_knows(self) -> None:
        digest = face()[0]["candidates_hash"]
        text = "blake3:" + digest[1:].hex()
        right, wrong = candidate_set_digest(["C", "B", "A"]), candidate_set_digest(["A", "B"])
        assert judge(result(face()), BOOK, known_sets={text: right}).findings.total == 0
        refused = judge(result(face()), BOOK, known_sets={text: wrong})
        assert dict(refused.findings.by_code) == {"candidates-rebound": 2}

    def test_a_set_digest_tells_names_apart(self) -> None:
        assert candidate_set_digest(["a", "b"]) != candidate_set_digest(["ab"])
        assert is_digest(candidate_set_digest([]))


class TestWhatIsHandedOn:
    def test_admitted_rows_are_in_canonical_order_with_their_origin(self) -> None:
        rows = face("t10") + face("t2", 7) + face("t2", 0)
        admission = judge(result(rows, shuffled=4), BOOK)
        table = admission.admitted
        key = [
            tuple(str(v).encode() if isinstance(v, str) else v for v in row.values())
            for row in plain(table, TRANSPORT.key)
        ]
        assert key == sorted(key)
        for row in table.to_pylist():
            given = rows[row["source_row"] - 1]
            assert all(given.get(name) == row[name] for name in TRANSPORT.names)

    def test_in_order_rows_are_handed_on_as_they_are(self) -> None:
        ordered = judge(result(face("t1") + face("t2"), shuffled=2), BOOK).admitted
        again = judge(result(ordered.to_pylist()), BOOK).admitted
        assert again.select(TRANSPORT.names).to_pylist() == ordered.select(TRANSPORT.names).to_pylist()

    def test_refused_rows_are_kept_as_they_were_seen(self) -> None:
        rows = drop(side(), endpoint="after", layout=0)
        rows[0] |= {"status": "error", "energy": None}
        admission = judge(result(rows, shuffled=1), BOOK)
        assert admission.refused.schema.names == [*REFUSED.names, *ORIGIN]
        assert sorted(row["source_row"] for row in admission.refused.to_pylist()) == list(range(1, 10))
        for row in admission.refused.to_pylist():
            given = rows[row["source_row"] - 1]
            assert all(given.get(name) == row[name] for name in REFUSED.names)

    def test_counts(self) -> None:
        rows = face("t0") + drop(face("t1"), layout=1, channel=pack(GENERATED.fingerprint)) + face("t2")
        admission = judge(result(rows), BOOK, entries(face("t2")))
        assert admission.counts == {
            "rows": 66,
            "skipped_rows": 24,
            "admitted_rows": 36,
            "refused_rows": 6,
            "sides": 4,
            "refused_sides": 1,
            "transitions": 2,
            "refused_transitions": 1,
        }

    def test_a_side_as_one_json_object(self) -> None:
        rows = drop(side(success=True, step_kind="think"), layout=1)
        (refused,) = judge(result(rows), BOOK).refused_sides
        value = refused.as_object()
        assert value["faults"] == [
            {"endpoint": "before", "layout": 1, "candidate": "A", "kind": "absent"},
            {"endpoint": "after", "layout": 1, "candidate": "A", "kind": "absent"},
        ]
        assert (value["success"], value["step_kind"], value["target"]) == (True, "think", "A")
        assert "target_type" not in value
        assert value["channel"] == BOOK.resolve("direct").fingerprint

    def test_channels_of_several_versions_are_told_apart(self) -> None:
        direct = BOOK.resolve("direct")
        newer = Channel("direct", 2, {**direct.spec, "prompt": {"text": "new"}}, "blake3:" + "f" * 64)
        rows = drop(side(), layout=1, endpoint="after")
        admission = judge(result(rows), ChannelBook((direct, newer)))
        assert "missing in (after, direct@1)" in admission.findings.examples[0].message


class TestStrict:
    def test_anything_refused_refuses_the_call(self) -> None:
        rows = result(drop(face(), layout=1, channel=pack(GENERATED.fingerprint)))
        lenient, strict = judge(rows, BOOK), judge(rows, BOOK, strict=True)
        assert not lenient.refuses_call
        assert lenient.error() is None
        assert strict.refuses_call
        error = strict.error()
        assert error is not None
        assert str(error).startswith("face t0/step00: layout 1 missing in (before, generated)")

    def test_a_fault_of_a_row_refuses_the_call_before_any_side_is_judged(self) -> None:
        rows = result(side()[:3])
        rows.findings.add(Finding("nan", "row", "x.csv row 1: energy is NaN"))
        admission = judge(rows, BOOK)
        assert dict(admission.findings.by_code) == {"nan": 1}
        assert admission.refuses_call
        assert admission.admitted.num_rows == admission.refused.num_rows == 0


FAULTY = [*drop(face(), layout=1, endpoint="after"), {**face("t1")[5], "energy": 3.0}, *face("t1")]


class TestDigests:
    @settings(max_examples=15)
    @given(st.integers(0, 2**32))
    def test_input_order_and_files_are_forgotten(self, seed: int) -> None:
        rows = [{**row, "source_file": (seed + i) % 3} for i, row in enumerate(FAULTY)]
        one, other = (
            judge(result(FAULTY), BOOK),
            judge(result(rows, shuffled=seed), BOOK, files=["a", "b", "c"]),
        )
        assert one.sides.equals(other.sides)
        assert plain(one.refused, REFUSED.names) == plain(other.refused, REFUSED.names)
        assert plain(one.admitted, TRANSPORT.names) == plain(other.admitted, TRANSPORT.names)
        assert one.findings.by_code == other.findings.by_code

    def test_every_column_counts(self) -> None:
        rows = drop(side(), layout=1)
        digests = {judge(result(rows), BOOK).refused_sides[0].digest}
        changes: list[Row] = [
            {"energy": -0.0},
            {"energy": None, "status": "error"},
            {"energy": None, "status": "timeout"},
            {"target": "B"},
            {"step_kind": ""},
            {"success": False},
            {"success": True},
            {"label_mass": 0.0},
            {"position": 0},
            {"state_hash": None},
            {"request_hash": rows[0]["state_hash"]},
            {"response_hash": rows[0]["state_hash"]},
        ]
        for change in changes:
            changed = [{**rows[0], **change}, *rows[1:]]
            digests.add(judge(result(changed), BOOK).refused_sides[0].digest)
        assert len(digests) == len(changes) + 1

    def test_of_many_sides_over_chunks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = [row for i in range(40) for row in side(f"t{i}")[: 3 + i % 7]]
        whole = judge(result(rows), BOOK).sides.column("digest").to_pylist()
        assert len(set(whole)) == 40
        for size in (1, 2, 7, 64):
            monkeypatch.setattr("contracts.records._CHUNK", size)
            assert judge(result(rows), BOOK).sides.column("digest").to_pylist() == whole

    def test_records_are_as_wide_as_documented(self) -> None:
        rows = judge(result(drop(side(), layout=1)), BOOK).refused
        texts, digests, nullable = 9, 6, 11
        numbers = 4 + 2 + 8 + 2 + 1 + 8  # step, layout, energy, position, success, label_mass
        assert Records(rows).width == texts * 32 + digests * 33 + nullable + numbers


class TestManyFaults:
    def test_counts_are_exact_and_examples_few(self) -> None:
        rows = [row for i in range(300) for row in drop(side(f"t{i:03d}"), layout=i % 2, endpoint="after")]
        admission = judge(result(rows), BOOK)
        assert dict(admission.findings.by_code) == {"cell-missing": 300}
        assert len(admission.findings.examples) == 100
        assert admission.sides.num_rows == 300
        assert len(to_lines(admission.findings)) == 4
        assert to_lines(admission.findings)[-1] == "… and 297 more (cell-missing 297)"
        rejects = admission.findings.rejects()
        assert rejects.schema.equals(rejects_schema())
        assert rejects.num_rows == 300 * 3
        assert set(rejects.column("channel").to_pylist()) == {"direct"}

    def test_absent_cells_are_listed_up_to_a_bound(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("contracts.side_faults.LISTED_CELLS", 100)
        rows = [row for i in range(300) for row in side(f"t{i:03d}")[:6]]
        admission = judge(result(rows), BOOK)
        assert admission.findings.rejects().num_rows == 100 // 12 * 6
        assert sum(admission.sides.column("absent").to_pylist()) == 1800

    def test_many_thousand_lone_rows_are_no_trouble(self) -> None:
        count = 30_000
        lone = result(side()[:1]).table
        names = pa.array([f"t{i:06d}" for i in range(count)])
        table = pa.concat_tables([lone]).take(pa.array([0] * count))
        at = table.schema.get_field_index("trajectory_id")
        table = table.set_column(at, table.schema.field(at), names.dictionary_encode())
        admission = judge(replace(result([]), table=table), BOOK)
        assert admission.sides.num_rows == count
        assert dict(admission.findings.by_code) == {"candidates-too-few": count, "cell-missing": count}


def test_settings_of_the_caller_switch_nothing_off() -> None:
    with config_context(validation_enabled=False, validation_depth=ValidationDepth.SCHEMA_ONLY):
        assert judge(result(drop(side(), layout=1)), BOOK).sides.num_rows == 1


@pytest.fixture(scope="module")
def cohort() -> Admission:
    if not COHORT.is_dir():
        pytest.skip("the shared cohort is not here")
    channels = []
    for path in sorted((COHORT / "channels").glob("*.toml")):
        name, spec = load_spec(path)
        given: Any = spec
        channels.append(Channel(name, 1, given, fingerprint(given)))
    table = pq.read_table(COHORT / "scores.parquet")
    book = ChannelBook(tuple(channels))
    rows = canonicalise([SourceTable("scores.parquet", "blake3:" + "0" * 64, table)], book)
    return judge(rows, book, files=["scores.parquet"])


class TestCohort:
    def test_ninety_six_of_eleven_hundred(self, cohort: Admission) -> None:
        assert cohort.counts["transitions"] == 1100
        assert cohort.counts["refused_transitions"] == cohort.sides.num_rows == 96
        assert cohort.admitted.num_rows + cohort.refused.num_rows == 69_656
        assert dict(cohort.findings.by_code) == {"cell-missing": 72, "reading-failed": 24}

    def test_the_first_are_named(self, cohort: Admission) -> None:
        lines = to_lines(cohort.findings)
        assert lines[0] == (
            "face traj000/step05: layout 2 missing in (after, direct); expected 4 layouts, found 3"
        )
        assert lines[1].startswith("face traj001/step06: layout 1 missing in (before, generated)")
        assert lines[2].startswith("face traj002/step00: layout 2 failed in (before, generated) with status")
        assert lines[3] == "… and 93 more (cell-missing 70, reading-failed 23)"

    def test_refused_sides_say_what_their_transition_is(self, cohort: Admission) -> None:
        sides = cohort.refused_sides
        assert all(s.step_kind and s.target for s in sides)
        assert [s.trajectory_id for s in sides] == sorted(s.trajectory_id for s in sides)
        assert {s.faults[0].kind.partition(":")[0] for s in sides} == {"absent", "failed"}
