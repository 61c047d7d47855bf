"""The rows of a call of scores, each judged alone, in parts that are judged as sets.

A call of ordinary size is one part, in memory. A larger one is read batch by batch and set aside by ranges
of trajectories; its findings are the same, told batch by batch. A view from a donor may come from any
other trajectory, so a call that names donors is one part whatever its size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from contracts.channel import ChannelBook
from contracts.findings import Findings
from contracts.look_alikes import twins
from contracts.raw_rows import RawRows, gather
from contracts.rows import IN_FLIGHT, NOTHING_ELSE, Elsewhere, RowResult, canonical_rows
from contracts.source_table import SourceTable
from ledger.event_types import Source
from ledger.scope import DONOR
from ledger.source_batches import SourceBatches, ahead
from ledger.sources import read_source
from ledger.spill import Ranges, Spill
from ledger.staging import Staged

BATCH_ROWS = PART_ROWS = 1 << 20  # as many rows as a segment has
Progress = Callable[[str, int, int], None]  # phase, done, total


@dataclass(frozen=True)
class ScoreRows:
    """What the row level made of a call; `result.table` is empty where the rows are set aside."""

    result: RowResult
    sources: tuple[Source, ...]
    spill: Spill | None = None

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


def divided(
    staged: Sequence[Staged], reader: Reader, directory: Path | None, progress: Progress
) -> ScoreRows:
    """The rows of staged files, read batch by batch and set aside in `directory`."""
    files = [SourceBatches(each, BATCH_ROWS) for each in staged]
    columns = [file.trajectories() for file in files]
    arrays = (array for arrays in columns if arrays is not None for array in arrays)
    ranges = Ranges(arrays, PART_ROWS)
    pass_ = _Pass(reader, files, Spill(ranges, directory), progress)
    pass_.run()
    if pass_.donors:
        rows = gather([read_source(each) for each in staged], reader.channel, reader.acquisition)
        return whole(rows, reader.book)
    if elsewhere := pass_.elsewhere():
        pass_ = _Pass(reader, files, None, progress)
        pass_.run(elsewhere)
    return pass_.rows()


@dataclass
class _Pass:
    """One reading of all files; `spill` takes the rows while nothing is found wrong with any."""

    reader: Reader
    files: Sequence[SourceBatches]
    spill: Spill | None
    progress: Progress
    findings: Findings = field(default_factory=Findings)
    donors: bool = False
    counts: list[int] = field(default_factory=list)
    ignored: dict[str, None] = field(default_factory=dict)
    missing: dict[str, dict[str, None]] = field(default_factory=dict)
    given: dict[str, set[str]] = field(default_factory=dict)
    names: dict[str, list[pa.Array]] = field(default_factory=dict)
    told: set[tuple[str, str]] = field(default_factory=set)

    def run(self, elsewhere: Elsewhere = NOTHING_ELSE) -> None:
        for number, file in enumerate(self.files):
            self.progress("read", number, len(self.files))
            self.counts.append(0)
            for table in ahead(iter(file)):
                self._take(number, self.reader.judge([table], replace(elsewhere, told=frozenset(self.told))))
                if self.donors:
                    return
        self.progress("read", len(self.files), len(self.files))

    def _take(self, number: int, result: RowResult) -> None:
        self.findings.merge(result.findings)
        for finding in result.findings.examples:
            if finding.level == "file" and finding.file is not None and finding.column is not None:
                self.told.add((finding.file, finding.column))
        self.counts[number] += result.rows
        self.ignored |= dict.fromkeys(result.ignored)
        for column, files in result.missing_digests.items():
            self.missing.setdefault(column, {}).update(dict.fromkeys(files))
        for column, files in result.given_digests.items():
            self.given.setdefault(column, set()).update(files)
        for column, labels in result.names.items():
            self.names.setdefault(column, []).append(labels)
        if self.findings.total:
            self.spill = None
        if self.spill is None:
            return
        views = result.table.column("view_source").combine_chunks().dictionary.to_pylist()
        self.donors = any(DONOR.fullmatch(view) for view in views)
        if not self.donors:
            at = result.table.schema.get_field_index("source_file")
            index = pa.array(np.full(result.rows, number, np.int32))
            self.spill.add(result.table.set_column(at, "source_file", index))

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
            Source(Path(file.staged.name).name, file.staged.digest, count)
            for file, count in zip(self.files, self.counts, strict=True)
        )
        result = RowResult(
            table=IN_FLIGHT.empty_table(),
            findings=self.findings,
            rows=sum(self.counts),
            ignored=tuple(self.ignored),
            missing_digests={column: tuple(files) for column, files in self.missing.items()},
            given_digests={},
            names={},
        )
        return ScoreRows(result, tuple(sources), self.spill)
