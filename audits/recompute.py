"""A stored record computed again: the same design on the same entries has to give the same bytes."""

from __future__ import annotations

from collections.abc import Mapping

from audits import jev_design, prespecified
from audits.plan import read_design
from audits.run_design import MODULES, run_design
from contracts.errors import MalformedError, TamperError
from ledger.snapshot import Snapshot
from ledger.statement import AUDIT, Statement


def recompute(snapshot: Snapshot, statement: Statement) -> bytes | None:
    """The canonical bytes of the result that a statement's design has at the statement's head.

    `snapshot` is the ledger at the size of the head that the statement names. None where the audit, or
    its method, is not one this program knows: a later version made it. MalformedError when the statement
    is no audit at all; TamperError when it was made at another head.
    """
    predicate = statement.predicate
    audit, result = str(predicate.get("audit")), predicate.get("result")
    if statement.predicate_type != AUDIT or not isinstance(result, Mapping):
        raise MalformedError("not the statement of an audit", expected=AUDIT)
    head = statement.subjects[0]
    wanted = (f"{snapshot.origin}@{snapshot.size}", snapshot.root.removeprefix("sha256:"))
    if (head.name, head.digest.get("sha256")) != wanted:
        raise TamperError(
            "the record was made at another head", kind="record", expected=wanted[0], got=head.name[:120]
        )
    if audit != jev_design.AUDIT and audit not in MODULES:
        return None
    stated = result.get("design")
    if isinstance(stated, Mapping) and "plan" in stated:
        found = prespecified.again(snapshot, stated)
        return None if found is None else found.result_bytes
    design = read_design(audit, stated, snapshot.book)
    return None if design is None else run_design(snapshot, design).result_bytes
