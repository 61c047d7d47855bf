"""Score files that are damaged or misunderstood: each has its own code, and its place where there is one."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from contracts.errors import ContractError, LedgerError, StorageError, UsageError
from contracts.rows import canonicalise
from ledger.sources import read_sources
from tests.contracts.score_book import BOOK, row, table, with_column
from tests.ledger.written_sources import CSV, FORMATS, ipc, refused, written

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
    assert refused(tmp_path / "a.arrow", written(ipc(pa.ipc.new_file, 9), raw)).code == "unreadable"


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
