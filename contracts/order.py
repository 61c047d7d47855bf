"""The canonical order of transport rows, found by sorting ranks instead of text.

Every key column becomes the rank of its value by bytes, the ranks of a row are packed into one integer,
and that integer is sorted: text is compared once per distinct value. Equal keys end up side by side, so
"each once" is a comparison of neighbours, exact for any number of cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contracts.labels import ABSENT, Codes, Labels, Mask, distinct, in_order, whole
from contracts.schema import TRANSPORT

Ints = NDArray[np.int64]

LIMIT = 2**63 - 1
# A table of all possible values is faster than a sort while it is not much larger than the rows.
SPARSE = 4
_TEXT = ("trajectory_id", "endpoint", "view_source", "channel", "acquisition_id", "candidate")


def ranks(column: pa.ChunkedArray) -> Labels:
    """A text or binary column, dictionary-encoded or not, as ranks of its values by their bytes."""
    return in_order(labelled(column))


def labelled(column: pa.ChunkedArray) -> Labels:
    """A text or binary column as codes into its distinct values, in any order."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    array = whole(coded.unify_dictionaries())
    indices = array.indices.cast(pa.int32())
    if indices.null_count:
        indices = pc.fill_null(indices, ABSENT)
    return distinct(Labels(indices.to_numpy(zero_copy_only=False), array.dictionary))


def dense(values: Ints, limit: int) -> tuple[Ints, Ints]:
    """Number the distinct values of `values` (each below `limit`) upwards: a number per row, the values."""
    if limit <= SPARSE * len(values) + 1024:
        present = np.zeros(limit, dtype=np.bool_)
        present[values] = True
        number = np.cumsum(present, dtype=np.int32) - np.int32(1)
        return number[values].astype(np.int64), np.flatnonzero(present)
    found, numbers = np.unique(values, return_inverse=True)
    return numbers.astype(np.int64, copy=False), found


def pack(parts: Sequence[tuple[NDArray[np.integer], int]]) -> tuple[Ints, int]:
    """Columns of small integers as one int64 that sorts like the tuple, and the limit of its values.

    Each part is its values and their exclusive limit. Where the product of the limits leaves 63 bits
    the columns so far are replaced by dense numbers of the same order.
    """
    first, limit = parts[0]
    packed = first.astype(np.int64)
    for values, its_limit in parts[1:]:
        if limit * its_limit > LIMIT:
            packed, found = dense(packed, limit)
            limit = len(found)
            assert limit * its_limit <= LIMIT, "more rows than 32-bit positions"
        packed *= its_limit
        packed += values
        limit *= its_limit
    return packed, limit


def unpack(packed: Ints, limits: Sequence[int]) -> list[Codes]:
    """The columns that `pack` made one of, where their limits fit together; `limits` in the same order."""
    columns: list[Codes] = []
    for limit in reversed(limits):
        if limit == 1:
            columns.append(np.zeros(len(packed), np.int32))
            continue
        if limit & (limit - 1):
            rest = packed // limit
            columns.append((packed - rest * limit).astype(np.int32))
        else:
            rest = packed >> (limit.bit_length() - 1)
            columns.append((packed & (limit - 1)).astype(np.int32))
        packed = rest
    return columns[::-1]


def roomy(limits: Mapping[str, int]) -> dict[str, int]:
    """Limits that are powers of two, where columns packed by them still fit: these unpack by shifts."""
    rounded = {name: 1 << (limit - 1).bit_length() for name, limit in limits.items()}
    return rounded if math.prod(rounded.values()) <= LIMIT else dict(limits)


