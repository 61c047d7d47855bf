"""What one ingest did: the numbers a person is told and a program reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from contracts.errors import ContractError
from contracts.findings import Findings
from contracts.reporting import to_json
from ledger.event_types import Source


@dataclass(frozen=True)
class SegmentReceipt:
    """A segment that was written.

    One that a dry run would write has no `event`, and no `file`, whose digest is that of bytes nobody made.
    """

    root: str
    rows: int
    file: str | None = None
    event: int | None = None


@dataclass(frozen=True)
class RefusalReceipt:
    """Where the refused sides of the call are kept: names of objects below the home's `objects`."""

    sides: int
    rows: int
    rows_file: str
    index_file: str
    event: int


@dataclass(frozen=True)
class AttestationReceipt:
    """An attestation that was matched and logged beside the files."""

    acquisition: str
    statement: str
    event: int


@dataclass(frozen=True)
class Receipt:
    """The outcome of one call.

    `rows` were read, `admitted` became entries, `skipped` were entries already. `refused_sides` with
    `refused_rows` were refused, `refused_before` of them in an earlier call with the same rows, so that
    only the others are in `refusal`. `head` is the size and root of the log afterwards, None when nothing
    was to be logged. `sides` are the refused sides (`contracts.refusals.SIDES`). `hint` is what to do about
    findings, `next_step` the command that goes on from here.
    """

    kind: str
    dry_run: bool
    rows: int
    admitted: int
    skipped: int
    refused_sides: int
    refused_rows: int
    refused_before: int
    segments: tuple[SegmentReceipt, ...]
    refusal: RefusalReceipt | None
    head: tuple[int, str] | None
    findings: Findings
    sides: pa.Table | None
    sources: tuple[Source, ...]
    ignored: tuple[str, ...] = ()
    missing_digests: Mapping[str, tuple[str, ...]] | None = None
    warnings: tuple[str, ...] = ()
    hint: str | None = None
    attestations: tuple[AttestationReceipt, ...] = ()
    next_step: str | None = None

    @property
    def exit_code(self) -> int:
        """0 when something was admitted or was there already, 1 when everything was refused."""
        return 0 if self.admitted or self.skipped or not self.refused_sides else ContractError.exit_code

    def as_json(self) -> dict[str, object]:
        """The receipt as one JSON object with a stable set of keys."""
        return {
            "kind": self.kind,
            "dry_run": self.dry_run,
            "rows": self.rows,
            "admitted": self.admitted,
            "skipped": self.skipped,
            "refused": {
                "sides": self.refused_sides,
                "rows": self.refused_rows,
                "sides_refused_before": self.refused_before,
            },
            "segments": [dict(vars(segment)) for segment in self.segments],
            "refusal": None if self.refusal is None else dict(vars(self.refusal)),
            "head": None if self.head is None else {"size": self.head[0], "root": self.head[1]},
            "sources": [dict(vars(source)) for source in self.sources],
            "ignored_columns": list(self.ignored),
            "missing_digests": {name: list(files) for name, files in (self.missing_digests or {}).items()},
            "attestations": [dict(vars(each)) for each in self.attestations],
            "findings": to_json(self.findings),
            "warnings": list(self.warnings),
            "hint": self.hint,
            "next": self.next_step,
        }


class RefusedCallError(ContractError):
    """The contract refuses the whole call; nothing was written. `receipt` has every finding."""

    def __init__(self, error: ContractError, receipt: Receipt) -> None:
        super().__init__(
            error.what, code=error.code, expected=error.expected, got=error.got, where=error.where,
            next_step=error.next_step or receipt.hint,
        )  # fmt: skip
        self.receipt = receipt

    def as_dict(self) -> Mapping[str, str | int]:
        """As every error, with the parts of the finding that it tells."""
        first = next((f for f in self.receipt.findings.examples if f.code == self.code), None)
        parts = dict(super().as_dict())
        if first is not None:
            where = first.file
            if where is not None and first.rows:
                where += f" row {first.rows[0]}"
            told = {"expected": first.wanted, "got": first.got, "where": where}
            parts = {**{name: text for name, text in told.items() if text is not None}, **parts}
        return parts
