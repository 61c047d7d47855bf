"""Columns as integer codes: equal values have equal codes, so that groups are compared as integers."""

from __future__ import annotations

from collections.abc import Container

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from contracts.labels import ABSENT, Labels, all_differ, whole
from contracts.order import labelled

Codes = npt.NDArray[np.int64]
AnyCodes = npt.NDArray[np.int32] | npt.NDArray[np.int64]
# Up to this many times the rows, ids with holes cost less than closing the holes.
SPARSE = 4


def coded(column: pa.ChunkedArray) -> Labels:
    """The codes of a column, plain or dictionary-encoded, in no particular order of its values."""
    return labelled(column if pa.types.is_dictionary(column.type) else encoded(column))


def encoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A plain column as dictionary<int32, …>: run by run, since sorted entries repeat their digests."""
    runs = pc.run_end_encode(whole(column))
    values, ends = runs.values, runs.run_ends.to_numpy()
    codes, labels = _distinct(values)
    if len(ends) < len(column):
        codes = np.repeat(codes, np.diff(ends, prepend=0))
    return pa.chunked_array([Labels(codes, labels).array], pa.dictionary(pa.int32(), column.type))


def _distinct(values: pa.Array) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """A code for each of some values, ABSENT for null, and the distinct ones."""
    if not values.null_count and all_differ(values):
        return np.arange(len(values), dtype=np.int32), values
    once = values.dictionary_encode()
    return numbers(once.indices).astype(np.int32), once.dictionary


def places(values: pa.ChunkedArray | pa.Array, vocabulary: pa.Array) -> Codes:
    """Where each value stands in a vocabulary, ABSENT where it does not."""
    return numbers(pc.index_in(values, value_set=vocabulary))


def numbers(column: pa.ChunkedArray | pa.Array) -> Codes:
    """An integer column as int64, ABSENT where it is null."""
    filled = pc.fill_null(column, ABSENT) if column.null_count else column
    return np.asarray(filled.to_numpy(), np.int64)


def pair(left: AnyCodes, right: AnyCodes) -> Codes:
    """One code for each distinct pair of codes (none of them ABSENT), usable as an index."""
    wide = left.astype(np.int64)
    width = int(right.max(initial=0)) + 1
    if width == 1:
        return wide
    joined: Codes = wide * width + right
    if (int(wide.max()) + 1) * width <= SPARSE * len(wide):
        return joined
    return numbers(pa.array(joined).dictionary_encode().indices)


def with_codes(table: pa.Table, names: Container[str] | None = None) -> pa.Table:
    """The rows with their digests, or those of `names`, as codes for everything that compares them."""
    for index, column in enumerate(table.schema):
        if pa.types.is_fixed_size_binary(column.type) and (names is None or column.name in names):
            table = table.set_column(index, column.name, encoded(table.column(index)))
    return table