@dataclass(frozen=True)
class Keys:
    """The entry keys of n rows in canonical order, as ranks.

    `order[i]` is the input position of the i-th row, None where the input was already in order. Rows of
    equal key keep their input order and `repeat[i]` says that row i has the key of row i-1. Transitions
    are numbered from 0 in order; transition t is the rows `starts[t]` to `starts[t + 1] - 1`.
    """

    order: Ints | None
    trajectory: Labels
    step: Codes
    endpoint: Labels
    view_source: Labels
    channel: Labels
    layout: Codes
    acquisition: Labels
    candidate: Labels
    repeat: Mask
    transition: Codes
    starts: Ints

    def __len__(self) -> int:
        return len(self.step)

    @property
    def transitions(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def after(self) -> NDArray[np.int8]:
        """0 for a row at endpoint before, 1 at after: the order of time, not of bytes."""
        names = self.endpoint.values.to_pylist()
        return np.array([int(name == "after") for name in names] or [0], dtype=np.int8)[self.endpoint.codes]

    def positions(self, rows: Ints) -> Ints:
        """Input positions of rows given in canonical order."""
        return rows if self.order is None else self.order[rows]


def keys(tables: Sequence[pa.Table]) -> Keys:
    """The canonical order of the rows of some canonical tables, taken as one input, one after another."""
    labels = {name: ranks(column(tables, name)) for name in _TEXT}
    numbers = {name: integers(tables, name) for name in ("step", "layout")}
    codes = {name: labels[name].codes if name in labels else numbers[name] for name in TRANSPORT.key}
    limits = {name: bound(labels[name]) for name in labels}
    limits |= {name: int(values.max(initial=0)) + 1 for name, values in numbers.items()}
    limits = roomy(limits)
    parts = [(codes[name], limits[name]) for name in TRANSPORT.key]
    packed, limit = pack(parts)
    order, ordered, repeat = _sort(packed)
    if order is not None:
        whole = limit == math.prod(limits.values())
        columns = unpack(ordered, [limit for _, limit in parts]) if whole else permuted(parts, order)
        codes = dict(zip(TRANSPORT.key, columns, strict=True))
    new = np.ones(len(packed), dtype=np.bool_)
    new[1:] = False
    for name in ("trajectory_id", "step"):
        new[1:] |= codes[name][1:] != codes[name][:-1]

    def text(name: str) -> Labels:
        return Labels(codes[name], labels[name].values)

    return Keys(
        order=order,
        trajectory=text("trajectory_id"),
        step=codes["step"],
        endpoint=text("endpoint"),
        view_source=text("view_source"),
        channel=text("channel"),
        layout=codes["layout"],
        acquisition=text("acquisition_id"),
        candidate=text("candidate"),
        repeat=repeat,
        transition=np.cumsum(new, dtype=np.int32) - np.int32(1),
        starts=np.append(np.flatnonzero(new), len(new)),
    )


def bound(labels: Labels) -> int:
    """The exclusive bound of a column's codes, at least 1."""
    return max(len(labels.values), 1)


def permuted(parts: Sequence[tuple[Codes, int]], order: Ints) -> list[Codes]:
    """Columns of small integers with their limits, as `pack` takes them, in another row order.

    Fetching a row from a random place costs far more than arithmetic on it, so as many columns as fit
    63 bits travel as one.
    """
    columns: list[Codes] = []
    rest = [(values, 1 << (limit - 1).bit_length()) for values, limit in parts]
    while rest:
        count, limit = 0, 1
        while count < len(rest) and limit * rest[count][1] <= LIMIT:
            limit *= rest[count][1]
            count += 1
        together, rest = rest[:count], rest[count:]
        limits = [its_limit for _, its_limit in together]
        columns += unpack(pack(together)[0][order], limits)
    return columns


def permuted_labels(columns: Sequence[Labels], order: Ints | None) -> list[Labels]:
    """Columns in another row order; None leaves them as they are."""
    if order is None:
        return list(columns)
    shifted = [(labels.codes + np.int32(1), len(labels.values) + 1) for labels in columns]
    return [
        Labels(codes - np.int32(1), labels.values)
        for labels, codes in zip(columns, permuted(shifted, order), strict=True)
    ]


def _sort(packed: Ints) -> tuple[Ints | None, Ints, Mask]:
    """A stable order of the packed keys (None where they are in order), the keys in it, which repeat."""
    repeat = np.zeros(len(packed), dtype=np.bool_)
    if not (packed[1:] < packed[:-1]).any():
        repeat[1:] = packed[1:] == packed[:-1]
        return None, packed, repeat
    # numpy's unstable sort of int64 is three times faster than its stable one; ties are few and mended.
    order = np.argsort(packed)
    ordered = packed[order]
    repeat[1:] = ordered[1:] == ordered[:-1]
    if repeat.any():
        tied = repeat.copy()
        tied[:-1] |= repeat[1:]
        rows = np.flatnonzero(tied)
        run = np.cumsum(~repeat)[rows] * len(packed)
        order[rows] = np.sort(run + order[rows]) - run
    return order, ordered, repeat


def column(tables: Sequence[pa.Table], name: str) -> pa.ChunkedArray:
    """One column of several tables, whatever their encodings, as chunks of one type."""
    columns = [table.column(name) for table in tables]
    types = {each.type for each in columns}
    if len(types) > 1:
        columns = [
            each if pa.types.is_dictionary(each.type) else each.dictionary_encode() for each in columns
        ]
    if len({each.type for each in columns}) > 1:
        columns = [each.cast(pa.dictionary(pa.int32(), each.type.value_type)) for each in columns]
    return pa.chunked_array([chunk for each in columns for chunk in each.chunks], columns[0].type)


def integers(tables: Sequence[pa.Table], name: str) -> Codes:
    """One integer column of several tables as int32."""
    parts = [table.column(name).to_numpy().astype(np.int32, copy=False) for table in tables]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
