"""Whether one segment is what the log commits to: its pages, the order of its rows, and what its event says.

What the rows may be is asked of the contract, which is fed them (`verify_contract`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.digest import unpack
from contracts.order import dense, labelled, pack
from contracts.schema import REFUSED, TRANSPORT, SegmentSchema
from contracts.threads import ahead
from ledger.coded import with_codes
from ledger.entry_id import entry_id
from ledger.index import Index
from ledger.index_rows import RefusalRow, SegmentRow
from ledger.problems import Problems
from ledger.segment_reader import SegmentReader
from ledger.sorting import ascends, label_ranks, sort_order
from ledger.verify_contract import Part

Stored = SegmentRow | RefusalRow
SIDE = ("trajectory_id", "step", "view_source", "channel", "acquisition_id")
AHEAD = 1  # row groups that are read, hashed and coded while another is judged
_LINE_BITS = 40  # of the row number in a source file, beside the file's index


@dataclass(frozen=True)
class Registered:
    """The event that first registered each channel (by fingerprint) and acquisition."""

    channels: Mapping[str, int]
    acquisitions: Mapping[str, int]

    @classmethod
    def of(cls, index: Index) -> Registered:
        """All of a catalog."""
        return cls(
            {row.channel.fingerprint: row.event for row in reversed(index.channel_rows())},
            {row.id: row.event for row in reversed(index.acquisitions())},
        )


@dataclass
class Check:
    """One segment or refusal, read whole."""

    found: Problems
    row: Stored
    reader: SegmentReader
    where: str
    scope: Counter[tuple[bytes | None, str]] = field(default_factory=Counter)
    sides: Counter[tuple[object, ...]] = field(default_factory=Counter)
    trajectories: int = 0
    first: tuple[object, ...] = ()

    def run(self, size: int, registered: Registered, feed: Callable[[SegmentSchema, Part], None]) -> None:
        """Pages and root, order, sources, the event's description; the contract is fed all rows in order.

        Scores are fed as their pages are checked, so what becomes of a segment that ends in a TamperError is
        for the caller to forget.
        """
        if size != self.row.size:
            self._tell(f"the event says {self.row.size} bytes, the file has {size}")
        scored = self.reader.schema in (TRANSPORT, REFUSED)
        if not scored:
            self.reader.check_pages()
        groups = ahead(self._groups(scored), AHEAD)
        with closing(groups):  # before the reader is
            self._take(groups, registered, feed)

    def _groups(self, scored: bool) -> Iterator[tuple[int, pa.Table]]:
        """The checked rows, with codes of the digests that are compared in every case."""
        for start, table in self.reader.checked_groups():
            yield start, with_codes(table, self.reader.schema.key) if scored else table

    def _take(
        self,
        groups: Iterator[tuple[int, pa.Table]],
        registered: Registered,
        feed: Callable[[SegmentSchema, Part], None],
    ) -> None:
        held = list(islice(groups, 1))  # what is said of sources is nothing where pages are not as committed
        sources = self._sources()
        last: pa.Table | None = None
        for start, rows in chain(held, groups):
            self._order(rows, last, start)
            self._count(rows, last)
            part = Part(self.where, self.row.root, start, rows, sources[start : start + rows.num_rows])
            feed(self.reader.schema, part)
            if self.reader.schema is REFUSED:
                self.sides.update(_side_counts(rows))
            self.first = self.first if last is not None else self._key(rows, 0)
            last = rows.slice(rows.num_rows - 1)
        self._registered(registered)
        if isinstance(self.row, SegmentRow):
            self._described(self.row, () if last is None else self._key(last, 0))

    def _tell(self, message: str, row: int | None = None) -> None:
        entry = f"event {self.row.event}" if row is None else entry_id(self.row.root, row)
        self.found.add("data", self.where, message, entry)

    def _sources(self) -> np.ndarray:
        """Which source each row came from, once all of them are possible places."""
        rows = self.reader.source_rows()
        if len(rows.files) and int(rows.files.max()) >= len(self.row.sources):
            self._tell("a row is said to come from a file its call did not have", int(rows.files.argmax()))
        if len(rows.rows) and not 0 < int(rows.rows.min()) <= int(rows.rows.max()) < 1 << _LINE_BITS:
            self._tell("a row is said to come from no line of a file", int(rows.rows.argmin()))
        elif self.reader.schema in (TRANSPORT, REFUSED):
            places = rows.files.astype(np.uint64) << np.uint64(_LINE_BITS) | rows.rows
            ascending = np.sort(places)
            if np.any(ascending[1:] == ascending[:-1]):
                _, first = np.unique(places, return_index=True)
                again = np.setdiff1d(np.arange(len(places)), first)
                self._tell("two rows are said to come from one line of a file", int(again[0]))
        return rows.files.astype(np.int64)

    def _order(self, table: pa.Table, last: pa.Table | None, start: int) -> None:
        """Rows in segment order, behind the last row of the group before; entries each once."""
        schema = self.reader.schema
        joint = table if last is None else pa.concat_tables([last, table.slice(0, 1)])
        if ascends(table, schema) and ascends(joint, schema):
            return
        rows = table if last is None else pa.concat_tables([last, table])
        start -= rows.num_rows - table.num_rows
        order = sort_order(rows, schema)
        if order is not None:
            moved = np.flatnonzero(order != np.arange(len(order)))
            self._tell("rows are not in segment order", start + int(moved[0]))
        elif schema is not REFUSED:
            again = _repeats(rows, schema)
            if again.any():
                self._tell("two entries have one key", start + int(again.argmax()) + 1)

    def _count(self, table: pa.Table, last: pa.Table | None) -> None:
        """Adds a group's rows to what the event describes."""
        for channel, acquisition, count in _grouped(table, ("channel", "acquisition_id")):
            self.scope[channel, acquisition] += count
        name = self.reader.schema.key[0]
        codes = labelled(table.column(name)).codes
        begun = last is None or last.column(name)[0].as_py() != table.column(name)[0].as_py()
        self.trajectories += int(np.count_nonzero(np.diff(codes))) + begun

    def _registered(self, registered: Registered) -> None:
        """Every channel and acquisition was in the log before its entries."""
        for channel, acquisition in self.scope:
            if (
                channel is not None
                and registered.channels.get(unpack(channel), self.row.event) >= self.row.event
            ):
                self._tell(f"entries of channel {unpack(channel)}, which was not registered")
            if registered.acquisitions.get(acquisition, self.row.event) >= self.row.event:
                self._tell("entries of an acquisition that was not in the log")

    def _described(self, row: SegmentRow, last: tuple[object, ...]) -> None:
        scope = {(None if c is None else unpack(c), a): n for (c, a), n in self.scope.items()}
        said = {
            "scope": (scope, {(part.channel, part.acquisition): part.rows for part in row.scope}),
            "channels": ({c for c, _ in scope if c is not None}, set(row.channels)),
            "acquisitions": ({a for _, a in scope}, set(row.acquisitions)),
            "first": (self.first, row.first),
            "last": (last, row.last),
            "trajectories": (self.trajectories, row.trajectories),
            "kind": (self.reader.schema.kind, row.kind),
        }
        for name, (is_so, stated) in said.items():
            if is_so != stated:
                self._tell(f"the event states another {name} than the rows have")

    def _key(self, table: pa.Table, at: int) -> tuple[object, ...]:
        return tuple(table.column(name)[at].as_py() for name in self.reader.schema.key[:2])


