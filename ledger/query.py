"""Entries by what people ask for: filters over every segment, each row checked before it is returned.

With trajectories named, a segment is opened only when its range meets them and only the pages that hold
them are decoded, encoded again and compared with their leaves. Otherwise whole files are checked by their
digest. No filter is pushed into the Parquet reader, so no value is judged before it is verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.channel import ChannelBook
from contracts.digest import pack, unpack
from contracts.schema import TRANSPORT, SegmentSchema
from ledger.entry_id import entry_id
from ledger.index_rows import SegmentRow
from ledger.objects import Objects
from ledger.pages import plain
from ledger.reading import Reading
from ledger.segment_reader import SegmentReader, schema_of

ENTRY = "entry"
FINGERPRINT = "fingerprint"


@dataclass(frozen=True)
class Query:
    """Which entries: values of one part are alternatives, parts must all hold, an empty part holds.

    `channels` are fingerprints, `limit` is the most rows to return. Of predictions, `trajectories` are
    queries and `steps` years.
    """

    trajectories: tuple[str, ...] = ()
    steps: tuple[int, ...] = ()
    endpoints: tuple[str, ...] = ()
    view_sources: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    layouts: tuple[int, ...] = ()
    acquisitions: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    limit: int | None = None

    def parts(self, schema: SegmentSchema) -> Iterator[tuple[str, Sequence[object]]]:
        """The columns a row is judged by and their accepted values."""
        wanted: dict[str, Sequence[object]] = {
            schema.key[0]: self.trajectories,
            schema.key[1]: self.steps,
            "endpoint": self.endpoints,
            "view_source": self.view_sources,
            "channel": [pack(fingerprint) for fingerprint in self.channels],
            "layout": self.layouts,
            "acquisition_id": self.acquisitions,
            "candidate": self.candidates,
            "scenario": self.scenarios,
            "label": self.labels,
        }
        return ((column, values) for column, values in wanted.items() if values)


def scores(reading: Reading, query: Query, kind: str = TRANSPORT.kind) -> Iterator[pa.Table]:
    """The entries a query means, as tables in the order of the log and then of the key.

    Columns are `entry` (its id), those of the schema with `channel` as NAME@VERSION and digests as text,
    and `fingerprint`. Revoked acquisitions are included: their entries stay what they were.
    """
    book = reading.index.channels(reading.size)
    left = query.limit
    for segment in _candidates(reading, query, kind):
        reading.confirm(segment.event)
        for table in _read(reading.objects, segment, query):
            if left is not None:
                table = table.slice(0, left)  # noqa: PLW2901
                left -= table.num_rows
            if table.num_rows:
                yield readable(table, schema_of(segment), book)
            if left == 0:
                return


def _candidates(reading: Reading, query: Query, kind: str) -> tuple[SegmentRow, ...]:
    ids = sorted(query.trajectories, key=str.encode)
    return reading.index.segments(
        reading.size,
        kind=kind,
        channels=query.channels or None,
        acquisitions=query.acquisitions or None,
        trajectories=(ids[0], ids[-1]) if ids else None,
    )


def _read(objects: Objects, segment: SegmentRow, query: Query) -> Iterator[pa.Table]:
    """The rows of a segment that meet the query, with their entry ids."""
    if not query.trajectories:
        with SegmentReader.whole(objects, segment) as reader:
            start = 0
            for table in reader.groups():
                yield _filtered(table, start, segment, query)
                start += table.num_rows
        return
    with SegmentReader.ranged(objects, segment) as reader:
        for trajectory in sorted(set(query.trajectories), key=str.encode):
            start, stop = reader.find(trajectory, trajectory)
            if start < stop:
                yield _filtered(reader.read(start, stop), start, segment, query)


def _filtered(table: pa.Table, start: int, segment: SegmentRow, query: Query) -> pa.Table:
    schema = schema_of(segment)
    keep = np.ones(table.num_rows, bool)
    wanted = dict(query.parts(schema))
    for column in schema.columns:
        if column.name in wanted:
            found = plain(table.column(column.name), column)
            values = pa.array(
                wanted[column.name], pa.int64() if column.type.startswith("int") else found.type
            )
            keep &= pc.is_in(found.cast(values.type), value_set=values).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(keep)
    ids = pa.array([entry_id(segment.root, start + row) for row in rows.tolist()], pa.string())
    return table.take(pa.array(rows)).append_column(ENTRY, ids)


def readable(table: pa.Table, schema: SegmentSchema, book: ChannelBook) -> pa.Table:
    """Entries as people and other programs read them: channel by name, digests in text form."""
    columns = {ENTRY: table.column(ENTRY)}
    for column in schema.columns:
        values = table.column(column.name)
        columns[column.name] = digest_text(plain(values, column)) if column.type == "digest" else values
    fingerprints = columns["channel"]
    columns["channel"] = _relabel(fingerprints, lambda text: _reference(text, book))
    return pa.table({**columns, FINGERPRINT: fingerprints})


def digest_text(packed: pa.Array) -> pa.DictionaryArray:
    """A digest column in text form, each distinct digest converted once."""
    return _relabel(packed.dictionary_encode(), unpack)


def _reference(fingerprint: str, book: ChannelBook) -> str:
    channel = book.by_fingerprint(fingerprint)
    return fingerprint if channel is None else channel.reference


def _relabel(coded: pa.DictionaryArray, label: Callable[[Any], str]) -> pa.DictionaryArray:
    labels = pa.array([label(value) for value in coded.dictionary.to_pylist()], pa.string())
    return pa.DictionaryArray.from_arrays(coded.indices, labels)
