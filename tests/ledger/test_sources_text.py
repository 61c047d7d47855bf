"""Reading CSV and JSON Lines: which texts are numbers, what stays unread, the places of both in the file."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.rows import canonicalise
from contracts.source_table import SourceTable
from ledger import source_csv, source_json, staging
from tests.contracts.score_book import BOOK, DIGEST, row, table
from tests.ledger.score_files import Row
from tests.ledger.written_sources import CSV, as_csv, as_json_lines, read, refused, written


def unread(source: SourceTable) -> list[tuple[str, str, list[int], list[str]]]:
    return [(u.column, u.code, u.rows.tolist(), u.values.to_pylist()) for u in source.unread]


class TestCsv:
    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_a_number_is_its_nearest_float64(self, value: float) -> None:
        for text in (repr(value), f"{value:.17e}", f"{value:.25e}".replace("e", "E"), f"{value:f}"):
            (parsed,) = source_csv._numbers(pa.array([text]))[0].to_pylist()
            assert (parsed, math.copysign(1, parsed)) == (float(text), math.copysign(1, value))

    @pytest.mark.parametrize("text", ["1", "-1", "+1.5", ".5", "1.", "007", "1e5", "1E-5", "-.5e+3"])
    def test_usual_forms(self, text: str) -> None:
        values, missed = source_csv._numbers(pa.array([text]))
        assert values.to_pylist() == [float(text)]
        assert not missed.any()

    @pytest.mark.parametrize(
        "text",
        ["abc", "1,5", "0x1", "1_0", " 1", "1 ", "--1", "1e", ".", "e5", "\u0661", "1f", "1\x00", "null"],
    )
    def test_other_forms_are_unread(self, text: str) -> None:
        values, missed = source_csv._numbers(pa.array([text]))
        assert values.to_pylist() == [None]
        assert missed.all()

    def test_what_programs_write_for_no_number_keeps_its_name(self, tmp_path: Path) -> None:
        rows = [row(energy=0.0)] * 4
        data = written(as_csv, table(rows)).decode()
        for text in ("NaN", "-inf", "Infinity", "1e999"):
            data = data.replace(",0.0,", f",{text},", 1)
        result = canonicalise([read(tmp_path / "a.csv", data)], BOOK)
        assert result.findings.by_code == {"nan": 1, "infinite": 3}

    def test_unread_fields_by_column_and_row(self, tmp_path: Path) -> None:
        data = (
            "energy,step,layout,success\n0.5,1.7,0,true\nabc,1,2.0,yes\n,,,\n1,9999999999999999999,+1,FALSE\n"
        )
        source = read(tmp_path / "a.csv", data)
        assert unread(source) == [
            ("energy", "not-a-number", [1], ["abc"]),
            ("step", "not-an-integer", [0, 3], ["1.7", "9999999999999999999"]),
            ("layout", "not-an-integer", [1], ["2.0"]),
            ("success", "not-a-boolean", [1], ["yes"]),
        ]
        assert source.table.to_pylist()[3] == {"energy": 1.0, "step": None, "layout": 1, "success": False}

    @pytest.mark.parametrize(("old", "new"), [("\n", "\r\n"), ("\n", "\n\n"), ("energy", "\ufeffenergy")])
    def test_line_ends_blank_lines_and_marks(self, old: str, new: str, tmp_path: Path) -> None:
        data = 'energy,candidate\n0.5,A\n1.5,"B, and ""C"""\n'.replace(old, new)
        source = read(tmp_path / "a.csv", data)
        assert source.table["energy"].to_pylist() == [0.5, 1.5]
        assert source.table["candidate"].to_pylist() == ["A", 'B, and "C"']

    def test_damage_is_told_with_its_place(self, tmp_path: Path) -> None:
        ragged = refused(tmp_path / "a.csv", CSV + "0.5,1\n0.5\n")
        assert ragged.where == f"{tmp_path / 'a.csv'}, data row 3"
        assert "1 fields and the header 2" in ragged.what
        latin = refused(tmp_path / "a.csv", CSV.encode() + b"0.5,1\n\xe9,1\n")
        assert latin.where == f"{tmp_path / 'a.csv'}, line 4"

    def test_places_hold_across_blocks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(source_csv, "BLOCK", 64)
        good = "energy,candidate\n" + "".join(f"{i},é{i}\n" for i in range(100))
        source = read(tmp_path / "a.csv", good)
        assert source.table["candidate"].to_pylist() == [f"é{i}" for i in range(100)]
        assert (
            refused(tmp_path / "a.csv", good.encode() + b"1,\xe9").where == f"{tmp_path / 'a.csv'}, line 102"
        )
        wrong = read(tmp_path / "a.csv", good.replace("\n77,", "\nx,"))
        assert unread(wrong) == [("energy", "not-a-number", [77], ["x"])]
        assert "longer than 64 bytes" in refused(tmp_path / "a.csv", good + "1," + "x" * 999).what


