"""Segment order: rows by key, text by UTF-8 bytes, an absent part before every present one.

Every key column becomes ranks and the ranks one integer, so a million rows are sorted by one integer
sort. Rows of equal key, which only refused rows can have, are ordered by all their columns: whatever
the order of the input, there is one output.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.order import Ints, dense, pack, ranks
from contracts.schema import Column, SegmentSchema
from ledger.pages import plain

MAGNITUDE = np.int64(2**63 - 1)


def sort(table: pa.Table, schema: SegmentSchema) -> pa.Table:
    """The table in segment order; columns beyond the schema's travel with their rows."""
    order = sort_order(table, schema)
    return table if order is None else table.take(pa.array(order))


def sort_order(table: pa.Table, schema: SegmentSchema) -> Ints | None:
    """The permutation that puts the rows in segment order, None when they are in it."""
    if table.num_rows < 2:
        return None
    key = _packed(table, (column for column in schema.columns if column.key))
    if np.all(key[1:] > key[:-1]):
        return None
    order = np.argsort(key, kind="stable")
    in_order = key[order]
    if np.any(in_order[1:] == in_order[:-1]):
        rest = _packed(table, (column for column in schema.columns if not column.key))
        order = np.lexsort((rest, key))
    return None if np.array_equal(order, np.arange(len(order))) else order


def ascends(table: pa.Table, schema: SegmentSchema) -> bool:
    """Whether the rows are in segment order and no two have one key."""
    above = np.zeros(max(table.num_rows - 1, 0), np.bool_)  # by the columns so far, the last ones first
    for column in reversed(schema.columns):
        if column.key:
            values = table.column(column.name)
            parts: np.ndarray
            if column.type in ("text", "digest"):
                parts = ranks(values).codes
            elif values.null_count:
                parts = _number_ranks(values, column)[0]
            else:
                parts = plain(values, column).to_numpy(zero_copy_only=False)
            before, behind = parts[:-1], parts[1:]
            above = (behind > before) | ((behind == before) & above)
    return bool(above.all())


def label_ranks(values: pa.ChunkedArray) -> tuple[Ints, int]:
    """Ranks of text or digests by their bytes, and their bound; an absent value has rank 0."""
    found = ranks(values)
    return found.codes.astype(np.int64) + 1, len(found.values) + 1


def _packed(table: pa.Table, columns: Iterable[Column]) -> Ints:
    """One integer a row that sorts like the row's values in the columns."""
    parts = []
    for column in columns:
        values = table.column(column.name)
        labelled = column.type in ("text", "digest")
        parts.append(label_ranks(values) if labelled else _number_ranks(values, column))
    return pack(parts)[0]


def _number_ranks(values: pa.ChunkedArray, column: Column) -> tuple[Ints, int]:
    array = plain(values, column)
    present = ~array.is_null().to_numpy(zero_copy_only=False)
    numbers = pc.fill_null(array, pa.scalar(0).cast(array.type)).to_numpy(zero_copy_only=False)
    if column.type == "float64":
        bits = numbers.view(np.int64)
        ordered = np.where(bits < 0, bits ^ MAGNITUDE, bits)  # -0.0 and 0.0 are two values here
        distinct, found = np.unique(ordered, return_inverse=True)
    else:
        whole = numbers.astype(np.int64)
        low, high = int(whole.min()), int(whole.max())
        found, distinct = dense(whole - low, high - low + 1)
    return (found + 1) * present, len(distinct) + 1
