"""CSV score files, read by declared type: a field is what its column says it is, or it is unread.

Numbers are in the usual ASCII decimal form and become the nearest float64; nothing is guessed from the
values. An empty field is null. Rows are counted as records, whatever line ends a quoted field holds.
"""

from __future__ import annotations

import csv
import io
import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
from numpy.typing import NDArray

from contracts.errors import ContractError, LedgerError, StorageError
from contracts.findings import SHOWN
from contracts.source_table import INCOMING
from ledger.source_values import CODED, TYPES, Decoded, Unreads, arriving, not_utf8
from ledger.staging import Staged

BLOCK = 8 * 1024 * 1024
_HEADER = 1024 * 1024
_NUMBER = r"\A[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\z"
# Not numbers but what programs write for them; they become what they mean and are refused by name.
_NOT_FINITE = r"\A(?i:[+-]?(nan|inf|infinity))\z"
_INTEGER = r"\A[+-]?[0-9]{1,18}\z"
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
Parsed = tuple[pa.Array, NDArray[np.bool_]]  # values, and which given fields could not be read


def read_csv(staged: Staged) -> Decoded:
    """Decode a CSV file; ContractError with the data row where it is no CSV in UTF-8."""
    _require_text(staged)
    names = csv_names(staged)
    known = [name for name in names if name in INCOMING]
    unreads = Unreads()
    chunks: dict[str, list[pa.Array]] = {name: [] for name in known}
    row = 0
    for batch in _batches(staged, known):
        typed = {name: _typed(name, batch.column(name), row, unreads) for name in known}
        for name, array in arriving(typed).items():
            chunks[name].append(array)
        row += batch.num_rows
    columns = {name: pa.chunked_array(found, TYPES[INCOMING[name].type]) for name, found in chunks.items()}
    return Decoded(pa.table(columns), names, unreads.found)


def csv_names(staged: Staged) -> tuple[str, ...]:
    """The column names; ContractError when nothing follows them."""
    text = bytes(staged.view[:_HEADER]).decode("utf-8-sig", "replace")
    records = csv.reader(io.StringIO(text, newline=""))
    try:
        header = next((record for record in records if any(map(str.strip, record))), None)
        another = next((record for record in records if record), None)
    except csv.Error as error:
        raise _not_csv(staged.name, f"not CSV: {error}", "header") from error
    if header is None:
        raise ContractError("the file holds only blank lines", code="empty-file", where=staged.name)
    if another is None and len(staged.view) <= _HEADER:
        raise ContractError(
            "the file has a header but no rows",
            code="no-rows",
            expected="one row for each score",
            where=staged.name,
        )
    return tuple(header)


def _require_text(staged: Staged) -> None:
    """ContractError for text that is not UTF-8, and for a quote that no other quote closes.

    Arrow's parser would take the rest of the file for the field.
    """
    decoder = getincrementaldecoder("utf-8")()
    quotes = lines = 0
    for start in range(0, len(staged.view), BLOCK):
        block = bytes(staged.view[start : start + BLOCK])
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(block, final=start + BLOCK >= len(staged.view))
        except UnicodeDecodeError as error:
            line = lines + block.count(b"\n", 0, max(error.start - pending, 0)) + 1
            raise not_utf8(staged.name, f"line {line}", error) from error
        quotes += block.count(b'"')
        lines += block.count(b"\n")
    if quotes % 2:
        raise _not_csv(staged.name, "a quoted field is never closed", None)


def _batches(staged: Staged, known: list[str]) -> Iterator[pa.RecordBatch]:
    try:
        yield from _open(staged, known, threads=True)
    except (pa.ArrowException, OSError) as error:
        raise _located(staged, known, error) from error