json_values = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers())
json_rows = st.dictionaries(
    st.sampled_from(["energy", "step", "candidate", "success", "state_hash", "request", "note", "mark"]),
    json_values,
).map(lambda found: {"energy": 1.0, **found})  # fmt: skip


class TestJsonLines:
    @settings(max_examples=60)
    @given(st.lists(json_rows, min_size=1, max_size=5), st.sampled_from(["\n", "\r\n", "\n\n"]))
    def test_the_quick_reading_is_the_strict_one(self, rows: list[Row], end: str) -> None:
        data = "".join(json.dumps(each) + end for each in rows)
        staged = staging.Staged("a", DIGEST, pa.py_buffer(data.encode()))
        quick = source_json.read_json_lines(staged)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(source_json, "_quick", lambda *arguments: None)
            strict = source_json.read_json_lines(staged)
        assert set(quick.names) == set(strict.names)
        assert [repr(quick.table.to_pydict()[name]) for name in strict.table.column_names] == [
            repr(column) for column in strict.table.to_pydict().values()
        ]
        assert np.array_equal(quick.row_numbers, strict.row_numbers)

    @pytest.mark.parametrize(
        "value", ["-0", "-0.0", "0", "1e-400", "5e-324", "12345678901234567890", "0.1", "1E5"]
    )
    def test_a_number_is_its_nearest_float64(self, value: str, tmp_path: Path) -> None:
        quick = read(tmp_path / "a.jsonl", f'{{"energy":{value}}}\n').table["energy"].to_pylist()
        strict = read(tmp_path / "a.jsonl", f'\n{{"energy":{value}}}\n').table["energy"].to_pylist()
        assert repr(quick) == repr(strict) == repr([float(value)])

    def test_unread_values_by_column_and_line(self, tmp_path: Path) -> None:
        lines = [
            '{"energy": "0.5", "step": 1.0, "candidate": 3, "success": 1}',
            "",
            '{"energy": true, "step": "1", "candidate": "\\ud800", "success": "true"}',
            '{"energy": [1], "step": 99999999999999999999, "candidate": null, "success": false}',
            '{"energy": 1e999, "step": 1}',
        ]
        source = read(tmp_path / "a.jsonl", "\n".join(lines))
        assert unread(source) == [
            ("energy", "not-a-number", [0, 1, 2], ['"0.5"', "true", "[1]"]),
            ("step", "not-an-integer", [0, 1, 2], ["1.0", '"1"', "99999999999999999999"]),
            ("candidate", "not-text", [0, 1], ["3", '"\\ud800"']),
            ("success", "not-a-boolean", [0, 1], ["1", '"true"']),
        ]
        assert source.row_numbers is not None
        assert source.row_numbers.tolist() == [1, 3, 4, 5]
        assert source.table["energy"].to_pylist()[3] == math.inf

    def test_python_s_nan_is_refused_by_name(self, tmp_path: Path) -> None:
        data = written(as_json_lines, table([row(energy=math.nan), row(energy=-math.inf)]))
        assert b"NaN" in data
        result = canonicalise([read(tmp_path / "a.jsonl", data)], BOOK)
        assert result.findings.by_code == {"nan": 1, "infinite": 1}

    def test_lines_are_counted_across_blocks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(source_json, "BLOCK", 200)
        monkeypatch.setattr(source_json, "LONGEST", 1000)
        lines = [json.dumps({"energy": i, "candidate": "é" * (i % 90)}) for i in range(60)]
        lines[20] = ""
        source = read(tmp_path / "a.jsonl", "\ufeff" + "\r\n".join(lines))
        assert source.table["energy"].to_pylist() == [float(i) for i in range(60) if i != 20]
        assert source.row_numbers is not None
        assert source.row_numbers.tolist() == [i + 1 for i in range(60) if i != 20]
        lines[50] = '{"energy": 1'
        assert refused(tmp_path / "a.jsonl", "\n".join(lines)).where == f"{tmp_path / 'a.jsonl'}, line 51"
        lines[50] = json.dumps({"energy": 1, "candidate": "x" * 2000})
        assert "longer than" in refused(tmp_path / "a.jsonl", "\n".join(lines)).what

    def test_a_column_may_begin_late(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(source_json, "BLOCK", 64)
        lines = ['{"energy": 1}'] * 9 + ['{"energy": 1, "step_kind": "late", "note": 1}']
        source = read(tmp_path / "a.jsonl", "\n".join(lines))
        assert source.table["step_kind"].to_pylist() == [None] * 9 + ["late"]
        assert source.ignored == ("note",)
