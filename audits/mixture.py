"""Which verdicts of a ref/alt pair survive another mixture of targets?

The cohort's mixture of target types is an accident of what was collected. Gains and interaction are
estimated under cohort weights, equal weights and, if given, the user's, and for each type alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from audits import limits
from audits.arms import parse_arm
from audits.design import RESAMPLES, SEED, Design, scope_of
from audits.faces import Faces, assemble
from audits.record import audit_result
from audits.results import Audited
from audits.reweighting import Reweighted, every_mixture, reweight, survival
from audits.statistics import verdicts
from audits.statistics.cohort import Cohort, Progress
from audits.statistics.estimate import Estimate
from audits.statistics.vectors import Vector
from audits.target_types import target_types
from audits.transport_estimates import Pair
from audits.transport_tables import ROLES
from audits.weights import Weight, as_options, from_options, shares
from ledger.snapshot import Arm, Level, Snapshot

AUDIT = "mixture"
PRIMARY = "interaction"
WEIGHTS = "weights"


def mixture(
    snapshot: Snapshot,
    ref: str | Arm,
    alt: str | Arm,
    *,
    weights: Mapping[str, Weight] | None = None,
    target_types: Sequence[str] | None = None,
    where: Mapping[str, Sequence[str]] | None = None,
    acquisitions: Sequence[tuple[str | None, str]] = (),
    require: Level = Level.BOUND,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    progress: Progress | None = None,
) -> Audited:
    """Audit what reweighting the target types does to `alt` against `ref` (arms, or `CHANNEL[:SOURCE]`).

    `weights` by target type are brought to a sum of one; a type without one weighs nothing.
    """
    named = {"--ref": ref, "--alt": alt}
    arms = [a if isinstance(a, Arm) else parse_arm(a, snapshot, option) for option, a in named.items()]
    user = {} if weights is None else {WEIGHTS: as_options(dict(sorted(shares(weights).items())))}
    design = Design(
        audit=AUDIT,
        roles=ROLES,
        scope=scope_of(arms, where=where, acquisitions=acquisitions, require=require),
        primary=PRIMARY,
        resamples=resamples,
        seed=seed,
        target_types=None if target_types is None else tuple(sorted(target_types)),
        options=user,
    )
    return run(snapshot, design, progress=progress)


def run(snapshot: Snapshot, design: Design, *, progress: Progress | None = None) -> Audited:
    """Run a design, new or read back from a record."""
    weights = from_options(design.option(WEIGHTS, list)) if design.options else None
    selection = snapshot.select(design.scope)
    faces = assemble(selection)
    named = _vectors(faces)
    cohort = Cohort(faces.cluster, len(faces.trajectories), seed=design.seed, resamples=design.resamples)
    types = target_types(faces, design.target_types)
    user = None if weights is None else (target_types(faces, tuple(weights)), weights)
    found = reweight(named, cohort, types, user, progress)
    tables: dict[str, Any] = {"survival": survival(found, {"strict_mean_reversal": _reversal})}
    if cohort.rows:
        tables["targets"] = dict(types.table(cohort))
    if user is not None:
        tables["user_weights"] = _user(user[0].table(cohort) if cohort.rows else {}, user[1])
    audit = audit_result(
        snapshot,
        design,
        selection,
        faces,
        estimates=found.estimates,
        tables=tables,
        verdicts={
            "strict_mean_reversal": _reversals(found),
            "every_mixture": every_mixture(found, named, types),
            "prespecified": False,
        },
        said=[*limits.of_cohort(cohort.clusters), limits.POST_HOC_WEIGHTS],
    )
    return Audited(audit, faces, named)


def _vectors(faces: Faces) -> Mapping[str, Vector]:
    """Gains and interaction per transition; without a transition there are none to compute them from."""
    if len(faces):
        return Pair(faces).weighted
    return dict.fromkeys(("gain.ref", "gain.alt", PRIMARY), Vector(np.zeros(0, np.int64), 1))


def _reversal(found: Mapping[str, Estimate]) -> bool | None:
    """Whether both gains exclude 0 on opposite sides; None where a verdict is missing."""
    ref, alt = found["gain.ref"], found["gain.alt"]
    if ref.verdict is None or alt.verdict is None:
        return None
    return verdicts.strict_mean_reversal(ref, alt).supported


def _reversals(found: Reweighted) -> dict[str, bool | None]:
    return {weighting: _reversal(found.under(weighting)) for weighting in found.weightings}


def _user(table: Mapping[str, Any], weights: Mapping[str, Fraction]) -> dict[str, Any]:
    """The user's weights as shares, and how many transitions are of types without one."""
    return {
        "weights": {name: float(weight) for name, weight in weights.items()},
        "unweighted_transitions": table.get("unweighted"),
    }
