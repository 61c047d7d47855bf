"""Segment order: rows by key, text by UTF-8 bytes, an absent part before every present one.

Each key column becomes dense ranks and the ranks one 64-bit word (several words when the product of
their ranges does not fit), so a million rows are sorted by one integer sort. Rows of equal key, which
only refused rows can have, are ordered by all their columns: any order of the input gives one output.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.schema import Column, SegmentSchema
from ledger.pages import plain

Ranks = tuple[np.ndarray, int]  # int64 ranks of the rows, and a bound they are all below
WORD = 2**63


def sort(table: pa.Table, schema: SegmentSchema) -> pa.Table:
    """The table in segment order; columns beyond the schema's travel with their rows."""
    order = sort_order(table, schema)
    return table if order is None else table.take(pa.array(order))


def sort_order(table: pa.Table, schema: SegmentSchema) -> np.ndarray | None:
    """The permutation that puts the rows in segment order, None when they are."""
    if table.num_rows < 2:
        return None
    key = [column for column in schema.columns if column.key]
    words = _words([_ranks(table.column(column.name), column) for column in key])
    if len(words) == 1:
        word = words[0]
        if np.all(word[1:] > word[:-1]):
            return None
        order = np.argsort(word, kind="stable")
    else:
        order = np.lexsort(words[::-1])
    if _has_ties(words, order):
        rest = [column for column in schema.columns if not column.key]
        words += _words([_ranks(table.column(column.name), column) for column in rest])
        order = np.lexsort(words[::-1])
    return None if np.array_equal(order, np.arange(len(order))) else order


def _has_ties(words: Sequence[np.ndarray], order: np.ndarray) -> bool:
    tied = np.ones(len(order) - 1, bool)
    for word in words:
        in_order = word[order]
        tied &= in_order[1:] == in_order[:-1]
    return bool(tied.any())


def _words(ranks: Sequence[Ranks]) -> list[np.ndarray]:
    """Mixed-radix numbers of the ranks, most significant word first."""
    words: list[np.ndarray] = []
    bound = WORD
    for rank, radix in ranks:
        if bound * radix < WORD:
            words[-1] = words[-1] * radix + rank
            bound *= radix
        else:
            words.append(rank)
            bound = radix
    return words


def _ranks(values: pa.ChunkedArray, column: Column) -> Ranks:
    if column.type in ("text", "digest"):
        ranks, radix = label_ranks(values, column)
    else:
        ranks, radix = _number_ranks(values, column)
    return ranks, max(radix, 1)


def label_ranks(values: pa.ChunkedArray, column: Column) -> Ranks:
    """Ranks of text or digests by their bytes, 0 for absent ones; equal values have equal ranks."""
    array = values.combine_chunks()
    if not pa.types.is_dictionary(array.type) or array.dictionary.null_count:
        array = plain(array, column).dictionary_encode()
    labels = plain(array.dictionary, column).cast(pa.binary())
    ascending = pc.array_sort_indices(labels)
    in_order = labels.take(ascending)
    steps = np.zeros(len(labels), np.int64)
    if len(labels) > 1:
        steps[1:] = pc.not_equal(in_order[1:], in_order[:-1]).to_numpy(zero_copy_only=False)
    by_label = np.empty(len(labels) + 1, np.int64)
    by_label[ascending.to_numpy()] = np.cumsum(steps) + 1
    by_label[-1] = 0  # an absent value, read through the code -1
    codes = pc.fill_null(array.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    return by_label[codes], len(labels) + 1


def _number_ranks(values: pa.ChunkedArray, column: Column) -> Ranks:
    array = plain(values, column)
    absent = array.is_null().to_numpy(zero_copy_only=False)
    numbers = pc.fill_null(array, pa.scalar(0).cast(array.type)).to_numpy(zero_copy_only=False)
    if column.type == "float64":
        bits = numbers.view(np.int64)
        numbers = np.where(bits < 0, bits ^ np.int64(WORD - 1), bits)  # an order of all bit patterns
    numbers = numbers.astype(np.int64)
    low, high = int(numbers.min()), int(numbers.max())
    if high - low < 4 * len(numbers) + 1024:
        ranks, radix = numbers - low + 1, high - low + 2
    else:
        distinct, ranks = np.unique(numbers, return_inverse=True)
        ranks, radix = ranks.astype(np.int64) + 1, len(distinct) + 1
    ranks[absent] = 0
    return ranks, radix
