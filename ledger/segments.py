"""Segments: sorted entries as immutable Parquet files, each with its leaf hashes and source rows.

A call's rows are sorted as a whole and cut every 1,048,576 rows. Each cut becomes three objects:
`.parquet` (row groups of 131,072 with statistics), `.leaves` (the 32-byte leaf of every page, in
order) and `.rows` (zstd of one u32 file index an entry, then one u64 row number an entry, little-endian).
The entries root depends on the rows alone; the file's digest also on the version of the Parquet writer,
so the same rows written by another one may give another file but never another root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.digest import blake3_digest, unpack
from contracts.labels import in_order, joined
from contracts.order import dense, labelled
from contracts.schema import TYPES, SegmentSchema
from contracts.threads import for_segments
from ledger.objects import Store
from ledger.pages import entries_root, page_leaves, plain
from ledger.sorting import label_ranks, sort

SEGMENT_ROWS = 1_048_576
GROUP_ROWS = 131_072
SOURCE_FILE = pa.field("source_file", pa.int32())
SOURCE_ROW = pa.field("source_row", pa.int64())
Folder = str  # "segments" or "refusals"


class _Covered(TypedDict):
    trajectories: int
    scope: tuple[tuple[str | None, str, int], ...]
    sources: Mapping[int, int]


def object_name(folder: Folder, digest: str, suffix: str) -> str:
    """The name of one of a segment's objects in the store: `parquet`, `leaves` or `rows`."""
    return f"{folder}/{digest.removeprefix('blake3:')}.{suffix}"


@dataclass(frozen=True)
class WrittenSegment:
    """What one written segment commits to; digests in text form.

    `first` and `last` are the first two key parts (trajectory, step) of the first and the last row.
    `scope` counts rows by (channel, acquisition), `sources` by index into the call's files.
    """

    folder: Folder
    schema: str
    file: str
    bytes: int
    root: str
    rows: int
    leaves: str
    rows_file: str
    first: tuple[str, int]
    last: tuple[str, int]
    trajectories: int
    scope: tuple[tuple[str | None, str, int], ...]
    sources: Mapping[int, int]

    @property
    def names(self) -> tuple[str, str, str]:
        """The object names: entries, leaves, source rows."""
        return (
            object_name(self.folder, self.file, "parquet"),
            object_name(self.folder, self.leaves, "leaves"),
            object_name(self.folder, self.rows_file, "rows"),
        )


def write(
    table: pa.Table,
    schema: SegmentSchema,
    objects: Store,
    *,
    folder: Folder = "segments",
    cut: bool = True,
    in_order: bool = False,
    progress: Callable[[int], None] | None = None,
) -> list[WrittenSegment]:
    """Sorts, cuts, hashes and stores a call's rows; every object is durable when this returns.

    `table` has the schema's columns, `source_file` and `source_row`, and is not sorted again when it is
    `in_order`; without `cut` its rows become one segment however many they are. `progress` is told rows
    written.
    """
    table = table if in_order else sort(table, schema)
    step = SEGMENT_ROWS if cut else max(table.num_rows, 1)
    return [
        _write_one(table.slice(start, step), schema, objects, folder, progress)
        for start in range(0, table.num_rows, step)
    ]


def commitments(
    table: pa.Table, schema: SegmentSchema, *, in_order: bool = False
) -> Iterator[tuple[str, int]]:
    """The entries roots the rows would get, and how many have each, with nothing written."""
    table = table if in_order else sort(table, schema)
    for start in range(0, table.num_rows, SEGMENT_ROWS):
        part = table.slice(start, SEGMENT_ROWS)
        yield entries_root(page_leaves(part, schema)), part.num_rows


@dataclass(frozen=True)
class EncodedSegment:
    """A segment as bytes that are not stored yet; `contents` stand under the names of `written`."""

    written: WrittenSegment
    contents: tuple[bytes, bytes, bytes]


def encode(
    table: pa.Table,
    schema: SegmentSchema,
    folder: Folder = "segments",
    progress: Callable[[int], None] | None = None,
) -> EncodedSegment:
    """One segment of sorted rows, at most as many as a segment has."""
    row_bytes = for_segments().submit(encode_rows, table)
    covered = for_segments().submit(_covered, table, schema)
    file, leaves = _encode(table, schema, progress)
    leaf_bytes = b"".join(leaves)
    written = WrittenSegment(
        folder=folder,
        schema=schema.id,
        file=blake3_digest(file),
        bytes=len(file),
        root=entries_root(leaves),
        rows=table.num_rows,
        leaves=blake3_digest(leaf_bytes),
        rows_file=blake3_digest(row_bytes.result()),
        first=_key_at(table, schema, 0),
        last=_key_at(table, schema, table.num_rows - 1),
        **covered.result(),
    )
    return EncodedSegment(written, (file, leaf_bytes, row_bytes.result()))


def put(objects: Store, written: WrittenSegment, contents: Sequence[bytes | Path]) -> None:
    """Stores what a segment is made of: bytes, or staged files (which are consumed)."""
    list(for_segments().map(objects.put, written.names, contents))


