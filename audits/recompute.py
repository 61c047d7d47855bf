"""A stored record computed again: the same design on the same entries has to give the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from audits import jev, jev_design
from audits.design import Design, parse
from audits.record import AuditResult
from contracts.errors import MalformedError, TamperError
from ledger.snapshot import Snapshot
from ledger.statement import AUDIT, Statement

# The module of each kind of audit; its `run(snapshot, design)` gives what holds the record's content.
MODULES: Mapping[str, str] = {
    "transport": "audits.transport",
    "contrast": "audits.transport",
    "face": "audits.face",
    "cube": "audits.cube",
    "bridge": "audits.bridge",
    "repeatability": "audits.repeatability",
    "pool": "audits.pool",
    "mixture": "audits.mixture",
    "redundancy": "audits.redundancy_audit",
}


def _run(module: str, snapshot: Snapshot, design: Design) -> AuditResult:
    found: AuditResult = import_module(module).run(snapshot, design).audit
    return found


def recompute(snapshot: Snapshot, statement: Statement) -> bytes | None:
    """The canonical bytes of the result that a statement's design has at the statement's head.

    `snapshot` is the ledger at the size of the head that the statement names. None where the audit, or
    its method, is not one this program knows: a later version made it. MalformedError when the statement
    is no audit at all; TamperError when it was made at another head.
    """
    predicate = statement.predicate
    module, result = MODULES.get(str(predicate.get("audit"))), predicate.get("result")
    if statement.predicate_type != AUDIT or not isinstance(result, Mapping):
        raise MalformedError("not the statement of an audit", expected=AUDIT)
    head = statement.subjects[0]
    wanted = (f"{snapshot.origin}@{snapshot.size}", snapshot.root.removeprefix("sha256:"))
    if (head.name, head.digest.get("sha256")) != wanted:
        raise TamperError(
            "the record was made at another head", kind="record", expected=wanted[0], got=head.name[:120]
        )
    if predicate.get("audit") == jev_design.AUDIT:
        asked = jev_design.parse(result.get("design"), snapshot.book)
        return None if asked is None else jev.run(snapshot, asked).result_bytes
    if module is None:
        return None
    design = parse(result.get("design"), snapshot.book)
    return None if design is None else _run(module, snapshot, design).result_bytes
