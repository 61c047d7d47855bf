"""Verified reads of a stored segment: whole by the digest of its file, in part by the leaves of its pages.

Nothing a caller receives is unchecked. A whole reader hashes the file's bytes once and decodes from those
same bytes ever after. A ranged reader decodes only the row groups it needs, encodes the pages it touched
again and compares them with the leaf file, whose own root must be the entries root of the event. The
statistics in a Parquet footer are hints: what they leave out is proved by the rows on both sides of it.
What is committed to may still be odd, so no file is decoded whose columns are of other types than a writer
stores, and no rows are given that have text of other bytes than UTF-8, or an absent value where none may be.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import BinaryIO, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from contracts.digest import blake3_digest
from contracts.errors import ContractError, MalformedError, TamperError
from contracts.schema import SCHEMAS, TYPES, SegmentSchema
from ledger.entry_id import entry_id
from ledger.objects import Objects
from ledger.pages import PAGE_ROWS, entries_root, page_count, page_leaves, plain
from ledger.segments import Folder, object_name

LEAF = 32
CODED = pa.dictionary(pa.int32(), TYPES["text"])


class StoredSegment(Protocol):
    """What the log commits to about a segment (an event or a catalog row); digests in text form."""

    @property
    def schema(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def root(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def leaves(self) -> str: ...
    @property
    def rows_file(self) -> str: ...


@dataclass(frozen=True)
class SourceRows:
    """Where entries stood in the files of their call: index into its sources, and row number from 1."""

    files: np.ndarray
    rows: np.ndarray


def schema_of(segment: StoredSegment) -> SegmentSchema:
    """The columns of a segment; MalformedError when this version does not know them."""
    schema = SCHEMAS.get(segment.schema)
    if schema is None:
        raise MalformedError(
            "a segment of an unknown schema", expected=" | ".join(SCHEMAS), got=segment.schema[:80]
        )
    return schema


class SegmentReader:
    """One segment, opened by `whole` or `ranged`. Not thread-safe; close it, or use it in a `with`."""

    def __init__(
        self,
        objects: Objects,
        segment: StoredSegment,
        folder: Folder,
        source: pa.BufferReader | BinaryIO,
        checked: bool,
    ) -> None:
        self.segment = segment
        self.schema = schema_of(segment)
        self.name = object_name(folder, segment.file, "parquet")
        self._objects = objects
        self._folder = folder
        self._source = source
        self._checked = checked
        self._kept: tuple[tuple[int, int, tuple[str, ...] | None], pa.Table] | None = None
        with self._decoding():
            text = [column.name for column in self.schema.columns if column.type == "text"]
            self._file = pq.ParquetFile(source, read_dictionary=text, pre_buffer=objects.far)
            self._require_columns(self._file.schema_arrow)
            if self._file.metadata.num_rows != segment.rows:
                found = self._file.metadata.num_rows
                raise self._tampered(f"{found} rows where {segment.rows} were committed")
            groups = range(self._file.num_row_groups)
            rows = [self._file.metadata.row_group(group).num_rows for group in groups]
            if 0 in rows:
                raise self._tampered(f"row group {rows.index(0)} has no rows")
        self.group_starts: tuple[int, ...] = tuple(np.cumsum([0, *rows]).tolist())

    @classmethod
    def whole(cls, objects: Objects, segment: StoredSegment, folder: Folder = "segments") -> SegmentReader:
        """Reads and hashes the file once; TamperError when its digest is not the one in the log."""
        name = object_name(folder, segment.file, "parquet")
        data = objects.read(name)
        found = blake3_digest(data)
        if found != segment.file:
            raise TamperError(
                "segment file changed", kind="data", expected=segment.file, got=found, where=name,
                next_step=objects.when_changed,
            )  # fmt: skip
        return cls(objects, segment, folder, pa.BufferReader(data), checked=True)

    @classmethod
    def ranged(cls, objects: Objects, segment: StoredSegment, folder: Folder = "segments") -> SegmentReader:
        """Opens the file for reads that check the pages they touch."""
        return cls(
            objects, segment, folder, objects.ranged(object_name(folder, segment.file, "parquet")), False
        )

    def __enter__(self) -> SegmentReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Releases the file."""
        self._file.close()
        self._source.close()

    @cached_property
    def leaves(self) -> Sequence[bytes]:
        """The leaf of every page, from the leaf file, whose root is the segment's entries root."""
        name = object_name(self._folder, self.segment.leaves, "leaves")
        data = self._objects.read(name)
        leaves = [data[at : at + LEAF] for at in range(0, len(data), LEAF)]
        if len(data) != LEAF * page_count(self.segment.rows) or entries_root(leaves) != self.segment.root:
            raise TamperError(
                "leaf hashes do not have the segment's entries root", kind="data", where=name,
                expected=self.segment.root, next_step=self._objects.when_changed,
            )  # fmt: skip
        return leaves

    def read(self, start: int = 0, stop: int | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """Rows [start, stop) in segment order: text coded, digests binary(33), `columns` only if given.

        A ranged reader decodes every column of the pages it touches, whatever `columns` says.
        """
        stop = self.segment.rows if stop is None else stop
        if not 0 <= start <= stop <= self.segment.rows:
            raise IndexError((start, stop))
        if self._checked:
            return self._decode(start, stop, columns)
        first, last = start // PAGE_ROWS, page_count(stop)
        page_start = first * PAGE_ROWS
        covered = self._decode(page_start, min(last * PAGE_ROWS, self.segment.rows), None)
        self._compare(covered, first)
        rows = covered.slice(start - page_start, stop - start)
        return rows if columns is None else rows.select(columns)

    def groups(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The whole segment, a row group at a time."""
        for start, stop in zip(self.group_starts, self.group_starts[1:], strict=False):
            yield self.read(start, stop, columns)

    def groups_with(self, trajectories: Sequence[bytes]) -> Iterator[tuple[int, int]]:
        """The rows [start, stop) of each row group that may hold one of some trajectories (ascending).

        Told from the ids themselves, which take little to decode: statistics may say anything.
        """
        for group, (start, stop) in enumerate(pairwise(self.group_starts)):
            low, high = self._bounds(self._read_groups(group, group + 1, self.schema.key[:1]))
            at = bisect_left(trajectories, low.encode())
            if at < len(trajectories) and trajectories[at] <= high.encode():
                yield start, stop

    def checked_groups(self) -> Iterator[tuple[int, pa.Table]]:
        """The rows of each row group with the number of the first, once its pages are as committed.

        TamperError as for `check_pages`, and where its statistics are not those of its rows; pages that lie
        across two groups are checked before any is given.
        """
        starts = self.group_starts
        aligned = all(start % PAGE_ROWS == 0 for start in starts[:-1])
        if not aligned:
            self.check_pages()
        for group, (start, stop) in enumerate(pairwise(starts)):
            table = self._decode(start, stop, None)
            if aligned:
                self._compare(table, start // PAGE_ROWS)
            self._require_statistics(group, table)
            yield start, table

    def check_pages(self) -> None:
        """Encodes every page again; TamperError names the first page and entry that is not as committed."""
        for start, stop in zip(self.group_starts, self.group_starts[1:], strict=False):
            first = start // PAGE_ROWS
            covered = self._decode(
                first * PAGE_ROWS, min(page_count(stop) * PAGE_ROWS, self.segment.rows), None
            )
            self._compare(covered, first)

    def find(self, first: str, last: str) -> tuple[int, int]:
        """The rows [start, stop) of the trajectories from `first` to `last`, both included.

        A ranged reader proves the answer: it has checked the pages at both edges, that the rows just
        outside are not of the range, and that the outermost rows inside are.
        """
        start, stop = self._hint(first, last)
        if not self._checked:
            for row in sorted({start - 1, start, stop - 1, stop}):
                if not 0 <= row < self.segment.rows:
                    continue
                value = self._trajectory(row)
                if (start <= row) != (value >= first.encode()) or (row < stop) != (value <= last.encode()):
                    raise self._tampered(
                        "row group statistics hide entries, or rows are out of order",
                        entry=entry_id(self.segment.root, row),
                    )
        return start, stop

    def source_rows(self, start: int = 0, stop: int | None = None) -> SourceRows:
        """Where entries [start, stop) stood in their files; checked by the digest in the event."""
        name = object_name(self._folder, self.segment.rows_file, "rows")
        data = self._objects.read_checked(name)
        count = self.segment.rows
        try:
            raw = pa.Codec("zstd").decompress(data, decompressed_size=12 * count, asbytes=True)
        except (pa.ArrowException, OSError) as error:
            step = self._objects.when_changed
            raise TamperError("source rows do not decode", kind="data", where=name, next_step=step) from error
        files = np.frombuffer(raw, "<u4", count)
        rows = np.frombuffer(raw, "<u8", count, offset=4 * count)
        return SourceRows(files[start:stop], rows[start:stop])

    def _hint(self, first: str, last: str) -> tuple[int, int]:
        """Where the rows of a trajectory range should be, by row group statistics; not proved."""
        column = self.schema.names.index(self.schema.key[0])
        overlapping: list[int] = []
        start = 0
        with self._decoding():
            for group in range(self._file.num_row_groups):
                statistics = self._file.metadata.row_group(group).column(column).statistics
                known = statistics is not None and statistics.has_min_max
                if known and statistics.max.encode() < first.encode():
                    start = self.group_starts[group + 1]
                elif not known or statistics.min.encode() <= last.encode():
                    overlapping.append(group)
            if not overlapping:
                return start, start
            low, high = overlapping[0], overlapping[-1]
            before = self._count(low, lambda values: pc.less(values, first))
            until = self._count(high, lambda values: pc.less_equal(values, last))
        return self.group_starts[low] + before, self.group_starts[high] + until

    def _count(self, group: int, holds: Callable[[pa.Array], pa.Array]) -> int:
        """How many trajectory ids of a row group meet a condition; text compares by its bytes."""
        column = self.schema.columns[0]
        values = plain(self._read_groups(group, group + 1, [column.name]).column(0), column)
        return int(pc.sum(holds(values)).as_py() or 0)

    def _trajectory(self, row: int) -> bytes:
        column = self.schema.columns[0]
        value: str = plain(self.read(row, row + 1).column(column.name), column)[0].as_py()
        return value.encode()

    def _decode(self, start: int, stop: int, columns: Sequence[str] | None) -> pa.Table:
        """Rows of the file, not checked: the row groups they stand in, cut to size."""
        if start == stop:
            return self._file.schema_arrow.empty_table().select(columns or list(self.schema.names))
        low = bisect_right(self.group_starts, start) - 1
        high = bisect_left(self.group_starts, stop)
        wanted = (low, high, None if columns is None else tuple(columns))
        if self._kept is None or self._kept[0] != wanted:
            groups = self._read_groups(low, high, columns)
            self._kept = (wanted, groups if columns is None else groups.select(columns))
        return self._kept[1].slice(start - self.group_starts[low], stop - start)

    def _read_groups(self, low: int, high: int, columns: Sequence[str] | None) -> pa.Table:
        """Row groups [low, high) of the file: every value is one of its type, and there where it must be."""
        with self._decoding():
            table = self._file.read_row_groups(list(range(low, high)), columns=columns)
            table.validate(full=True)  # text may be no text, and codes may point nowhere
        for column in self.schema.columns:
            here = not column.nullable and column.name in table.column_names
            if here and table.column(column.name).null_count:
                raise self._tampered(f"column {column.name} has an absent value where none may be")
        return table

    def _require_columns(self, found: pa.Schema) -> None:
        """TamperError unless the columns are those of the schema, of the types they are stored with."""
        if found.names != list(self.schema.names):
            raise self._tampered("other columns than its schema")
        for column in self.schema.columns:
            # However its writer kept text, it is asked for as codes.
            wanted = CODED if column.type == "text" else TYPES[column.type]
            if (got := found.field(column.name).type) != wanted:
                named = str(got.value_type if pa.types.is_dictionary(got) else got)
                raise self._tampered(f"column {column.name} is of another type ({named[:40]})")

    def _require_statistics(self, group: int, table: pa.Table) -> None:
        """TamperError where a row group states other bounds of its trajectories than its rows have."""
        with self._decoding():
            stated = self._file.metadata.row_group(group).column(0).statistics
            known = stated is not None and stated.has_min_max
            if known and (stated.min, stated.max) != self._bounds(table):
                raise self._tampered(f"the statistics of row group {group} are not those of its rows")

    def _bounds(self, table: pa.Table) -> tuple[str, str]:
        """The first and the last trajectory of some rows, in whatever order they are."""
        column = self.schema.columns[0]
        found = pc.min_max(plain(table.column(column.name).unique(), column))
        return found["min"].as_py(), found["max"].as_py()

    def _compare(self, covered: pa.Table, first_page: int) -> None:
        """Raises TamperError unless every page of the table has its committed leaf."""
        try:
            found = page_leaves(covered, self.schema)
        except ContractError as error:
            raise self._tampered(f"{error}") from error
        committed = self.leaves[first_page : first_page + len(found)]
        for page, (leaf, wanted) in enumerate(zip(found, committed, strict=True), first_page):
            if leaf != wanted:
                entry = entry_id(self.segment.root, page * PAGE_ROWS)
                raise self._tampered(f"page {page} is not what was committed", entry=entry)

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, UnicodeError, KeyError) as error:
            raise self._tampered("its Parquet does not decode") from error

    def _tampered(self, what: str, entry: str | None = None) -> TamperError:
        where = self.name if entry is None else f"{self.name} entry {entry}"
        step = self._objects.when_changed
        return TamperError(f"segment file changed: {what}", kind="data", where=where, next_step=step)
