"""Does a view that adds nothing change nothing? Two views of one state against the redundancy benchmark.

A view made from inputs the evaluator already sees should leave the distribution of its answers, and how
well they tell stored successes apart, as they are. Each endpoint is a test of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from audits import limits, stored_success
from audits.arms import parse_arm
from audits.design import RESAMPLES, SEED, Design, scope_of
from audits.faces import Faces, assemble
from audits.flow import ENDPOINTS
from audits.record import audit_result
from audits.results import Audited
from audits.statistics import auc, vectors
from audits.statistics import redundancy as benchmark
from audits.statistics.cohort import Cohort, Progress
from audits.statistics.estimate import Estimate, Reason
from audits.statistics.moments import Mean
from audits.statistics.vectors import Vector
from audits.transport_tables import ROLES
from ledger.snapshot import Arm, Level, Snapshot

AUDIT = "redundancy"
PRIMARY = "shift.after"
DEPARTURE, NOT_DETECTED = "departure_detected", "not_detected"
DISTANCES = ("energy", "ks")
NO_SUPPORT = limits.Limit(
    "not-detected-is-no-support", "A departure that was not detected does not show that a view is redundant."
)
UNADJUSTED = limits.Limit(
    "tests-unadjusted", "Two distances at two endpoints are four tests; their p values are not adjusted."
)


def redundancy(
    snapshot: Snapshot,
    ref: str | Arm,
    alt: str | Arm,
    *,
    where: Mapping[str, Sequence[str]] | None = None,
    acquisitions: Sequence[tuple[str | None, str]] = (),
    require: Level = Level.BOUND,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    progress: Progress | None = None,
) -> Audited:
    """Audit the views of `ref` and `alt` (arms, or `CHANNEL[:SOURCE]`) against the redundancy benchmark."""
    named = {"--ref": ref, "--alt": alt}
    arms = [a if isinstance(a, Arm) else parse_arm(a, snapshot, option) for option, a in named.items()]
    design = Design(
        audit=AUDIT,
        roles=ROLES,
        scope=scope_of(arms, where=where, acquisitions=acquisitions, require=require),
        primary=PRIMARY,
        resamples=resamples,
        seed=seed,
    )
    return run(snapshot, design, progress=progress)


def run(snapshot: Snapshot, design: Design, *, progress: Progress | None = None) -> Audited:
    """Run a design, new or read back from a record."""
    selection = snapshot.select(design.scope)
    faces = assemble(selection)
    cohort = Cohort(faces.cluster, len(faces.trajectories), seed=design.seed, resamples=design.resamples)
    margins = _margins(faces) if len(faces) else {}
    shifts = {
        f"shift.{endpoint}": vectors.combine((1, alt), (-1, ref)) for endpoint, (ref, alt) in margins.items()
    }
    outcome = stored_success.paired(faces, cohort, *_gains(faces)) if len(faces) else None
    found = _estimates(shifts, outcome, cohort, progress)
    tests = {
        endpoint: benchmark.redundancy(cohort, *pair, progress=progress) for endpoint, pair in margins.items()
    }
    audit = audit_result(
        snapshot,
        design,
        selection,
        faces,
        estimates=found,
        tables={"redundancy": {endpoint: _table(test) for endpoint, test in tests.items()}}
        | ({} if outcome is None else {"auc": stored_success.table(outcome)}),
        verdicts={"redundancy": {endpoint: _verdicts(test) for endpoint, test in tests.items()}},
        said=[*limits.of_cohort(cohort.clusters), NO_SUPPORT, UNADJUSTED, *stored_success.notes(outcome)],
    )
    each = {
        f"margin.{role}.{endpoint}": vector
        for endpoint, pair in margins.items()
        for role, vector in zip(ROLES, pair, strict=True)
    }
    return Audited(audit, faces, each | shifts)


def _margins(faces: Faces) -> dict[str, tuple[Vector, Vector]]:
    """F of both views at each endpoint, averaged over layouts and acquisitions."""
    ref, alt = faces.margins
    return {
        endpoint: (vectors.corner(ref, place), vectors.corner(alt, place))
        for place, endpoint in enumerate(ENDPOINTS)
    }


def _gains(faces: Faces) -> tuple[Vector, Vector]:
    ref, alt = faces.margins
    return vectors.gain(ref), vectors.gain(alt)


def _estimates(
    shifts: Mapping[str, Vector], outcome: auc.Auc | None, cohort: Cohort, progress: Progress | None
) -> dict[str, Estimate]:
    if not shifts:
        none = Estimate(None, 0, 0, reason=Reason.EMPTY_COHORT)
        return {f"shift.{endpoint}": none for endpoint in ENDPOINTS}
    found = cohort.evaluate({name: Mean(shift) for name, shift in shifts.items()}, progress=progress)
    return found | stored_success.estimates(outcome)


def _table(test: benchmark.Redundancy) -> dict[str, Any]:
    """Both distances with their p; what is undefined is null with the reason."""
    made: dict[str, Any] = {
        name: None if (found := getattr(test, name)) is None else {"value": found.value, "p": found.p}
        for name in DISTANCES
    }
    made |= {"permutations": test.permutations, "alpha": benchmark.ALPHA}
    return made if test.reason is None else made | {"reason": test.reason.value}


def _verdicts(test: benchmark.Redundancy) -> dict[str, str | None]:
    found = {name: getattr(test, name) for name in DISTANCES}
    return {name: None if one is None else _said(one) for name, one in found.items()}


def _said(one: benchmark.Distance) -> str:
    return DEPARTURE if one.departure_detected else NOT_DETECTED
