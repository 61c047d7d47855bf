"""What a call is held against: entries of its trajectories, and the candidate sets its digests stand for.

A contract speaks about whole trajectories (`success` is constant in one) and about donors in others, so all
entries of the call's trajectories and of the donors it names are read, from the row groups whose ids
meet them, in segments whose range meets them. Every file is checked by its digest when it is read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.digest import unpack
from contracts.errors import LedgerError
from contracts.order import pack, ranks
from contracts.transitions import candidate_set_digest
from ledger.engines import INLINE, Engine
from ledger.index_rows import SegmentRow
from ledger.object_names import segment_name
from ledger.objects import Objects
from ledger.scope import DONOR
from ledger.segment_reader import SegmentReader

SOURCE = "source"
CANDIDATES = ("candidates_hash", "candidate")
SMALL = 1 << 16  # rows of a segment that costs more to open than to read
KEPT = 1 << 19  # candidates digests that a process keeps, some 200 MB


def concerned(rows: pa.Table) -> tuple[str, ...]:
    """The trajectories a call's rows are about or name as donors, by UTF-8 bytes."""
    names = set(_labels(rows, "trajectory_id"))
    for view_source in _labels(rows, "view_source"):
        if (donor := DONOR.fullmatch(view_source)) is not None:
            names.add(donor["trajectory"])
    return tuple(sorted(names, key=str.encode))


def entries_of(
    objects: Objects, segments: Sequence[SegmentRow], trajectories: Sequence[str], *, sources: bool = False
) -> pa.Table | None:
    """The entries of some trajectories (ascending by UTF-8 bytes) in some segments, None when there are none.

    `sources` adds the column `source`: file and row each entry came from.
    """
    wanted = pa.array(trajectories, pa.string())
    keys = [name.encode() for name in trajectories]
    parts = []
    for segment in meeting(segments, trajectories):
        with SegmentReader.whole(objects, segment) as reader:
            for start, stop in reader.groups_with(keys):
                table = reader.read(start, stop)
                ids = table.column("trajectory_id").combine_chunks()
                used = pc.is_in(ids.dictionary, value_set=wanted).to_numpy(zero_copy_only=False)
                rows = np.flatnonzero(used[ids.indices.to_numpy()])
                if not len(rows):
                    continue
                if len(rows) < table.num_rows:
                    table = table.take(pa.array(rows))
                table = _coded(table)
                if sources:
                    table = table.append_column(SOURCE, _sources(reader, segment, start + rows))
                parts.append(table)
    return pa.concat_tables(parts).unify_dictionaries().combine_chunks() if parts else None


def candidate_sets(
    objects: Objects, segments: Sequence[SegmentRow], wanted: pa.Array, engine: Engine = INLINE
) -> Mapping[str, str]:
    """What some candidates digests stand for in the ledger: digest to `candidate_set_digest`.

    Two columns of every segment are read, some 40 ms for a million entries and 0.5 ms for a handful:
    digests are random, so no statistics could rule a segment out, and an index beside the log would be one
    more thing to verify. What small segments say is kept for the next call of this process.
    """
    if not len(wanted):
        return {}
    known = _known_to(objects, segments)
    sets: dict[bytes, set[str]] = {}
    large = []
    for segment in segments:
        if segment.rows <= SMALL:
            known.add(objects, segment)
        else:
            large.append(Stored(segment))
    for digest, candidate in engine.map(Named(objects, wanted), large):
        sets.setdefault(digest, set()).add(candidate)
    for digest in wanted.to_pylist():
        if digest in known.sets:
            sets.setdefault(digest, set()).update(known.sets[digest])
    return {unpack(digest): candidate_set_digest(sorted(names)) for digest, names in sets.items()}


@dataclass(frozen=True)
class Stored:
    """A segment to be looked through."""

    segment: SegmentRow

    def __str__(self) -> str:
        return f"segment of event {self.segment.event}"


