"""Files of scores to entries: canonical rows, whole sides, and refusals by name.

What the ledger has of the call's trajectories is looked up; rows that are entries already are skipped, sides
that are not whole are refused with their rows kept, the rest becomes segments. A large call goes through
this part by part, with the same outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from contracts.advice import next_step
from contracts.channel import ChannelBook
from contracts.schema import TRANSPORT
from contracts.transitions import settled
from ledger import heads, ingest_notes, ingest_store
from ledger.engines import INLINE
from ledger.event_types import AcquisitionEvent, Event
from ledger.home import Home
from ledger.index import Index
from ledger.index_rows import RevocationRow, SegmentRow
from ledger.ingest import Options, Prepared, Progress
from ledger.ingest_notes import Forecast
from ledger.ingest_store import segment_event, store_refusal
from ledger.judge_parts import Judged, Rules
from ledger.keys import SigningKey
from ledger.objects import Store
from ledger.reading import Reading
from ledger.receipt import Receipt, RefusedCallError, SegmentReceipt
from ledger.refused_before import new_refusals
from ledger.score_rows import ScoreRows
from ledger.segment_writer import SegmentWriter
from ledger.sharing import Sharing

if TYPE_CHECKING:
    from ledger.ingest_extras import Brought
    from ledger.part_tasks import PartJudged, SharedWriter
    from ledger.read_tasks import SharedRows


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
        rules = self._rules(held, held.reading.index.revocations())
        forecast = rules.forecast()
        if (shared := self._shared) is not None:
            from ledger.part_tasks import SharedWriter, judged_parts

            waiting = SharedWriter(TRANSPORT, self._objects, shared[0], self._wrote())
            judged = self._joined(judged_parts(*shared, rules), waiting, forecast)
            if not (again := _unsettled(judged, held)):
                return self._stored(held, judged, waiting, forecast)
        else:
            with SegmentWriter(TRANSPORT, self._objects, self._wrote()) as writer:
                judged = self._judge(rules, writer, forecast)
                if not (again := _unsettled(judged, held)):
                    return self._stored(held, judged, writer, forecast)
        # A candidates digest stands for different sets in different parts: judged with the right one known.
        return self._prepare(replace(held, sets={**held.sets, **again}))

    def _stored(
        self, held: _Held, judged: Judged, writer: SegmentWriter | SharedWriter, forecast: Forecast
    ) -> Prepared:
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
            would = tuple(map(SegmentReceipt, writer.roots, writer.rows))
            receipt = replace(receipt, segments=would)
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

    def _judge(self, rules: Rules, writer: SegmentWriter, forecast: Forecast) -> Judged:
        """The set rules over each part, beside everything the ledger has that it speaks about."""
        judged = Judged()
        for table in self.rows.parts():
            admission, existing = rules.judge(table)
            judged.add(Judged.of(admission))
            if judged.findings.error(strict=self.options.strict) is not None:
                continue  # told whole, but nothing of it will be kept
            writer.add(admission.admitted)
            if not self.rows.divided:
                writer.flush()
            forecast.add(admission.admitted, existing)
        return judged

    def _joined(self, parts: Iterator[PartJudged], writer: SharedWriter, forecast: Forecast) -> Judged:
        """The same of parts that workers judge; what they admit is written when all are known."""
        judged, total, done = Judged(), self.rows.result.rows, 0
        self.progress("judge", done, total)
        for part in parts:
            made = part.whole()
            judged.add(made)
            if part.told is not None:
                writer.add(part.admitted, made.admitted)
                forecast.join(part.told)
            done += made.admitted + made.skipped + sum(table.num_rows for table in made.refused)
            self.progress("judge", done, total)
        self.progress("judge", total, total)
        return judged

    def _held(self, reading: Reading) -> _Held:
        """The ledger's segments, each as the log has it, and its candidate sets that the call names."""
        segments = reading.index.segments(kind=TRANSPORT.kind) if self.rows.result.rows else ()
        reading.confirm_files(segments)
        if not segments:
            return _Held(reading, (), {})
        from ledger.existing import candidate_sets, concerned, meeting

        aside = self.rows.spill is not None  # a call this large meets most of them
        for segment in segments if aside else meeting(segments, concerned(self.rows.result.table)):
            reading.confirm(segment.event)
        engine = self._shared[0].engine if self._shared is not None else INLINE
        sets = candidate_sets(reading.objects, segments, self.rows.candidate_digests(), engine)
        return _Held(reading, segments, sets)

    def _rules(self, held: _Held, revoked: Sequence[RevocationRow]) -> Rules:
        """What the parts are judged by."""
        return Rules(
            book=self.book,
            rows=replace(self.rows.result, table=self.rows.result.table.slice(0, 0)),
            files=tuple(source.name for source in self.rows.sources),
            strict=self.options.strict,
            part=self.rows.divided,
            objects=held.reading.objects,
            segments=tuple(held.segments),
            sets=held.sets,
            revoked=tuple(revoked),
        )

    @property
    def _objects(self) -> Store | None:
        """Where segments are stored, None where nothing is."""
        return None if self.options.dry_run else self.home.objects

    @property
    def _shared(self) -> tuple[Sharing, SharedRows] | None:
        """With whom parts are judged, and their rows; None where this process does it."""
        if self.options.shared is None or not self.rows.divided:
            return None
        from ledger.read_tasks import SharedRows

        return (self.options.shared, self.rows.spill) if isinstance(self.rows.spill, SharedRows) else None

    def _wrote(self) -> Callable[[int], None]:
        total, done = self.rows.result.rows, 0
        self.progress("write", done, total)

        def wrote(rows: int) -> None:
            nonlocal done
            done += rows
            self.progress("write", done, total)

        return wrote

    def _receipt(self, judged: Judged, sides: pa.Table, refused: pa.Table, before: int) -> Receipt:
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


def _unsettled(judged: Judged, held: _Held) -> dict[str, str]:
    """What candidates digests stand for that stand for several sets, so far as the ledger does not say."""
    return settled(pa.concat_tables(judged.bindings), held.sets) if judged.bindings else {}
