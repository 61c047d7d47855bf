"""Findings count exactly, keep little, say one line, and no setting keeps a model from looking."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pandera.polars as pp
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandera.api.polars.types import PolarsData
from pandera.config import ValidationDepth, config_context

from contracts.findings import Finding, Findings, rejects_schema, shown
from contracts.junit import to_junit
from contracts.pandera_config import failures
from contracts.reporting import to_json, to_lines
from contracts.schema import TRANSPORT


def finding(code: str = "nan", number: int = 1, **parts: Any) -> Finding:
    level = parts.pop("level", "row")
    return Finding(
        code, level, parts.pop("message", f"a.csv row {number}: energy is NaN"), rows=(number,), **parts
    )


def many(count: int, code: str = "nan", **parts: Any) -> Findings:
    findings = Findings()
    for number in range(1, count + 1):
        findings.add(finding(code, number, **parts))
    return findings


class TestCounting:
    def test_counts_are_exact_and_examples_bounded(self) -> None:
        findings = many(5000)
        findings.tally("nan", "row", 1_000_000)
        assert findings.by_code == {"nan": 1_005_000}
        assert findings.total == 1_005_000
        assert len(findings.examples) == 100

    def test_a_finding_may_stand_for_many_rows(self) -> None:
        findings = Findings()
        findings.add(finding(count=7))
        findings.add(finding("null", count=2))
        assert findings.by_code == {"nan": 7, "null": 2}
        assert findings.count_at({"row"}) == 9

    @given(
        st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), max_size=40),
        st.integers(0, 40),
        st.integers(1, 5),
    )
    def test_merging_loses_nothing(self, added: list[tuple[str, int]], cut: int, limit: int) -> None:
        whole, first, second = Findings(limit), Findings(limit), Findings(limit)
        for place, (code, count) in enumerate(added):
            each = finding(code, place, count=count)
            whole.add(each)
            (first if place < cut else second).add(each)
        second.tally("z", "side", 3)
        whole.tally("z", "side", 3)
        first.merge(second)
        assert first.by_code == whole.by_code
        assert {f.code for f in first.examples} == {f.code for f in whole.examples}
        assert all(sum(f.code == code for f in first.examples) <= limit for code in first.by_code)

    def test_one_code_has_one_level(self) -> None:
        findings = many(1)
        with pytest.raises(AssertionError, match="two levels"):
            findings.tally("nan", "side", 1)

    @pytest.mark.parametrize(("count", "rows"), [(0, ()), (1, tuple(range(11)))])
    def test_a_finding_is_bounded_and_found_something(self, count: int, rows: tuple[int, ...]) -> None:
        with pytest.raises(AssertionError):
            Finding("nan", "row", "", count=count, rows=rows)


class TestRefusing:
    @pytest.mark.parametrize(
        ("level", "refuses"), [("row", True), ("file", True), ("side", False), ("face", False)]
    )
    def test_rows_and_files_refuse_the_call(self, level: str, refuses: bool) -> None:
        findings = many(2, level=level)
        assert findings.refuses_call is refuses
        assert (findings.error() is not None) is refuses
        error = findings.error(strict=True)
        assert error is not None
        assert str(error) == "a.csv row 1: energy is NaN (and 1 more)"
        assert error.code == "nan"

    def test_nothing_found(self) -> None:
        assert Findings().error(strict=True) is None

    def test_only_a_count(self) -> None:
        findings = Findings()
        findings.tally("nan", "row", 3)
        error = findings.error()
        assert error is not None
        assert str(error) == "3 findings, first of code nan"


class TestLines:
    def test_first_three_then_counts(self) -> None:
        findings = many(5, message="side", level="side", code="cell-missing")
        findings.add(finding(message="row"))
        assert to_lines(findings) == ["row", "side", "side", "… and 3 more (cell-missing 3)"]

    def test_few(self) -> None:
        assert to_lines(many(2)) == ["a.csv row 1: energy is NaN", "a.csv row 2: energy is NaN"]
        assert to_lines(Findings()) == []

    def test_large_counts_can_be_read(self) -> None:
        findings = many(1)
        findings.tally("nan", "row", 1_000_000)
        assert to_lines(findings)[-1] == "… and 1,000,000 more (nan 1,000,000)"

    @given(st.text(max_size=200))
    def test_a_foreign_value_stays_on_its_line(self, text: str) -> None:
        line = shown(text)
        assert line.isprintable()
        assert len(line.splitlines()) <= 1
        assert text == line or len(text) > 80 or not text.isprintable()

    def test_long_values_are_cut(self) -> None:
        assert shown("x" * 81) == "x" * 79 + "…"
        assert shown("x" * 80) == "x" * 80
        assert shown("a\x1b[31m\nb\u2028") == "a\\x1b[31m\\nb\\u2028"


class TestForPrograms:
    def test_json_has_counts_and_parts(self) -> None:
        findings = Findings()
        findings.add(
            finding(column="energy", key={"step": 3}, file="a.csv", wanted="finite", got="NaN", count=4)
        )
        findings.tally("cell-missing", "side", 2)
        assert json.loads(json.dumps(to_json(findings))) == {
            "total": 6,
            "codes": {
                "nan": {"level": "row", "count": 4},
                "cell-missing": {"level": "side", "count": 2},
            },
            "findings": [
                {
                    "code": "nan",
                    "level": "row",
                    "message": "a.csv row 1: energy is NaN",
                    "column": "energy",
                    "key": {"step": 3},
                    "file": "a.csv",
                    "rows": [1],
                    "count": 4,
                    "wanted": "finite",
                    "got": "NaN",
                }
            ],
        }

    def test_junit_counts_failures(self) -> None:
        findings = many(3, file="a.csv")
        findings.tally("nan", "row", 9)
        root = ET.fromstring(to_junit(findings))
        assert (root.get("tests"), root.get("failures")) == ("4", "4")
        cases = root.findall("./testsuite/testcase")
        assert [case.get("name") for case in cases][-1] == "9 more nan"
        assert cases[0].get("classname") == "row.nan"
        assert cases[0].get("file") == "a.csv"
        assert all(case.find("failure") is not None for case in cases)

    def test_junit_without_findings_is_one_passed_test(self) -> None:
        root = ET.fromstring(to_junit(Findings()))
        assert (root.get("tests"), root.get("failures")) == ("1", "0")
        assert root.find("./testsuite/testcase/failure") is None

    @given(st.text(max_size=50))
    def test_junit_is_xml_whatever_an_id_holds(self, text: str) -> None:
        findings = Findings()
        findings.add(finding(message=f"<&\"'>]]>{text}", file=text or None))
        root = ET.fromstring(to_junit(findings))
        case = root.find("./testsuite/testcase")
        assert case is not None
        assert (case.get("name") or "").startswith("<&\"'>]]>")


def rejected(code: str, row: int) -> pa.Table:
    schema = rejects_schema()
    values = {"code": code, "row": row, "step": 1, "trajectory_id": "t0"}
    plain = [
        pa.array([values.get(f.name)], f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
        for f in schema
    ]
    return pa.table([column.cast(f.type) for column, f in zip(plain, schema, strict=True)], schema=schema)


class TestRejects:
    def test_the_key_columns_are_those_of_an_entry(self) -> None:
        names = rejects_schema().names
        assert [name for name in names if name in TRANSPORT.key] == list(TRANSPORT.key)
        assert {"file", "row", "code", "column", "wanted", "got", "level"} <= set(names)

    def test_tables_with_other_dictionaries_become_one(self) -> None:
        first, second = Findings(), Findings()
        first.reject(rejected("a", 1))
        second.reject(rejected("b", 2))
        first.merge(second)
        assert first.rejects().column("code").to_pylist() == ["a", "b"]
        assert first.rejects().column("row").to_pylist() == [1, 2]

    def test_none(self) -> None:
        assert Findings().rejects().schema.equals(rejects_schema())
        assert Findings().rejects().num_rows == 0


class Positive(pp.DataFrameModel):
    a: pl.Int64 = pp.Field(nullable=True)
    b: pl.Int64

    @pp.check("a", error="not-positive", n_failure_cases=3)
    @classmethod
    def positive(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key) > 0)

    @pp.dataframe_check(error="not-below", n_failure_cases=3)
    @classmethod
    def below(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("a") < pl.col("b"))

    class Config:
        strict = True


FRAME = pl.DataFrame({"a": [1, -1, 5, None], "b": [2, 2, 2, 2]})


class TestModels:
    def test_every_failing_row_of_every_check(self) -> None:
        found = {f.check: (f.column, f.rows.tolist()) for f in failures(Positive, FRAME)}
        assert found == {"not-positive": ("a", [1]), "not-below": (None, [2])}

    def test_more_rows_than_pandera_would_render(self) -> None:
        frame = pl.DataFrame({"a": -np.arange(1, 100_001), "b": np.zeros(100_000, dtype=np.int64)})
        (failure,) = failures(Positive, frame)
        assert failure.rows.tolist() == list(range(100_000))

    def test_a_column_that_is_missing_or_of_another_type(self) -> None:
        assert "column_in_dataframe" in [f.check for f in failures(Positive, FRAME.select("a"))]
        assert failures(Positive, FRAME.with_columns(pl.col("b").cast(pl.Float64)))
        assert "column_in_schema" in [f.check for f in failures(Positive, FRAME.with_columns(c=1))]

    def test_a_lazy_or_binary_frame_is_a_bug(self) -> None:
        with pytest.raises(AssertionError, match="LazyFrame"):
            failures(Positive, FRAME.lazy())  # type: ignore[arg-type]
        with pytest.raises(AssertionError, match="Binary"):
            failures(Positive, FRAME.with_columns(c=pl.lit(b"x")))

    @pytest.mark.parametrize("depth", ValidationDepth)
    def test_settings_of_the_caller(self, depth: ValidationDepth) -> None:
        with config_context(validation_enabled=False, validation_depth=depth):
            assert len(failures(Positive, FRAME)) == 2

    def test_the_environment(self, tmp_path: Path) -> None:
        script = tmp_path / "switched_off.py"  # since pyspark takes a program without a file for doctests
        script.write_text(
            "from tests.contracts.test_findings import FRAME, Positive, failures\n"
            "print(len(failures(Positive, FRAME)))\n"
        )
        settings = {
            "PANDERA_VALIDATION_ENABLED": "False",
            "PANDERA_VALIDATION_DEPTH": "SCHEMA_ONLY",
            "PANDERA_USE_NARWHALS_BACKEND": "True",
        }
        ran = subprocess.run(
            [sys.executable, "-W", "error::UserWarning", str(script)],
            env={**os.environ, **settings, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout == "2\n"
