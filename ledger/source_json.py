"""JSON Lines score files: one object on each line, every value of the JSON type its column declares.

A number as text is unread, not converted. A key that occurs twice in an object refuses the file, because
programs differ in which of the two they keep. Blocks of plain lines go through Arrow's parser, which is as
strict and five times as fast; one it does not take is read line by line, to say what is wrong where.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
from numpy.typing import NDArray

from contracts.errors import ContractError
from contracts.source_table import INCOMING
from ledger.json_rows import PLAIN, Row, not_json_lines, parse_line, typed
from ledger.source_values import TYPES, Decoded, Unreads, arriving, not_utf8
from ledger.staging import Staged

BLOCK = 8 * 1024 * 1024
LONGEST = 64 * 1024 * 1024
MAX_NAMES = 10_000
_BOM = b"\xef\xbb\xbf"
_KNOWN = [(column.name, PLAIN[column.type]) for column in INCOMING.values()]
# The columns nobody asked for are parsed too, because only then is a repeated key among them noticed.
_EXTRA = {str: pa.string(), bool: pa.bool_(), int: pa.float64(), float: pa.float64(), type(None): pa.null()}


@dataclass(frozen=True)
class _Batch:
    """Some consecutive lines: the columns found, all keys in order of appearance, the line numbers."""

    columns: dict[str, pa.Array]
    names: list[str]
    lines: NDArray[np.int64]


def json_names(staged: Staged) -> tuple[str, ...]:
    """The keys of the first object; ContractError where there is none."""
    line = 0
    for block in _blocks(staged):
        _require_utf8(block, line, staged.name)
        first = _first_row(block, line, staged.name)
        if first is not None:
            return tuple(first)
        line += block.count(b"\n")
    raise ContractError("the file holds only blank lines", code="empty-file", where=staged.name)


def read_json_lines(staged: Staged) -> Decoded:
    """Decode a JSON Lines file; blank lines are passed over, and rows are known by line number.

    ContractError names the line that is no JSON object or repeats a key; StorageError the one cut off.
    """
    unreads = Unreads()
    names: dict[str, None] = {}
    batches: list[_Batch] = []
    for batch in _batches(staged, unreads):
        names.update(dict.fromkeys(batch.names))
        if len(names) > MAX_NAMES:
            raise not_json_lines(staged.name, f"more than {MAX_NAMES:,} different keys", int(batch.lines[-1]))
        batches.append(batch)
    columns = {}
    for name in names:
        if name in INCOMING:
            kind = TYPES[INCOMING[name].type]
            chunks = [batch.columns.get(name, pa.nulls(len(batch.lines), kind)) for batch in batches]
            columns[name] = pa.chunked_array(chunks, kind)
    numbers = np.concatenate([np.empty(0, np.int64), *(batch.lines for batch in batches)])
    return Decoded(pa.table(columns), tuple(names), unreads.found, numbers)


def _batches(staged: Staged, unreads: Unreads) -> Iterator[_Batch]:
    line = row = 0
    for block in _blocks(staged):
        _require_utf8(block, line, staged.name)
        first = _first_row(block, line, staged.name)
        if first is not None:
            batch = _quick(block, first, line) or _strict(block, line, row, staged.name, unreads)
            yield batch
            row += len(batch.lines)
        line += block.count(b"\n")


def _blocks(staged: Staged) -> Iterator[bytes]:
    """The bytes in blocks that end with a line."""
    view = staged.view
    start = len(_BOM) if bytes(view[: len(_BOM)]) == _BOM else 0
    while start < len(view):
        size = BLOCK
        block = bytes(view[start : start + size])
        while (end := block.rfind(b"\n")) < 0 and start + size < len(view):
            if size >= LONGEST:
                raise not_json_lines(staged.name, f"a line is longer than {LONGEST:,} bytes", None)
            size *= 2
            block = bytes(view[start : start + size])
        if end >= 0 and start + size < len(view):
            block = block[: end + 1]
        yield block
        start += len(block)


def _require_utf8(block: bytes, line: int, name: str) -> None:
    try:
        block.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = line + block.count(b"\n", 0, error.start) + 1
        raise not_utf8(name, f"line {bad}", error) from error


def _first_row(block: bytes, line: int, name: str) -> Row | None:
    """The first object of a block, None where all its lines are blank."""
    start = len(block) - len(block.lstrip())
    if start == len(block):
        return None
    number = line + block.count(b"\n", 0, start) + 1
    text, end, _ = block[start:].partition(b"\n")
    return parse_line(text.decode("utf-8"), number, name, open_ended=not end)


def _quick(block: bytes, first: Row, line: int) -> _Batch | None:
    """A block by Arrow's parser; None unless each line is one object with keys and types like the first's.

    A known column may begin in a later line, but not with null alone: the parser would not tell of it.
    """
    count = block.count(b"\n") + (not block.endswith(b"\n"))
    extra = [(name, _EXTRA.get(type(value))) for name, value in first.items() if name not in INCOMING]
    if any(kind is None for _, kind in extra) or count != block.count(b"\n{") + block.startswith(b"{"):
        return None
    try:
        table = pj.read_json(
            pa.BufferReader(block),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([*_KNOWN, *extra]),
                newlines_in_values=False,
                unexpected_field_behavior="error",
            ),
        )
    except (pa.ArrowException, OSError):
        return None
    if table.num_rows != count:
        return None
    found = [name for name, _ in _KNOWN if name in first or table.column(name).null_count < count]
    if any(f'"{name}"'.encode() in block for name, _ in _KNOWN if name not in found):
        return None
    columns = {name: table.column(name).combine_chunks() for name in found}
    names = [*first, *(name for name in found if name not in first)]
    return _Batch(arriving(columns), names, np.arange(line + 1, line + count + 1))


def _strict(block: bytes, line: int, row: int, name: str, unreads: Unreads) -> _Batch:
    """A block line by line."""
    rows: list[Row] = []
    lines: list[int] = []
    texts = block.decode("utf-8").split("\n")
    for number, text in enumerate(texts, line + 1):
        if text and not text.isspace():
            rows.append(parse_line(text, number, name, open_ended=number == line + len(texts)))
            lines.append(number)
    names = list(dict.fromkeys(key for each in rows for key in each))
    columns = {key: typed(key, rows, row, unreads) for key in names if key in INCOMING}
    return _Batch(arriving(columns), names, np.array(lines, np.int64))
