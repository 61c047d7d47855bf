"""The rows of one call behind the entries they meet, in canonical order, with the columns the rules read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.content import bits
from contracts.labels import ABSENT, Codes, Labels, Mask
from contracts.order import Ints, Keys, column, keys, permuted_labels, ranks
from contracts.raw_rows import THREADS
from contracts.rows import OK
from contracts.schema import REFUSED
from contracts.side_rejects import Origin
from contracts.transitions import Said

ORIGIN = ("source_file", "source_row")
_SAID = ("target", "target_type", "step_kind", "candidates_hash")


class Ordered:
    """`table` is the call and `existing` its entries (None for none); rows are positions in `keys`."""

    def __init__(self, table: pa.Table, existing: pa.Table | None, files: tuple[str, ...]) -> None:
        self.table = table.unify_dictionaries().combine_chunks()
        self.existing = None if existing is None or not existing.num_rows else existing
        self.files = files
        self.keys: Keys = keys(self._inputs)
        self._said_ahead: Future[Said] | None = None

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """Prepares in a thread what every call comes to ask for, while the block asks for other things."""
        with ThreadPoolExecutor(1) as beside:
            self._said_ahead = beside.submit(self._said)
            yield

    @property
    def _inputs(self) -> list[pa.Table]:
        return [self.table] if self.existing is None else [self.existing, self.table]

    @property
    def entries(self) -> int:
        """How many of the rows are entries; the input has them first."""
        return 0 if self.existing is None else self.existing.num_rows

    @cached_property
    def held(self) -> Mask:
        """Which rows are entries."""
        if self.existing is None:
            return np.zeros(len(self.keys), dtype=np.bool_)
        held: Mask = self.keys.positions(np.arange(len(self.keys))) < self.entries
        return held

    @cached_property
    def failed(self) -> Mask:
        """Which rows are readings that brought no score."""
        ok = [value == OK for value in self.status.values.to_pylist()]
        failed: Mask = ~np.array([*ok, True], dtype=np.bool_)[self.status.codes]
        return failed

    @cached_property
    def status(self) -> Labels:
        """The status of every row, absent for entries."""
        own = ranks(self.table.column("status"))
        codes = np.append(np.full(self.entries, ABSENT, dtype=np.int32), own.codes)
        return permuted_labels([Labels(codes, own.values)], self.keys.order)[0]

    @cached_property
    def origin(self) -> Origin:
        """File and row number of every row, -1 for entries."""
        every = self.keys.positions(np.arange(len(self.keys)))
        file, row = (
            np.append(np.full(self.entries, -1), self.table.column(name).to_numpy()).astype(np.int64)[every]
            for name in ORIGIN
        )
        return Origin(self.files, file, row)

    @cached_property
    def said(self) -> Said:
        """What the rows say of their transitions."""
        return self._said() if self._said_ahead is None else self._said_ahead.result()

    def _said(self) -> Said:
        success = [pc.fill_null(table.column("success").cast(pa.int8()), ABSENT) for table in self._inputs]
        codes: Codes = np.concatenate([each.to_numpy() for each in success]).astype(np.int32)
        values = pa.array([False, True]) if (codes != ABSENT).any() else pa.array([], pa.bool_())
        columns = [ranks(column(self._inputs, name)) for name in _SAID]
        return Said(*permuted_labels([*columns, Labels(codes, values)], self.keys.order))

    @property
    def view(self) -> Labels:
        """The view digest of every row."""
        return permuted_labels([ranks(column(self._inputs, "view_hash"))], self.keys.order)[0]

    def by_content(self, at: Ints) -> Ints:
        """Rows with those of equal key ordered by content, so that the order they came in is forgotten.

        By the other columns in the order of the schema: null first, text and digests by bytes, numbers by
        their bits as signed integers.
        """
        repeat = self.keys.repeat[at]
        if not repeat.any():
            return at
        tied = repeat.copy()
        tied[:-1] |= repeat[1:]
        rows = np.flatnonzero(tied)
        table = self.take(at[rows], REFUSED.names)
        names = [name for name in REFUSED.names if name not in REFUSED.key]
        content = [part for name in names for part in bits([table], name, in_order=True)]
        differs = np.zeros(len(rows), dtype=np.bool_)
        for codes in content:
            differs[1:] |= codes[1:] != codes[:-1]
        run = np.cumsum(~repeat)[rows]
        mixed = np.zeros(int(run.max()) + 1, dtype=np.bool_)
        mixed[run[differs & repeat[rows]]] = True
        among = np.flatnonzero(mixed[run])
        rows, run = rows[among], run[among]
        ordered = at.copy()
        ordered[rows] = at[rows[np.lexsort([*(codes[among] for codes in reversed(content)), run])]]
        return ordered

    def of_call(self, at: Ints) -> pa.Array:
        """Positions in the call's table of rows that are no entries."""
        return pa.array(self.keys.positions(at) - self.entries)

    def take(self, at: Ints, names: tuple[str, ...]) -> pa.Table:
        """Some columns, and the origin, of rows that are no entries."""
        table = self.table.select([*names, *ORIGIN])
        if self.keys.order is None and len(at) == len(self.keys):
            return table
        if not len(at):
            return table.slice(0, 0)
        from_table = self.of_call(at)

        def fetched(name: str) -> pa.ChunkedArray:
            return self._fetch(name, at, table.column(name), from_table)

        with ThreadPoolExecutor(THREADS) as pool:
            return pa.table(list(pool.map(fetched, table.column_names)), schema=table.schema)

    def _fetch(self, name: str, at: Ints, column: pa.ChunkedArray, from_table: pa.Array) -> pa.ChunkedArray:
        """One column of some rows; fetched from random places only where it must be."""
        if name in self._coded:
            labels = self._coded[name]
            codes = labels.codes if len(at) == len(self.keys) else labels.codes[at]
            return pa.chunked_array([Labels(codes, labels.values).array.cast(column.type)])
        if column.null_count == len(column) or _constant(column):
            return column.slice(0, len(at))
        return column.take(from_table)

    @cached_property
    def _coded(self) -> Mapping[str, Labels]:
        """Columns that stand in canonical order already."""
        return {
            "trajectory_id": self.keys.trajectory,
            "endpoint": self.keys.endpoint,
            "view_source": self.keys.view_source,
            "channel": self.keys.channel,
            "acquisition_id": self.keys.acquisition,
            "candidate": self.keys.candidate,
            **{name: getattr(self.said, name) for name in _SAID},
        }


def _constant(column: pa.ChunkedArray) -> bool:
    """Whether a column surely has one value in every row."""
    if column.null_count or not len(column):
        return False
    if pa.types.is_dictionary(column.type):
        return column.num_chunks == 1 and len(column.chunk(0).dictionary) == 1
    if pa.types.is_integer(column.type):
        both = pc.min_max(column).as_py()
        return bool(both["min"] == both["max"])
    return False
