"""Any design of this program, run: the module that each kind of audit has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from audits.design import Design
from audits.jev_design import JevDesign
from audits.record import AuditResult
from ledger.snapshot import Snapshot

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
Progress = Callable[[int, int], None]


def run_design(
    snapshot: Snapshot, design: Design | JevDesign, progress: Progress | None = None
) -> AuditResult:
    """What the audit of a design concludes at the snapshot's head."""
    if isinstance(design, JevDesign):
        from audits.jev import run

        return run(snapshot, design, progress=progress)
    module = import_module(MODULES[design.audit])
    found: AuditResult = module.run(snapshot, design, progress=progress).audit
    return found
