"""One part of a call judged beside what the ledger has, and what the parts come to together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from contracts.admission import Admission, judge
from contracts.channel import ChannelBook
from contracts.findings import Findings
from contracts.rows import RowResult
from ledger import ingest_notes, ingest_store
from ledger.index_rows import RevocationRow, SegmentRow
from ledger.objects import Objects

CONFLICT = "conflict"


@dataclass
class Judged:
    """What the set rules made of some parts of a call, all but the rows that they admit."""

    findings: Findings = field(default_factory=Findings)
    admitted: int = 0
    skipped: int = 0
    sides: list[pa.Table] = field(default_factory=list)
    refused: list[pa.Table] = field(default_factory=list)
    bindings: list[pa.Table] = field(default_factory=list)
    acquisitions: set[str] = field(default_factory=set)
    brought: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, admission: Admission) -> Judged:
        """One part."""
        return cls(
            admission.findings,
            admission.admitted.num_rows,
            admission.skipped,
            [admission.sides],
            [admission.refused],
            [] if admission.bindings is None else [admission.bindings],
            ingest_store.acquisitions([admission.admitted, admission.refused]),
            {fingerprint: set(ids) for fingerprint, ids in ingest_notes.brought(admission.admitted).items()},
        )

    def add(self, other: Judged) -> None:
        """Takes over the next parts."""
        self.findings.merge(other.findings)
        self.admitted += other.admitted
        self.skipped += other.skipped
        for sides, refused in zip(other.sides, other.refused, strict=True):
            if sides.num_rows or not self.sides:
                self.sides.append(sides)
                self.refused.append(refused)
        self.bindings += other.bindings
        self.acquisitions |= other.acquisitions
        for fingerprint, ids in other.brought.items():
            self.brought.setdefault(fingerprint, set()).update(ids)


@dataclass(frozen=True)
class Rules:
    """What the parts of a call are judged by; it can be pickled.

    `rows` says what the row level found, without rows; `files` names the files of the call. `segments` are
    those of the ledger, and `sets` says which `candidate_set_digest` a candidates digest stands for. `part`
    is whether there are several parts.
    """

    book: ChannelBook
    rows: RowResult
    files: tuple[str, ...]
    strict: bool
    part: bool
    objects: Objects
    segments: tuple[SegmentRow, ...]
    sets: Mapping[str, str]
    revoked: tuple[RevocationRow, ...]

    def judge(self, table: pa.Table) -> tuple[Admission, pa.Table | None]:
        """What becomes of the rows of a part, and the entries that they were judged beside."""
        if not (self.segments and table.num_rows):
            return self._judged(table, None), None
        from ledger.existing import concerned, entries_of

        trajectories = concerned(table)
        existing = entries_of(self.objects, self.segments, trajectories)
        admission = self._judged(table, existing)
        if CONFLICT in admission.findings.by_code:
            # Only a contradiction asks which file and row an entry came from; only then they are looked up.
            whence = entries_of(self.objects, self.segments, trajectories, sources=True)
            admission = self._judged(table, whence)
        return admission, existing

    def forecast(self) -> ingest_notes.Forecast:
        """What audits will leave out of entries, of none yet."""
        return ingest_notes.Forecast(self.book, self.revoked)

    def _judged(self, table: pa.Table, existing: pa.Table | None) -> Admission:
        return judge(
            replace(self.rows, table=table), self.book, existing, self.strict,
            files=self.files, known_sets=self.sets, part=self.part,
        )  # fmt: skip
