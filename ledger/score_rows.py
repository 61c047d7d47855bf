"""The rows of a call of scores, each judged alone, in parts that are judged as sets.

A call of ordinary size is one part, in memory. A larger one is read batch by batch and set aside by ranges
of trajectories; its findings are the same, told batch by batch. A view from a donor may come from any
other trajectory, so a call that names donors is one part whatever its size. Who reads the batches, this
process or workers beside it, is a `Way`; what is made of them is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from contracts.channel import ChannelBook
from contracts.findings import Findings
from contracts.look_alikes import twins
from contracts.raw_rows import RawRows, gather
from contracts.rows import IN_FLIGHT, NOTHING_ELSE, Elsewhere, RowResult, canonical_rows
from contracts.source_table import SourceTable
from contracts.threads import ahead
from ledger.event_types import Source
from ledger.scope import DONOR
from ledger.sharing import Sharing
from ledger.source_batches import SourceBatches
from ledger.sources import read_source
from ledger.spill import Ranges, Spill, counted
from ledger.staging import Staged

PART_ROWS = 1 << 20  # as many rows as a segment has
BATCH_ROWS = 3 * PART_ROWS // 4  # two are held: one is judged while the next is decoded
Progress = Callable[[str, int, int], None]  # phase, done, total


@dataclass(frozen=True)
class ScoreRows:
    """What the row level made of a call; `result.table` is empty where the rows are set aside."""

    result: RowResult
    sources: tuple[Source, ...]
    spill: Aside | None = None

    def parts(self) -> Iterator[pa.Table]:
        """The canonical rows, whole trajectories in each part, in the order of their ids."""
        if self.spill is None:
            yield self.result.table
            return
        for number in range(len(self.spill)):
            yield self.spill.part(number)

    @property
    def divided(self) -> bool:
        """Whether there is more than one part."""
        return self.spill is not None and len(self.spill) > 1

    def candidate_digests(self) -> pa.Array:
        """The candidates digests that occur."""
        if self.spill is not None:
            return self.spill.candidate_digests()
        column = self.result.table.column("candidates_hash").unify_dictionaries().combine_chunks()
        return column.dictionary.drop_null()


@dataclass(frozen=True)
class Reader:
    """How the rows of a call are taken: the registered channels and what stands for absent columns."""

    book: ChannelBook
    channel: str | None = None
    acquisition: str | None = None

    def judge(self, files: Sequence[SourceTable], elsewhere: Elsewhere = NOTHING_ELSE) -> RowResult:
        """The row level over some tables."""
        return canonical_rows(gather(files, self.channel, self.acquisition), self.book, elsewhere)


def whole(rows: RawRows, book: ChannelBook) -> ScoreRows:
    """The gathered rows of decoded files as one part."""
    sources = tuple(Source(Path(file.name).name, file.digest, file.table.num_rows) for file in rows.files)
    return ScoreRows(canonical_rows(rows, book), sources)


@dataclass(frozen=True)
class Batch:
    """What the row level made of one batch of a file, but for its rows; `number` is that of the file."""

    number: int
    findings: Findings
    rows: int
    ignored: tuple[str, ...]
    missing: Mapping[str, tuple[str, ...]]
    given: Mapping[str, tuple[str, ...]]
    names: Mapping[str, pa.Array]
    donors: bool


class Aside(Protocol):
    """Canonical rows that were set aside by part."""

    def __len__(self) -> int: ...

    def add(self, rows: Any) -> None:
        """More of them, as the way that made this gave them."""
        ...

    def part(self, number: int) -> pa.Table:
        """All rows of one part, in the order in which they were added."""
        ...

    def candidate_digests(self) -> pa.Array:
        """Every candidates digest among the rows; one may occur more than once."""
        ...


class Way(Protocol):
    """How the batches of a call are read, as often as asked for."""

    def counted(self) -> Iterator[tuple[pa.Array, Any]]:
        """The trajectories of the batches, and how many rows each has."""
        ...

    def aside(self, ranges: Ranges) -> Aside:
        """Where the rows are to be set aside by part."""
        ...

    def batches(self, aside: Aside | None, elsewhere: Elsewhere) -> Generator[tuple[Batch, Any]]:
        """Every batch of every file in order, with its rows as `aside` takes them."""
        ...


def batch(number: int, table: SourceTable, reader: Reader, elsewhere: Elsewhere) -> tuple[Batch, pa.Table]:
    """One batch of a file judged alone, and its canonical rows, none where something was found."""
    result = reader.judge([table], elsewhere)
    rows = result.table
    if rows.num_rows:
        at = rows.schema.get_field_index("source_file")
        rows = rows.set_column(at, "source_file", pa.array(np.full(result.rows, number, np.int32)))
    views = rows.column("view_source").unify_dictionaries().combine_chunks().dictionary.to_pylist()
    made = Batch(
        number, result.findings, result.rows, result.ignored, result.missing_digests, result.given_digests,
        result.names, donors=any(DONOR.fullmatch(view) for view in views),
    )  # fmt: skip
    return made, rows


class Here:
    """This process: batch after batch, each decoded while the one before it is judged."""

    def __init__(self, staged: Sequence[Staged], reader: Reader, directory: Path | None) -> None:
        self._files = [SourceBatches(each, BATCH_ROWS) for each in staged]
        self._reader = reader
        self._directory = directory

    def counted(self) -> Iterator[tuple[pa.Array, Any]]:
        """See Way; a file without trajectories is refused when its rows are judged."""
        columns = [file.trajectories() for file in self._files]
        return (counted(array) for arrays in columns if arrays is not None for array in arrays)

    def aside(self, ranges: Ranges) -> Spill:
        """See Way."""
        return Spill(ranges, self._directory)

    def batches(self, aside: Aside | None, elsewhere: Elsewhere) -> Generator[tuple[Batch, pa.Table]]:
        """See Way."""
        for number, file in enumerate(self._files):
            for at, table in enumerate(ahead(iter(file), 1)):
                yield batch(number, table, self._reader, replace(elsewhere, told=at > 0))


def divided(
    staged: Sequence[Staged],
    reader: Reader,
    directory: Path | None,
    progress: Progress,
    shared: Sharing | None = None,
) -> ScoreRows:
    """The rows of staged files, read batch by batch: here and set aside in `directory`, or by workers."""
    way: Way = Here(staged, reader, directory)
    if shared is not None:
        from ledger.read_tasks import Shared

        way = Shared.of(shared, staged, reader)
    pass_ = _Pass(staged, way.aside(Ranges(way.counted(), PART_ROWS)), progress)
    pass_.run(way)
    if pass_.donors:
        rows = gather([read_source(each) for each in staged], reader.channel, reader.acquisition)
        return whole(rows, reader.book)
    if elsewhere := pass_.elsewhere():
        pass_ = _Pass(staged, None, progress)
        pass_.run(way, elsewhere)
    return pass_.rows()


@dataclass
class _Pass:
    """One reading of all files; `aside` takes the rows while nothing is found wrong with any."""

    files: Sequence[Staged]
    aside: Aside | None
    progress: Progress
    findings: Findings = field(default_factory=Findings)
    donors: bool = False
    counts: dict[int, int] = field(default_factory=dict)
    ignored: dict[str, None] = field(default_factory=dict)
    missing: dict[str, dict[str, None]] = field(default_factory=dict)
    given: dict[str, set[str]] = field(default_factory=dict)
    names: dict[str, list[pa.Array]] = field(default_factory=dict)

    def run(self, way: Way, elsewhere: Elsewhere = NOTHING_ELSE) -> None:
        self.progress("read", 0, len(self.files))
        with closing(way.batches(self.aside, elsewhere)) as found:
            for made, rows in found:
                if made.number not in self.counts:
                    self.progress("read", made.number, len(self.files))
                self._take(made, rows)
                del rows  # or they would stay while the next ones are made
                if self.donors:
                    return
        self.progress("read", len(self.files), len(self.files))

    def _take(self, made: Batch, rows: object) -> None:
        self.findings.merge(made.findings)
        self.counts[made.number] = self.counts.get(made.number, 0) + made.rows
        self.ignored |= dict.fromkeys(made.ignored)
        for column, files in made.missing.items():
            self.missing.setdefault(column, {}).update(dict.fromkeys(files))
        for column, files in made.given.items():
            self.given.setdefault(column, set()).update(files)
        for column, labels in made.names.items():
            self.names.setdefault(column, []).append(labels)
        if self.findings.total:
            self.aside = None
        if self.aside is not None:
            self.donors = made.donors
            if not self.donors:
                self.aside.add(rows)

    def elsewhere(self) -> Elsewhere:
        """What every batch has to know of the others, empty where no rule needs it."""
        alike: dict[str, dict[str, str]] = {}
        for column, labels in self.names.items():
            values = pa.concat_arrays(labels).unique()
            if found := twins(values):
                alike[column] = {values[at].as_py(): twin for at, twin in found.items()}
        given = {
            column: frozenset(self.given.get(column, set()) & lacking.keys())
            for column, lacking in self.missing.items()
        }
        return Elsewhere(alike, {column: files for column, files in given.items() if files})

    def rows(self) -> ScoreRows:
        sources = (
            Source(Path(file.name).name, file.digest, self.counts[number])
            for number, file in enumerate(self.files)
        )
        result = RowResult(
            table=IN_FLIGHT.empty_table(),
            findings=self.findings,
            rows=sum(self.counts.values()),
            ignored=tuple(self.ignored),
            missing_digests={column: tuple(files) for column, files in self.missing.items()},
            given_digests={},
            names={},
        )
        return ScoreRows(result, tuple(sources), self.aside)


@cache
def warm() -> None:
    """Judges no rows at all: pandera makes its checks at their first use, which takes a while."""
    Reader(ChannelBook(())).judge(())
