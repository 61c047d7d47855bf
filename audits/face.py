"""Where the change of a step enters: the state, or the view of it that the evaluator is shown.

A retrieval face crosses the endpoint with a frozen view of either endpoint, in one channel. The change from
(state before, view before) to (state after, view after) is split between the two by Shapley shares, which
add up to it exactly; both paths of each share are given. Source: STATISTICS transport row 16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from audits import limits
from audits.design import RESAMPLES, SEED, Design, scope_of
from audits.equivalence import band_of, band_options, equivalence
from audits.faces import Faces, assemble
from audits.flow import ENDPOINTS
from audits.identification import Identification, identification
from audits.record import audit_result
from audits.results import Audited
from audits.statistics import vectors, verdicts
from audits.statistics.cohort import Cohort, Progress
from audits.statistics.estimate import Estimate, Reason
from audits.statistics.moments import Mean
from audits.statistics.vectors import AFTER, BEFORE, TwoFactor, Vector
from contracts.channel import Channel
from contracts.errors import CannotAnswerError
from ledger.snapshot import Arm, Level, Selection, Snapshot

AUDIT = "face"
ROLES = ("view_before", "view_after")
PRIMARY = "view"
PATHS = {
    "state": ("state.view_before", "state.view_after"),
    "view": ("view.state_before", "view.state_after"),
}
IDS = ("state", "view", "diagonal", *PATHS["state"], *PATHS["view"])
DESCRIPTIVE = limits.Limit(
    "split-is-descriptive",
    "The split says where the change enters, not why; another order gives other paths.",
)


def face(
    snapshot: Snapshot,
    channel: str | Channel,
    *,
    where: Mapping[str, Sequence[str]] | None = None,
    acquisitions: Sequence[tuple[str | None, str]] = (),
    require: Level = Level.BOUND,
    band: float | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    progress: Progress | None = None,
) -> Audited:
    """Audit the retrieval face of a channel: its scores under the views frozen before and after.

    The vectors of the result are the shares, the paths and the diagonal, by the ids of their estimates.
    `band` is an equivalence band of the view's share.
    """
    found = channel if isinstance(channel, Channel) else snapshot.book.resolve(channel)
    arms = [Arm(found, endpoint) for endpoint in ENDPOINTS]
    design = Design(
        audit=AUDIT,
        roles=ROLES,
        scope=scope_of(arms, where=where, acquisitions=acquisitions, require=require),
        primary=PRIMARY,
        resamples=resamples,
        seed=seed,
        options=band_options(band),
    )
    return run(snapshot, design, progress=progress)


def run(snapshot: Snapshot, design: Design, *, progress: Progress | None = None) -> Audited:
    """Run a design, new or read back from a record."""
    selection = snapshot.select(design.scope)
    faces = assemble(selection)
    cohort = Cohort(faces.cluster, len(faces.trajectories), seed=design.seed, resamples=design.resamples)
    band = band_of(design)
    found = dict.fromkeys(IDS, Estimate(None, 0, 0, reason=Reason.EMPTY_COHORT))
    tables: dict[str, Any] = {}
    values: dict[str, Vector] = {}
    if cohort.rows:
        parts = split(faces)
        values = _named(parts)
        means = {name: Mean(vector) for name, vector in values.items()}
        bands = {} if band is None else {PRIMARY: band}
        found = cohort.evaluate(means, bands=bands, progress=progress)
        tables = {"split": {"shares_add_up_in": _adding_up(parts), "transitions": cohort.rows}}
    identified = _identified(design, faces, selection)
    audit = audit_result(
        snapshot,
        design,
        selection,
        faces,
        estimates=found,
        tables=tables,
        verdicts=_verdicts(found, identified) | equivalence(found, design),
        said=[*limits.of_cohort(cohort.clusters), DESCRIPTIVE],
        shortfall=_shortfall(faces, identified),
    )
    return Audited(audit, faces, values)


def split(faces: Faces) -> TwoFactor:
    """The split of every transition; at least one acquisition of each view must be in scope."""
    first, second = faces.margins  # under the view before, under the view after
    return vectors.shapley(
        f00=vectors.corner(first, BEFORE),
        f01=vectors.corner(second, BEFORE),
        f10=vectors.corner(first, AFTER),
        f11=vectors.corner(second, AFTER),
    )


def _named(parts: TwoFactor) -> dict[str, Vector]:
    values = (
        parts.state,
        parts.view,
        parts.diagonal,
        parts.state_view_before,
        parts.state_view_after,
        parts.view_state_before,
        parts.view_state_after,
    )
    return dict(zip(IDS, values, strict=True))


def _adding_up(parts: TwoFactor) -> int:
    """In how many transitions state and view add up to the diagonal exactly: all, or something is wrong."""
    rest = vectors.combine((1, parts.state), (1, parts.view), (-1, parts.diagonal))
    return int(np.count_nonzero(rest.signs == 0))


def _verdicts(found: Mapping[str, Estimate], identified: Identification | None) -> dict[str, Any]:
    """Whether the two paths of each share have one sign: where not, the share depends on the order."""
    made: dict[str, Any] = {}
    for share, paths in PATHS.items():
        both = [found[path] for path in paths]
        agreed = verdicts.agreement(both)
        judged = all(estimate.verdict is not None for estimate in both)
        made[share] = {
            "points_agree": None if both[0].value is None else agreed.points_agree,
            "intervals_agree": agreed.intervals_agree if judged else None,
        }
    said: dict[str, Any] = {"paths": made}
    return said if identified is None else said | {"identification": identified.as_json()}


def _identified(design: Design, faces: Faces, selection: Selection) -> Identification | None:
    """The corners nobody scored, called by state and view."""
    found = identification(design, faces, selection, "the split")
    if found is None:
        return None
    views = dict(zip(ROLES, ENDPOINTS, strict=True))
    return replace(found, corners=tuple(f"(state {e}, view {views[role]})" for role, e in found.missing))


def _shortfall(faces: Faces, identified: Identification | None) -> CannotAnswerError | None:
    cause = faces.flow.shortfall
    return cause if identified is None or cause is None else identified.error(cause)