def _write_one(
    table: pa.Table,
    schema: SegmentSchema,
    objects: Store,
    folder: Folder,
    progress: Callable[[int], None] | None,
) -> WrittenSegment:
    made = encode(table, schema, folder, progress)
    put(objects, made.written, made.contents)
    return made.written


def _encode(
    table: pa.Table,
    schema: SegmentSchema,
    progress: Callable[[int], None] | None,
) -> tuple[bytes, list[bytes]]:
    """The Parquet bytes and the leaves, row group by row group; pages are hashed while groups are written."""
    sink = pa.BufferOutputStream()
    hashed: list[Future[list[bytes]]] = []
    with pq.ParquetWriter(sink, _file_schema(schema), **_layout(schema)) as writer:
        for start in range(0, table.num_rows, GROUP_ROWS):
            group = _to_write(table.slice(start, GROUP_ROWS), schema)
            hashed.append(for_segments().submit(page_leaves, group, schema))
            writer.write_table(group, row_group_size=GROUP_ROWS)
            if len(hashed) > 1:
                hashed[-2].result()  # so that no more than two groups are held
            if progress is not None:
                progress(group.num_rows)
    return sink.getvalue().to_pybytes(), [leaf for leaves in hashed for leaf in leaves.result()]


def _layout(schema: SegmentSchema) -> dict[str, object]:
    """How the Parquet file is written: nothing here changes a root, only size and speed.

    Repeating values get a dictionary; input digests do not, since most fill one and then fall back, nor
    statistics, since the bounds of digests bound nothing.
    Energies often carry float32 precision, so their byte planes compress better than their values.
    """
    repeating = [c.name for c in schema.columns if c.key or c.type in ("text", "int16", "int32")]
    floats = {c.name: "BYTE_STREAM_SPLIT" for c in schema.columns if c.type == "float64"}
    return {
        "compression": "zstd",
        "use_dictionary": repeating,
        "column_encoding": floats,
        "write_statistics": [c.name for c in schema.columns if c.key or c.type != "digest"],
        "version": "2.6",
        "store_schema": False,
    }


def _file_schema(schema: SegmentSchema) -> pa.Schema:
    coded = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            pa.field(c.name, coded if c.type == "text" else TYPES[c.type], nullable=c.nullable)
            for c in schema.columns
        ],
        metadata={"ledger.schema": schema.id},
    )


def _to_write(group: pa.Table, schema: SegmentSchema) -> pa.Table:
    """The schema's columns as the writer takes them fastest: coded text, everything else plain.

    The writer stores labels as they come, so they are those of the group alone, in the order of their
    bytes: equal rows then make equal files, however they arrived.
    """
    arrays = []
    for column in schema.columns:
        values = group.column(column.name)
        arrays.append(_own_labels(values) if column.type == "text" else plain(values, column))
    return pa.Table.from_arrays(arrays, schema=_file_schema(schema))


def _own_labels(values: pa.ChunkedArray) -> pa.DictionaryArray:
    found = labelled(values)
    return in_order(joined([(found.codes, found.values)], pa.string())).array


def encode_rows(table: pa.Table) -> bytes:
    """The bytes of a `.rows` file: where each entry stood in the files of its call."""
    files = table.column(SOURCE_FILE.name).to_numpy().astype("<u4")
    rows = table.column(SOURCE_ROW.name).to_numpy().astype("<u8")
    compressed: bytes = pa.Codec("zstd").compress(files.tobytes() + rows.tobytes(), asbytes=True)
    return compressed


def _key_at(table: pa.Table, schema: SegmentSchema, row: int) -> tuple[str, int]:
    first, second = schema.columns[:2]
    at = table.slice(row, 1)
    return plain(at.column(first.name), first)[0].as_py(), plain(at.column(second.name), second)[0].as_py()


def _covered(table: pa.Table, schema: SegmentSchema) -> _Covered:
    """How many trajectories the sorted rows have, and rows by channel and acquisition and by file."""
    ranks, _ = label_ranks(table.column(schema.key[0]))
    files = np.bincount(table.column(SOURCE_FILE.name).to_numpy())
    return {
        "trajectories": int(np.count_nonzero(np.diff(ranks))) + 1,
        "scope": _scope(table),
        "sources": {int(file): int(files[file]) for file in np.flatnonzero(files)},
    }


def _scope(table: pa.Table) -> tuple[tuple[str | None, str, int], ...]:
    channel, acquisition = table.column("channel"), table.column("acquisition_id")
    channels, width = label_ranks(channel)
    acquisitions, radix = label_ranks(acquisition)
    codes, distinct = dense(channels * radix + acquisitions, width * radix)
    examples = np.zeros(len(distinct), np.int64)
    examples[codes] = np.arange(len(codes))
    counts = np.bincount(codes, minlength=len(distinct))
    found = []
    for row, count in zip(examples.tolist(), counts.tolist(), strict=True):
        digest = channel[row].as_py()
        found.append((None if digest is None else unpack(digest), acquisition[row].as_py(), count))
    return tuple(found)
