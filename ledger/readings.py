"""Entries by reading: the rows in a row that differ in nothing but their candidate and what is said of it.

A reading asked about several candidates at once is stored as an entry for each. Whatever is judged of its
inputs is the same for all of them, so it is judged once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from contracts.labels import ABSENT, whole
from contracts.order import ranks
from ledger.coded import Codes, numbers, with_codes

Mask = npt.NDArray[np.bool_]
# What one candidate of a reading may have for itself.
CELLS = ("candidate", "energy", "position", "label_mass")


@dataclass(frozen=True)
class Readings:
    """n readings with m entries: `table` has a row for each reading, `lengths` int64[n] its entries (at least
    one), and `cells` a row for each entry, in the same order: those of CELLS that there are.
    """

    table: pa.Table
    lengths: Codes
    cells: pa.Table

    @classmethod
    def of(cls, rows: pa.Table) -> Readings:
        """Entries, one a row."""
        cells = rows.select([name for name in rows.column_names if name in CELLS])
        shared = rows.select([name for name in rows.column_names if name not in CELLS])
        first = np.flatnonzero(_starts(shared))
        lengths = np.diff(first, append=rows.num_rows)
        return cls(shared if len(first) == rows.num_rows else shared.take(pa.array(first)), lengths, cells)

    @classmethod
    def concat(cls, parts: Sequence[Readings]) -> Readings:
        """One after another; there is at least one, and all have the same columns."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            pa.concat_tables([part.table for part in parts]),
            np.concatenate([part.lengths for part in parts]),
            pa.concat_tables([part.cells for part in parts]),
        )

    def __len__(self) -> int:
        """n, the number of readings."""
        return len(self.lengths)

    @cached_property
    def first(self) -> Codes:
        """The place of each reading's first entry: int64[n]."""
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def of_entry(self) -> npt.NDArray[np.intp]:
        """The reading of every entry: integers[m]."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def entries(self) -> pa.Table:
        """One row an entry: the columns of `table`, then those of `cells`."""
        table = self.table.take(pa.array(self.of_entry))
        for field in self.cells.schema:
            table = table.append_column(field, self.cells[field.name])
        return table

    def where(self, kept: Mask) -> Readings:
        """Some of the readings."""
        if kept.all():
            return self
        mask = pa.array(kept)
        of_kept = pa.array(np.repeat(kept, self.lengths))
        return Readings(self.table.filter(mask), self.lengths[kept], self.cells.filter(of_kept))

    def slice(self, start: int, stop: int) -> Readings:
        """The readings [start, stop)."""
        if start == 0 and stop == len(self):
            return self
        low, high = (int(self.lengths[:at].sum()) for at in (start, stop))
        return Readings(
            self.table.slice(start, stop - start), self.lengths[start:stop], self.cells.slice(low, high - low)
        )

    def by_transition(self) -> Readings:
        """In the order of (trajectory_id, step), otherwise as they stand."""
        name = ranks(self.table["trajectory_id"]).codes.astype(np.int64)
        order = np.argsort(name << 31 | numbers(self.table["step"]), kind="stable")
        lengths = self.lengths[order]
        at = np.repeat(self.first[order] - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
        return Readings(self.table.take(pa.array(order)), lengths, self.cells.take(pa.array(at)))

    def coded(self) -> Readings:
        """The same with plain digests as codes, and each column in one piece."""
        return Readings(_whole(with_codes(self.table)), self.lengths, _whole(self.cells))


def _whole(table: pa.Table) -> pa.Table:
    return table.unify_dictionaries().combine_chunks()


def _starts(table: pa.Table) -> Mask:
    """The rows that differ from the one before in any column."""
    new = np.zeros(table.num_rows, bool)
    new[:1] = True
    for column in table.unify_dictionaries().columns:
        for differ in _differences(column):
            new[1:] |= differ
    return new


def _differences(column: pa.ChunkedArray) -> list[Mask]:
    """Where a row differs from the one before, as masks of which any may say so."""
    if column.null_count == len(column):
        return []
    array = whole(column)
    if pa.types.is_dictionary(array.type):
        if len(array.dictionary) == 1 and not array.null_count:
            return []
        array = array.indices
    if pa.types.is_integer(array.type):
        values = (pc.fill_null(array, ABSENT) if array.null_count else array).to_numpy()
        return [values[1:] != values[:-1]]
    found = pc.not_equal(array.slice(1), array.slice(0, len(array) - 1))
    if not array.null_count:
        return [found.to_numpy(zero_copy_only=False)]
    present = array.is_valid().to_numpy(zero_copy_only=False)
    return [present[1:] != present[:-1], pc.fill_null(found, False).to_numpy(zero_copy_only=False)]
