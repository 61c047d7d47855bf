"""How well two channels' gains tell the stored successes of trajectories apart, as records hold it."""

from __future__ import annotations

from typing import Any

from audits import limits
from audits.faces import UNKNOWN, Faces
from audits.statistics import auc
from audits.statistics.cohort import Cohort
from audits.statistics.estimate import Estimate
from audits.statistics.vectors import Vector

IDS = ("auc.ref", "auc.alt", "auc_gap")
NAMED = ", ".join(IDS)
DIRECTION = "auc.ref minus auc.alt; a higher gain is read as success"


def paired(faces: Faces, cohort: Cohort, ref: Vector, alt: Vector) -> auc.Auc | None:
    """AUC of stored success of both gains, None where no trajectory of the cohort stores any."""
    if not (faces.success != UNKNOWN).any():
        return None
    return auc.paired(cohort, ref, alt, faces.success)


def estimates(outcome: auc.Auc | None) -> dict[str, Estimate]:
    """The estimates by id; none where nothing is stored."""
    return {} if outcome is None else dict(zip(IDS, (outcome.ref, outcome.alt, outcome.gap), strict=True))


def table(outcome: auc.Auc) -> dict[str, Any]:
    """What stands behind the estimates."""
    return {
        "direction": DIRECTION,
        "positives": outcome.positives,
        "negatives": outcome.negatives,
        "trajectories_without_success": outcome.without_success,
        "delong_se": outcome.delong_se,
    }


def notes(outcome: auc.Auc | None) -> list[limits.Limit]:
    """That nothing is stored, or that some trajectories store nothing."""
    if outcome is None:
        return [limits.absent(NAMED, "no complete transition stores success")]
    return [limits.fewer_trajectories(NAMED, outcome.without_success)] if outcome.without_success else []
