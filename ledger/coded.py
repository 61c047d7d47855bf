"""Columns as integer codes: equal values have equal codes, so that groups are compared as integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

ABSENT = -1
Codes = npt.NDArray[np.int64]
# Up to this many times the rows, ids with holes cost less than closing the holes.
SPARSE = 4


@dataclass(frozen=True)
class Coded:
    """A column as codes into its distinct values; an absent value has code ABSENT."""

    codes: Codes
    values: pa.Array

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        present: npt.NDArray[np.bool_] = self.codes != ABSENT
        return present


def coded(column: pa.ChunkedArray | pa.Array) -> Coded:
    """The codes of a column, plain or dictionary-encoded, in the order in which its values occur."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # combining no chunks at all gives back a chunked array
        array = pa.array([], array.type)
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
        return Coded(numbers(array.indices), array.dictionary)
    # A dictionary may name one value twice; its own encoding says which of its places are the same.
    distinct = array.dictionary.dictionary_encode()
    codes = numbers(array.indices)
    if len(distinct.dictionary) == len(array.dictionary):
        return Coded(codes, array.dictionary)
    places = np.append(numbers(distinct.indices), ABSENT)
    return Coded(places[codes], distinct.dictionary)


def ranked(column: pa.ChunkedArray | pa.Array) -> Coded:
    """The codes of a column with its values in ascending order, text by UTF-8 bytes."""
    found = coded(column)
    order = pc.sort_indices(found.values)
    rank = np.empty(len(order) + 1, np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    rank[-1] = ABSENT
    return Coded(rank[found.codes], found.values.take(order))


def places(values: pa.ChunkedArray | pa.Array, vocabulary: pa.Array) -> Codes:
    """Where each value stands in a vocabulary, ABSENT where it does not."""
    return numbers(pc.index_in(values, value_set=vocabulary))


def numbers(column: pa.ChunkedArray | pa.Array) -> Codes:
    """An integer column as int64, ABSENT where it is null."""
    filled = pc.fill_null(column, ABSENT) if column.null_count else column
    return np.asarray(filled.to_numpy(), np.int64)


def pair(left: Codes, right: Codes) -> Codes:
    """One code for each distinct pair of codes (none of them ABSENT), usable as an index."""
    if not len(left):
        return left
    width = int(right.max()) + 1
    if width == 1:
        return left
    joined = left * width + right
    if (int(left.max()) + 1) * width <= SPARSE * len(left):
        return joined
    return numbers(pa.array(joined).dictionary_encode().indices)
