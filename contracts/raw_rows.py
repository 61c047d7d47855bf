"""The rows of all files of one call, put behind each other column by column; types judged, values not.

A column that a file lacks is absent in that file's rows; one of a type its values cannot be read from is
absent too and becomes a finding of the file. `unread` marks the rows where a column holds nothing because
something was already found there, so no rule reports the hole a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contracts.digest import CODES, WIDTH
from contracts.labels import Codes, Labels, Mask, absent_codes, distinct, is_text, joined, split, text_labels
from contracts.source_table import ALGORITHM, INCOMING, IncomingColumn, SourceTable

Made = TypeVar("Made")
Positions = NDArray[np.int64]
THREADS = 2  # columns prepared at a time: more would wait for memory
PACKED = pa.binary(WIDTH)
RAW = 32  # bytes of a digest without its algorithm
_INT64_MAX = 2**63 - 1
_WANTED = {
    "text": "text",
    "integer": "an integer type",
    "number": "float64",
    "boolean": "bool",
    "digest": f"text, binary({WIDTH}), or binary({RAW}) with metadata ledger.digest = blake3 or sha256",
    "stand-in": "text",
}


@dataclass(frozen=True)
class ColumnFault:
    """A column that a file lacks (`got` is None) or has with a type nothing is read from."""

    file: int
    column: str
    wanted: str
    got: str | None


@dataclass(frozen=True)
class DigestColumn:
    """A digest column before judgement: rows that gave text, and rows that gave packed binary."""

    text: Labels
    packed: Labels


@dataclass(frozen=True)
class RawRows:
    """All rows of a call. Rows of file f are positions starts[f] to starts[f + 1].

    `text` holds labels in no order, `numbers` int64, float64 or bool arrays, `float32` the rows whose
    energy came in single precision.
    """

    files: tuple[SourceTable, ...]
    starts: Positions
    text: Mapping[str, Labels]
    digests: Mapping[str, DigestColumn]
    stand_ins: Mapping[str, Labels]
    numbers: Mapping[str, pa.Array]
    unread: Mapping[str, Mask]
    float32: Mask
    faults: tuple[ColumnFault, ...]

    @property
    def count(self) -> int:
        return int(self.starts[-1])

    def unread_in(self, column: str) -> Mask:
        """The rows where a column holds nothing because something was already found there."""
        nowhere: Mask = np.broadcast_to(np.False_, self.count)
        return self.unread.get(column, nowhere)

    def file_of(self, positions: Positions) -> NDArray[np.int32]:
        """Index of the file each position lies in."""
        return (np.searchsorted(self.starts, positions, side="right") - 1).astype(np.int32)

    @cached_property
    def row_numbers(self) -> Positions:
        """The 1-based number each row has in its own file."""
        numbers = [
            np.arange(1, file.table.num_rows + 1) if file.row_numbers is None else file.row_numbers
            for file in self.files
        ]
        return np.concatenate([np.empty(0, np.int64), *numbers])


def gather(
    files: Sequence[SourceTable], channel: str | None = None, acquisition: str | None = None
) -> RawRows:
    """The rows of `files` in order; `channel` and `acquisition` stand in where a file has no such column."""
    given = {"channel": channel, "acquisition_id": acquisition}
    defaults = {name: value for name, value in given.items() if value is not None}
    starts = np.cumsum([0, *(file.table.num_rows for file in files)])
    gathering = _Gathering(tuple(files), starts, defaults)
    columns = {name: gathering.parts(column) for name, column in INCOMING.items()}
    names = {kind: [c.name for c in INCOMING.values() if c.type == kind] for kind in _WANTED}
    kinds = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
    with ThreadPoolExecutor(THREADS) as pool:

        def each(kind: str, made: Callable[[list[pa.Array | int]], Made]) -> dict[str, Made]:
            return dict(zip(names[kind], pool.map(made, [columns[n] for n in names[kind]]), strict=True))

        digests, stand_ins = each("digest", _digest_column), each("stand-in", _stand_in)
        text = each("text", text_labels)
    return RawRows(
        files=gathering.files,
        starts=starts,
        text=text,
        digests=digests,
        stand_ins=stand_ins,
        numbers={
            name: pa.concat_arrays([_numbers(part, kinds[kind]) for part in columns[name]])
            for kind in kinds
            for name in names[kind]
        },
        unread=gathering.unread,
        float32=gathering.float32,
        faults=tuple(gathering.faults),
    )


class _Gathering:
    """Walks one column through all files, noting what each file lacks."""

    def __init__(self, files: tuple[SourceTable, ...], starts: Positions, defaults: dict[str, str]) -> None:
        self.files = files
        self.starts = starts
        self.defaults = defaults
        self.unread: dict[str, Mask] = {}
        self.float32 = np.zeros(int(starts[-1]), np.bool_)
        self.faults: list[ColumnFault] = []
        for index, file in enumerate(files):
            for unread in file.unread:
                self._mark(unread.column)[unread.rows + starts[index]] = True

    def parts(self, column: IncomingColumn) -> list[pa.Array | int]:
        """The column's chunks over all files; a number stands for so many rows without it."""
        found: list[pa.Array | int] = []
        for index, file in enumerate(self.files):
            found.extend(self._of_file(index, file.table, column))
        return found or [0]

    def _of_file(self, index: int, table: pa.Table, column: IncomingColumn) -> Sequence[pa.Array | int]:
        rows = slice(int(self.starts[index]), int(self.starts[index + 1]))
        if column.name not in table.column_names:
            default = self.defaults.get(column.name)
            if default is not None:
                return [
                    pa.DictionaryArray.from_arrays(np.zeros(table.num_rows, np.int32), pa.array([default]))
                ]
            if column.required:
                self._fault(index, column, None)
            return [table.num_rows]
        field = table.schema.field(column.name)
        if pa.types.is_null(field.type):
            return [table.num_rows]
        if not _readable(field, column, _algorithm(table.schema, field)):
            self._fault(index, column, "text" if is_text(field.type) else str(field.type))
            return [table.num_rows]
        chunks = table.column(column.name).chunks
        if column.name == "energy":
            self.float32[rows] = pa.types.is_float32(field.type)
        if column.type in ("digest", "stand-in") and not is_text(field.type):
            algorithm = _algorithm(table.schema, field)
            return [_with_algorithm(chunk, algorithm) for chunk in chunks]
        return list(chunks)

    def _fault(self, index: int, column: IncomingColumn, got: str | None) -> None:
        wanted = _WANTED[column.type]
        self.faults.append(ColumnFault(index, column.name, wanted, got))
        self._mark(column.name)[self.starts[index] : self.starts[index + 1]] = True

    def _mark(self, column: str) -> Mask:
        return self.unread.setdefault(column, np.zeros(int(self.starts[-1]), np.bool_))


