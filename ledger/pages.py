"""Page bytes: the form in which entries are hashed, independent of any file format.

A page is 256 consecutive rows. Its bytes are, column after column in schema order: for a nullable
column one validity byte a row (1 present, 0 absent), then the values, little-endian at the column's
width. An absent value is zero bytes of that width. Text is one u32 byte length a row (0 where absent)
and then the UTF-8 bytes of all rows, joined. A page's leaf is SHA-256(0x00 || page) as in RFC 6962;
the root over a segment's leaves is its entries root. docs/format.md has the worked example.

How a table holds its values (dictionary codes or plain, chunks, slices, wide text) is not visible here:
equal values give equal bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.digest import WIDTH
from contracts.errors import ContractError
from contracts.schema import TYPES, Column, SegmentSchema
from contracts.threads import for_blocks
from ledger import tree

PAGE_ROWS = 256
LEAF_PREFIX = b"\x00"
BLOCK_PAGES = 64
ROWS_AT_ONCE = 1 << 17  # up to so many rows, a row group, columns are encoded whole: it costs less than half
# One value's bytes; for text, of its length.
ENCODED: dict[str, np.dtype[np.generic]] = {
    "text": np.dtype("<u4"),
    "int16": np.dtype("<i2"),
    "int32": np.dtype("<i4"),
    "float64": np.dtype("<f8"),
    "bool": np.dtype("u1"),
    "digest": np.dtype(f"V{WIDTH}"),
}


@dataclass(frozen=True)
class _Fixed:
    """Values of one width: a row's bytes are `data[row * width : (row + 1) * width]`."""

    data: np.ndarray
    width: int


@dataclass(frozen=True)
class _Joined:
    """Text bytes of consecutive rows: those of page `i` are `data[offsets[i] : offsets[i + 1]]`."""

    data: memoryview
    offsets: Sequence[int]


