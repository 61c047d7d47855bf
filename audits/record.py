"""An audit's result as the statement that is signed: subjects, predicate, canonical bytes.

Generic over audit kinds. The predicate is {audit, schema, result, environment}. `result` is a function
of the entries in scope and the design alone: no time, path, version, channel name or head stands in it,
so its canonical bytes are the same whenever it is computed again. `environment` says where and with
what it was computed and is never compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from audits import limits
from audits.arms import called
from audits.design import Design
from audits.faces import Faces
from audits.layout_balance import BALANCED
from audits.statistics.estimate import Estimate
from contracts.canonical import canonical
from contracts.channel import Channel
from contracts.errors import CannotAnswerError
from ledger.snapshot import Arm, Level, ProvenanceCount, Scope, SegmentRow, Selection, Snapshot
from ledger.statement import AUDIT, Statement, Subject

PARTS = ("design", "flow", "provenance", "estimates", "tables", "verdicts", "limits")


@dataclass(frozen=True)
class Head:
    """The tree head an audit read at."""

    origin: str
    size: int
    root: str  # in text form, `sha256:` and 64 hex digits


@dataclass(frozen=True)
class SegmentSubject:
    """A segment an audit read: BLAKE3 of its file and Merkle root of its entries, as hex digits."""

    file: str
    root: str

    @classmethod
    def of(cls, row: SegmentRow) -> SegmentSubject:
        """The subject of a segment of the log."""
        return cls(row.file.removeprefix("blake3:"), row.root.removeprefix("sha256:"))

    @property
    def name(self) -> str:
        """Named as in entry ids: by the first digits of the entries root."""
        return f"segment:{self.root[:16]}"


@dataclass(frozen=True)
class AuditResult:
    """What an audit concluded, with what it rests on.

    `result` has the seven PARTS. `channels` maps each role to its channel. `shortfall` is set when the
    entries cannot answer: the result then stands with its reasons, and the caller ends with exit 5.
    """

    audit: str
    schema: str
    result: Mapping[str, Any]
    head: Head
    segments: tuple[SegmentSubject, ...]
    channels: Mapping[str, Channel]
    shortfall: CannotAnswerError | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if set(self.result) != set(PARTS):
            raise AssertionError(f"a result has the parts {PARTS}")

    @property
    def names(self) -> dict[str, str]:
        """What to call each arm: its channel, with its view source where that is not its own."""
        arms = self.result["design"]["arms"]
        return {arm["role"]: called(Arm(self.channels[arm["role"]], arm["view_source"])) for arm in arms}

    @property
    def result_bytes(self) -> bytes:
        """The canonical bytes that a re-run has to give again."""
        return canonical(self.result)


def schema(audit: str) -> str:
    """The id of the shape of an audit's result."""
    return f"ledger.audit.{audit}.v1"


def audit_result(
    snapshot: Snapshot,
    design: Design,
    selection: Selection,
    faces: Faces,
    *,
    estimates: Mapping[str, Estimate],
    tables: Mapping[str, Any],
    verdicts: Mapping[str, Any],
    said: Sequence[limits.Limit],
    roles: Sequence[str] | None = None,
    shortfall: CannotAnswerError | None = None,
) -> AuditResult:
    """What a transport-family audit concluded from the faces of a selection that was gone through.

    `roles` names the arms of the selection where they are not those of the design. `shortfall` is, unless
    given, that of the flow.
    """
    names = design.roles if roles is None else tuple(roles)
    result = {
        "design": design.as_json(),
        "flow": faces.flow.as_json(names),
        "provenance": provenance(design.scope, selection.provenance),
        "estimates": {
            name: estimate_fields(estimate, primary=name == design.primary)
            for name, estimate in estimates.items()
        },
        "tables": dict(tables),
        "verdicts": {**verdicts, "layout_balance": faces.balance.as_json()},
        "limits": limits.as_json([*said, *_balance(faces)]),
    }
    return AuditResult(
        audit=design.audit,
        schema=schema(design.audit),
        result=result,
        head=Head(snapshot.origin, snapshot.size, snapshot.root),
        segments=tuple(SegmentSubject.of(row) for row in selection.used_segments),
        channels={role: arm.channel for role, arm in zip(design.roles, design.scope.arms, strict=True)},
        shortfall=faces.flow.shortfall if shortfall is None else shortfall,
    )


def _balance(faces: Faces) -> list[limits.Limit]:
    """What has to be said of the layouts; nothing of balanced ones, or where no transition has any."""
    status = faces.balance.status
    return [limits.unbalanced(status)] if len(faces) and status != BALANCED else []


def statement(
    audit: AuditResult,
    *,
    versions: Mapping[str, str],
    time: str,
    links: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
) -> Statement:
    """The statement of an audit, made with these versions of software at this time (RFC 3339).

    `links` names other records that a reader should see beside this one, by audit and role.

    Subjects: the tree head as `<origin>@<size>` with its root under sha256, then every segment read,
    with the BLAKE3 of its file and the Merkle root of its entries under sha256.
    """
    head = audit.head
    subjects = (
        Subject(f"{head.origin}@{head.size}", {"sha256": head.root.removeprefix("sha256:")}),
        *(Subject(s.name, {"blake3": s.file, "sha256": s.root}) for s in audit.segments),
    )
    environment = {
        "head": {"origin": head.origin, "size": head.size, "root": head.root},
        "channels": {
            role: {"name": c.name, "version": c.version, "fingerprint": c.fingerprint}
            for role, c in audit.channels.items()
        },
        "versions": dict(versions),
        "time": time,
        **(links or {}),
    }
    predicate = {
        "audit": audit.audit,
        "schema": audit.schema,
        "result": audit.result,
        "environment": environment,
    }
    return Statement(subjects, AUDIT, predicate)


def estimate_fields(estimate: Estimate, *, primary: bool) -> dict[str, Any]:
    """An estimate as a record holds it, with its role."""
    return estimate.as_dict() | {"role": "primary" if primary else "secondary"}


def provenance(scope: Scope, counted: ProvenanceCount) -> dict[str, Any]:
    """Which entries entered and which rule kept the others out; what no digest can show is said too."""
    claims = [limits.GOLD_ISOLATION]
    if any(arm.channel.hosted for arm in scope.arms):
        claims.append(limits.HOSTED_WEIGHTS)
    if scope.require is Level.DECLARED:
        claims.append(limits.UNDIGESTED)
    if scope.require is not Level.ATTESTED:
        claims.append(limits.UNATTESTED)
    return {
        "level": scope.require.value,
        "entries_in": counted.entries_in,
        "entries_kept": counted.entries_kept,
        "entries_out": dict(counted.entries_out),
        "transitions_touched": dict(counted.transitions_out),
        "entries_by_level": {level.value: count for level, count in counted.levels.items()},
        "entries_without_digest": dict(counted.absent),
        "refused_sides_revoked": counted.refused_sides_revoked,
        "non_claims": limits.as_json(claims),
    }
