"""Whether a logged audit still stands: signed by who may, not taken back, and none of its inputs either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contracts.errors import UsageError, VerificationError
from ledger import envelope, statement, tree
from ledger.audit_scope import design_of, head_size
from ledger.event_types import AuditEvent
from ledger.identify import identify
from ledger.index_rows import PlanRow, RecordRow
from ledger.object_names import record_name
from ledger.plans import find
from ledger.reading import Reading
from ledger.records import REVOCABLE
from ledger.revoked_since import revoked_since
from ledger.show import Record, read_record
from ledger.verify_records import checked_payload


@dataclass(frozen=True)
class Standing:
    """An audit's record, checked against the log, and every reason why nothing may rest on it any more.

    `at` is the size of the head it was made at; `plan` is the plan it followed, None where it followed none.
    """

    record: Record
    at: int
    plan: PlanRow | None
    reasons: tuple[str, ...]

    @property
    def result(self) -> Mapping[str, Any]:
        """The audit's result."""
        found: Mapping[str, Any] = self.record.statement.predicate["result"]  # type: ignore[assignment]
        return found


def named(reading: Reading, text: str) -> RecordRow:
    """The audit that an id, or the newest one that stands which followed a plan of that name; UsageError."""
    try:
        plan = find(reading.index.plans(reading.size), text)
    except UsageError:
        return audit_row(reading, text)
    followed = [row for row in reading.index.records(reading.size) if _follows(reading, row, plan)]
    revoked = {r.target_id for r in reading.index.revocations(reading.size) if r.target_kind in REVOCABLE}
    standing = [row for row in followed if row.record not in revoked]
    if not followed:
        raise UsageError(
            "no audit followed that plan yet", code="no-audit", where=f"plan {plan.id}",
            next_step=f"run `ledger audit --plan {plan.id}`",
        )  # fmt: skip
    return (standing or followed)[-1]


def audit_row(reading: Reading, text: str) -> RecordRow:
    """The audit that a record's digest or an event number means; UsageError when it means something else."""
    found = identify(reading.index, text, reading.size)
    if not isinstance(found, RecordRow):
        found = next((row for row in reading.index.records(reading.size) if row.event == found.event), found)
    if not isinstance(found, RecordRow):
        raise UsageError("not an audit", code="not-an-audit", got=text[:80], next_step="see `ledger log`")
    return found


def standing(reading: Reading, row: RecordRow) -> Standing:
    """How an audit stands at the head that is read; VerificationError when it is not what was logged."""
    audit = reading.confirm(row.event)
    assert isinstance(audit, AuditEvent), "a record's event is an audit"
    data = reading.objects.read_checked(record_name(row.record), limit=envelope.MAX_ENVELOPE)
    auditors = reading.head.trust.before(row.event).auditors
    stated = statement.parse(checked_payload(data, audit, auditors))
    record = Record(row, stated, "", True)
    at = head_size(stated)
    root = stated.subjects[0].digest.get("sha256")
    if not 1 <= at <= row.event or _root(reading, at) != root:
        raise VerificationError("the audit was made at a head this log never had", where=row.record)
    digest = design_of(record).get("plan")
    plan = next((p for p in reading.index.plans(reading.size) if p.digest == digest), None)
    return Standing(record, at, plan, tuple(_reasons(reading, record)))


def _reasons(reading: Reading, record: Record) -> list[str]:
    index, size = reading.index, reading.size
    own = [
        r for r in index.revocations(size) if r.target_kind in REVOCABLE and r.target_id == record.row.record
    ]
    gone = [*own, *revoked_since(record.statement, index, size)]
    for row in gone:
        reading.confirm(row.event)
    return [
        f"{row.target_kind} {row.target_id[:23]} was revoked in event {row.event}: {row.reason}"
        for row in gone
    ]


def _follows(reading: Reading, row: RecordRow, plan: PlanRow) -> bool:
    return design_of(read_record(reading, row)).get("plan") == plan.digest


def _root(reading: Reading, size: int) -> str:
    return tree.root(reading.head.leaves[:size]).hex()
