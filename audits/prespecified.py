"""An audit that follows a plan: what was declared, whether before the data, and what is post hoc.

A plan counts as declared before the data when its event precedes the first segment the audit read; the log
settles that, and no time in it does. Otherwise the record says by how many events it came late.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from audits import limits, plan
from audits.design import Design
from audits.plan import Plan
from audits.pool import POST_HOC as POST_HOC_POOL
from audits.record import AuditResult
from audits.run_design import Progress, run_design
from contracts.errors import MalformedError, TamperError, UsageError
from ledger.snapshot import PlanRow, Snapshot

KEY = "prespecification"
POST_HOC = "post_hoc"
EQUAL_TARGET = "@equal-target"
DECLARED_AHEAD = frozenset({limits.POST_HOC_WEIGHTS.id, POST_HOC_POOL.id})


def run(snapshot: Snapshot, row: PlanRow, *, progress: Progress | None = None) -> AuditResult:
    """Run exactly what a plan of this snapshot declares."""
    declared = plan.parse(row.id, row.plan, snapshot.book)
    if declared is None:
        raise UsageError("the plan is of another version of this program", where=f"plan {row.id}")
    return follow(run_design(snapshot, declared.design, progress), snapshot, row, declared)


def again(snapshot: Snapshot, design: Mapping[str, Any]) -> AuditResult | None:
    """The audit of a recorded design that names its plan; None where this program has another method.

    TamperError when the log had no such plan, or another design than it declared was run.
    """
    digest = design.get("plan")
    row = next((found for found in snapshot.plans if found.digest == digest), None)
    if row is None:
        raise TamperError("the record names a plan that the log does not have", kind="record", got=digest)
    declared = plan.parse(row.id, row.plan, snapshot.book)
    if declared is None:
        return None
    if {**declared.design.as_json(), "plan": digest} != dict(design):
        raise TamperError(
            "the record has another design than its plan", kind="record", where=f"plan {row.id}"
        )
    return follow(run_design(snapshot, declared.design), snapshot, row, declared)


def follow(audit: AuditResult, snapshot: Snapshot, row: PlanRow, declared: Plan) -> AuditResult:
    """The result of the plan's design, with what the plan says of it."""
    result = audit.result
    read = {(segment.file, segment.root) for segment in audit.segments}
    used = [s.event for s in snapshot.segments if (s.file[7:], s.root[7:]) in read]
    first = min(used, default=None)
    ahead = None if first is None else row.event < first
    estimates = {
        name: fields if declared.names(name) else {**fields, "role": POST_HOC}
        for name, fields in result["estimates"].items()
    }
    said: dict[str, Any] = {
        "plan": row.digest,
        "name": row.id,
        "event": row.event,
        "first_entry_event": first,
        "prespecified": ahead,
        "late_by": None if first is None or ahead else row.event - first,
        POST_HOC: sorted(name for name in estimates if not declared.names(name)),
        "unanswered": _unanswered(declared, estimates),
    }
    weights = bool(ahead) and _weighted(declared)
    verdicts = dict(result["verdicts"])
    if "equivalence" in verdicts:
        verdicts["equivalence"] = {**verdicts["equivalence"], "prespecified": bool(ahead)}
    return replace(
        audit,
        result={
            **result,
            "design": {**result["design"], "plan": row.digest},
            "provenance": {**result["provenance"], KEY: {**said, "weights": weights}},
            "estimates": estimates,
            "verdicts": verdicts,
            "limits": [
                limit for limit in result["limits"] if not (weights and limit["id"] in DECLARED_AHEAD)
            ],
        },
    )


def of(result: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a result says of its plan; None where it followed none."""
    found = result.get("provenance", {}).get(KEY)
    if found is not None and not isinstance(found, Mapping):
        raise MalformedError("prespecification of a record is not an object")
    return found


def clause(result: Mapping[str, Any]) -> str:
    """What goes before the verdict of an audit that followed a plan."""
    said = of(result)
    if said is None:
        return ""
    name = f"By plan {said['name']}"
    if said["prespecified"]:
        ahead = said["first_entry_event"] - said["event"]
        return f"{name}, declared {ahead} event{'s' if ahead > 1 else ''} before the first entry: "
    if said["late_by"] is not None:
        late = said["late_by"]
        return f"{name}, which came {late} event{'s' if late > 1 else ''} late and so is post hoc: "
    return f"{name}: "


def _weighted(declared: Plan) -> bool:
    """Whether the plan says anything about how targets or components weigh."""
    design = declared.design
    if not isinstance(design, Design):
        return False
    return (
        design.quoted == "equal-target"
        or design.target_types is not None
        or "weights" in design.options
        or any(name.endswith(EQUAL_TARGET) for name in declared.estimands)
    )


def _unanswered(declared: Plan, estimates: Mapping[str, Any]) -> list[str]:
    """The declared ids that no estimate of the result has."""
    return [
        name
        for name in declared.estimands
        if not any(
            found.startswith(name[:-1]) if name.endswith("*") else found == name for found in estimates
        )
    ]
