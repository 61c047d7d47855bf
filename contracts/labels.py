"""Columns as codes into their distinct labels, so that a label is judged once and a row is an integer.

However a column arrives (plain text of any Arrow layout, dictionaries that differ from chunk to chunk,
that name a label twice, never use it or hold null), it leaves as one set of labels, each used and each once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

ABSENT = -1
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Labels:
    """n rows as int32 codes into distinct `values`; ABSENT where a row has none."""

    codes: Codes
    values: pa.Array

    @property
    def present(self) -> Mask:
        present: Mask = self.codes != ABSENT
        return present

    def rows_of(self, labels: Mask) -> Mask:
        """Which rows carry one of the marked labels."""
        if not labels.any():
            return np.zeros(len(self.codes), np.bool_)
        return np.append(labels, False)[self.codes]

    def at(self, rows: NDArray[np.integer]) -> pa.DictionaryArray:
        """The labels of some rows as an Arrow array."""
        return _array(self.codes[rows], self.values)

    @property
    def array(self) -> pa.DictionaryArray:
        """All rows as dictionary<int32, …>."""
        return _array(self.codes, self.values)


def _array(codes: Codes, values: pa.Array) -> pa.DictionaryArray:
    absent = codes < 0
    indices = pa.array(codes, mask=absent) if absent.any() else pa.array(codes)
    return pa.DictionaryArray.from_arrays(indices, values)


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type holds text, plain or dictionary-encoded."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece: as it is where it is one, since `combine_chunks` copies even that."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def encode(array: pa.Array) -> pa.DictionaryArray:
    """A text array of any layout as dictionary<int32, string>."""
    if not pa.types.is_dictionary(array.type):
        # string_view encodes to a dictionary of views, which few kernels take.
        plain = array.cast(pa.string()) if pa.types.is_string_view(array.type) else array
        array = plain.dictionary_encode()
    if array.dictionary.type == pa.string() and array.indices.type == pa.int32():
        return array
    return pa.DictionaryArray.from_arrays(array.indices.cast(pa.int32()), array.dictionary.cast(pa.string()))


def text_labels(parts: Iterable[pa.Array | int]) -> Labels:
    """The labels of consecutive text arrays; a number stands for so many absent rows."""
    return distinct(joined([split(part) for part in parts], pa.string()))


def joined(parts: Sequence[tuple[Codes, pa.Array]], kind: pa.DataType) -> Labels:
    """Consecutive rows with labels of their own as rows with common ones, each used; labels may repeat."""
    if len(parts) == 1:
        return _without_unused(Labels(*parts[0]))
    values = pa.concat_arrays([pa.array([], kind), *(values for _, values in parts)])
    if not len(values):
        return Labels(absent_codes(sum(len(part) for part, _ in parts)), values)
    codes = np.empty(sum(len(part) for part, _ in parts), np.int32)
    row = label = 0
    for part, its_values in parts:
        codes[row : row + len(part)] = np.where(part == ABSENT, ABSENT, part + np.int32(label))
        row += len(part)
        label += len(its_values)
    return _without_unused(Labels(codes, values))


def distinct(labels: Labels) -> Labels:
    """The same rows with every label once and none of them null."""
    if labels.values.null_count == 0 and all_differ(labels.values):
        return labels
    once = labels.values.dictionary_encode()
    if once.null_count == 0 and len(once.dictionary) == len(labels.values):
        return labels
    lookup = np.append(_codes(once.indices), np.int32(ABSENT))
    return Labels(lookup[labels.codes], once.dictionary)


def all_differ(values: pa.Array) -> bool:
    """Whether all values surely differ, told from eight bytes of each digest at half the cost of hashing."""
    if not pa.types.is_fixed_size_binary(values.type):
        return False
    width = values.type.byte_width
    offset = values.offset * width
    table = np.frombuffer(values.buffers()[1], np.uint8)[offset : offset + len(values) * width]
    middle = np.sort(np.ascontiguousarray(table.reshape(-1, width)[:, 1:9]).view(np.uint64), axis=0)
    return bool(np.all(middle[1:] != middle[:-1]))


def _without_unused(labels: Labels) -> Labels:
    if not len(labels.values):
        return labels
    used = np.zeros(len(labels.values) + 1, np.bool_)
    used[labels.codes] = True
    if used[:-1].all():
        return labels
    kept = np.flatnonzero(used[:-1])
    lookup = np.full(len(used), ABSENT, np.int32)
    lookup[kept] = np.arange(len(kept), dtype=np.int32)
    return Labels(lookup[labels.codes], labels.values.take(pa.array(kept)))


def in_order(labels: Labels) -> Labels:
    """The same rows with the labels sorted by their bytes."""
    values = labels.values
    order = pc.array_sort_indices(values if pa.types.is_string(values.type) else values.cast(pa.binary()))
    ascending = order.to_numpy()
    if np.array_equal(ascending, np.arange(len(ascending))):
        return labels
    lookup = np.full(len(ascending) + 1, ABSENT, np.int32)
    lookup[ascending] = np.arange(len(ascending), dtype=np.int32)
    return Labels(lookup[labels.codes], values.take(order))


def split(part: pa.Array | int) -> tuple[Codes, pa.Array]:
    """A text array, or so many absent rows, as codes and labels."""
    if isinstance(part, int):
        return absent_codes(part), pa.array([], pa.string())
    array = encode(part)
    return _codes(array.indices), array.dictionary


def absent_codes(count: int) -> Codes:
    """Rows without a label, in no memory to speak of."""
    return np.broadcast_to(np.int32(ABSENT), count)


def _codes(indices: pa.Array) -> Codes:
    indices = indices.cast(pa.int32())
    if indices.null_count:
        indices = pc.fill_null(indices, ABSENT)
    filled: Codes = indices.to_numpy(zero_copy_only=False)
    return filled
