"""Predictions files to entries: the same walk as for scores, with whole groups in the place of sides.

The entries and the scorer-only labels of a call become two kinds of segments, so that what an evaluator
saw and what only the scorer may know never stand in one file. A call is always strict.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from contracts.channel import ChannelBook
from contracts.findings import Findings
from contracts.jev_admission import JevAdmission, Sorted, judge_pairs
from contracts.jev_rows import Predictions, gather, judge_rows
from contracts.labels import Labels, is_text, joined, split
from contracts.schema import JEV, JEV_POSITIVES, SegmentSchema
from ledger import heads, segments
from ledger.event_types import AcquisitionEvent, Event, Source
from ledger.home import Home
from ledger.index import Index
from ledger.ingest import Options, Prepared, Progress
from ledger.ingest_extras import Brought
from ledger.ingest_store import segment_event
from ledger.keys import SigningKey
from ledger.reading import Reading
from ledger.receipt import Receipt, RefusedCallError, SegmentReceipt
from ledger.segment_reader import SegmentReader
from ledger.source_predictions import read
from ledger.staging import Staged

CONTRACT = "ledger.jev-contract.v1"


@dataclass(frozen=True)
class PredictionsCall:
    """The pairs of a call, judged value by value, with what is needed to judge them again as groups."""

    home: Home
    predictions: Predictions
    findings: Findings
    sources: tuple[Source, ...]
    options: Options
    progress: Progress

    def prepare(self, key: SigningKey | None) -> Prepared:
        """See `ledger.ingest.Call`; any finding refuses the call."""
        with Index.open(self.home) as index:
            head = heads.check(self.home, index, key=key.public if key else None, trust_first=key is None)
            admission = self._judge(Reading(self.home, index, self.home.objects, head))
            known = {row.id for row in index.acquisitions()}
        receipt = self._receipt(admission)
        if (error := admission.findings.error(strict=True)) is not None:
            raise RefusedCallError(error, receipt)
        kinds = ((JEV, admission.entry_rows), (JEV_POSITIVES, admission.positive_rows))
        if self.options.dry_run:
            would = [
                SegmentReceipt(*found)
                for schema, rows in kinds
                for start in _starts(rows)
                for found in segments.commitments(_part(rows, start), schema, in_order=True)
            ]
            return head.row.size, (), replace(receipt, segments=tuple(would))
        receipt = replace(receipt, head=(head.row.size, head.row.root))
        if not len(admission.entry_rows):
            return head.row.size, (), receipt
        acquired = sorted(self._acquisitions(admission.entry_rows) - known, key=str.encode)
        made: list[Event] = [AcquisitionEvent(name, JEV.kind) for name in acquired]
        for schema, rows in kinds:
            made += self._store(rows, schema)
        return head.row.size, tuple(made), receipt

    def brought(self, acquisition: str) -> Brought:
        """See `ledger.ingest.Call`; of predictions the files alone are compared."""
        named = self.predictions.text["acquisition_id"]
        wanted = np.array([value == acquisition for value in named.values.to_pylist()], bool)
        used = np.unique(self.predictions.file[named.rows_of(wanted)]).tolist()
        return Brought(frozenset(self.sources[i].digest for i in used), None, None)

    def _judge(self, reading: Reading) -> JevAdmission:
        """The group rules, beside what the ledger has of the same acquisitions."""
        acquisitions = self.predictions.text["acquisition_id"].values.to_pylist()
        return judge_pairs(
            self.predictions,
            self.findings,
            existing=_stored(reading, JEV, acquisitions),
            existing_positives=_stored(reading, JEV_POSITIVES, acquisitions),
        )

    def _acquisitions(self, rows: Sorted) -> set[str]:
        """The acquisitions of some entries."""
        named = self.predictions.text["acquisition_id"]
        used = np.zeros(len(named.values), np.bool_)
        used[named.codes[self.predictions.cell_pair[rows.places]]] = True
        return set(named.values.filter(pa.array(used)).to_pylist())

    def _store(self, rows: Sorted, schema: SegmentSchema) -> Iterator[Event]:
        done = 0

        def wrote(count: int) -> None:
            nonlocal done
            done += count
            self.progress("write", done, len(rows))

        for start in _starts(rows):  # no name holds a part while the next one is made
            for written in segments.write(
                _part(rows, start), schema, self.home.objects, in_order=True, progress=wrote
            ):
                yield segment_event(written, schema.kind, CONTRACT, self.sources)

    def _receipt(self, admission: JevAdmission) -> Receipt:
        names = self.predictions.text["channel"]
        bare = [
            f.name for f, rows in zip(self.predictions.files, self._rows_without(names), strict=True) if rows
        ]
        return Receipt(
            kind=JEV.kind,
            dry_run=self.options.dry_run,
            rows=len(self.predictions),
            admitted=len(admission.entry_rows),
            skipped=admission.skipped,
            refused_sides=0,
            refused_rows=0,
            refused_before=0,
            segments=(),
            refusal=None,
            head=None,
            findings=admission.findings,
            sides=None,
            sources=self.sources,
            ignored=tuple(dict.fromkeys(name for f in self.predictions.files for name in f.ignored)),
            missing_digests={"channel": tuple(bare)} if bare else {},
            next_step=f"ledger audit jev{'' if self._bound() else ' --require declared'}",
        )

    def _bound(self) -> bool:
        """Whether every pair names its channel, and every probability its request."""
        labels = (self.predictions.text["channel"], self.predictions.request_hash)
        return all(bool(each.present.all()) for each in labels)

    def _rows_without(self, labels: Labels) -> Iterator[int]:
        """For each file, how many of its pairs have no label."""
        for number in range(len(self.predictions.files)):
            yield int((~labels.present & (self.predictions.file == number)).sum())


def predictions_call(
    home: Home, staged: Sequence[Staged], book: ChannelBook, options: Options, progress: Progress
) -> PredictionsCall:
    """Decodes the files of a call and judges their values."""
    files = []
    for number, item in enumerate(staged):
        progress("read", number, len(staged))
        source = io.BufferedReader(pa.BufferReader(item.data))
        files.append(read(source, item.name, item.digest, options.labels))
        item.let_go()
    progress("read", len(staged), len(staged))
    sources = tuple(Source(f.name.rpartition("/")[2], f.digest, f.pairs.num_rows) for f in files)
    gathered = gather(files, channel=options.channel, acquisition=options.acquisition)
    del files  # a million pairs are held once
    predictions, findings = judge_rows(gathered, book)
    return PredictionsCall(home, predictions, findings, sources, options, progress)


def _stored(reading: Reading, schema: SegmentSchema, acquisitions: Sequence[str]) -> pa.Table | None:
    """What the ledger has of one kind and of some acquisitions, None when there is nothing."""
    parts = []
    for segment in (
        reading.index.segments(kind=schema.kind, acquisitions=acquisitions) if acquisitions else ()
    ):
        reading.confirm(segment.event)
        with SegmentReader.whole(reading.objects, segment) as reader:
            parts.append(reader.read())
    return pa.concat_tables(parts).unify_dictionaries() if parts else None


def _starts(rows: Sorted) -> range:
    """Where segments begin; only one of them is made into a table at any time."""
    return range(0, len(rows), segments.SEGMENT_ROWS)


def _part(rows: Sorted, start: int) -> pa.Table:
    part = rows.table(start, start + segments.SEGMENT_ROWS)
    return pa.table({name: _grouped(part.column(name)) for name in part.column_names})


def _grouped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Coded text with a dictionary for each row group, so that no group's writing has to look through all."""
    if not (is_text(column.type) and pa.types.is_dictionary(column.type)):
        return column
    chunks = []
    for start in range(0, max(len(column), 1), segments.GROUP_ROWS):
        group = column.slice(start, segments.GROUP_ROWS).combine_chunks()
        chunks.append(joined([split(group)], pa.string()).array)
    return pa.chunked_array(chunks)