def _side_counts(table: pa.Table) -> Counter[tuple[object, ...]]:
    """How many rows each refused side has, by its key with the channel as text."""
    return Counter(
        {
            (trajectory, step, view_source, unpack(channel), acquisition): count
            for trajectory, step, view_source, channel, acquisition, count in _grouped(table, SIDE)
        }
    )


def _grouped(table: pa.Table, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """The distinct values of some columns of text, digests or steps, each with the number of its rows."""
    parts: list[tuple[np.ndarray, int]] = []
    for name in names:
        values = table.column(name)
        if pa.types.is_integer(values.type):
            numbers = values.to_numpy().astype(np.int64)
            codes, distinct = dense(numbers - numbers.min(), int(numbers.max() - numbers.min()) + 1)
            parts.append((codes, len(distinct)))
        else:
            labels = labelled(values)
            parts.append((labels.codes + np.int32(1), len(labels.values) + 1))
    codes, distinct = dense(*pack(parts))
    example = np.zeros(len(distinct), np.int64)
    example[codes] = np.arange(len(codes))
    columns = [table.column(name).take(pa.array(example)).to_pylist() for name in names]
    return list(zip(*columns, np.bincount(codes).tolist(), strict=True))


def _repeats(table: pa.Table, schema: SegmentSchema) -> np.ndarray:
    """Whether each row but the first has the key of the one before it."""
    same = np.ones(max(table.num_rows - 1, 0), dtype=np.bool_)
    for column in schema.columns:
        if column.key:
            values = table.column(column.name)
            if column.type in ("text", "digest"):
                codes, _ = label_ranks(values)
            else:
                codes = pc.fill_null(values, -1).to_numpy()
            same &= codes[1:] == codes[:-1]
    return same