def _open(staged: Staged, known: list[str], *, threads: bool) -> pv.CSVStreamingReader:
    plain = ("number", "integer", "boolean", "stand-in")
    return pv.open_csv(
        pa.BufferReader(staged.data),
        read_options=pv.ReadOptions(use_threads=threads, block_size=BLOCK),
        parse_options=pv.ParseOptions(newlines_in_values=True),
        convert_options=pv.ConvertOptions(
            include_columns=known,
            column_types={name: pa.string() if INCOMING[name].type in plain else CODED for name in known},
            strings_can_be_null=True,
            null_values=[""],
        ),
    )


def _located(staged: Staged, known: list[str], error: Exception) -> LedgerError:
    """The error of a second, single-threaded reading, which knows its row numbers."""
    text = str(error)
    try:
        for _ in _open(staged, known, threads=False):
            pass
    except (pa.ArrowException, OSError) as again:
        text = str(again)
    if "straddling" in text:
        return _not_csv(staged.name, f"a row is longer than {BLOCK:,} bytes", None)
    row = re.search(r"Row #(\d+)", text)
    where = f"data row {int(row[1]) - 1}" if row else None
    fields = re.search(r"Expected (\d+) columns, got (\d+)", text)
    if fields is None:
        return _not_csv(staged.name, "not CSV", where)
    wanted, got = int(fields[1]), int(fields[2])
    if got < wanted and row and int(row[1]) == _lines_without_end(staged):
        return StorageError(
            f"the last row is cut off after {got} of {wanted} fields", code="truncated",
            where=f"{staged.name}, {where}", next_step="copy or write it again",
        )  # fmt: skip
    return _not_csv(staged.name, f"a row has {got} fields and the header {wanted}", where)


def _lines_without_end(staged: Staged) -> int:
    """How many lines the file has when its last has no line end, else 0."""
    if bytes(staged.view[-1:]) in (b"\n", b"\r"):
        return 0
    return 1 + sum(
        bytes(staged.view[start : start + BLOCK]).count(b"\n") for start in range(0, len(staged.view), BLOCK)
    )


def _not_csv(name: str, what: str, where: str | None) -> ContractError:
    return ContractError(
        what,
        code="not-csv",
        expected="comma-separated UTF-8 text with one header row",
        where=f"{name}, {where}" if where else name,
        next_step='quote fields that hold commas or line ends: "a, b"',
    )


def _typed(name: str, fields: pa.Array, first_row: int, unreads: Unreads) -> pa.Array:
    """A column by its declared type, its unread fields null and noted."""
    parse = _PARSERS.get(INCOMING[name].type)
    if parse is None:
        return fields
    values, wrong = parse(fields)
    rows = np.flatnonzero(wrong)
    if len(rows):
        texts = pc.utf8_slice_codeunits(fields.take(pa.array(rows)), 0, SHOWN)
        unreads.add(name, rows + first_row, texts)
    return values


def _numbers(fields: pa.Array) -> Parsed:
    decimal = _matches(fields, _NUMBER)
    special = _matches(fields, _NOT_FINITE)
    values = pc.if_else(pc.or_(decimal, special), fields, None).cast(pa.float64())
    return values, _missed(fields, values)


def _integers(fields: pa.Array) -> Parsed:
    signed = pc.if_else(_matches(fields, _INTEGER), fields, None)
    values = pc.utf8_ltrim(signed, "+").cast(pa.int64())
    return values, _missed(fields, values)


def _booleans(fields: pa.Array) -> Parsed:
    place = pc.index_in(fields, pa.array(list(_BOOLEANS)))
    values = pa.array(list(_BOOLEANS.values())).take(place)
    return values, _missed(fields, values)


def _matches(fields: pa.Array, pattern: str) -> pa.Array:
    return pc.fill_null(pc.match_substring_regex(fields, pattern), False)


def _missed(fields: pa.Array, values: pa.Array) -> NDArray[np.bool_]:
    missed: NDArray[np.bool_] = pc.and_(fields.is_valid(), values.is_null()).to_numpy(zero_copy_only=False)
    return missed


_PARSERS: Mapping[str, Callable[[pa.Array], Parsed]] = {
    "number": _numbers,
    "integer": _integers,
    "boolean": _booleans,
}