def _readable(field: pa.Field, column: IncomingColumn, algorithm: str | None) -> bool:
    kind = field.type
    if column.type == "text":
        return is_text(kind)
    if column.type == "integer":
        return bool(pa.types.is_integer(kind))
    if column.type == "boolean":
        return bool(pa.types.is_boolean(kind))
    if column.type == "number":
        return bool(pa.types.is_float64(kind) or pa.types.is_float32(kind))
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if column.type == "stand-in":
        return bool(value == PACKED)
    return is_text(kind) or value == PACKED or (value == pa.binary(RAW) and algorithm is not None)


def _algorithm(schema: pa.Schema, field: pa.Field) -> str | None:
    """The digest algorithm a binary column is declared with, on the field or for the whole file."""
    for metadata in (field.metadata, schema.metadata):
        name = (metadata or {}).get(ALGORITHM, b"").decode("ascii", "replace")
        if name in CODES:
            return str(name)
    return None


def _with_algorithm(chunk: pa.Array, algorithm: str | None) -> pa.Array:
    """A chunk of binary digests as dictionary of packed ones; binary(32) gets its algorithm's code."""
    coded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
    values = coded.dictionary
    if values.type != PACKED:
        assert algorithm is not None, "a column without its algorithm is not readable"
        raw = np.frombuffer(values.buffers()[1], np.uint8)[values.offset * RAW :][: len(values) * RAW]
        packed = np.empty((len(values), WIDTH), np.uint8)
        packed[:, 0] = CODES[algorithm]
        packed[:, 1:] = raw.reshape(-1, RAW)
        present = None if values.null_count == 0 else pc.is_valid(values)
        values = packed_array(packed)
        values = values if present is None else pc.if_else(present, values, None)
    return pa.DictionaryArray.from_arrays(coded.indices.cast(pa.int32()), values)


def packed_array(table: NDArray[np.uint8]) -> pa.Array:
    """Rows of 33 bytes as an Arrow array of packed digests."""
    return pa.Array.from_buffers(PACKED, len(table), [None, pa.py_buffer(np.ascontiguousarray(table))])


def _packed_split(part: pa.Array | int) -> tuple[Codes, pa.Array]:
    if isinstance(part, int):
        return absent_codes(part), pa.array([], PACKED)
    filled: Codes = pc.fill_null(part.indices, -1).to_numpy(zero_copy_only=False)
    return filled, part.dictionary


def _stand_in(parts: Sequence[pa.Array | int]) -> Labels:
    return distinct(joined([_packed_split(part) for part in parts], PACKED))


def _digest_column(parts: Sequence[pa.Array | int]) -> DigestColumn:
    """Text and binary chunks each as labels over all rows; a text label may occur twice."""
    text = joined([split(part if _is_text(part) else _length(part)) for part in parts], pa.string())
    packed = joined([_packed_split(_length(part) if _is_text(part) else part) for part in parts], PACKED)
    return DigestColumn(distinct(text) if text.values.null_count else text, distinct(packed))


def _is_text(part: pa.Array | int) -> bool:
    return not isinstance(part, int) and is_text(part.type)


def _length(part: pa.Array | int) -> int:
    return part if isinstance(part, int) else len(part)


def _numbers(part: pa.Array | int, kind: pa.DataType) -> pa.Array:
    if isinstance(part, int):
        return pa.nulls(part, kind)
    if pa.types.is_uint64(part.type):
        # What int64 cannot hold fits no column either; its largest value keeps it out of range.
        part = pc.min_element_wise(part, pa.scalar(_INT64_MAX, pa.uint64()), skip_nulls=False)
    return part.cast(kind)
