"""Whether stored entries still meet the contract: the same models judge them that admitted them.

Rows come in segment order and are judged by whole trajectories, so that no side is cut: those of the last
trajectory wait for the next rows, and for the next segment where a call was cut there. What is judged
together is another matter: as much as fits, of one segment or of many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contracts.admission import judge
from contracts.channel import ChannelBook
from contracts.digest import unpack
from contracts.findings import Findings
from contracts.labels import Labels
from contracts.order import dense, labelled, pack, ranks
from contracts.representatives import Speakers, edges
from contracts.rows import canonicalise
from contracts.source_table import SourceTable
from ledger.coded import with_codes
from ledger.entry_id import entry_id
from ledger.problems import Problems

Ints = NDArray[np.int64]
SIDE = ("trajectory_id", "step", "view_source", "channel", "acquisition_id")
TOGETHER = 1 << 19  # rows that are judged at once: more take more memory, and little less time


@dataclass(frozen=True)
class Part:
    """Consecutive rows of one segment: the first is row `start` of it.

    `sources` says for each row which file of its call it came from: whether a digest may be absent is a
    question about a file.
    """

    where: str
    root: str
    start: int
    table: pa.Table
    sources: Ints

    def cut(self, start: int, stop: int) -> Part:
        """Rows [start, stop) of this part."""
        rows = self.table.slice(start, stop - start)
        return Part(self.where, self.root, self.start + start, rows, self.sources[start:stop])

    def copied(self) -> Part:
        """The same rows in memory of their own: a slice is pickled with all there is around it."""
        rows = self.table.take(pa.array(np.arange(self.table.num_rows)))
        return Part(self.where, self.root, self.start, rows, self.sources)


@dataclass(frozen=True)
class Sides:
    """Sides that were judged together: 16 bytes of digest for each, the row it begins in, and in which file.

    `files` are (where, root), and `row` and `file` int64 arrays.
    """

    digests: tuple[bytes, ...]
    files: tuple[tuple[str, str], ...]
    file: Ints
    row: Ints


Held = tuple[Problems, list[Part]]  # whole trajectories, and where to tell what is wrong with them


class Repeats:
    """Remembers which sides it has seen: a side is admitted whole in one call, so none may come again."""

    def __init__(self, found: Problems) -> None:
        self._found = found
        self._seen: set[bytes] = set()

    def add(self, batches: Iterable[Sides]) -> None:
        """Takes the sides of the next rows."""
        for sides in batches:
            for at, digest in enumerate(sides.digests):
                if digest in self._seen:
                    where, root = sides.files[int(sides.file[at])]
                    entry = entry_id(root, int(sides.row[at]))
                    self._found.add("data", where, "the side of this entry is in the log twice", entry)
            self._seen.update(sides.digests)


class Judge:
    """Judges rows by the contract, those of several parts together: most of its cost is by the call.

    Only what is found whole so is done with. Otherwise, or where one side stands in two of them, each is
    judged alone, as if the others were not there.
    """

    def __init__(self, book: ChannelBook) -> None:
        self._book = book
        self._held: list[Held] = []
        self._sides: list[Sides] = []
        self.rows = 0
        self._speakers = Speakers(book)
        self._even: bool | None = None  # whether rules leave the intervals that `edges` stand for

    def take(self, found: Problems, parts: list[Part], sides: Sides) -> None:
        """Takes whole trajectories with their sides; what is wrong with them is noted in `found`, in time."""
        self._held.append((found, parts))
        self._sides.append(sides)
        self.rows += sum(part.table.num_rows for part in parts)
        if self.rows >= TOGETHER:
            self.settle()

    def settle(self) -> None:
        """Judges what is held."""
        held, sides = self._held, self._sides
        self._held, self._sides, self.rows = [], [], 0
        if not held:
            return
        once = set().union(*(each.digests for each in sides))
        apart = len(once) == sum(len(each.digests) for each in sides)
        if apart and (self._spoken_for(held) or (len(held) > 1 and not self._together(held).total)):
            return
        for found, parts in held:
            tell(found, self._findings(parts), {part.where: part.root for part in parts})

    def _spoken_for(self, held: Sequence[Held]) -> bool:
        """Whether rows that speak for all are found whole; if not, it takes all to know."""
        alone = [pa.concat_tables([part.table for part in parts]) for _, parts in held]
        asked = None if self._even is False else self._speakers.of(alone)
        if asked is None:
            return False
        if asked.rows.num_rows:
            if self._findings([_unplaced(asked.rows)]).total:
                return False
            if self._even is None:
                at_edges = list(_files(_unplaced(edges(asked.rows))))
                self._even = not canonicalise(at_edges, self._book).findings.total
            if not self._even:
                return False
            self._speakers.learn(asked)
        return True

    def _together(self, held: Sequence[Held]) -> Findings:
        return self._findings([part for _, parts in held for part in parts])

    def _findings(self, parts: Sequence[Part]) -> Findings:
        files = [file for part in parts for file in _files(part)]
        result = canonicalise(files, self._book)
        if result.findings.total:
            return result.findings
        return judge(result, self._book, files=[file.name for file in files]).findings


class Contract:
    """Hands parts to a judge as they come, by whole trajectories. `sides` are those it has met, in batches.

    With `begun`, the first trajectory may have begun in another segment: its rows are not judged but kept
    as `head`. `ended` is whether something came behind it.
    """

    def __init__(self, found: Problems, judge: Judge, *, begun: bool = False) -> None:
        self._found = found
        self._judge = judge
        self.head: list[Part] = []
        self.waiting: list[Part] = []
        self.sides: list[Sides] = []
        self.ended = not begun

    def feed(self, part: Part) -> None:
        """Takes the next rows of a call and hands on every trajectory that has ended."""
        if not self.ended:
            first = _rows_of(self.head[-1] if self.head else part, part)
            if first:
                self.head.append(part.cut(0, first))
            if first == part.table.num_rows:
                return
            self.ended = True
            part = part.cut(first, part.table.num_rows)
        last = _last_trajectory(part.table)
        if last == 0 and self.waiting and _same_trajectory(self.waiting[-1], part):
            self.waiting.append(part)
            return
        whole = [*self.waiting, part.cut(0, last)] if last else self.waiting
        self.waiting = [part.cut(last, part.table.num_rows)]
        self._hand_on([each for each in whole if each.table.num_rows])

    def finish(self) -> None:
        """Hands on what waits: nothing more comes of this call."""
        waiting, self.waiting = self.waiting, []
        self._hand_on(waiting)

    def _hand_on(self, parts: list[Part]) -> None:
        if parts:
            self.sides.append(_sides(parts))
            self._judge.take(self._found, parts, self.sides[-1])


def _sides(parts: Sequence[Part]) -> Sides:
    """The sides of some parts, each once."""
    digests: list[bytes] = []
    rows: list[Ints] = []
    for part in parts:
        at, keys = side_keys(part.table)
        digests += [blake2b(key, digest_size=16).digest() for key in keys]
        rows.append(at + part.start)
    row = np.concatenate(rows)
    file = np.repeat(np.arange(len(parts)), [len(at) for at in rows])
    files = tuple((part.where, part.root) for part in parts)
    once = {digest: at for at, digest in reversed(list(enumerate(digests)))}
    if len(once) == len(digests):
        return Sides(tuple(digests), files, file, row)
    first = sorted(once.values())
    return Sides(tuple(digests[at] for at in first), files, file[first], row[first])


def side_keys(table: pa.Table) -> tuple[Ints, list[bytes]]:
    """The sides in a table in segment order: the first row of each, and bytes that no other side has."""
    trajectory, step = labelled(table.column("trajectory_id")).codes, table.column("step").to_numpy()
    new = np.ones(table.num_rows, np.bool_)
    new[1:] = (trajectory[1:] != trajectory[:-1]) | (step[1:] != step[:-1])
    labels = [labelled(table.column(name)) for name in ("view_source", "channel", "acquisition_id")]
    begins = new.copy()  # a run of rows of one side: it has one for each endpoint at least
    for each in labels:
        begins[1:] |= each.codes[1:] != each.codes[:-1]
    runs = np.flatnonzero(begins)
    packed, limit = pack(
        [
            (np.cumsum(new[runs]) - 1, max(int(new.sum()), 1)),
            *((each.codes[runs] + np.int32(1), len(each.values) + 1) for each in labels),
        ]
    )
    number, distinct = dense(packed, limit)
    rows = np.empty(len(distinct), np.int64)
    rows[number[::-1]] = runs[::-1]  # of several places the last one written stays
    return rows, _joined(table.select(SIDE).take(pa.array(rows)))


def _joined(sides: pa.Table) -> list[bytes]:
    """One text of bytes for each row: every value behind its length."""
    parts: list[pa.ChunkedArray] = []
    for column in sides.columns:
        values = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        values = values.cast(pa.string()) if pa.types.is_integer(values.type) else values
        values = values.cast(pa.binary())
        parts += [pc.binary_length(values).cast(pa.string()).cast(pa.binary()), values]
    joined: list[bytes] = pc.binary_join_element_wise(*parts, pa.scalar(b":", pa.binary())).to_pylist()
    return joined


def _unplaced(rows: pa.Table) -> Part:
    """Rows that are judged for others: nothing is told of them."""
    return Part("", "", 0, rows, np.zeros(rows.num_rows, np.int64))


def _files(part: Part) -> Iterator[SourceTable]:
    """The rows as they would come in files again, one for every source; the channel by its fingerprint."""
    coded = with_codes(part.table)
    channel = ranks(coded.column("channel"))
    references = pa.array([unpack(packed) for packed in channel.values.to_pylist()], pa.string())
    at = coded.schema.get_field_index("channel")
    table = coded.set_column(at, "channel", Labels(channel.codes, references).array)
    numbers = np.arange(part.start + 1, part.start + 1 + table.num_rows)
    for source in np.unique(part.sources):
        mine = np.flatnonzero(part.sources == source)
        rows = table if len(mine) == table.num_rows else table.take(pa.array(mine))
        yield SourceTable(part.where, "", rows, row_numbers=numbers[mine])


def _last_trajectory(table: pa.Table) -> int:
    """The first row of the last trajectory."""
    codes = ranks(table.column("trajectory_id")).codes
    others = np.flatnonzero(codes != codes[-1])
    return int(others[-1]) + 1 if len(others) else 0


def _rows_of(before: Part, part: Part) -> int:
    """How many rows at the start of a part are of the trajectory that `before` ends with (or begins with)."""
    name = before.table.column("trajectory_id")[-1 if before is not part else 0]
    others = pc.index(pc.equal(part.table.column("trajectory_id").cast(pa.string()), name.as_py()), False)
    first = int(others.as_py())
    return part.table.num_rows if first < 0 else first


def _same_trajectory(before: Part, after: Part) -> bool:
    ends = (before.table.column("trajectory_id")[-1].as_py(), after.table.column("trajectory_id")[0].as_py())
    return bool(ends[0] == ends[1])


def tell(found: Problems, findings: Findings, roots: Mapping[str, str]) -> None:
    """The findings about stored rows as problems; `roots` are those of the files that the rows stand in."""
    told = 0
    for finding in findings.examples:
        where = finding.file if finding.file is not None and finding.file in roots else next(iter(roots))
        entry = entry_id(roots[where], finding.rows[0] - 1) if finding.rows else None
        found.add("data", where, f"breaks the contract: {finding.message}", entry)
        told += finding.count
    if findings.total > told:
        found.add("data", next(iter(roots)), f"{findings.total - told} more rows break the contract")
