"""Does the same contrast hold for every evaluator? One reference/alternative pair per vertex.

The contrasts are computed on the transitions complete at every observed vertex, with one set of draws. Only
their directions can be compared: energies of different evaluators have no common unit, so differences,
ratios and pools of magnitudes across vertices are refused. Source: STATISTICS transport row 19.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from audits import limits
from audits.bridge_vertices import (
    VERTICES,
    Observed,
    Vertex,
    observe,
    parse_vertices,
    role,
    vertices_of,
)
from audits.design import RESAMPLES, SEED, Design, scope_of
from audits.faces import UNKNOWN, Faces, assemble
from audits.record import audit_result
from audits.results import Audited
from audits.statistics import auc, vectors, verdicts
from audits.statistics.cohort import Cohort, Progress
from audits.statistics.estimate import Estimate, Reason
from audits.statistics.moments import Mean
from audits.statistics.vectors import Vector
from contracts.errors import CannotAnswerError
from ledger.snapshot import Arm, Level, Snapshot

AUDIT = "bridge"
# No single estimate is primary: the claim is the conjunction over the vertices.
PRIMARY = "bridge.all_interactions_negative"
DIRECTION_ONLY = "direction_only"
PARTS = ("gain.ref", "gain.alt", "interaction")
AUC = ("auc.ref", "auc.alt", "auc_gap")
DIRECTIONS = limits.Limit(
    "directions-only",
    "Vertices are compared by direction: their magnitudes have no common unit and are not pooled.",
)


def bridge(
    snapshot: Snapshot,
    vertices: Sequence[str | Vertex],
    *,
    where: Mapping[str, Sequence[str]] | None = None,
    acquisitions: Sequence[tuple[str | None, str]] = (),
    require: Level = Level.BOUND,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    progress: Progress | None = None,
) -> Audited:
    """Audit the vertices of a bridge at the snapshot's head, given as values or as `NAME=REF:ALT`.

    A vertex without channels (`NAME=`) is unobserved. The vectors of the result are G and Ω by vertex.
    """
    found = parse_vertices(vertices, snapshot)
    named = [(role(v.name, side), channel) for v in found for side, channel in v.sides]
    arms = [Arm(channel) for _, channel in named]
    design = Design(
        audit=AUDIT,
        roles=tuple(name for name, _ in named),
        scope=scope_of(arms, where=where, acquisitions=acquisitions, require=require),
        primary=PRIMARY,
        resamples=resamples,
        seed=seed,
        options={VERTICES: [v.name for v in found]},
    )
    return run(snapshot, design, progress=progress)


def refuse_magnitude() -> CannotAnswerError:
    """The answer to every request for a number across vertices."""
    return CannotAnswerError(
        "magnitudes of different vertices are not comparable: each evaluator's energies have a unit of their "
        "own, so a difference, ratio or pool of them means nothing",
        code="direction-only",
        expected=f"comparability {DIRECTION_ONLY}",
        next_step="read the verdicts of each vertex and their conjunctions",
    )


def run(snapshot: Snapshot, design: Design, *, progress: Progress | None = None) -> Audited:
    """Run a design, new or read back from a record."""
    at = observe(snapshot, design, vertices_of(design))
    selection = snapshot.select(at.scope)
    faces = assemble(selection, same_view=at.same_view)
    cohort = Cohort(faces.cluster, len(faces.trajectories), seed=design.seed, resamples=design.resamples)
    values = gains(faces, at.names) if cohort.rows else {}
    found = _estimates(values, cohort, at, progress)
    outcomes = _outcomes(values, faces, cohort, at)
    for name, outcome in outcomes.items():
        found |= {f"{name}.auc.ref": outcome.ref, f"{name}.auc.alt": outcome.alt}
        found[f"{name}.auc_gap"] = outcome.gap
    audit = audit_result(
        snapshot,
        design,
        selection,
        faces,
        estimates={name: found[name] for name in sorted(found, key=_order(at))},
        tables=_tables(at, outcomes),
        verdicts={"bridge": _verdict(found, at)},
        said=_limits(cohort, at, outcomes),
        roles=at.roles,
    )
    return Audited(audit, faces, values)


def gains(faces: Faces, names: Sequence[str]) -> dict[str, Vector]:
    """G of both arms and Ω of every observed vertex, whose arms come in pairs."""
    made: dict[str, Vector] = {}
    for place, name in enumerate(names):
        ref, alt = (vectors.gain(faces.margins[2 * place + side]) for side in (0, 1))
        each = (ref, alt, vectors.interaction(ref, alt))
        made |= {f"{name}.{part}": vector for part, vector in zip(PARTS, each, strict=True)}
    return made


def _estimates(
    values: Mapping[str, Vector], cohort: Cohort, at: Observed, progress: Progress | None
) -> dict[str, Estimate]:
    if cohort.rows:
        return cohort.evaluate({name: Mean(vector) for name, vector in values.items()}, progress=progress)
    empty = Estimate(None, 0, 0, reason=Reason.EMPTY_COHORT)
    return {f"{name}.{part}": empty for name in at.names for part in PARTS}


def _outcomes(values: Mapping[str, Vector], faces: Faces, cohort: Cohort, at: Observed) -> dict[str, auc.Auc]:
    """The paired AUC of stored success at every vertex; none where no trajectory stores any."""
    if not (faces.success != UNKNOWN).any():
        return {}
    return {
        name: auc.paired(cohort, values[f"{name}.gain.ref"], values[f"{name}.gain.alt"], faces.success)
        for name in at.names
    }


def _order(at: Observed) -> Any:
    """Estimates by vertex, in each by part."""
    places = {
        f"{name}.{part}": (vertex, place)
        for vertex, name in enumerate(at.names)
        for place, part in enumerate((*PARTS, *AUC))
    }
    return places.__getitem__


def _verdict(found: Mapping[str, Estimate], at: Observed) -> dict[str, Any]:
    """The conjunctions over the observed vertices; null where a vertex has no verdict to join."""
    said: dict[str, Any] = {
        "all_interactions_negative": None,
        "strict_reversal_everywhere": None,
        "all_auc_gaps_positive": None,
    }
    each = [
        verdicts.Vertex(
            found[f"{name}.gain.ref"],
            found[f"{name}.gain.alt"],
            found[f"{name}.interaction"],
            found.get(f"{name}.auc_gap"),
        )
        for name in at.names
    ]
    joined = verdicts.bridge(each)
    if all(v.interaction.verdict is not None for v in each):
        said["all_interactions_negative"] = joined.all_interactions_negative
    if all(v.ref.verdict is not None and v.alt.verdict is not None for v in each):
        said["strict_reversal_everywhere"] = joined.strict_reversal_everywhere
    if all(v.auc_gap is not None and v.auc_gap.verdict is not None for v in each):
        said["all_auc_gaps_positive"] = joined.all_auc_gaps_positive
    return said | {
        "comparability": DIRECTION_ONLY,
        "observed": list(at.names) if at.complete else [],
        "unobserved": [{"vertex": name, "reason": why} for name, why in at.unobserved],
        "compound_endpoint": {
            "status": "not_decomposed",
            "reason": "unobserved_vertex" if at.unobserved else DIRECTION_ONLY,
        },
    }


def _tables(at: Observed, outcomes: Mapping[str, auc.Auc]) -> dict[str, Any]:
    if not outcomes:
        return {}
    return {
        "auc": {
            "direction": "auc.ref minus auc.alt; a higher gain is read as success",
            "vertices": {
                name: {
                    "positives": outcome.positives,
                    "negatives": outcome.negatives,
                    "trajectories_without_success": outcome.without_success,
                    "delong_se": outcome.delong_se,
                }
                for name, outcome in outcomes.items()
            },
        }
    }


def _limits(cohort: Cohort, at: Observed, outcomes: Mapping[str, auc.Auc]) -> list[limits.Limit]:
    said = [*limits.of_cohort(cohort.clusters), DIRECTIONS]
    if not outcomes:
        said.append(limits.absent("auc_gap", "no complete transition stores success"))
    elif without := max(outcome.without_success for outcome in outcomes.values()):
        said.append(limits.fewer_trajectories("auc_gap", without))
    return said
