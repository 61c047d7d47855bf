"""The parts of a call judged, and its segments written, by an engine.

A worker judges one part, leaves the rows it admits in a file of the call and tells how many they are. Once
every part is judged it is known where segments begin and end: at the rows at which one process cuts them. A
second round of tasks encodes them as staged files, which this process makes objects when all are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from contracts.schema import SegmentSchema
from ledger import durable, score_rows, segments
from ledger.ingest_notes import Told
from ledger.judge_parts import Judged, Rules
from ledger.objects import Store
from ledger.pages import entries_root, page_leaves
from ledger.read_tasks import SharedRows
from ledger.segments import WrittenSegment
from ledger.sharing import Sharing
from ledger.shelf import Place, Shelf
from ledger.spill import together


@dataclass(frozen=True)
class PartTask:
    """Where the rows of one part wait."""

    number: int
    places: tuple[Place, ...]

    def __str__(self) -> str:
        return f"part {self.number + 1} of the call"


@dataclass(frozen=True)
class PartJudged:
    """What became of a part: small facts, and where its tables wait.

    `told` is what audits will leave out of its entries, None where it refuses the call.
    """

    judged: Judged
    admitted: Place
    sides: Place
    refused: Place
    rejects: tuple[Place, ...]
    told: Told | None

    def whole(self) -> Judged:
        """The facts with their tables, which are mapped rather than read."""
        for place in self.rejects:
            self.judged.findings.reject(place.table())
        self.judged.sides, self.judged.refused = [self.sides.table()], [self.refused.table()]
        return self.judged


@dataclass(frozen=True)
class PartKernel:
    """Judges parts as sets."""

    rules: Rules
    shelf: Shelf

    def __call__(self, task: PartTask) -> Iterator[PartJudged]:
        """One result."""
        self.shelf.require()
        score_rows.warm()
        admission, existing = self.rules.judge(together(place.table() for place in task.places))
        judged = Judged.of(admission)
        told = None
        if judged.findings.error(strict=self.rules.strict) is None:
            forecast = self.rules.forecast()
            forecast.add(admission.admitted, existing)
            told = forecast.told
        rejects = judged.findings.take_rejects()
        tables = [admission.admitted, admission.sides, admission.refused, *rejects]
        admitted, sides, refused, *others = self.shelf.put(tables)
        judged.sides, judged.refused = [], []
        yield PartJudged(judged, admitted, sides, refused, tuple(others), told)


def judged_parts(sharing: Sharing, rows: SharedRows, rules: Rules) -> Iterator[PartJudged]:
    """Every part, in the order of their trajectories."""
    tasks = [PartTask(number, tuple(places)) for number, places in enumerate(rows.places)]
    return sharing.engine.map(PartKernel(rules, sharing.shelf), tasks)


@dataclass(frozen=True)
class Piece:
    """Consecutive rows of a table that waits."""

    place: Place
    start: int
    rows: int


@dataclass(frozen=True)
class SegmentTask:
    """The rows of one segment."""

    number: int
    pieces: tuple[Piece, ...]

    def __str__(self) -> str:
        return f"segment {self.number + 1} of the call"

    @property
    def rows(self) -> int:
        """How many entries it has."""
        return sum(piece.rows for piece in self.pieces)


@dataclass(frozen=True)
class Made:
    """The entries root of a segment; what it commits to and its staged files, unless only that was asked."""

    root: str
    rows: int
    written: WrittenSegment | None
    paths: tuple[Path, ...]


@dataclass(frozen=True)
class SegmentKernel:
    """Encodes segments; without `store` it only makes their roots."""

    schema: SegmentSchema
    shelf: Shelf
    store: bool

    def __call__(self, task: SegmentTask) -> Iterator[Made]:
        """One result."""
        self.shelf.require()
        table = pa.concat_tables([p.place.table().slice(p.start, p.rows) for p in task.pieces])
        if not self.store:
            yield Made(entries_root(page_leaves(table, self.schema)), task.rows, None, ())
            return
        made = segments.encode(table, self.schema)
        paths = tuple(self.shelf.fresh() for _ in made.contents)
        with self.shelf.kept(*paths):
            for path, data in zip(paths, made.contents, strict=True):
                with durable.storage("writing a segment", path):
                    durable.create(path, data)
        yield Made(made.written.root, task.rows, made.written, paths)


class SharedWriter:
    """Takes the places of rows in canonical order, and writes them once all are known; see SegmentWriter."""

    def __init__(
        self,
        schema: SegmentSchema,
        objects: Store | None,
        sharing: Sharing,
        progress: Callable[[int], None],
    ) -> None:
        self.roots: list[str] = []
        self.rows: list[int] = []
        self._schema = schema
        self._objects = objects
        self._sharing = sharing
        self._progress = progress
        self._pieces: list[list[Piece]] = [[]]
        self._room = segments.SEGMENT_ROWS

    def add(self, place: Place, rows: int) -> None:
        """More rows; every key is greater than all before."""
        start = 0
        while start < rows:
            if not self._room:
                self._pieces.append([])
                self._room = segments.SEGMENT_ROWS
            taken = min(self._room, rows - start)
            self._pieces[-1].append(Piece(place, start, taken))
            start += taken
            self._room -= taken

    def finish(self) -> list[WrittenSegment]:
        """Makes every segment an object; all of them are durable when this returns."""
        tasks = [SegmentTask(i, tuple(pieces)) for i, pieces in enumerate(self._pieces) if pieces]
        kernel = SegmentKernel(self._schema, self._sharing.shelf, self._objects is not None)
        staged = []
        for made in self._sharing.engine.map(kernel, tasks):
            self.roots.append(made.root)
            self.rows.append(made.rows)
            self._progress(made.rows)
            if made.written is not None:
                staged.append((made.written, made.paths))
        for written, paths in staged:
            assert self._objects is not None, "only what is stored was staged"
            segments.put(self._objects, written, paths)
        return [written for written, _ in staged]
