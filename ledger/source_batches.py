"""Large score files read batch by batch, as often as needed, so that memory follows the batch.

A batch is always the same rows of a file, whoever reads it and from where. Parquet and Arrow files are made
for it. CSV and JSON Lines are decoded once, whole, and cut afterwards: of those a call takes memory by its
rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

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

WASTE = 4  # a quarter of a batch
TEXT_BYTES = 100  # a row of a text file has more bytes than this, so a file has fewer rows
TRAJECTORY = "trajectory_id"


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
    """One staged input of scores as consecutive tables of `rows` rows, or some of them: `first` to `stop`."""

    def __init__(self, staged: Staged, rows: int, first: int = 0, stop: int | None = None) -> None:
        self.staged = staged
        self.form = detect(staged)
        self.rows = rows
        self.first_row = first * rows
        self.stop_row = None if stop is None else stop * rows
        self._whole: SourceTable | None = None

    def spans(self) -> Iterator[tuple[int, int | None]]:
        """The batches in runs that can be read apart without decoding much twice; None: up to the end.

        Text is one run. One of a Parquet file begins where at most a WASTE of a batch is decoded for nothing.
        """
        first = 0
        for batch, wasted in enumerate(self._before_batches()):
            if batch and wasted * WASTE <= self.rows:
                yield first, batch
                first = batch
        yield first, None

    def _before_batches(self) -> Iterator[int]:
        """For each batch, how many rows before it have to be decoded to come to it; nothing for text."""
        if self.form is Format.ARROW_FILE or self.form is Format.ARROW_STREAM:
            yield from (0 for _ in range(0, rows_at_most(self.staged), self.rows))
        if self.form is not Format.PARQUET:
            return
        starts = _group_starts(guarded(self.form, self.staged, lambda: parquet_file(self.staged))[1])
        for row in range(0, int(starts[-1]), self.rows):
            yield row - int(starts[np.searchsorted(starts, row, side="right") - 1])

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
            batches = self._parquet(file, [TRAJECTORY])
        elif self.form is Format.ARROW_FILE or self.form is Format.ARROW_STREAM:
            batches = self._only(_arrow_batches(self.form, self.staged), 0)
        else:
            yield from self._decoded.table.column(TRAJECTORY).chunks
            return
        row = self.first_row
        for batch in self._guarded(batches):
            column = batch.column(TRAJECTORY)
            guarded(self.form, self.staged, partial(require_valid, column, TRAJECTORY, row, self.staged.name))
            row += batch.num_rows
            yield column

    def __iter__(self) -> Iterator[SourceTable]:
        """The tables; row numbers and what could not be read are those of the file."""
        if self.form is Format.PARQUET:
            schema, file = guarded(self.form, self.staged, lambda: parquet_file(self.staged))
            yield from self._assembled(schema, self._parquet(file, known_columns(schema)))
        elif self.form is Format.ARROW_FILE or self.form is Format.ARROW_STREAM:
            batches = self._only(_arrow_batches(self.form, self.staged), 0)
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

    def _parquet(self, file: pq.ParquetFile, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """The rows of the batches, from the row groups that have some of them."""
        starts = _group_starts(file)
        stop = starts[-1] if self.stop_row is None else min(self.stop_row, starts[-1])
        low = max(int(np.searchsorted(starts, self.first_row, side="right")) - 1, 0)
        high = int(np.searchsorted(starts, stop))
        groups = list(range(low, high))
        batches = file.iter_batches(self.rows, row_groups=groups, columns=columns) if groups else iter(())
        return self._only(batches, int(starts[low]))

    def _only(self, batches: Iterator[pa.RecordBatch], row: int) -> Iterator[pa.RecordBatch]:
        """What of some record batches lies in the batches; the first of them begins with `row`."""
        for batch in batches:
            low = max(self.first_row - row, 0)
            high = batch.num_rows if self.stop_row is None else min(self.stop_row - row, batch.num_rows)
            row += batch.num_rows
            if low < high:
                yield batch.slice(low, high - low)
            if self.stop_row is not None and row >= self.stop_row:
                return

    def _assembled(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[SourceTable]:
        start = self.first_row
        for group in _grouped(self._guarded(batches), self.rows):
            decoded = guarded(
                self.form, self.staged, partial(assembled, schema, group, self.staged.name, start)
            )
            count = decoded.table.num_rows
            self.staged.let_go()
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
    """Consecutive record batches together, cut so that each group has so many rows, the last one the rest."""
    group: list[pa.RecordBatch] = []
    room = rows
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            group.append(batch.slice(start, room))
            start += group[-1].num_rows
            room -= group[-1].num_rows
            if not room:
                yield group
                group, room = [], rows
    if group:
        yield group


def _group_starts(file: pq.ParquetFile) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The first row of each row group, and the number of rows."""
    metadata = file.metadata
    return np.cumsum([0, *(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))])


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
