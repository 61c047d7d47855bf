"""Canonical rows of a call set aside by part on disk, so that each part can be judged alone.

A part holds whole trajectories: every rule of the contract but one speaks about rows of one trajectory. The
rows wait in one unnamed temporary file, which leaves nothing behind however the process ends.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
from numpy.typing import NDArray

from contracts.labels import Codes, Labels, joined, text_labels
from contracts.raw_rows import PACKED
from contracts.rows import IN_FLIGHT
from ledger import durable

TRAJECTORY = "trajectory_id"
Counts = NDArray[np.int64]


def counted(column: pa.Array) -> tuple[pa.Array, Counts]:
    """The labels of a text column, and how many rows have each."""
    labels = text_labels([column])
    counts = np.bincount(labels.codes[labels.present], minlength=len(labels.values))
    return labels.values, counts.astype(np.int64)


class Ranges:
    """Consecutive trajectories, by UTF-8 bytes, in parts of about `rows` rows."""

    def __init__(self, counts_of: Iterable[tuple[pa.Array, Counts]], rows: int) -> None:
        names, counts = [pa.array([], pa.string())], [np.empty(0, np.int64)]
        for labels, many in counts_of:
            names.append(labels)
            counts.append(many)
        once = pa.concat_arrays(names).dictionary_encode()
        every = once.indices.to_numpy(zero_copy_only=False)
        totals = np.bincount(every, np.concatenate(counts), len(once.dictionary)).astype(np.int64)
        order = pc.array_sort_indices(once.dictionary)
        self.names = once.dictionary.take(order)
        until = np.cumsum(totals[order.to_numpy()])
        # A trajectory belongs where its first row falls; parts that got none are not counted.
        _, part = np.unique((until - totals[order.to_numpy()]) // rows, return_inverse=True)
        self._part = part.astype(np.int32)
        self.count = int(self._part.max(initial=0)) + 1

    def of(self, column: pa.ChunkedArray) -> Codes:
        """The part of each row of a trajectory column; every trajectory is known."""
        array = column.combine_chunks()
        known = pc.index_in(array.dictionary, value_set=self.names).to_numpy(zero_copy_only=False)
        part: Codes = self._part[known.astype(np.int64)][array.indices.to_numpy()]
        return part


class Spill:
    """Rows by part. Not thread-safe; `add` everything before the first `part` is read."""

    def __init__(self, ranges: Ranges, directory: Path | None) -> None:
        self.ranges = ranges
        with durable.storage("making a temporary file", directory or tempfile.gettempdir()):
            self._file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 (lives as long as the spill)
        self._places: list[list[tuple[int, int]]] = [[] for _ in range(ranges.count)]
        self._digests: list[pa.Array] = []

    def __len__(self) -> int:
        return len(self._places)

    def add(self, table: pa.Table) -> None:
        """Sets rows of the schema IN_FLIGHT aside."""
        self._digests.append(candidates_digests(table))
        for number, rows in divided(table, self.ranges):
            self._write(number, rows)

    def part(self, number: int) -> pa.Table:
        """All rows of one part, in the order in which they were added."""
        tables = []
        for at, length in self._places[number]:
            with durable.storage("reading a temporary file", "the staging directory"):
                self._file.seek(at)
                data = self._file.read(length)
            with pa.ipc.open_stream(data) as reader:
                tables.append(reader.read_all())
        return together(tables)

    def candidate_digests(self) -> pa.Array:
        """Every candidates digest among the rows; one may occur more than once."""
        return pa.concat_arrays([pa.array([], PACKED), *self._digests])

    def _write(self, number: int, table: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        data = sink.getvalue()
        with durable.storage("writing a temporary file", "the staging directory"):
            at = self._file.seek(0, 2)
            self._file.write(data)
        self._places[number].append((at, data.size))


def candidates_digests(table: pa.Table) -> pa.Array:
    """The candidates digests that occur in rows of the schema IN_FLIGHT."""
    return table.column("candidates_hash").combine_chunks().dictionary.drop_null()


def divided(table: pa.Table, ranges: Ranges) -> Iterator[tuple[int, pa.Table]]:
    """Rows of the schema IN_FLIGHT by the part they belong to, without columns that have no value."""
    table = table.combine_chunks()
    table = table.select([n for n in table.column_names if table.column(n).null_count < table.num_rows])
    part = ranges.of(table.column(TRAJECTORY))
    if (part[1:] == part[:-1]).all():
        yield int(part[0]), table
        return
    order = np.argsort(part, kind="stable")
    ends = np.cumsum(np.bincount(part, minlength=ranges.count))
    for number in np.unique(part).tolist():
        start = int(ends[number - 1]) if number else 0
        yield number, _compact(table.take(pa.array(order[start : ends[number]])))


def together(tables: Iterable[pa.Table]) -> pa.Table:
    """Rows of one part that were divided, in the order given, with all columns again."""
    return pa.concat_tables([_whole(table) for table in tables]).unify_dictionaries().combine_chunks()


def _compact(table: pa.Table) -> pa.Table:
    """The rows with the labels they use: a few rows would carry the labels of all their batch otherwise."""
    for index, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            array = table.column(index).combine_chunks()
            codes = pc.fill_null(array.indices, -1).to_numpy(zero_copy_only=False)
            used: Labels = joined([(codes, array.dictionary)], field.type.value_type)
            table = table.set_column(index, field, used.array)
    return table


def _whole(table: pa.Table) -> pa.Table:
    """The rows with the columns that were left out because no row had a value."""
    columns = [
        table.column(field.name)
        if field.name in table.column_names
        else pa.chunked_array([pa.nulls(table.num_rows, field.type)])
        for field in IN_FLIGHT
    ]
    return pa.table(columns, schema=IN_FLIGHT)
