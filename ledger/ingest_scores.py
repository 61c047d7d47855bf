"""Files of scores to entries: canonical rows, whole sides, and refusals by name.

What the ledger has of the call's trajectories is looked up; rows that are entries already are skipped, sides
that are not whole are refused with their rows kept, the rest becomes segments.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from contracts.admission import Admission, judge
from contracts.channel import ChannelBook
from contracts.rows import RowResult, canonicalise
from contracts.schema import TRANSPORT
from contracts.source_table import SourceTable
from ledger import attested_rows, heads, ingest_notes
from ledger.event_types import Event, Source
from ledger.existing import candidate_sets, concerned, entries_of
from ledger.home import Home
from ledger.index import Index
from ledger.ingest import Options, Prepared, Progress
from ledger.ingest_extras import Brought
from ledger.ingest_store import NewRows, roots, store
from ledger.keys import SigningKey
from ledger.reading import Reading
from ledger.receipt import Receipt, RefusedCallError, SegmentReceipt
from ledger.refused_before import new_refusals

CONFLICT = "conflict"


@dataclass(frozen=True)
class ScoresCall:
    """The canonical rows of a call, with what is needed to judge them as a set, again if need be."""

    home: Home
    rows: RowResult
    book: ChannelBook
    sources: tuple[Source, ...]
    options: Options
    progress: Progress

    def prepare(self, key: SigningKey | None) -> Prepared:
        """See `ledger.ingest.Call`."""
        with Index.open(self.home) as index:
            head = heads.check(self.home, index, key=key.public if key else None, trust_first=key is None)
            admission, existing = self._judge(Reading(self.home, index, self.home.objects, head))
            revoked, held = index.revocations(), index.segments(kind=TRANSPORT.kind)
            known = {row.id for row in index.acquisitions()}
            recorded = index.refused_sides() if admission.sides.num_rows else ()
        size = head.row.size
        sides, refused = new_refusals(admission.sides, admission.refused, recorded)
        receipt = self._receipt(admission, admission.sides.num_rows - sides.num_rows)
        if (error := admission.error()) is not None:
            raise RefusedCallError(error, receipt)
        with ThreadPoolExecutor(1) as beside:  # the rules of audits take as long as the segments to write
            broken = beside.submit(ingest_notes.warnings, admission.admitted, existing, self.book, revoked)
            made: tuple[Event, ...] = ()
            if self.options.dry_run:
                planned = tuple(SegmentReceipt(root) for root in roots(admission.admitted))
                receipt = replace(receipt, segments=planned)
            else:
                new = NewRows(admission.admitted, refused, sides)
                made = store(self.home.objects, new, self.sources, known, self.progress) if new else ()
                receipt = replace(receipt, head=(size, head.row.root))
            warnings = broken.result()
        brought = ingest_notes.brought(admission.admitted, made)
        further = ingest_notes.further_acquisitions(brought, held, self.book, revoked)
        audit = ingest_notes.next_audit(brought, held, self.book)
        return size, made, replace(receipt, warnings=(*warnings, *further), next_step=audit)

    def brought(self, acquisition: str) -> Brought:
        """See `ledger.ingest_extras.Bringing`."""
        table = self.rows.table
        mine = table.filter(pc.equal(table["acquisition_id"].cast(pa.string()), acquisition))
        files = frozenset(self.sources[i].digest for i in mine["source_file"].unique().to_pylist())
        requests, responses = (
            attested_rows.of_table(mine, name) for name in ("request_hash", "response_hash")
        )
        return Brought(files, requests, responses)

    def _judge(self, reading: Reading) -> tuple[Admission, pa.Table | None]:
        """The set rules over the rows, beside everything the ledger has that they speak about."""
        rows, objects = self.rows.table, reading.objects
        held = reading.index.segments(kind=TRANSPORT.kind) if rows.num_rows else ()
        if not held:
            return self._admission(None, {}), None
        for segment in held:
            reading.confirm(segment.event)
        trajectories = concerned(rows)
        sets = candidate_sets(objects, held, rows)
        existing = entries_of(objects, held, trajectories)
        admission = self._admission(existing, sets)
        if CONFLICT in admission.findings.by_code:
            # Only a contradiction asks which file and row an entry came from; only then they are looked up.
            admission = self._admission(entries_of(objects, held, trajectories, sources=True), sets)
        return admission, existing

    def _admission(self, existing: pa.Table | None, sets: Mapping[str, str]) -> Admission:
        names = [source.name for source in self.sources]
        return judge(self.rows, self.book, existing, self.options.strict, files=names, known_sets=sets)

    def _receipt(self, admission: Admission, refused_before: int) -> Receipt:
        return Receipt(
            kind=TRANSPORT.kind,
            dry_run=self.options.dry_run,
            rows=self.rows.rows,
            admitted=0 if admission.refuses_call else admission.admitted.num_rows,
            skipped=admission.skipped,
            refused_sides=admission.sides.num_rows,
            refused_rows=admission.refused.num_rows,
            refused_before=refused_before,
            segments=(),
            refusal=None,
            head=None,
            findings=admission.findings,
            sides=admission.sides,
            sources=self.sources,
            ignored=self.rows.ignored,
            missing_digests=self.rows.missing_digests,
            hint=admission.hint,
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


def scores_call(
    home: Home, files: Sequence[SourceTable], book: ChannelBook, options: Options, progress: Progress
) -> ScoresCall:
    """Judges every row of the files alone; the call keeps canonical rows, not the files."""
    rows = canonicalise(files, book, default_channel=options.channel, default_acquisition=options.acquisition)
    sources = tuple(Source(Path(file.name).name, file.digest, file.table.num_rows) for file in files)
    return ScoresCall(home, rows, book, sources, options, progress)