@dataclass(frozen=True)
class Named:
    """The candidates that a segment names beside some candidates digests."""

    objects: Objects
    wanted: pa.Array

    def __call__(self, task: Stored) -> Iterator[tuple[bytes, str]]:
        """The pairs of a digest and a candidate, some of them more than once."""
        with SegmentReader.whole(self.objects, task.segment) as reader:
            for group in reader.groups(CANDIDATES):
                yield from _pairs(
                    group.filter(pc.is_in(group.column("candidates_hash"), value_set=self.wanted))
                )


@dataclass
class _Known:
    """What candidates digests stand for in the small segments of one ledger that were read, and which."""

    sets: dict[bytes, set[str]] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)

    def add(self, objects: Objects, segment: SegmentRow) -> None:
        """Reads a segment, unless its file, which its digest names, was read before and still stands."""
        if segment.file in self.files and _stands(objects, segment):
            return
        with SegmentReader.whole(objects, segment) as reader:
            table = reader.read(columns=CANDIDATES)
        for digest, candidate in _pairs(table.filter(pc.is_valid(table.column("candidates_hash")))):
            self.sets.setdefault(digest, set()).add(candidate)
        self.files.add(segment.file)


_known = _Known()


def _stands(objects: Objects, segment: SegmentRow) -> bool:
    """Whether a file is where it was, with as many bytes; one that is far is not asked after in each call."""
    if objects.far:
        return True
    try:
        return objects.size(segment_name(segment.file)) == segment.size
    except LedgerError:
        return False  # reading it says what is wrong


def _known_to(objects: Objects, segments: Sequence[SegmentRow]) -> _Known:
    """What is known of these segments: nothing where anything is known of others, or much already."""
    global _known  # noqa: PLW0603 (a process that makes many calls has no other place to keep it)
    if len(_known.sets) > KEPT or not _known.files <= {segment.file for segment in segments}:
        _known = _Known()
    return _known


def _pairs(table: pa.Table) -> list[tuple[bytes, str]]:
    """The distinct (candidates digest, candidate) of some rows that all have one."""
    if not table.num_rows:
        return []
    digests, names = ranks(table.column("candidates_hash")), ranks(table.column("candidate"))
    width = len(names.values)
    codes = np.unique(pack([(digests.codes, len(digests.values)), (names.codes, width)])[0])
    left, right = digests.values.take(codes // width), names.values.take(codes % width)
    return list(zip(left.to_pylist(), right.to_pylist(), strict=True))


def _coded(table: pa.Table) -> pa.Table:
    """The rows with digests as codes: each is there once, however many entries share it."""
    for index, column in enumerate(table.schema):
        if pa.types.is_fixed_size_binary(column.type):
            table = table.set_column(index, column.name, table.column(index).dictionary_encode())
    return table


def _labels(rows: pa.Table, name: str) -> list[str]:
    """The distinct values of a text column."""
    texts: list[str] = ranks(rows.column(name)).values.to_pylist()
    return texts


def meeting(segments: Sequence[SegmentRow], trajectories: Sequence[str]) -> list[SegmentRow]:
    """The segments whose range has one of some trajectories (ascending by UTF-8 bytes)."""
    keys = [name.encode() for name in trajectories]
    return [segment for segment in segments if _meets(keys, segment.first[0], segment.last[0])]


def _meets(keys: Sequence[bytes], first: str, last: str) -> bool:
    at = bisect_left(keys, first.encode())
    return at < len(keys) and keys[at] <= last.encode()


def _sources(reader: SegmentReader, segment: SegmentRow, rows: np.ndarray) -> pa.Array:
    where = reader.source_rows()
    names = [source.name for source in segment.sources]
    texts = [
        f"{names[file]} row {row}"
        for file, row in zip(where.files[rows].tolist(), where.rows[rows].tolist(), strict=True)
    ]
    return pa.array(texts, pa.string())
