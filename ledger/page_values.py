"""The rows of one page, read back from the bytes that were hashed: the inverse of `ledger.pages`.

Small and plain on purpose: it reads a page somebody else sent, one value at a time, and refuses every
byte that is not accounted for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from contracts.digest import WIDTH, unpack
from contracts.errors import MalformedError
from contracts.schema import Column, SegmentSchema
from ledger.pages import ENCODED, PAGE_ROWS


def page_row(page: bytes, rows: int, row: int, schema: SegmentSchema) -> dict[str, Any]:
    """The values of row `row` of a page with `rows` rows; absent ones are left out, digests are text."""
    if not 0 <= row < rows <= PAGE_ROWS:
        raise MalformedError("no such row in the page", expected=f"a row below {rows}", got=row)
    values: dict[str, Any] = {}
    at = 0
    for column in schema.columns:
        at, value = _value(page, at, rows, row, column)
        if value is not None:
            values[column.name] = value
    if at != len(page):
        raise MalformedError("a page of another length than its rows need", expected=at, got=len(page))
    return values


def _value(page: bytes, at: int, rows: int, row: int, column: Column) -> tuple[int, Any]:
    """One value of a column that begins at `at`, and where the next column begins."""
    present = True
    if column.nullable:
        present = _cut(page, at, rows)[row] == 1
        at += rows
    width = ENCODED[column.type].itemsize
    fixed = _cut(page, at, rows * width)
    at += len(fixed)
    if column.type == "text":
        lengths = np.frombuffer(fixed, "<u4").astype(np.int64)
        start = at + int(lengths[:row].sum())
        joined = _cut(page, at, int(lengths.sum()))
        text = joined[start - at : start - at + int(lengths[row])]
        return at + len(joined), _decoded(text, column) if present else None
    raw = fixed[row * width : (row + 1) * width]
    return at, _scalar(raw, column) if present else None


def _scalar(raw: bytes, column: Column) -> Any:
    if column.type == "digest":
        assert len(raw) == WIDTH, "the width of a digest"
        return unpack(raw)
    value = np.frombuffer(raw, ENCODED[column.type])[0].item()
    return bool(value) if column.type == "bool" else value


def _decoded(text: bytes, column: Column) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise MalformedError("text of a page is not utf-8", where=f"column {column.name}") from error


def _cut(page: bytes, at: int, length: int) -> bytes:
    part = page[at : at + length]
    if len(part) != length:
        raise MalformedError("a page is cut short", expected=f"{at + length} bytes", got=len(page))
    return part
