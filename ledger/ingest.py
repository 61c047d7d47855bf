"""`ledger ingest`: score files to entries, in one call that is recorded whole or not at all.

1. Every file is read once; all files of the call are judged as one set.
2. Rows are canonical or refuse the call. What the ledger has of their trajectories is looked up, rows that
   are entries already are skipped, sides that are not whole are refused by name.
3. New entries become segments and newly refused sides a refusal; every object is durable.
4. One transaction appends the events and the new signed head. Where another writer was faster, the call is
   judged again inside that transaction, with the other's entries in view.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pyarrow as pa

from contracts.admission import Admission, judge
from contracts.channel import ChannelBook
from contracts.errors import UsageError
from contracts.rows import RowResult, canonicalise
from contracts.schema import REFUSED, TRANSPORT
from contracts.source_table import SourceTable
from ledger import heads, lock
from ledger.event_types import Event, RefusalEvent, SegmentEvent, Source
from ledger.existing import candidate_sets, concerned, entries_of
from ledger.home import Home
from ledger.index import Index
from ledger.ingest_store import Kind, NewRows, Progress, roots, store
from ledger.keys import SigningKey
from ledger.objects import refusal_index_name, refusal_rows_name
from ledger.reading import Reading
from ledger.receipt import Receipt, RefusalReceipt, RefusedCallError, SegmentReceipt
from ledger.refused_before import new_refusals
from ledger.sources import read_sources

if TYPE_CHECKING:
    from ledger.log import Commit, Transaction

CONFLICT = "conflict"
KINDS: Mapping[str, Kind] = {
    "transport": Kind(TRANSPORT, REFUSED, "ledger.transport-contract.v1"),
}


@dataclass(frozen=True)
class _Call:
    """The rows of a call, read and canonical, with what is needed to judge them again."""

    home: Home
    kind: Kind
    rows: RowResult
    book: ChannelBook
    sources: tuple[Source, ...]
    strict: bool
    dry_run: bool
    progress: Progress


@dataclass(frozen=True)
class _Prepared:
    """A call judged against a log of `size` events: the events that record it, whose objects are stored."""

    size: int
    events: tuple[Event, ...]
    receipt: Receipt


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
    wait: float = lock.WAIT,
    progress: Progress = quiet,
) -> Receipt:
    """Takes in the files of one call; the receipt says what became of every row.

    `kind` is told from the columns when None; `channel` and `acquisition` stand for those columns where a
    file has none. RefusedCallError when rows are not canonical, contradict an entry, or anything is refused
    and the call is `strict`; nothing is written then. A dry run needs no `key`, writes nothing and ends the
    same way as the real one. `progress` hears the phases read (files), write (rows) and log.
    """
    if not dry_run:
        # Decoding leaves the interpreter idle for as long as the database libraries take to load.
        Thread(target=import_module, args=("ledger.log",), daemon=True).start()
    with Index.open(home) as index:
        book = index.channels()
    staging = None if dry_run else home.objects.staging()
    form, files = _read(paths, kind, staging, progress)
    rows = canonicalise(files, book, default_channel=channel, default_acquisition=acquisition)
    sources = tuple(Source(Path(file.name).name, file.digest, file.table.num_rows) for file in files)
    del files  # what is judged from here on is a copy; a million rows of text are not kept twice
    call = _Call(home, form, rows, book, sources, strict, dry_run, progress)
    prepared = _prepare(call, key)
    if dry_run or not prepared.events:
        return prepared.receipt
    assert key is not None, "only a dry run needs no key"
    from ledger import log

    def build(transaction: Transaction) -> Sequence[Event]:
        nonlocal prepared
        if _overtaken(transaction, prepared.size):
            prepared = _prepare(call, key)
        return prepared.events

    progress("log", 0, 1)
    commit = log.commit(home, key, build, wait=wait)
    progress("log", 1, 1)
    return _placed(prepared, commit)


def _read(
    paths: Sequence[str | Path], kind: str | None, staging: Path | None, progress: Progress
) -> tuple[Kind, list[SourceTable]]:
    """The tables of all files, which must be of one kind."""
    files: list[SourceTable] = []
    for number, path in enumerate(paths):
        progress("read", number, len(paths))
        files += read_sources([path], kind, staging)
    progress("read", len(paths), len(paths))
    kinds = {file.kind for file in files}
    if len(kinds) != 1 or not kinds <= KINDS.keys():
        raise UsageError(
            "one call takes files of one kind", code="kinds-mixed", expected=" or ".join(KINDS),
            got=", ".join(sorted(kinds)) or "no file",
        )  # fmt: skip
    return KINDS[kinds.pop()], files


def _prepare(call: _Call, key: SigningKey | None) -> _Prepared:
    """Judges the rows against the ledger as it is now, and stores what they make."""
    with Index.open(call.home) as index:
        head = heads.check(call.home, index, key=key.public if key else None, trust_first=key is None)
        admission = _judge(call, Reading(call.home, index, call.home.objects, head))
        known = {row.id for row in index.acquisitions()}
        recorded = index.refused_sides() if admission.sides.num_rows else ()
    sides, refused = new_refusals(admission.sides, admission.refused, recorded)
    before = admission.sides.num_rows - sides.num_rows
    receipt = replace(_receipt(call, admission), refused_before=before)
    if (error := admission.error()) is not None:
        raise RefusedCallError(error, receipt)
    if call.dry_run:
        planned = tuple(SegmentReceipt(root) for root in roots(admission.admitted, call.kind))
        return _Prepared(head.row.size, (), replace(receipt, segments=planned))
    receipt = replace(receipt, head=(head.row.size, head.row.root))
    new = NewRows(admission.admitted, refused, sides)
    made = store(call.home.objects, call.kind, new, call.sources, known, call.progress) if new else ()
    return _Prepared(head.row.size, made, receipt)


def _judge(call: _Call, reading: Reading) -> Admission:
    """The set rules over the call's rows, beside everything the ledger has that they speak about."""
    rows, objects = call.rows.table, reading.objects
    existing: pa.Table | None = None
    sets: Mapping[str, str] = {}
    names = [source.name for source in call.sources]
    held = reading.index.segments(kind=call.kind.entries.kind) if rows.num_rows else ()
    if held:
        for segment in held:
            reading.confirm(segment.event)
        trajectories = concerned(rows)
        existing = entries_of(objects, held, trajectories)
        sets = candidate_sets(objects, held, rows)
    strict = call.strict
    admission = judge(call.rows, call.book, existing, strict, files=names, known_sets=sets)
    if existing is not None and CONFLICT in admission.findings.by_code:
        # Only a contradiction asks which file and row an entry came from, so only then they are looked up.
        existing = entries_of(objects, held, trajectories, sources=True)
        admission = judge(call.rows, call.book, existing, strict, files=names, known_sets=sets)
    return admission