def page_count(rows: int) -> int:
    """How many pages hold `rows` rows."""
    return -(-rows // PAGE_ROWS)


def page_bytes(table: pa.Table, page: int, schema: SegmentSchema) -> bytes:
    """The bytes of one page of a table in segment order."""
    if not 0 <= page < page_count(table.num_rows):
        raise IndexError(page)
    return b"".join(next(_pages(table.slice(page * PAGE_ROWS, PAGE_ROWS), schema)))


def page_leaves(table: pa.Table, schema: SegmentSchema) -> list[bytes]:
    """The leaf hash of every page of a table in segment order.

    Blocks of pages are encoded and hashed in threads, so memory beyond the table stays a few megabytes.
    """
    step = BLOCK_PAGES * PAGE_ROWS
    if step < table.num_rows <= ROWS_AT_ONCE:
        return _leaves_at_once(table, schema)
    blocks = [table.slice(start, step) for start in range(0, table.num_rows, step)]
    if len(blocks) < 2:
        return [leaf for block in blocks for leaf in _leaves(block, schema)]
    made = for_blocks().map(lambda block: _leaves(block, schema), blocks)
    return [leaf for leaves in made for leaf in leaves]


def entries_root(leaves: Sequence[bytes]) -> str:
    """The entries root of a segment, in text form."""
    return "sha256:" + tree.root(leaves).hex()


def _leaves_at_once(table: pa.Table, schema: SegmentSchema) -> list[bytes]:
    """Columns encoded once, their pages put together and hashed in threads, some at a time."""
    parts = [part for column in schema.columns for part in _encode(table.column(column.name), column)]
    cut, step = table.num_rows - table.num_rows % PAGE_ROWS, BLOCK_PAGES * PAGE_ROWS
    ends = [*range(0, cut, step), cut, *([table.num_rows] if cut < table.num_rows else [])]
    made = for_blocks().map(lambda ends: _hashed(_cut(parts, *ends)), pairwise(ends))
    return [leaf for leaves in made for leaf in leaves]


def _leaves(block: pa.Table, schema: SegmentSchema) -> list[bytes]:
    return _hashed(_pages(block, schema))


def _hashed(pages: Iterable[list[memoryview]]) -> list[bytes]:
    leaves = []
    for page in pages:
        leaf = hashlib.sha256(LEAF_PREFIX)
        for part in page:
            leaf.update(part)
        leaves.append(leaf.digest())
    return leaves


def _pages(block: pa.Table, schema: SegmentSchema) -> Iterator[list[memoryview]]:
    """The bytes of each page, in as few parts as the columns allow."""
    parts = [part for column in schema.columns for part in _encode(block.column(column.name), column)]
    cut = block.num_rows - block.num_rows % PAGE_ROWS
    for start, stop in ((0, cut), (cut, block.num_rows)):
        if start < stop:
            yield from _cut(parts, start, stop)


def _cut(parts: Sequence[_Fixed | _Joined], start: int, stop: int) -> Iterator[list[memoryview]]:
    """The pages of some rows: whole pages, or less than one; `start` is where a page begins."""
    first, pages = start // PAGE_ROWS, page_count(stop - start)
    found: list[Sequence[memoryview]] = []
    beside: list[np.ndarray] = []

    def together() -> None:
        if beside:
            found.append([row.data for row in np.concatenate(beside, axis=1)])
            beside.clear()

    for part in parts:
        if isinstance(part, _Fixed):
            beside.append(part.data[start * part.width : stop * part.width].reshape(pages, -1))
            continue
        together()
        ends = part.offsets[first : first + pages + 1]
        found.append([part.data[low:high] for low, high in pairwise(ends)])
    together()
    yield from map(list, zip(*found, strict=True))


def _encode(values: pa.ChunkedArray, column: Column) -> Iterator[_Fixed | _Joined]:
    array = _one(values)
    rows, width = len(array), ENCODED[column.type].itemsize
    if array.null_count and not column.nullable:
        raise ContractError("an absent value where none may be", code="null", where=f"column {column.name}")
    if array.null_count == rows:
        zeros = np.zeros(rows * width, np.uint8)
        yield _Fixed(zeros[:rows], 1)
        yield _Fixed(zeros, width)
        return
    absent = _absent(array)
    if column.nullable:
        yield _Fixed(_bytes(np.ones(rows, np.uint8) if absent is None else (~absent).view(np.uint8)), 1)
    if column.type == "text":
        yield from _encode_text(array, absent, column)
    elif column.type == "digest":
        yield _Fixed(_digest_bytes(array, absent), width)
    else:
        array = plain(array, column)
        if absent is not None:
            array = pc.fill_null(array, pa.scalar(0).cast(array.type))
        numbers = array.to_numpy(zero_copy_only=False).astype(ENCODED[column.type], copy=False)
        yield _Fixed(_bytes(numbers), width)


def _encode_text(array: pa.Array, absent: np.ndarray | None, column: Column) -> Iterator[_Fixed | _Joined]:
    width = _label_width(array) if absent is None else 0
    if width:
        # Ids and labels are often of one length; their bytes are then gathered like numbers.
        labels = _raw(array.dictionary, width).view(f"V{width}")
        yield _Fixed(_bytes(np.full(len(array), width, "<u4")), 4)
        yield _Fixed(_bytes(labels.take(array.indices.to_numpy(zero_copy_only=False))), width)
        return
    array = plain(array, column)
    if absent is not None:
        array = pc.fill_null(array, "")
    _, ends, data = array.buffers()
    offsets = np.frombuffer(ends, np.int32)[array.offset : array.offset + len(array) + 1]
    yield _Fixed(_bytes(np.diff(offsets).astype("<u4", copy=False)), 4)
    page_starts = offsets[::PAGE_ROWS].tolist()
    if len(array) % PAGE_ROWS:
        page_starts.append(int(offsets[-1]))
    yield _Joined(memoryview(b"" if data is None else data), page_starts)


def _label_width(array: pa.Array) -> int:
    """The length in bytes that all labels of a coded column share, 0 when there is none."""
    if not pa.types.is_dictionary(array.type) or array.dictionary.type != pa.string():
        return 0
    shortest, longest = pc.min_max(pc.binary_length(array.dictionary)).as_py().values()
    return int(longest) if shortest == longest and longest else 0


def plain(values: pa.ChunkedArray | pa.Array, column: Column) -> pa.Array:
    """A column as one array of its canonical type: no dictionary, no chunks, no wide text."""
    array, wanted = _one(values), TYPES[column.type]
    if pa.types.is_dictionary(array.type):
        if wanted == TYPES["digest"]:
            absent = _absent(array)
            validity = None if absent is None else pa.py_buffer(np.packbits(~absent, bitorder="little"))
            data = pa.py_buffer(_digest_bytes(array, absent))
            return pa.FixedSizeBinaryArray.from_buffers(wanted, len(array), [validity, data])
        array = array.dictionary.take(array.indices)
    return array if array.type == wanted else array.cast(wanted)


def _digest_bytes(array: pa.Array, absent: np.ndarray | None) -> np.ndarray:
    """The 33-byte values of a digest column, one after the other, zeros where absent.

    Decoding codes here is several times faster than Arrow's own take of fixed-size binary values.
    """
    if not pa.types.is_dictionary(array.type):
        values = _raw(array.cast(TYPES["digest"]))
    elif not len(array.dictionary):
        return np.zeros(len(array) * WIDTH, np.uint8)
    else:
        codes = array.indices if absent is None else pc.fill_null(array.indices, 0)
        labels = _raw(array.dictionary.cast(TYPES["digest"]))
        values = _gathered(labels, codes.to_numpy(zero_copy_only=False))
        if absent is not None:
            values.reshape(-1, WIDTH)[absent] = 0
        return values
    if absent is not None:
        values = values.copy()
        values.reshape(-1, WIDTH)[absent] = 0
    return values


def _gathered(labels: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return labels.view(f"V{WIDTH}").take(codes).view(np.uint8)


def _raw(array: pa.Array, width: int = WIDTH) -> np.ndarray:
    """The bytes of values that all have one width, one after the other."""
    buffers = array.buffers()
    start = array.offset * width
    if len(buffers) == 3:  # text: its bytes begin where the first value does
        start = int(np.frombuffer(buffers[1], np.int32)[array.offset])
    return np.frombuffer(buffers[-1], np.uint8)[int(start) : int(start + len(array) * width)]


def _absent(array: pa.Array) -> np.ndarray | None:
    """A mask of the absent values, or None when there are none."""
    if not array.null_count:
        return None
    coded = pa.types.is_dictionary(array.type)
    mask: np.ndarray = (array.indices if coded else array).is_null().to_numpy(zero_copy_only=False)
    return mask


def _one(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    """One array; its nulls, if any, in its codes and not in its dictionary."""
    if isinstance(values, pa.ChunkedArray):
        if values.num_chunks == 0:
            return pa.array([], values.type)
        values = values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
    if pa.types.is_dictionary(values.type) and values.dictionary.null_count:
        values = values.dictionary.take(values.indices)
    return values


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
