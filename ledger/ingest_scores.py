"""Files of scores to entries: canonical rows, whole sides, and refusals by name.

What the ledger has of the call's trajectories is looked up; rows that are entries already are skipped, sides
that are not whole are refused with their rows kept, the rest becomes segments. A large call goes through
this part by part, with the same outcome.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from contracts.admission import Admission, judge
from contracts.advice import next_step
from contracts.channel import ChannelBook
from contracts.findings import Findings
from contracts.rows import canonicalise
from contracts.schema import TRANSPORT
from contracts.transitions import settled
from ledger import heads, ingest_notes, ingest_store
from ledger.event_types import AcquisitionEvent, Event
from ledger.home import Home
from ledger.index import Index
from ledger.index_rows import SegmentRow
from ledger.ingest import Options, Prepared, Progress
from ledger.ingest_notes import Forecast
from ledger.ingest_store import segment_event, store_refusal
from ledger.keys import SigningKey
from ledger.reading import Reading
from ledger.receipt import Receipt, RefusedCallError, SegmentReceipt
from ledger.refused_before import new_refusals
from ledger.score_rows import ScoreRows
from ledger.segment_writer import SegmentWriter

if TYPE_CHECKING:
    from ledger.ingest_extras import Brought

CONFLICT = "conflict"


@dataclass
class _Judged:
    """What the set rules made of the parts of a call so far."""

    findings: Findings = field(default_factory=Findings)
    admitted: int = 0
    skipped: int = 0
    sides: list[pa.Table] = field(default_factory=list)
    refused: list[pa.Table] = field(default_factory=list)
    bindings: list[pa.Table] = field(default_factory=list)
    acquisitions: set[str] = field(default_factory=set)
    brought: dict[str, set[str]] = field(default_factory=dict)

    def add(self, admission: Admission) -> None:
        """Takes over all of an admission but its rows to admit."""
        self.findings.merge(admission.findings)
        self.admitted += admission.admitted.num_rows
        self.skipped += admission.skipped
        if admission.sides.num_rows or not self.sides:
            self.sides.append(admission.sides)
            self.refused.append(admission.refused)
        if admission.bindings is not None:
            self.bindings.append(admission.bindings)
        self.acquisitions |= ingest_store.acquisitions([admission.admitted, admission.refused])
        for fingerprint, ids in ingest_notes.brought(admission.admitted).items():
            self.brought.setdefault(fingerprint, set()).update(ids)


@dataclass(frozen=True)
class _Held:
    """What the ledger has that a call is judged against."""

    reading: Reading
    segments: tuple[SegmentRow, ...]
    sets: Mapping[str, str]  # candidates digests and the `candidate_set_digest` each stands for


@dataclass(frozen=True)
class ScoresCall:
    """The canonical rows of a call, with what is needed to judge them as sets, again if need be."""

    home: Home
    rows: ScoreRows
    book: ChannelBook
    options: Options
    progress: Progress

    def prepare(self, key: SigningKey | None) -> Prepared:
        """See `ledger.ingest.Call`."""
        with Index.open(self.home) as index:
            head = heads.check(self.home, index, key=key.public if key else None, trust_first=key is None)
            held = self._held(Reading(self.home, index, self.home.objects, head))
            return self._prepare(held)

    def brought(self, acquisition: str) -> Brought:
        """See `ledger.ingest.Call`."""
        from ledger import attested_rows
        from ledger.ingest_extras import Brought

        files: set[str] = set()
        digests: dict[str, set[bytes]] = {"request_hash": set(), "response_hash": set()}
        for table in self.rows.parts():
            mine = table.filter(pc.equal(table["acquisition_id"].cast(pa.string()), acquisition))
            files.update(self.rows.sources[i].digest for i in mine["source_file"].unique().to_pylist())
            for name, found in digests.items():
                found.update(value for value in mine[name].unique().to_pylist() if value is not None)
        return Brought(frozenset(files), *(attested_rows.root(found) for found in digests.values()))

    def _prepare(self, held: _Held) -> Prepared:
        forecast = ingest_notes.Forecast(self.book, held.reading.index.revocations())
        objects = None if self.options.dry_run else self.home.objects
        with SegmentWriter(TRANSPORT, objects, self._wrote()) as writer:
            judged = self._judge(held, writer, forecast)
            again = settled(pa.concat_tables(judged.bindings), held.sets) if judged.bindings else {}
            if not again:
                return self._stored(held, judged, writer, forecast)
        # A candidates digest stands for different sets in different parts: judged with the right one known.
        return self._prepare(replace(held, sets={**held.sets, **again}))

    def _stored(self, held: _Held, judged: _Judged, writer: SegmentWriter, forecast: Forecast) -> Prepared:
        """The events of what was judged, whose objects are durable; RefusedCallError where it is refused."""
        index, head = held.reading.index, held.reading.head.row
        sides, refused = pa.concat_tables(judged.sides), pa.concat_tables(judged.refused)
        recorded = index.refused_sides() if sides.num_rows else ()
        new_sides, new_rows = new_refusals(sides, refused, recorded)
        receipt = self._receipt(judged, sides, refused, sides.num_rows - new_sides.num_rows)
        if (error := judged.findings.error(strict=self.options.strict)) is not None:
            raise RefusedCallError(error, receipt)
        events: list[Event] = []
        if self.options.dry_run:
            writer.finish()
            receipt = replace(receipt, segments=tuple(SegmentReceipt(root) for root in writer.roots))
        else:
            known, sources = {row.id for row in index.acquisitions()}, self.rows.sources
            if judged.admitted or new_sides.num_rows:
                new = sorted(judged.acquisitions - known, key=str.encode)
                events += [AcquisitionEvent(name, TRANSPORT.kind) for name in new]
            kind, contract = TRANSPORT.kind, ingest_store.CONTRACT
            events += [segment_event(one, kind, contract, sources) for one in writer.finish()]
            if (rows := self.rows.result.rows) > judged.admitted:  # the others are not written, but done with
                self.progress("write", rows, rows)
            if new_rows.num_rows:
                events.append(store_refusal(self.home.objects, new_rows, new_sides, sources))
            receipt = replace(receipt, head=(head.size, head.root))
        stood, revoked = held.segments or index.segments(kind=TRANSPORT.kind), index.revocations()
        further = ingest_notes.further_acquisitions(judged.brought, stood, self.book, revoked)
        audit = ingest_notes.next_audit(judged.brought, stood, self.book, forecast.meeting)
        receipt = replace(receipt, warnings=(*forecast.lines(), *further), next_step=audit)
        return head.size, tuple(events), receipt

    def _judge(self, held: _Held, writer: SegmentWriter, forecast: Forecast) -> _Judged:
        """The set rules over each part, beside everything the ledger has that it speaks about."""
        judged = _Judged()
        for table in self.rows.parts():
            admission, existing = self._admission(table, held)
            judged.add(admission)
            if judged.findings.error(strict=self.options.strict) is not None:
                continue  # told whole, but nothing of it will be kept
            writer.add(admission.admitted)
            if not self.rows.divided:
                writer.flush()
            forecast.add(admission.admitted, existing)
        return judged

    def _held(self, reading: Reading) -> _Held:
        """The ledger's segments, each as the log has it, and its candidate sets that the call names."""
        segments = reading.index.segments(kind=TRANSPORT.kind) if self.rows.result.rows else ()
        reading.confirm_files(segments)
        if not segments:
            return _Held(reading, (), {})
        from ledger.existing import candidate_sets

        sets = candidate_sets(reading.objects, segments, self.rows.candidate_digests())
        return _Held(reading, segments, sets)

    def _admission(self, table: pa.Table, held: _Held) -> tuple[Admission, pa.Table | None]:
        def judged(existing: pa.Table | None) -> Admission:
            return judge(
                replace(self.rows.result, table=table), self.book, existing, self.options.strict,
                files=[source.name for source in self.rows.sources], known_sets=held.sets,
                part=self.rows.divided,
            )  # fmt: skip

        if not (held.segments and table.num_rows):
            return judged(None), None
        from ledger.existing import concerned, entries_of, meeting

        trajectories, objects = concerned(table), held.reading.objects
        for segment in meeting(held.segments, trajectories):
            held.reading.confirm(segment.event)
        existing = entries_of(objects, held.segments, trajectories)
        admission = judged(existing)
        if CONFLICT in admission.findings.by_code:
            # Only a contradiction asks which file and row an entry came from; only then they are looked up.
            admission = judged(entries_of(objects, held.segments, trajectories, sources=True))
        return admission, existing

    def _wrote(self) -> Callable[[int], None]:
        total, done = self.rows.result.rows, 0
        self.progress("write", done, total)

        def wrote(rows: int) -> None:
            nonlocal done
            done += rows
            self.progress("write", done, total)

        return wrote

    def _receipt(self, judged: _Judged, sides: pa.Table, refused: pa.Table, before: int) -> Receipt:
        findings, strict = judged.findings, self.options.strict
        return Receipt(
            kind=TRANSPORT.kind,
            dry_run=self.options.dry_run,
            rows=self.rows.result.rows,
            admitted=0 if findings.error(strict=strict) is not None else judged.admitted,
            skipped=judged.skipped,
            refused_sides=sides.num_rows,
            refused_rows=refused.num_rows,
            refused_before=before,
            segments=(),
            refusal=None,
            head=None,
            findings=findings,
            sides=sides,
            sources=self.rows.sources,
            ignored=self.rows.result.ignored,
            missing_digests=self.rows.result.missing_digests,
            hint=next_step(findings, [source.name for source in self.rows.sources]),
        )


def warm() -> None:
    """Judges no rows at all: pandera makes its checks at their first use, which takes a while.

    It also looks for hypothesis then, to offer strategies for tests, and would import all of it wherever
    it happens to be installed; nothing here asks for strategies.
    """
    hidden = "hypothesis" not in sys.modules
    if hidden:
        sys.modules["hypothesis"] = None  # type: ignore[assignment]
    try:
        canonicalise((), ChannelBook(()))
    finally:
        if hidden:
            del sys.modules["hypothesis"]
