"""Columns as integer codes: equal values have equal codes, so that groups are compared as integers."""

from __future__ import annotations

from collections.abc import Container

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from contracts.labels import ABSENT, Labels
from contracts.order import labelled

Codes = npt.NDArray[np.int64]
AnyCodes = npt.NDArray[np.int32] | npt.NDArray[np.int64]
# Up to this many times the rows, ids with holes cost less than closing the holes.
SPARSE = 4


def coded(column: pa.ChunkedArray) -> Labels:
    """The codes of a column, plain or dictionary-encoded, in no particular order of its values."""
    return labelled(column if pa.types.is_dictionary(column.type) else encoded(column))


def encoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A plain column as dictionary<int32, …>, run by run: sorted entries repeat their digests."""
    return pa.chunked_array(
        [_by_runs(chunk) for chunk in column.chunks], pa.dictionary(pa.int32(), column.type)
    )


def _by_runs(array: pa.Array) -> pa.DictionaryArray:
    runs = pc.run_end_encode(array)
    values = runs.values.dictionary_encode()
    ends = runs.run_ends.to_numpy()
    run = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    return pa.DictionaryArray.from_arrays(values.indices.take(pa.array(run)), values.dictionary)


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
