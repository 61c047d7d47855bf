"""The canonical order of transport rows, found by sorting ranks instead of text.

Every key column becomes the rank of its value by bytes, the ranks of a row are packed into one integer,
and that integer is sorted: text is compared once per distinct value. Equal keys end up side by side, so
"each once" is a comparison of neighbours, exact for any number of cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]

LIMIT = 2**63 - 1
# A table of all possible values is faster than a sort while it is not much larger than the rows.
SPARSE = 4


@dataclass(frozen=True)
class Ranks:
    """A column as ranks into its distinct values, ascending by bytes; a null has rank -1."""

    codes: Codes
    values: pa.Array

    def __len__(self) -> int:
        return len(self.values)

    def take(self, order: Ints | None) -> Ranks:
        """The same column in another row order; None leaves it as it is."""
        return self if order is None else Ranks(self.codes[order], self.values)

    def text(self, code: int) -> str:
        """The value of one rank, as text."""
        return str(self.values[code].as_py())


def ranks(column: pa.ChunkedArray) -> Ranks:
    """Rank a text or binary column, dictionary-encoded or not, by the bytes of its values."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    array = coded.unify_dictionaries().combine_chunks()
    indices = array.indices.cast(pa.int32())
    if indices.null_count:
        indices = indices.fill_null(-1)
    codes = indices.to_numpy(zero_copy_only=False)
    values = array.dictionary
    if len(values) > 1 and not pc.all(pc.less(values[:-1], values[1:])).as_py():
        codes, values = _ranked(codes, values)
    return Ranks(codes, values)


def _ranked(codes: Codes, values: pa.Array) -> tuple[Codes, pa.Array]:
    """Renumber codes by byte order; equal values share a rank even if a writer listed them twice."""
    rank = pc.rank(values, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int32) - 1
    first = np.zeros(int(rank.max()) + 1, dtype=np.int64)
    first[rank] = np.arange(len(rank))
    return np.append(rank, np.int32(-1))[codes], values.take(pa.array(first))


def dense(values: Ints, size: int) -> tuple[Ints, Ints]:
    """Number the distinct values of `values` (each in 0…size-1) upwards: ids per row, distinct values."""
    if size <= SPARSE * len(values) + 1024:
        present = np.zeros(size, dtype=np.bool_)
        present[values] = True
        distinct = np.flatnonzero(present)
        number = np.cumsum(present, dtype=np.int32) - np.int32(1)
        return number[values].astype(np.int64), distinct
    distinct, ids = np.unique(values, return_inverse=True)
    return ids.astype(np.int64, copy=False), distinct


def pack(parts: Sequence[tuple[NDArray[np.integer], int]]) -> tuple[Ints, int]:
    """Columns of small integers as one int64 that sorts like the tuple: the values and their bound.

    Each part is its values and their (exclusive) bound. Where the product of the bounds leaves 63 bits
    the columns so far are replaced by dense numbers of the same order.
    """
    first, size = parts[0]
    packed = first.astype(np.int64)
    for values, bound in parts[1:]:
        if size * bound > LIMIT:
            packed, distinct = dense(packed, size)
            size = len(distinct)
            assert size * bound <= LIMIT, "more rows than 32-bit positions"
        packed *= bound
        packed += values
        size *= bound
    return packed, size


@dataclass(frozen=True)
class Keys:
    """The entry keys of n rows in canonical order, as ranks.

    `order[i]` is the input position of the i-th row, None where the input was already in order. Rows of
    equal key keep their input order and `repeat[i]` says that row i has the key of row i-1. Transitions
    are numbered from 0 in order; transition t is the rows `starts[t]` to `starts[t + 1] - 1`.
    """

    order: Ints | None
    trajectory: Ranks
    step: Codes
    endpoint: Ranks
    view_source: Ranks
    channel: Ranks
    layout: Codes
    acquisition: Ranks
    candidate: Ranks
    repeat: Mask
    transition: Codes
    starts: Ints

    def __len__(self) -> int:
        return len(self.step)

    @property
    def transitions(self) -> int:
        return len(self.starts) - 1

    @property
    def after(self) -> NDArray[np.int8]:
        """0 for a row at endpoint before, 1 at after: the order of time, not of bytes."""
        names = self.endpoint.values.to_pylist()
        return np.array([int(name == "after") for name in names] or [0], dtype=np.int8)[self.endpoint.codes]

    def positions(self, rows: Ints) -> Ints:
        """Input positions of rows given in canonical order."""
        return rows if self.order is None else self.order[rows]

    def sorted(self, values: NDArray[np.generic]) -> NDArray[np.generic]:
        """A column of the input in canonical order."""
        return values if self.order is None else values[self.order]


def keys(tables: Sequence[pa.Table]) -> Keys:
    """The canonical order of the rows of some canonical tables, taken as one input, one after another."""
    trajectory, endpoint, view_source, channel, acquisition, candidate = (
        ranks(column(tables, name))
        for name in ("trajectory_id", "endpoint", "view_source", "channel", "acquisition_id", "candidate")
    )
    step, layout = (integers(tables, name) for name in ("step", "layout"))
    packed, _ = pack(
        [
            (trajectory.codes, max(len(trajectory), 1)),
            (step, int(step.max(initial=0)) + 1),
            (endpoint.codes, max(len(endpoint), 1)),
            (view_source.codes, max(len(view_source), 1)),
            (channel.codes, max(len(channel), 1)),
            (layout, int(layout.max(initial=0)) + 1),
            (acquisition.codes, max(len(acquisition), 1)),
            (candidate.codes, max(len(candidate), 1)),
        ]
    )
    order, repeat = _sort(packed)
    if order is not None:
        step, layout = step[order], layout[order]
    trajectory = trajectory.take(order)
    new = np.ones(len(step), dtype=np.bool_)
    new[1:] = (trajectory.codes[1:] != trajectory.codes[:-1]) | (step[1:] != step[:-1])
    return Keys(
        order=order,
        trajectory=trajectory,
        step=step,
        endpoint=endpoint.take(order),
        view_source=view_source.take(order),
        channel=channel.take(order),
        layout=layout,
        acquisition=acquisition.take(order),
        candidate=candidate.take(order),
        repeat=repeat,
        transition=np.cumsum(new, dtype=np.int32) - np.int32(1),
        starts=np.append(np.flatnonzero(new), len(step)),
    )


def _sort(packed: Ints) -> tuple[Ints | None, Mask]:
    """A stable order of the packed keys (None where they are in order) and which keys repeat."""
    repeat = np.zeros(len(packed), dtype=np.bool_)
    if not (packed[1:] < packed[:-1]).any():
        repeat[1:] = packed[1:] == packed[:-1]
        return None, repeat
    # numpy's unstable sort of int64 is three times faster than its stable one; ties are few and mended.
    order = np.argsort(packed)
    ordered = packed[order]
    repeat[1:] = ordered[1:] == ordered[:-1]
    if repeat.any():
        tied = repeat.copy()
        tied[:-1] |= repeat[1:]
        rows = np.flatnonzero(tied)
        order[rows] = order[rows][np.lexsort((order[rows], ordered[rows]))]
    return order, repeat


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
