"""`ledger ingest`: files to entries, in one call that is recorded whole or not at all.

1. Every file is read once and told apart; all files of a call are of one kind and judged as one set.
2. The kind's rules say what becomes of each row; new entries and refusals are stored, every object durable.
3. One transaction appends the events and the new signed head. Where another writer was faster, the call is
   judged again inside that transaction, with the other's entries in view.

The rules and the database take as long to import as a million rows to decode, which hardly needs the
interpreter: files are decoded in a thread, and everything else is imported meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Protocol

from contracts.errors import ContractError, UsageError
from contracts.raw_rows import RawRows, gather
from ledger import lock
from ledger.engines import INLINE, Engine, Missing
from ledger.ingest_doubts import Doubts, doubts
from ledger.sharing import Sharing, sharing
from ledger.source_batches import rows_at_most
from ledger.sources import kind_of, read_source
from ledger.staging import Staged, stage
from ledger.underway import underway

if TYPE_CHECKING:
    from contracts.channel import ChannelBook
    from contracts.jev_source import LabelReader
    from ledger.event_types import Event
    from ledger.home import Home
    from ledger.ingest_extras import Brought, Extras
    from ledger.keys import SigningKey
    from ledger.log import Commit, Transaction
    from ledger.receipt import Receipt, RefusalReceipt

LARGE = 8 << 20  # bytes of input that take long enough to decode to be worth a thread
DIVIDED_ROWS = 1_500_000  # more rows than this are not held in memory at once
Progress = Callable[[str, int, int], None]  # phase, done, total
Prepared = tuple[int, "tuple[Event, ...]", "Receipt"]


@dataclass(frozen=True)
class Options:
    """How the rows of a call are to be taken.

    `channel` and `acquisition` stand for those columns where a file has none. `strict` refuses the call
    when anything of it is refused, `dry_run` writes nothing. `labels` reads predictions out of logits.
    `shared` is what takes part in a large call of scores.
    """

    channel: str | None = None
    acquisition: str | None = None
    strict: bool = False
    dry_run: bool = False
    labels: LabelReader | None = None
    shared: Sharing | None = None


class Call(Protocol):
    """The rows of one call, read and judged one by one."""

    def brought(self, acquisition: str) -> Brought:
        """The files that hold rows of an acquisition, and the roots over its requests and responses."""
        ...

    def prepare(self, key: SigningKey | None) -> Prepared:
        """Judges the rows against the ledger as it is now and stores what they make.

        Gives the size of the log they were judged against, the events that record them (none when nothing
        is new, or in a dry run), and the receipt. RefusedCallError when the call is refused.
        """
        ...


def quiet(_phase: str, _done: int, _total: int) -> None:
    """Tells nobody how far it is."""


def ingest(
    home: Home,
    paths: Sequence[str | Path],
    *,
    key: SigningKey | None,
    kind: str | None = None,
    channel: str | None = None,
    acquisition: str | None = None,
    strict: bool = False,
    dry_run: bool = False,
    labels: LabelReader | None = None,
    extras: Extras | None = None,
    wait: float = lock.WAIT,
    progress: Progress = quiet,
    engine: Engine = INLINE,
) -> Receipt:
    """Takes in the files of one call; the receipt says what became of every row.

    `kind` is told from the columns when None; for the rest see Options. RefusedCallError when rows are not
    canonical, contradict an entry, or anything is refused and the call is strict; nothing is written then.
    A dry run needs no `key` and ends the same way as the real one. `wait` is how many seconds another writer
    may take. `extras` come beside the files. `progress` hears the phases read (files), write (rows) and log;
    of a large call that an `engine` takes part in also judge (rows).
    """
    staging = None if dry_run else home.objects.staging()
    with underway(staging), sharing(home, engine, dry_run) as shared:
        options = Options(channel, acquisition, strict, dry_run, labels, shared)
        return _ingest(home, paths, kind, options, key, extras, wait, progress)


def _ingest(
    home: Home,
    paths: Sequence[str | Path],
    kind: str | None,
    options: Options,
    key: SigningKey | None,
    extras: Extras | None,
    wait: float,
    progress: Progress,
) -> Receipt:
    staging, shared = None if options.dry_run else home.objects.staging(), options.shared
    staged = [stage(path, staging, None if shared is None else shared.shelf.fresh()) for path in paths]
    _require_once(staged)
    read = _KINDS[_one_kind(staged, kind)]
    doubtful = doubts(staged, options.channel, options.acquisition)
    call = read(home, staged, options, progress)
    del staged
    if extras:
        extras.check(home, call, None if key is None else key.public)
    size, events, receipt = _prepared(call, key, doubtful)
    if options.dry_run or not (events or extras):
        return receipt
    assert key is not None, "only a dry run needs no key"
    from ledger import log

    def build(transaction: Transaction) -> Sequence[Event]:
        nonlocal events, receipt
        if _overtaken(transaction, size):
            _, events, receipt = _prepared(call, key, doubtful)
        if extras:
            events = extras.events(home, events, transaction.index)
        return events

    progress("log", 0, 1)
    commit = log.commit(home, key, build, wait=wait)
    progress("log", 1, 1)
    return _placed(receipt, events, commit)


def _prepared(call: Call, key: SigningKey | None, doubtful: Doubts) -> Prepared:
    """What `prepare` gives or raises, its receipt with what is doubtful about the files."""
    from ledger.receipt import RefusedCallError

    def noted(receipt: Receipt) -> Receipt:
        return replace(receipt, warnings=(*doubtful.noted(receipt), *receipt.warnings))

    try:
        size, events, receipt = call.prepare(key)
    except RefusedCallError as error:
        error.receipt = noted(error.receipt)
        raise
    return size, events, noted(receipt)


def _scores(home: Home, staged: Sequence[Staged], options: Options, progress: Progress) -> Call:
    if options.shared is not None and isinstance(options.shared.engine, Missing):
        raise options.shared.engine.error
    large = sum(item.data.size for item in staged) >= LARGE
    count = sum(rows_at_most(item) for item in staged)
    divided = count > DIVIDED_ROWS
    with ThreadPoolExecutor(1) as beside:
        reading = None if divided else beside.submit(_gathered, staged, options, progress)
        book = _book(home)
        from ledger import score_rows
        from ledger.ingest_scores import ScoresCall

        if large:
            score_rows.warm()
            if not options.dry_run:
                Thread(target=import_module, args=("ledger.log",)).start()  # waited for at exit
        if reading is None:
            reader = score_rows.Reader(book, options.channel, options.acquisition)
            directory = None if options.dry_run else home.objects.staging()
            pays = options.shared is not None and options.shared.engine.pieces(count) > 1
            shared = options.shared if pays else None
            rows = score_rows.divided(staged, reader, directory, progress, shared)
        else:
            rows = score_rows.whole(reading.result(), book)
    return ScoresCall(home, rows, book, options, progress)


def _gathered(staged: Sequence[Staged], options: Options, progress: Progress) -> RawRows:
    files = []
    for number, item in enumerate(staged):
        progress("read", number, len(staged))
        files.append(read_source(item, "transport"))
        item.let_go()
    progress("read", len(staged), len(staged))
    return gather(files, options.channel, options.acquisition)


def _predictions(home: Home, staged: Sequence[Staged], options: Options, progress: Progress) -> Call:
    from ledger.ingest_jev import predictions_call

    return predictions_call(home, staged, _book(home), options, progress)


def _book(home: Home) -> ChannelBook:
    from ledger.index import Index

    with Index.open(home) as index:
        return index.channels()


_KINDS: Mapping[str, Callable[[Home, Sequence[Staged], Options, Progress], Call]] = {
    "transport": _scores,
    "jev": _predictions,
}


def _require_once(staged: Sequence[Staged]) -> None:
    """ContractError where two files of a call have the same bytes: every row would be there twice."""
    seen: dict[str, str] = {}
    for item in staged:
        if item.digest not in seen or not item.data.size:
            seen[item.digest] = item.name
            continue
        first = seen[item.digest]
        raise ContractError(
            "the file is named twice" if first == item.name else f"the file has the very bytes of {first}",
            code="file-twice", expected="every file once in a call", where=item.name,
            next_step=f"name {item.name if first == item.name else first} once",
        )  # fmt: skip


def _one_kind(staged: Sequence[Staged], kind: str | None) -> str:
    """The kind all files of a call are of; UsageError where they are not."""
    found = sorted({kind_of(item, kind) for item in staged})
    if len(found) != 1 or found[0] not in _KINDS:
        raise UsageError(
            "one call takes files of one kind", code="kinds-mixed", expected=" or ".join(_KINDS),
            got=", ".join(found) or "no file",
        )  # fmt: skip
    return found[0]


def _overtaken(transaction: Transaction, size: int) -> bool:
    """Whether another writer added entries or refusals since the call was judged."""
    from ledger.event_types import RefusalEvent, SegmentEvent

    kinds = {SegmentEvent.type, RefusalEvent.type}
    return any(row.type in kinds for row in transaction.index.events(size, transaction.size))


def _placed(receipt: Receipt, events: Sequence[Event], commit: Commit) -> Receipt:
    """The receipt with the places of its events in the log."""
    from ledger.event_types import AttestationEvent, RefusalEvent, SegmentEvent
    from ledger.object_names import refusal_index_name, refusal_rows_name
    from ledger.receipt import AttestationReceipt, RefusalReceipt, SegmentReceipt

    written: list[SegmentReceipt] = []
    refusal: RefusalReceipt | None = None
    attested: list[AttestationReceipt] = []
    for place, event in enumerate(events, commit.first_index):
        if isinstance(event, SegmentEvent):
            written.append(SegmentReceipt(event.root, event.rows, event.file, place))
        elif isinstance(event, RefusalEvent):
            rows_name, index_name = refusal_rows_name(event.file), refusal_index_name(event.index)
            refusal = RefusalReceipt(event.sides, event.rows, rows_name, index_name, place)
        elif isinstance(event, AttestationEvent):
            attested.append(AttestationReceipt(event.subject, event.statement, place))
    return replace(
        receipt,
        segments=tuple(written),
        refusal=refusal,
        attestations=tuple(attested),
        head=(commit.size, commit.root),
        warnings=(*receipt.warnings, *commit.warnings),
    )
