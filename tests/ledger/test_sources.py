"""Reading score files: every format to the same rows, damage by name, the bytes that were hashed."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.digest import blake3_digest, sha256_digest
from contracts.errors import ContractError, LedgerError, StorageError, UsageError
from contracts.rows import canonicalise
from contracts.source_table import SourceTable
from ledger import durable, source_csv, source_json, staging
from ledger.sources import read_sources
from tests.contracts.score_book import BOOK, DIGEST, row, table, with_column
from tests.ledger.score_files import Row


def read(path: Path, data: bytes | str) -> SourceTable:
    """The bytes as a file of that name, read."""
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    (source,) = read_sources([path])
    return source


def refused(path: Path, data: bytes | str) -> LedgerError:
    with pytest.raises(LedgerError) as error:
        read(path, data)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    return error.value


def written(write: Callable[[pa.Table, io.BytesIO], object], raw: pa.Table) -> bytes:
    sink = io.BytesIO()
    write(raw, sink)
    return sink.getvalue()


def _ipc(maker: Callable[..., Any], rows: int) -> Callable[[pa.Table, io.BytesIO], None]:
    def write(raw: pa.Table, sink: io.BytesIO) -> None:
        with maker(sink, raw.schema) as writer:
            writer.write_table(raw, max_chunksize=rows)

    return write


def _csv(raw: pa.Table, sink: io.BytesIO) -> None:
    """As polars writes it: null as nothing, a text with commas or quotes in quotes."""
    pl.DataFrame(raw).write_csv(sink)


def _json(raw: pa.Table, sink: io.BytesIO) -> None:
    for each in raw.to_pylist():
        sink.write(json.dumps({k: v for k, v in each.items() if v is not None}).encode() + b"\n")


FORMATS: dict[str, tuple[str, Callable[[pa.Table, io.BytesIO], object]]] = {
    "parquet": ("a.parquet", pq.write_table),
    "parquet in groups": ("a.parquet", lambda raw, sink: pq.write_table(raw, sink, row_group_size=2)),
    "parquet plain": ("a.parquet", lambda raw, sink: pq.write_table(raw, sink, use_dictionary=False)),
    "parquet by polars": ("a.parquet", lambda raw, sink: pl.DataFrame(raw).write_parquet(sink)),
    "arrow file": ("a.arrow", _ipc(pa.ipc.new_file, 2)),
    "arrow stream": ("a.arrows", _ipc(pa.ipc.new_stream, 3)),
    "arrow by polars": ("a.ipc", lambda raw, sink: pl.DataFrame(raw).write_ipc(sink)),
    "feather": ("a.feather", lambda raw, sink: pa.feather.write_feather(raw, sink, compression="zstd")),
    "csv": ("a.csv", _csv),
    "json lines": ("a.jsonl", _json),
    "named nothing": ("a", _json),
    "parquet named csv": ("a.csv", pq.write_table),
    "parquet named json lines": ("a.jsonl", pq.write_table),
    "json lines named csv": ("a.csv", _json),
}  # fmt: skip
names = st.text(st.characters(categories=["Lu", "Ll", "Nd", "Po"]), min_size=1, max_size=6).map(
    lambda text: "n" + "".join(c for c in text if c.isprintable())
)
energies = st.floats(-(2.0**20), 2.0**20)
good_rows = st.builds(
    row,
    trajectory_id=names,
    candidate=names,
    step=st.integers(0, 2**31 - 1),
    energy=energies,
    success=st.none() | st.booleans(),
    label_mass=st.none() | st.floats(0, 1),
    step_kind=st.none() | names,
    request_hash=st.sampled_from([DIGEST, sha256_digest(b"x")]),
)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_same_rows(form: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("formats")
    name, write = FORMATS[form]

    @settings(max_examples=7)
    @given(st.lists(good_rows, min_size=1, max_size=9))
    def check(rows: list[Row]) -> None:
        raw = table(rows)
        data = written(write, raw)
        source = read(folder / name, data)
        assert source.digest == blake3_digest(data)
        expected = canonicalise([SourceTable("a", DIGEST, raw)], BOOK)
        result = canonicalise([source], BOOK)
        assert result.findings.by_code == expected.findings.by_code
        assert result.table.to_pylist() == expected.table.to_pylist()
        signs = [math.copysign(1, each["energy"]) for each in result.table.to_pylist()]
        assert signs == [math.copysign(1, each["energy"]) for each in expected.table.to_pylist()]

    check()


class TestBytes:
    def test_a_pipe_is_read_like_a_file(self, tmp_path: Path) -> None:
        data = written(pq.write_table, table([row()]))
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        feeder = threading.Thread(target=pipe.write_bytes, args=(data,))
        feeder.start()
        (source,) = read_sources([pipe])
        feeder.join()
        assert (source.digest, source.table.num_rows) == (blake3_digest(data), 1)

    @pytest.mark.parametrize("form", ["parquet", "arrow file", "csv", "json lines"])
    def test_large_inputs_wait_in_the_staging_directory(
        self, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(staging, "IN_MEMORY", 100)
        monkeypatch.setattr(staging, "CHUNK", 64)
        waiting = tmp_path / "staging"
        waiting.mkdir()
        name, write = FORMATS[form]
        data = written(write, table([row(), row(candidate="B")]))
        (tmp_path / name).write_bytes(data)
        (source,) = read_sources([tmp_path / name], staging=waiting)
        assert source.digest == blake3_digest(data)
        assert canonicalise([source], BOOK).table.num_rows == 2
        assert list(waiting.iterdir()) == []

    @pytest.mark.parametrize("at", [1, 3])
    @pytest.mark.parametrize("named", [False, True])
    def test_a_full_disk_is_not_blamed_on_the_input(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, named: bool
    ) -> None:
        """Whether it is full at once or at the rest."""
        monkeypatch.setattr(staging, "IN_MEMORY", 100)
        monkeypatch.setattr(staging, "CHUNK", 64)
        write, count = durable.write_all, 0

        def fill(descriptor: int, data: bytes | memoryview) -> None:
            nonlocal count
            count += 1
            if count == at:
                raise OSError(errno.ENOSPC, "No space left on device")
            write(descriptor, data)

        monkeypatch.setattr(durable, "write_all", fill)
        waiting = tmp_path / "staging"
        waiting.mkdir()
        (tmp_path / "a.csv").write_bytes(b"x" * 300)
        with pytest.raises(StorageError, match="no space left") as caught:
            staging.stage(tmp_path / "a.csv", waiting, waiting / "named" if named else None)
        assert (caught.value.code, caught.value.where) == ("disk-full", str(waiting))

    def test_a_staging_directory_that_is_gone_is_not_blamed_on_the_input(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(staging, "IN_MEMORY", 100)
        (tmp_path / "a.csv").write_bytes(b"x" * 300)
        with pytest.raises(StorageError) as caught:
            staging.stage(tmp_path / "a.csv", tmp_path / "gone")
        assert (caught.value.code, caught.value.where) == ("missing-file", str(tmp_path / "gone"))

    def test_a_name_that_is_not_utf8_is_refused_since_it_would_be_recorded(self, tmp_path: Path) -> None:
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.csv"))
        with pytest.raises(UsageError, match="not UTF-8") as caught:
            staging.stage(path)
        assert caught.value.code == "not-utf-8"

    def test_what_is_decoded_is_what_was_hashed(self, tmp_path: Path) -> None:
        path = tmp_path / "a.arrow"
        source = read(path, written(_ipc(pa.ipc.new_file, 9), table([row(energy=0.25)])))
        path.write_bytes(b"\0" * path.stat().st_size)
        assert source.table["energy"].to_pylist() == [0.25]

    @pytest.mark.parametrize("path", ["absent.csv", "."])
    def test_what_cannot_be_opened(self, path: str, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match=r"no such file|folder"):
            read_sources([tmp_path / path])


CSV = "energy,step\n0.5,1\n"
DAMAGED: dict[str, tuple[str, bytes | str, type[LedgerError], str]] = {
    "empty": ("a.csv", "", ContractError, "empty-file"),
    "empty parquet": ("a.parquet", "", ContractError, "empty-file"),
    "blank": ("a.csv", " \n\n", ContractError, "empty-file"),
    "blank json": ("a.jsonl", "\n \n", ContractError, "empty-file"),
    "header": ("a.csv", "energy,step", ContractError, "no-rows"),
    "header and line end": ("a.csv", "energy,step\r\n", ContractError, "no-rows"),
    "header and blank lines": ("a.csv", "energy,step\n\n\n", ContractError, "no-rows"),
    "csv named parquet": ("a.parquet", CSV, ContractError, "misnamed"),
    "json named feather": ("a.feather", '{"energy":1}\n', ContractError, "misnamed"),
    "csv named json lines": ("a.jsonl", CSV, ContractError, "not-json-lines"),
    "noise named parquet": ("a.parquet", b"\x00\x01\x02", StorageError, "unreadable"),
    "noise": ("a.csv", b"\x00\x01\x02\n", StorageError, "unreadable"),
    "gzip": ("a.csv.gz", b"\x1f\x8b\x08\x00", ContractError, "unsupported-format"),
    "spreadsheet": ("a.xlsx", b"PK\x03\x04..", ContractError, "unsupported-format"),
    "utf-16": ("a.csv", CSV.encode("utf-16"), ContractError, "unsupported-format"),
    "feather 1": ("a.feather", b"FEA1\0\0\0\0FEA1", ContractError, "unsupported-format"),
    "json array": ("a.json", '[{"energy":1}]', ContractError, "unsupported-format"),
    "repeated column": ("a.csv", "energy,step,energy\n1,1,2\n", ContractError, "duplicate-column"),
    "repeated unknown column": ("a.csv", "energy,x,x\n1,1,2\n", ContractError, "duplicate-column"),
    "repeated key": ("a.jsonl", '{"energy":1}\n{"energy":1,"energy":2}\n', ContractError, "duplicate-column"),
    "repeated unknown key": ("a.jsonl", '{"energy":1,"x":1,"x":2}\n', ContractError, "duplicate-column"),
    "repeated inner key": ("a.jsonl", '{"energy":1,"x":{"y":1,"y":2}}\n', ContractError, "duplicate-column"),
    "no kind": ("a.csv", "a,b\n1,2\n", ContractError, "kind-unclear"),
    "semicolons": ("a.csv", "energy;step\n1;2\n", ContractError, "kind-unclear"),
    "predictions": ("a.jsonl", '{"query_id":1,"before":{},"after":{}}\n', UsageError, "kind-unsupported"),
    "field too few": ("a.csv", CSV + "0.5\n", ContractError, "not-csv"),
    "last row cut off": ("a.csv", CSV + "0.5", StorageError, "truncated"),
    "field too many": ("a.csv", CSV + "0.5,1,2\n", ContractError, "not-csv"),
    "open quote": ("a.csv", CSV + '0.5,"1\n0.5,1\n', ContractError, "not-csv"),
    "latin-1": ("a.csv", CSV.encode() + b"0.5,\xe9\n", ContractError, "not-utf-8"),
    "cut within a character": ("a.csv", CSV.encode() + b"0.5,\xc3", StorageError, "truncated"),
    "latin-1 json": ("a.jsonl", b'{"energy":1}\n{"x":"\xe9"}\n', ContractError, "not-utf-8"),
    "cut json": ("a.jsonl", '{"energy":1}\n{"ener', StorageError, "truncated"),
    "broken json": ("a.jsonl", '{"energy":1}\n{"ener\n{"energy":1}\n', ContractError, "not-json-lines"),
    "no json": ("a.jsonl", "energy\n1\n", ContractError, "not-json-lines"),
    "no object": ("a.jsonl", '{"energy":1}\n[1]\n', ContractError, "not-json-lines"),
    "deep json": ("a.jsonl", '{"energy":' + "[" * 100_000, StorageError, "truncated"),
    "magic alone": ("a.parquet", b"PAR1PAR1", StorageError, "truncated"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGED)
def test_damage_and_misunderstanding_have_their_own_codes(kind: str, tmp_path: Path) -> None:
    name, data, error, code = DAMAGED[kind]
    found = refused(tmp_path / name, data)
    assert (type(found), found.code) == (error, code)


@pytest.mark.parametrize("form", ["parquet", "arrow file", "arrow stream"])
def test_a_cut_binary_file_is_truncated_wherever_it_is_cut(form: str, tmp_path: Path) -> None:
    name, write = FORMATS[form]
    data = written(write, table([row(candidate=c) for c in "ABCDEFGH"]))
    for size in range(16, len(data), 97):
        error = refused(tmp_path / name, data[:size])
        assert (type(error), error.code) == (StorageError, "truncated")


@pytest.mark.parametrize("form", ["parquet", "arrow file", "arrow stream"])
def test_binary_files_with_columns_and_no_rows(form: str, tmp_path: Path) -> None:
    name, write = FORMATS[form]
    assert refused(tmp_path / name, written(write, table([row()]).slice(0, 0))).code == "no-rows"


@pytest.mark.parametrize("form", ["parquet", "arrow file", "arrow stream"])
def test_repeated_columns_of_binary_files(form: str, tmp_path: Path) -> None:
    name, write = FORMATS[form]
    raw = table([row()]).append_column("step", pa.array(["x"]))
    assert refused(tmp_path / name, written(write, raw)).code == "duplicate-column"


@pytest.mark.parametrize("form", ["parquet", "feather"])
@pytest.mark.parametrize("coded", [True, False])
def test_text_that_is_not_utf8_is_told_with_its_row(form: str, coded: bool, tmp_path: Path) -> None:
    name, write = FORMATS[form]
    broken = pa.Array.from_buffers(pa.string(), 3, pa.array([b"a", b"b", b"\xff"], pa.binary()).buffers())
    raw = with_column(table([row()] * 3), "candidate", broken.dictionary_encode() if coded else broken)
    error = refused(tmp_path / name, written(write, raw))
    assert error.code == "unreadable"
    assert error.where == f"{tmp_path / name}, row 3"


def test_a_code_without_a_label_is_damage(tmp_path: Path) -> None:
    labels = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int8()), pa.array(["before"]), safe=False)
    raw = with_column(table([row()] * 2), "endpoint", labels)
    assert refused(tmp_path / "a.arrow", written(_ipc(pa.ipc.new_file, 9), raw)).code == "unreadable"


def test_other_columns_are_named_and_change_nothing(tmp_path: Path) -> None:
    raw = table([row(), row(candidate="B")])
    expected = canonicalise([SourceTable("a", DIGEST, raw)], BOOK).table.to_pylist()
    for name in ("source_file", "source_row", "arm", "value", "status_", "__index_level_0__", " energy"):
        raw = with_column(raw, name, pa.array([7, 8]))
    for form in ("parquet", "arrow file", "csv", "json lines"):
        file, write = FORMATS[form]
        source = read(tmp_path / file, written(write, raw))
        assert set(source.ignored) == set(raw.column_names) - set(row())
        assert canonicalise([source], BOOK).table.to_pylist() == expected


@pytest.mark.parametrize("form", FORMATS)
def test_texts_are_digested_on_arrival(form: str, tmp_path: Path) -> None:
    rows = [
        row(state="s", request=text, view=None, state_hash=sha256_digest(b"s"), request_hash=...)
        for text in ("one, two", "one, two", 'say "é"', "two\nlines", "x" * 5000)
    ]
    name, write = FORMATS[form]
    source = read(tmp_path / name, written(write, table(rows)))
    assert source.table["request"].type == pa.dictionary(pa.int32(), pa.binary(33))
    result = canonicalise([source], BOOK)
    assert result.findings.by_code == {}
    digests = [value[1:].hex() for value in result.table["request_hash"].to_pylist()]
    assert digests == [blake3_digest(each["request"].encode()).partition(":")[2] for each in rows]


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
        data = written(_csv, table(rows)).decode()
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
        data = written(_json, table([row(energy=math.nan), row(energy=-math.inf)]))
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


@pytest.mark.sweep
@pytest.mark.parametrize("form", [form for form in FORMATS if form != "named nothing"])
def test_damaged_bytes_never_end_in_anything_but_an_error_of_ours(form: str, tmp_path: Path) -> None:
    name, write = FORMATS[form]
    base = written(write, table([row(candidate=c, energy=i / 7, step=i) for i, c in enumerate("ABCDEFGH")]))
    chance = random.Random(20260928)
    for _ in range(400):
        data = bytearray(base)
        for _ in range(chance.choice([1, 1, 3, 20])):
            data[chance.randrange(len(data))] = chance.randrange(256)
        cut = len(data) if chance.random() < 0.8 else chance.randrange(len(data))
        (tmp_path / name).write_bytes(data[:cut])
        with suppress(LedgerError):
            canonicalise(read_sources([tmp_path / name]), BOOK).findings.rejects()


@pytest.mark.parametrize("named", [False, True])
def test_what_was_read_of_a_large_input_is_let_go_of_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    monkeypatch.setattr(staging, "IN_MEMORY", 1 << 16)
    data = random.Random(1).randbytes(1 << 22)
    (tmp_path / "a").write_bytes(data)
    file = tmp_path / "b" if named else None
    staged = staging.stage(tmp_path / "a", tmp_path, file)
    assert bytes(staged.view) == data
    held = _resident(staged)
    staged.let_go()
    assert held is None or (held >= len(data) and _resident(staged) == 0)
    assert bytes(staged.view) == data
    small = staging.stage(_small(tmp_path))
    small.let_go()
    assert bytes(small.view) == b"x"


def _small(folder: Path) -> Path:
    (folder / "small").write_bytes(b"x")
    return folder / "small"


def _resident(staged: staging.Staged) -> int | None:
    """How many bytes of a mapped input this process holds, None where the system does not tell."""
    maps = Path("/proc/self/smaps")
    if not maps.exists():
        return None
    start, inside = f"{staged.data.address:x}-", False
    for line in maps.read_text().splitlines():
        if inside and line.startswith("Rss:"):
            return int(line.split()[1]) << 10
        inside = inside or line.startswith(start)
    return None
