"""Large score files read batch by batch, as often as needed, so that memory follows the batch.

Parquet and Arrow files are made for it. CSV and JSON Lines are decoded once, whole, and cut afterwards: of
those a call takes memory by its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from contracts.labels import is_text
from contracts.source_table import SourceTable, Unread
from ledger.source_format import Format, detect
from ledger.sources import (
    assembled,
    guarded,
    known_columns,
    no_rows,
    parquet_file,
    read_source,
    require_valid,
    source_table,
)
from ledger.staging import Staged

TEXT_BYTES = 100  # a row of a text file has more bytes than this, so a file has fewer rows
TRAJECTORY = "trajectory_id"
Item = TypeVar("Item")


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The items, each made in a thread while the one before it is used."""
    end = object()
    with ThreadPoolExecutor(1) as maker:
        coming = maker.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = maker.submit(next, items, end)
            yield item  # type: ignore[misc]


def rows_at_most(staged: Staged) -> int:
    """How many rows an input has, or for text a number it cannot have more of; nothing is decoded."""
    form = detect(staged)
    if form is Format.PARQUET:
        count: int = guarded(form, staged, lambda: pq.read_metadata(pa.BufferReader(staged.data)).num_rows)
        return count
    if form is Format.ARROW_FILE or form is Format.ARROW_STREAM:
        batches: list[int] = guarded(form, staged, lambda: [b.num_rows for b in _arrow_batches(form, staged)])
        return sum(batches)
    return int(staged.data.size) // TEXT_BYTES


class SourceBatches:
    """One staged input of scores as consecutive tables of about `rows` rows."""

    def __init__(self, staged: Staged, rows: int) -> None:
        self.staged = staged
        self.form = detect(staged)
        self.rows = rows
        self._whole: SourceTable | None = None

    def trajectories(self) -> Iterator[pa.Array] | None:
        """The trajectory column alone, None where there is no such column of text."""
        if self.form is Format.PARQUET:
            schema, file = guarded(self.form, self.staged, lambda: parquet_file(self.staged))
        elif self.form is Format.ARROW_FILE or self.form is Format.ARROW_STREAM:
            schema, file = _arrow_schema(self.form, self.staged), None
        else:
            schema, file = self._decoded.table.schema, None
        at = schema.get_field_index(TRAJECTORY)
        if at < 0 or not is_text(schema.field(at).type):
            return None
        return self._trajectories(file)

    def _trajectories(self, file: pq.ParquetFile | None) -> Iterator[pa.Array]:
        if file is not None:
            batches: Iterator[pa.RecordBatch] = file.iter_batches(self.rows, columns=[TRAJECTORY])
        elif self.form is Format.ARROW_FILE or self.form is Format.ARROW_STREAM:
            batches = _arrow_batches(self.form, self.staged)
        else:
            yield from self._decoded.table.column(TRAJECTORY).chunks
            return
        row = 0
        for batch in self._guarded(batches):
            column = batch.column(TRAJECTORY)
            guarded(self.form, self.staged, partial(require_valid, column, TRAJECTORY, row, self.staged.name))
            row += batch.num_rows
            yield column

    def __iter__(self) -> Iterator[SourceTable]:
        """The tables; row numbers and what could not be read are those of the file."""
        if self.form is Format.PARQUET:
            schema, file = guarded(self.form, self.staged, lambda: parquet_file(self.staged))
            yield from self._assembled(schema, file.iter_batches(self.rows, columns=known_columns(schema)))
        elif self.form is Format.ARROW_FILE or self.form is Format.ARROW_STREAM:
            batches = (
                batch for whole in _arrow_batches(self.form, self.staged) for batch in self._cut(whole)
            )
            yield from self._assembled(_arrow_schema(self.form, self.staged), batches)
        else:
            whole = self._decoded
            for start in range(0, whole.table.num_rows, self.rows):
                yield _part(whole, start, min(start + self.rows, whole.table.num_rows))

    @property
    def _decoded(self) -> SourceTable:
        if self._whole is None:
            self._whole = read_source(self.staged)
        return self._whole

    def _cut(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for start in range(0, batch.num_rows, self.rows):
            yield batch.slice(start, self.rows)

    def _assembled(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[SourceTable]:
        start = 0
        for group in _grouped(self._guarded(batches), self.rows):
            decoded = guarded(
                self.form, self.staged, partial(assembled, schema, group, self.staged.name, start)
            )
            count = decoded.table.num_rows
            whole = source_table(self.staged, decoded)
            yield _part(whole, 0, count, first_row=start)
            start += count
        if not start:
            raise no_rows(self.staged)

    def _guarded(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches; StorageError where the next one does not decode."""
        while (batch := guarded(self.form, self.staged, lambda: next(batches, None))) is not None:
            yield batch


def _grouped(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[Sequence[pa.RecordBatch]]:
    """Consecutive batches together until they have so many rows; empty ones are left out."""
    group: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            group.append(batch)
        if sum(part.num_rows for part in group) >= rows:
            yield group
            group = []
    if group:
        yield group


def _part(whole: SourceTable, start: int, stop: int, first_row: int = 0) -> SourceTable:
    """Rows of a decoded table, numbered as in the file, whose row `first_row` is the table's first."""
    numbers = np.arange(first_row + 1, first_row + 1 + whole.table.num_rows)
    if whole.row_numbers is not None:
        numbers = whole.row_numbers
    unread = []
    for each in whole.unread:
        low, high = np.searchsorted(each.rows, [start, stop]).tolist()
        if low < high:
            values = each.values.slice(low, high - low)
            unread.append(Unread(each.column, each.code, each.rows[low:high] - start, values))
    return SourceTable(
        name=whole.name,
        digest=whole.digest,
        table=whole.table.slice(start, stop - start),
        unread=tuple(unread),
        ignored=whole.ignored,
        row_numbers=numbers[start:stop],
    )


def _arrow_schema(form: Format, staged: Staged) -> pa.Schema:
    def read() -> pa.Schema:
        source = pa.BufferReader(staged.data)
        opened = pa.ipc.open_file(source) if form is Format.ARROW_FILE else pa.ipc.open_stream(source)
        with opened as reader:
            return reader.schema

    return guarded(form, staged, read)


def _arrow_batches(form: Format, staged: Staged) -> Iterator[pa.RecordBatch]:
    source = pa.BufferReader(staged.data)
    if form is Format.ARROW_STREAM:
        with pa.ipc.open_stream(source) as reader:
            yield from reader
        return
    with pa.ipc.open_file(source) as file:
        for index in range(file.num_record_batches):
            yield file.get_batch(index)
