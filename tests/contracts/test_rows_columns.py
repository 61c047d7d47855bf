"""The columns of the row level: every way one may arrive, digests and types, how a wrong one is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.digest import blake3_digest, pack, unpack
from contracts.labels import text_labels
from contracts.rows import canonicalise
from contracts.source_table import SourceTable, Unread
from contracts.template import template
from ledger.sources import read_sources
from tests.contracts.score_book import (
    BOOK,
    DIGEST,
    DIRECT,
    GENERATED,
    judged,
    row,
    source,
    table,
    with_column,
)


class TestDigests:
    def test_a_file_without_a_digest_column_is_declared(self) -> None:
        files = [source(table([row()]), "a"), source(table([row(request_hash=...)]), "b")]
        result = canonicalise(files, BOOK)
        assert result.findings.total == 0
        assert result.missing_digests == {"request_hash": ("b",)}

    def test_a_column_of_nulls_is_an_absent_one(self) -> None:
        result = judged(row(state_hash=None), row(state_hash=None))
        assert result.findings.total == 0
        assert result.missing_digests == {"state_hash": ("a.parquet",)}

    def test_a_view_is_asked_of_channels_that_show_one(self) -> None:
        shown = row(channel="generated", view_hash=DIGEST)
        assert judged(row(), shown).findings.total == 0
        result = judged(row(), shown, row(channel="generated"))
        assert result.findings.by_code == {"view-hash-missing": 1}
        assert result.findings.examples[0].rows == (3,)
        assert judged(row(channel="generated")).missing_digests == {"view_hash": ("a.parquet",)}

    def test_texts_stand_for_their_digests(self) -> None:
        texts = {"state": "seen", "candidates": "A|B", "request": "ask", "view": "look"}
        hashed = {f"{name}_hash": ... for name in ("state", "candidates", "request")}
        (entry,) = judged(row(channel="generated", **texts, **hashed)).table.to_pylist()
        for name, text in texts.items():
            assert unpack(entry[f"{name}_hash"]) == blake3_digest(text.encode())

    def test_a_text_and_its_digest_must_agree(self) -> None:
        seen = blake3_digest(b"seen")
        good = row(state="seen", state_hash=seen)
        assert judged(good, row(state=None), row(state="seen", state_hash=None)).findings.total == 0
        result = judged(good, row(state="other", state_hash=seen))
        (finding,) = result.findings.examples
        assert (finding.code, finding.rows, finding.got) == ("digest-disagrees", (2,), seen)

    @pytest.mark.parametrize("where", ["field", "file"])
    @pytest.mark.parametrize("coded", [True, False])
    def test_binary_digests_with_their_algorithm(self, where: str, coded: bool) -> None:
        raw = table([row(), row(state_hash=None, status="error", energy=None)])
        values = pa.array([bytes.fromhex("ab" * 32), None], pa.binary(32))
        metadata = {"ledger.digest": "sha256"}
        given = with_column(
            raw,
            "state_hash",
            values.dictionary_encode() if coded else values,
            metadata if where == "field" else None,
        )
        given = given.replace_schema_metadata(metadata if where == "file" else None)
        result = canonicalise([source(given)], BOOK)
        assert result.table["state_hash"].to_pylist() == [pack("sha256:" + "ab" * 32), None]

    def test_binary_digests_without_an_algorithm_are_refused(self) -> None:
        bare = with_column(table([row()]), "state_hash", pa.array([b"x" * 32], pa.binary(32)))
        (finding,) = canonicalise([source(bare)], BOOK).findings.examples
        assert (finding.code, finding.column) == ("wrong-type", "state_hash")
        assert finding.got == "fixed_size_binary[32]"

    def test_packed_digests_of_an_unknown_algorithm_are_refused(self) -> None:
        values = pa.array([pack(DIGEST), b"\x13" + b"x" * 32], pa.binary(33))
        given = with_column(table([row(), row()]), "state_hash", values)
        findings = canonicalise([source(given)], BOOK).findings
        assert findings.by_code == {"bad-digest": 1}
        assert findings.examples[0].rows == (2,)

    def test_files_may_spell_digests_in_different_ways(self) -> None:
        packed = with_column(table([row()]), "state_hash", pa.array([pack(DIGEST)], pa.binary(33)))
        result = canonicalise([source(table([row()])), source(packed)], BOOK)
        (column,) = result.table["state_hash"].chunks
        assert column.indices.to_pylist() == [0, 0]


class TestTypes:
    @pytest.mark.parametrize(
        ("column", "kind"),
        [
            ("energy", pa.string()), ("energy", pa.decimal128(10, 4)), ("energy", pa.int64()),
            ("energy", pa.float16()), ("step", pa.float64()), ("step", pa.string()), ("layout", pa.bool_()),
            ("trajectory_id", pa.int64()), ("trajectory_id", pa.binary()), ("success", pa.int8()),
            ("success", pa.string()), ("channel", pa.int32()), ("state_hash", pa.binary()),
            ("label_mass", pa.string()), ("target", pa.list_(pa.string())), ("request", pa.int64()),
        ],
    )  # fmt: skip
    def test_a_wrong_type_is_a_finding_of_the_file(self, column: str, kind: pa.DataType) -> None:
        raw = with_column(table([row(), row()]), column, pa.nulls(2, kind))
        result = canonicalise([SourceTable("a", DIGEST, raw)], BOOK)
        (finding,) = result.findings.examples
        assert (finding.code, finding.level, finding.column) == ("wrong-type", "file", column)
        assert finding.got == ("text" if pa.types.is_string(kind) else str(kind))
        assert finding.wanted
        assert result.findings.rejects().num_rows == 1

    @pytest.mark.parametrize("column", ["trajectory_id", "step", "endpoint", "candidate", "energy", "target"])
    def test_a_missing_column_is_told_once(self, column: str) -> None:
        result = judged(row(**{column: ...}), row(**{column: ...}))
        assert result.findings.by_code == {"missing-column": 1}
        assert result.findings.examples[0].column == column

    def test_defaults_fill_absent_columns_only(self) -> None:
        bare = source(table([row(channel=..., acquisition_id=...)]))
        assert canonicalise([bare], BOOK).findings.by_code == {"missing-column": 2}
        given = source(table([row(channel="generated", acquisition_id="x", view_hash=DIGEST)]))
        result = canonicalise([bare, given], BOOK, default_channel="direct", default_acquisition="run-9")
        assert result.table["acquisition_id"].to_pylist() == ["run-9", "x"]
        fingerprints = [unpack(value) for value in result.table["channel"].to_pylist()]
        assert fingerprints == [DIRECT.fingerprint, GENERATED.fingerprint]
        null = source(table([row(channel=None)]))
        assert canonicalise([null], BOOK, default_channel="direct").findings.by_code == {"null": 1}

    @pytest.mark.parametrize(
        "kind", [pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64(), pa.uint64()]
    )
    def test_integers_of_any_width(self, kind: pa.DataType) -> None:
        raw = table([row(step=7, position=3)])
        for column in ("step", "layout", "position"):
            raw = with_column(raw, column, raw[column].cast(kind))
        result = canonicalise([source(raw)], BOOK)
        assert [result.table[c].to_pylist() for c in ("step", "layout", "position")] == [[7], [0], [3]]

    def test_an_unsigned_integer_beyond_int64_is_out_of_range(self) -> None:
        raw = with_column(table([row()]), "step", pa.array([2**64 - 1], pa.uint64()))
        assert canonicalise([source(raw)], BOOK).findings.by_code == {"step-range": 1}

    def test_single_precision_only_where_the_channel_reads_in_it(self) -> None:
        raw = table([row(channel="single"), row(), row(channel="single", energy=0.1)])
        raw = with_column(raw, "energy", raw["energy"].cast(pa.float32()))
        result = canonicalise([source(raw)], BOOK)
        assert result.findings.by_code == {"float32-energy": 1}
        assert result.findings.examples[0].rows == (2,)
        (_, _, third) = canonicalise([source(raw.take([0, 0, 2]))], BOOK).table["energy"].to_pylist()
        assert third == float(np.float32(0.1))

    def test_columns_of_no_type_are_absent(self) -> None:
        raw = table([row()]).append_column("success", pa.nulls(1)).append_column("state", pa.nulls(1))
        assert canonicalise([source(raw)], BOOK).findings.total == 0

    def test_a_value_the_reader_could_not_read_is_told_once(self) -> None:
        unread = Unread("energy", "not-a-number", np.array([1]), pa.array(["abc"]))
        file = SourceTable("a.csv", DIGEST, table([row(), row(energy=None)]), unread=(unread,))
        (finding,) = canonicalise([file], BOOK).findings.examples
        assert (finding.code, finding.rows, finding.got) == ("not-a-number", (2,), "abc")

    def test_row_numbers_are_those_of_the_file(self) -> None:
        file = SourceTable("a.jsonl", DIGEST, table([row(), row(step=-1)]), row_numbers=np.array([1, 4]))
        assert canonicalise([file], BOOK).findings.examples[0].rows == (4,)


# Ways to lay out the same text column.
def _chunked(values: list[str | None]) -> pa.ChunkedArray:
    """Dictionaries that differ between chunks, name a label twice, hold null and labels nobody uses."""
    chunks = []
    for start in range(0, len(values), 2):
        part = values[start : start + 2]
        labels = [*part, "unused \u200b", None, *part]
        indices = pa.array([len(part) + 2 + i if i else 0 for i in range(len(part))], pa.int8())
        chunks.append(pa.DictionaryArray.from_arrays(indices, pa.array(labels, pa.string())))
    return pa.chunked_array(chunks, pa.dictionary(pa.int8(), pa.string()))


LAYOUTS = {
    "large": lambda values: pa.chunked_array([pa.array(values, pa.large_string())]),
    "view": lambda values: pa.chunked_array([pa.array(values, pa.string_view())]),
    "dictionary": lambda values: pa.chunked_array([pa.array(values, pa.string()).dictionary_encode()]),
    "large dictionary": lambda values: pa.chunked_array(
        [pa.array(values, pa.large_string()).dictionary_encode()]
    ),
    "unsigned": lambda values: pa.chunked_array(
        [pa.array(values, pa.string()).dictionary_encode().cast(pa.dictionary(pa.uint64(), pa.string()))]
    ),
    "sliced": lambda values: pa.chunked_array([pa.array(["x", *values, "y"], pa.string())[1:-1]]),
    "odd chunks": _chunked,
    "one by one": lambda values: pa.chunked_array([pa.array([v], pa.string()) for v in values], pa.string()),
    "enum": lambda values: pa.chunked_array(
        [pl.Series(values, dtype=pl.Enum([*sorted({v for v in values if v}), "never"])).to_arrow()]
    ),
    "categorical": lambda values: pa.chunked_array([pl.Series(values, dtype=pl.Categorical).to_arrow()]),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=6)
@given(st.data())
def test_text_is_read_alike_however_it_is_laid_out(layout: str, data: st.DataObject) -> None:
    names = st.sampled_from(["t1", "t2", "é", "Z", "\U0001f600", "a b"])
    rows = [
        row(
            trajectory_id=data.draw(names), candidate=data.draw(names), step_kind=data.draw(st.none() | names)
        )
        for _ in range(data.draw(st.integers(1, 7)))
    ]
    plain = table(rows)
    columns = {
        name: LAYOUTS[layout](column.to_pylist()) if column.type == pa.string() else column
        for name, column in zip(plain.column_names, plain.columns, strict=True)
    }
    expected = canonicalise([source(plain)], BOOK)
    result = canonicalise([source(pa.table(columns))], BOOK)
    assert result.findings.total == expected.findings.total == 0
    assert result.table.to_pylist() == expected.table.to_pylist()
    for name in ("trajectory_id", "candidate", "step_kind"):
        (column,) = result.table[name].chunks
        labels = [value.encode() for value in column.dictionary.to_pylist()]
        assert labels == sorted(set(labels))
        assert set(column.indices.drop_null().to_pylist()) == set(range(len(labels)))


def test_an_unknown_label_is_named_and_an_unused_one_is_not() -> None:
    values = pa.DictionaryArray.from_arrays(
        pa.array([0, 2], pa.int8()), pa.array(["before", "nowhere", "during"])
    )
    raw = with_column(table([row(), row()]), "endpoint", values)
    (finding,) = canonicalise([source(raw)], BOOK).findings.examples
    assert (finding.code, finding.got, finding.rows) == ("endpoint-unknown", "during", (2,))


def test_labels_of_no_rows() -> None:
    assert len(text_labels([0]).codes) == 0
    assert canonicalise([], BOOK).table.num_rows == 0


def test_ignored_columns_are_named_once() -> None:
    files = [SourceTable(name, DIGEST, table([row()]), ignored=("note", "arm")) for name in "ab"]
    assert canonicalise(files, BOOK).ignored == ("note", "arm")


def test_a_layout_written_as_a_float_is_told_with_its_value_and_how_to_write_it(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(template("transport").replace(",direct,0,", ",direct,0.0,", 1))
    (finding,) = canonicalise(read_sources([path]), BOOK).findings.examples[:1]
    assert "layout 0.0" in finding.message
    assert "astype(int)" in finding.message


def test_a_misspelt_column_is_guessed(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(template("transport").replace("candidate,", "candidat,", 1))
    (finding,) = canonicalise(read_sources([path]), BOOK).findings.examples[:1]
    assert (
        "required column candidate is missing; expected text; did you mean it by candidat?" in finding.message
    )


def test_an_integer_column_of_floats_is_told_how_to_be_written() -> None:
    raw = pa.table({"layout": pa.array([0.0])})
    found = canonicalise([SourceTable("a", "blake3:" + "ab" * 32, raw)], BOOK).findings.examples
    (finding,) = [finding for finding in found if finding.code == "wrong-type"]
    assert finding.message.endswith("(in pandas, astype(int))")