def _overtaken(transaction: Transaction, size: int) -> bool:
    """Whether another writer added entries or refusals since the call was judged."""
    kinds = {SegmentEvent.type, RefusalEvent.type}
    return any(row.type in kinds for row in transaction.index.events(size, transaction.size))


def _receipt(call: _Call, admission: Admission) -> Receipt:
    return Receipt(
        kind=call.kind.entries.kind,
        dry_run=call.dry_run,
        rows=call.rows.rows,
        admitted=0 if admission.refuses_call else admission.admitted.num_rows,
        skipped=admission.skipped,
        refused_sides=admission.sides.num_rows,
        refused_rows=admission.refused.num_rows,
        refused_before=0,
        segments=(),
        refusal=None,
        head=None,
        findings=admission.findings,
        sides=admission.sides,
        sources=call.sources,
        ignored=call.rows.ignored,
        missing_digests=call.rows.missing_digests,
        hint=admission.hint,
    )


def _placed(prepared: _Prepared, commit: Commit) -> Receipt:
    """The receipt with the places of its events in the log."""
    written: list[SegmentReceipt] = []
    refusal: RefusalReceipt | None = None
    for place, event in enumerate(prepared.events, commit.first_index):
        if isinstance(event, SegmentEvent):
            written.append(SegmentReceipt(event.root, event.rows, event.file, place))
        elif isinstance(event, RefusalEvent):
            rows_name, index_name = refusal_rows_name(event.file), refusal_index_name(event.index)
            refusal = RefusalReceipt(event.sides, event.rows, rows_name, index_name, place)
    return replace(
        prepared.receipt,
        segments=tuple(written),
        refusal=refusal,
        head=(commit.size, commit.root),
        warnings=commit.warnings,
    )
