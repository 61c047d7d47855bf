"""Whether the rows under every segment are those the log commits to, in order, and as their event says.

Segments are read, checked and judged by an engine, each on its own. A trajectory that a call was cut in is
judged here, where its parts meet, and so is whether a side was admitted twice. Predictions are judged as
whole groups, which is done here as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from contracts.channel import ChannelBook
from contracts.errors import LedgerError
from contracts.schema import JEV, JEV_POSITIVES, TRANSPORT, SegmentSchema
from ledger.engines import INLINE, Engine
from ledger.entry_id import entry_id
from ledger.event_types import RefusalEvent, SegmentEvent
from ledger.index import Index
from ledger.index_rows import RefusalRow, SegmentRow
from ledger.objects import Objects
from ledger.pages import PAGE_ROWS
from ledger.problems import Problems
from ledger.segment_reader import SegmentReader
from ledger.verify_catalog import SIDES
from ledger.verify_contract import TOGETHER, Contract, Judge, Part, Repeats, Sides
from ledger.verify_log import OBJECTS
from ledger.verify_predictions import PredictionsContract
from ledger.verify_segment import SIDE, Check, Registered, Stored

PREDICTIONS = (JEV.id, JEV_POSITIVES.id)


def first_bad_entry(objects: Objects, event: SegmentEvent | RefusalEvent) -> str | None:
    """The id of the first entry of a damaged file that is not as committed; None where none can be told."""
    folder = "segments" if isinstance(event, SegmentEvent) else "refusals"
    try:
        with SegmentReader.ranged(objects, event, folder) as reader:
            for start in range(0, event.rows, PAGE_ROWS):
                try:
                    reader.read(start, min(start + PAGE_ROWS, event.rows))
                except LedgerError:
                    return entry_id(event.root, start)
    except LedgerError:
        pass  # not even its footer is right, so no entry comes before another
    return None


@dataclass(frozen=True)
class Task:
    """Segments and refusals to check one after the other, each with the size of its file.

    `cut` says of each whether its first and its last trajectory may go on in another segment.
    """

    rows: tuple[Stored, ...]
    sizes: tuple[int, ...]
    cut: tuple[tuple[bool, bool], ...]

    def __str__(self) -> str:
        first, last = self.rows[0].event, self.rows[-1].event
        return f"segment of event {first}" if first == last else f"segments of events {first} to {last}"


@dataclass
class Checked:
    """What was found in one segment: problems, the sides it has, and the rows of trajectories that were cut.

    `head` are those of its first trajectory and `tail` of its last; `ended` is whether the first one ends
    in the segment. `sides` counts the rows of refused sides, None where not all could be read.
    """

    found: Problems = field(default_factory=Problems)
    admitted: list[Sides] = field(default_factory=list)
    head: list[Part] = field(default_factory=list)
    tail: list[Part] = field(default_factory=list)
    ended: bool = True
    sides: Counter[tuple[object, ...]] | None = None


@dataclass(frozen=True)
class Kernel:
    """Checks and judges segments by what the log says of them, each on its own."""

    objects: Objects
    registered: Registered
    book: ChannelBook

    def __call__(self, task: Task) -> Iterator[Checked]:
        """One result for every segment or refusal, in order."""
        judge = Judge(self.book)
        held: list[tuple[Checked, Problems]] = []
        rows = 0
        for row, size, (begun, goes_on) in zip(task.rows, task.sizes, task.cut, strict=True):
            held.append(self._checked(row, size, judge, begun, goes_on))
            rows += row.rows
            if rows >= TOGETHER:
                yield from _settled(judge, held)
                held, rows = [], 0
        yield from _settled(judge, held)

    def _checked(
        self, row: Stored, size: int, judge: Judge, begun: bool, goes_on: bool
    ) -> tuple[Checked, Problems]:
        """The result, and where the judge is going to tell what else there is to find."""
        made, told = Checked(), Problems()
        contract = Contract(told, judge, begun=begun)

        def feed(schema: SegmentSchema, part: Part) -> None:
            if schema is TRANSPORT:  # what was refused has no contract to meet
                contract.feed(part)

        done = checked(made.found, self.objects, row, size, self.registered, feed)
        if done is None:
            return made, Problems()  # what was fed of it counts for nothing
        made.sides = done.sides
        if not goes_on:
            contract.finish()
        made.ended = contract.ended
        made.head, made.tail = (
            [part.copied() for part in parts] for parts in (contract.head, contract.waiting)
        )
        made.admitted = contract.sides
        return made, told


def _settled(judge: Judge, held: Sequence[tuple[Checked, Problems]]) -> Iterator[Checked]:
    """Results with what the judge told of them."""
    judge.settle()
    for made, told in held:
        made.found.merge(told)
        yield made


def checked(
    found: Problems,
    objects: Objects,
    row: Stored,
    size: int,
    registered: Registered,
    feed: Callable[[SegmentSchema, Part], None],
) -> Check | None:
    """The check of one segment or refusal, read whole; None where it cannot be, which is a problem."""
    folder = "segments" if isinstance(row, SegmentRow) else "refusals"
    where = f"{OBJECTS}/{name_of(row)}"
    with found.guard("data", where), SegmentReader.whole(objects, row, folder) as reader:
        checking = Check(found, row, reader, where)
        checking.run(size, registered, feed)
        return checking
    return None


def name_of(row: Stored) -> str:
    """The object with the rows of a segment or refusal."""
    folder = "segments" if isinstance(row, SegmentRow) else "refusals"
    return f"{folder}/{row.file.removeprefix('blake3:')}.parquet"


def check_stored(
    found: Problems,
    index: Index,
    objects: Objects,
    whole: Mapping[str, int],
    progress: Callable[[int], None],
    engine: Engine = INLINE,
) -> None:
    """Every segment and refusal whose file is `whole` (object name to size)."""
    registered, book = Registered.of(index), index.channels()
    stored: list[Stored] = sorted([*index.segments(), *index.refusals()], key=lambda row: row.event)
    scores = [row for row in stored if row.schema not in PREDICTIONS and name_of(row) in whole]
    results = engine.map(Kernel(objects, registered, book), _tasks(scores, whole, engine))
    together = _Together(found, book)
    done, before = 0, None
    for row in stored:
        if not _continues(before, row):
            together.finish()
        before = row
        if name_of(row) not in whole:
            together.broken |= row.schema in PREDICTIONS
        elif row.schema in PREDICTIONS:
            together.broken |= not together.read(objects, row, whole[name_of(row)], registered)
        else:
            result = next(results)
            together.add(result)
            if isinstance(row, RefusalRow) and result.sides is not None:
                _compare_refused(found, row, result.sides, index)
        done += row.rows
        progress(done)
    assert next(results, None) is None, "one result for every row that could be read"
    together.finish()
    together.judge_together()


def _tasks(rows: Sequence[Stored], sizes: Mapping[str, int], engine: Engine) -> list[Task]:
    """The rows in order, in about as many tasks as the engine wants, of about as many entries."""
    total = sum(row.rows for row in rows)
    share = -(-total // engine.pieces(total)) if total else 1
    tasks: list[Task] = []
    held: list[int] = []
    for at in range(len(rows)):
        held.append(at)
        if sum(rows[i].rows for i in held) >= share or at == len(rows) - 1:
            cut = tuple(
                (
                    _continues(rows[i - 1] if i else None, rows[i]),
                    i + 1 < len(rows) and _continues(rows[i], rows[i + 1]),
                )
                for i in held
            )
            its = tuple(rows[i] for i in held)
            tasks.append(Task(its, tuple(sizes[name_of(row)] for row in its), cut))
            held = []
    return tasks


def _continues(before: Stored | None, row: Stored) -> bool:
    """Whether one call was cut between two segments inside a trajectory."""
    if not isinstance(before, SegmentRow) or not isinstance(row, SegmentRow):
        return False
    cut = row.event == before.event + 1 and row.sources == before.sources
    return cut and row.first[0] == before.last[0]


class _Together:
    """What only several segments show; `broken` once one of predictions could not be read whole."""

    def __init__(self, found: Problems, book: ChannelBook) -> None:
        self._found = found
        self._judge = Judge(book)
        self._cut = Contract(found, self._judge)
        self._repeats = Repeats(found)
        self._predictions = PredictionsContract(found, book)
        self.broken = False

    def add(self, result: Checked) -> None:
        """Takes the next segment, in the order of the log."""
        self._found.merge(result.found)
        for part in result.head:
            self._cut.feed(part)
        if result.ended:
            self._finish_cut()
        for part in result.tail:
            self._cut.feed(part)
        self._repeats.add(result.admitted)

    def read(self, objects: Objects, row: Stored, size: int, registered: Registered) -> bool:
        """Checks a segment of predictions, or of the scorer's labels; false where it cannot be read whole."""
        return checked(self._found, objects, row, size, registered, self._feed) is not None

    def _feed(self, schema: SegmentSchema, part: Part) -> None:
        if schema is JEV:
            self._predictions.feed(part)
        elif schema is JEV_POSITIVES:
            self._predictions.feed_positives(part)

    def finish(self) -> None:
        """Nothing more comes of this call."""
        self._finish_cut()
        self._predictions.finish()

    def _finish_cut(self) -> None:
        self._cut.finish()
        self._judge.settle()
        self._repeats.add(self._cut.sides)
        self._cut.sides.clear()

    def judge_together(self) -> None:
        """What only all pairs together can show: not where some are missing, which is told already."""
        if not self.broken:
            self._predictions.judge_together()
            return
        self._found.notices.append("a segment of predictions is damaged: the groups of pairs were not judged")


def _compare_refused(
    found: Problems, row: RefusalRow, sides: Counter[tuple[object, ...]], index: Index
) -> None:
    """The list of refused sides (its catalog rows) and the refused rows tell of the same sides."""
    listed = index.table_rows(SIDES, row.event, row.event + 1)
    stated = Counter({tuple(side[name] for name in SIDE): side["rows"] for side in listed})
    if sides != stated:
        differing = sorted(set(sides.items()) ^ set(stated.items()), key=repr)
        trajectory, step, *_ = differing[0][0]
        told = f"the list of refused sides and their rows disagree about {trajectory}/step {step}"
        found.add("data", f"{OBJECTS}/{name_of(row)}", told, f"event {row.event}")
