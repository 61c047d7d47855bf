"""The batches of a call read by an engine: a task is a run of batches of one file.

A worker decodes and judges its batches, sets their rows aside by part in a file of the call, and tells the
rest. A file is cut at the same rows whoever reads it, so what is told is the same too.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from contracts.raw_rows import PACKED
from contracts.rows import NOTHING_ELSE, Elsewhere
from ledger import durable, score_rows
from ledger.score_rows import Aside, Batch, Reader, batch
from ledger.sharing import Sharing
from ledger.shelf import Place, Shelf
from ledger.source_batches import SourceBatches
from ledger.spill import Counts, Ranges, candidates_digests, counted, divided, together
from ledger.staging import Staged, staged_again


@dataclass(frozen=True)
class ReadTask:
    """The batches `first` to `stop` (None: to the end) of a staged file, the call's `number`-th."""

    number: int
    name: str
    digest: str
    file: Path
    rows: int
    first: int
    stop: int | None

    def __str__(self) -> str:
        return f"{self.name} from row {self.first * self.rows + 1} on"

    def source(self) -> SourceBatches:
        """The batches."""
        return SourceBatches(
            staged_again(self.name, self.digest, self.file), self.rows, self.first, self.stop
        )


@dataclass(frozen=True)
class CountKernel:
    """Counts the rows of each trajectory, which decides where it belongs."""

    shelf: Shelf

    def __call__(self, task: ReadTask) -> Iterator[tuple[pa.Array, Counts]]:
        """The trajectories of pieces of a task, with how many rows each has; none without such a column."""
        self.shelf.require()
        for column in task.source().trajectories() or ():
            yield counted(column)


@dataclass(frozen=True)
class DividedRows:
    """Where the rows of a batch were set aside, by part, and the candidates digests among them."""

    places: tuple[tuple[int, Place], ...]
    digests: pa.Array


@dataclass(frozen=True)
class ReadKernel:
    """Judges batches row by row; with `ranges` their rows are set aside."""

    reader: Reader
    shelf: Shelf
    elsewhere: Elsewhere
    ranges: Ranges | None

    def __call__(self, task: ReadTask) -> Iterator[tuple[Batch, DividedRows | None]]:
        """One result for every batch."""
        self.shelf.require()
        score_rows.warm()
        for at, table in enumerate(task.source()):
            told = task.first + at > 0
            made, rows = batch(task.number, table, self.reader, replace(self.elsewhere, told=told))
            # A batch with a fault has no rows, even where the fault was told with another of its file.
            wanted = self.ranges is not None and rows.num_rows and not made.donors
            yield made, self._aside(rows) if wanted else None

    def _aside(self, rows: pa.Table) -> DividedRows:
        assert self.ranges is not None, "asked for only where there are ranges"
        parts = list(divided(rows, self.ranges))
        places = self.shelf.put([table for _, table in parts])
        numbers = [number for number, _ in parts]
        return DividedRows(tuple(zip(numbers, places, strict=True)), candidates_digests(rows))


class SharedRows:
    """Rows that workers set aside by part."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self.places: list[list[Place]] = [[] for _ in range(ranges.count)]
        self._digests: list[pa.Array] = []

    def __len__(self) -> int:
        return len(self.places)

    def add(self, rows: DividedRows) -> None:
        """See Aside."""
        self._digests.append(rows.digests)
        for number, place in rows.places:
            self.places[number].append(place)

    def part(self, number: int) -> pa.Table:
        """See Aside."""
        return together(place.table() for place in self.places[number])

    def candidate_digests(self) -> pa.Array:
        """See Aside."""
        return pa.concat_arrays([pa.array([], PACKED), *self._digests])


@dataclass(frozen=True)
class Shared:
    """A way to read the files of a call: by the tasks of an engine."""

    sharing: Sharing
    reader: Reader
    tasks: Sequence[ReadTask]

    @classmethod
    def of(cls, sharing: Sharing, staged: Sequence[Staged], reader: Reader) -> Shared:
        """The files in runs of batches; those that are held in memory are written down first."""
        sharing.shelf.begin()
        tasks = []
        for number, item in enumerate(staged):
            file, rows = _named(item, sharing.shelf), score_rows.BATCH_ROWS
            for first, stop in SourceBatches(item, rows).spans():
                tasks.append(ReadTask(number, item.name, item.digest, file, rows, first, stop))
        return cls(sharing, reader, tasks)

    def counted(self) -> Iterator[tuple[pa.Array, Counts]]:
        """See Way."""
        return self.sharing.engine.map(CountKernel(self.sharing.shelf), self.tasks)

    def aside(self, ranges: Ranges) -> SharedRows:
        """See Way."""
        return SharedRows(ranges)

    def batches(
        self, aside: Aside | None, elsewhere: Elsewhere = NOTHING_ELSE
    ) -> Generator[tuple[Batch, DividedRows | None]]:
        """See Way."""
        ranges = aside.ranges if isinstance(aside, SharedRows) else None
        kernel = ReadKernel(self.reader, self.sharing.shelf, elsewhere, ranges)
        yield from self.sharing.engine.map(kernel, self.tasks)


def _named(item: Staged, shelf: Shelf) -> Path:
    """A file of the call with the bytes of an input."""
    if item.file is not None:
        return item.file
    path = shelf.fresh()
    with durable.storage("writing a staged file", path), path.open("xb") as file:
        file.write(item.view)
    return path
