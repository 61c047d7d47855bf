"""Whether stored entries still meet the contract: the same models judge them that admitted them.

Rows come in segment order and are judged by whole trajectories, so that no side is cut: those of the last
trajectory wait for the next rows, and for the next segment where a call was cut there.
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
from contracts.order import bound, keys, pack, ranks
from contracts.rows import canonicalise
from contracts.source_table import SourceTable
from ledger.entry_id import entry_id
from ledger.problems import Problems

Ints = NDArray[np.int64]


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


class Contract:
    """Judges parts as they come. `sides` are those it has met, each in one batch.

    With `begun`, the first trajectory may have begun in another segment: its rows are not judged but kept
    as `head`. `ended` is whether something came behind it.
    """

    def __init__(self, found: Problems, book: ChannelBook, *, begun: bool = False) -> None:
        self._found = found
        self._book = book
        self.head: list[Part] = []
        self.waiting: list[Part] = []
        self.sides: list[Sides] = []
        self.ended = not begun

    def feed(self, part: Part) -> None:
        """Takes the next rows of a call and judges every trajectory that has ended."""
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
        self._judge([each for each in whole if each.table.num_rows])

    def finish(self) -> None:
        """Judges what waits: nothing more comes of this call."""
        waiting, self.waiting = self.waiting, []
        self._judge(waiting)

    def _judge(self, parts: list[Part]) -> None:
        if not parts:
            return
        files = [file for part in parts for file in _files(part)]
        result = canonicalise(files, self._book)
        findings = result.findings
        if not findings.total:
            findings = judge(result, self._book, files=[file.name for file in files]).findings
        tell(self._found, findings, {part.where: part.root for part in parts})
        self.sides.append(_sides(parts))


def _sides(parts: Sequence[Part]) -> Sides:
    """The sides of some parts, each once."""
    sides: dict[bytes, tuple[int, int]] = {}
    for file, part in enumerate(parts):
        for row, side in zip(*side_keys(part.table), strict=True):
            digest = blake2b(repr(side).encode(), digest_size=16).digest()
            sides.setdefault(digest, (file, part.start + row))
    places = np.array(list(sides.values()), np.int64).reshape(-1, 2)
    files = tuple((part.where, part.root) for part in parts)
    return Sides(tuple(sides), files, places[:, 0], places[:, 1])


def side_keys(table: pa.Table) -> tuple[list[int], list[tuple[object, ...]]]:
    """The sides in a table in segment order: the first row of each, and its key with the packed channel."""
    order = keys([table])
    labels = (order.view_source, order.channel, order.acquisition)
    packed, _ = pack(
        [(order.transition, max(order.transitions, 1)), *((each.codes, bound(each)) for each in labels)]
    )
    _, rows = np.unique(packed, return_index=True)
    trajectory, step = order.trajectory.values.to_pylist(), order.step
    texts = [each.values.to_pylist() for each in labels]
    found: list[tuple[object, ...]] = [
        (
            trajectory[order.trajectory.codes[row]],
            int(step[row]),
            *(text[each.codes[row]] for text, each in zip(texts, labels, strict=True)),
        )
        for row in rows
    ]
    return order.positions(rows).tolist(), found


def _files(part: Part) -> Iterator[SourceTable]:
    """The rows as they would come in files again, one for every source; the channel by its fingerprint."""
    channel = ranks(part.table.column("channel"))
    references = pa.array([unpack(packed) for packed in channel.values.to_pylist()], pa.string())
    at = part.table.schema.get_field_index("channel")
    table = part.table.set_column(at, "channel", Labels(channel.codes, references).array)
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
