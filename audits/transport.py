"""Does the gain of a step survive a change of evaluator? The audit of one reference/alternative pair.

Everything is computed from a verified snapshot: gains G of both channels and their interaction Ω on the
transitions that are complete in both, with every number the record of a transport audit has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from audits import limits, stored_success
from audits.design import RESAMPLES, SEED, Design, Weights, scope_of
from audits.donor_map import DonorMap
from audits.equivalence import band_of, equivalence
from audits.faces import Faces, assemble
from audits.identification import Identification, identification
from audits.label_masses import LabelMasses
from audits.record import audit_result
from audits.results import Audited
from audits.statistics import auc, verdicts
from audits.statistics.cohort import Cohort
from audits.statistics.estimate import Estimate
from audits.target_types import TargetTypes, target_types
from audits.transport_estimates import EQUAL_TARGET, Pair, Progress, estimates
from audits.transport_tables import ROLES, empty_tables, repeats, tables
from contracts.channel import Channel
from contracts.errors import CannotAnswerError
from ledger.snapshot import Arm, Level, Snapshot

AUDIT = "transport"
PRIMARY = "interaction"


@dataclass(frozen=True)
class TransportResult(Audited):
    """The record's content and the exact vectors behind it: `pair.ref`, `pair.alt`, `pair.interaction`."""

    pair: Pair


def transport(
    snapshot: Snapshot,
    ref: str | Channel,
    alt: str | Channel,
    *,
    where: Mapping[str, Sequence[str]] | None = None,
    acquisitions: Sequence[tuple[str | None, str]] = (),
    require: Level = Level.BOUND,
    weights: Weights = "cohort",
    target_types: Sequence[str] | None = None,
    missing_corner_range: tuple[float, float] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    progress: Progress | None = None,
) -> TransportResult:
    """Audit `alt` against `ref` at the snapshot's head.

    Channels by name, name@version, fingerprint or value. `where` keeps transitions by column,
    `acquisitions` restricts a channel (by fingerprint; None: every channel) to those named.
    """
    channels = [c if isinstance(c, Channel) else snapshot.book.resolve(c) for c in (ref, alt)]
    arms = [Arm(channel) for channel in channels]
    scope = scope_of(arms, where=where, acquisitions=acquisitions, require=require)
    types = None if target_types is None else tuple(sorted(target_types))
    design = Design(
        audit=AUDIT,
        roles=ROLES,
        scope=scope,
        primary=PRIMARY,
        resamples=resamples,
        seed=seed,
        quoted=weights,
        target_types=types,
        missing_corner_range=missing_corner_range,
    )
    return run(snapshot, design, progress=progress)


def run(snapshot: Snapshot, design: Design, *, progress: Progress | None = None) -> TransportResult:
    """Run the design of a transport audit or a contrast, new or read back from a record."""
    selection = snapshot.select(design.scope)
    masses, donors = LabelMasses(len(ROLES)), DonorMap(design.scope.arms)
    faces = assemble(selection, (masses, donors))
    pair = Pair(faces)
    cohort = Cohort(faces.cluster, len(faces.trajectories), seed=design.seed, resamples=design.resamples)
    types = target_types(faces, design.target_types)
    found = estimates(pair, cohort, types, progress, band=band_of(design))
    outcome = stored_success.paired(faces, cohort, pair.ref, pair.alt) if len(faces) else None
    identified = identification(design, faces, selection)
    audit = audit_result(
        snapshot,
        design,
        selection,
        faces,
        estimates=found | stored_success.estimates(outcome),
        tables=_tables(pair, cohort, types, found, outcome, masses, band_of(design))
        | donors.table(ROLES, faces),
        verdicts=_verdicts(found, identified) | equivalence(found, design),
        said=_limits(faces, types, outcome, identified),
        shortfall=_shortfall(faces, identified),
    )
    return TransportResult(audit, faces, pair.vectors if len(faces) else {}, pair)


def _tables(
    pair: Pair,
    cohort: Cohort,
    types: TargetTypes,
    found: Mapping[str, Estimate],
    outcome: auc.Auc | None,
    masses: LabelMasses,
    band: float | None,
) -> dict[str, Any]:
    made: dict[str, Any] = empty_tables()
    if cohort.rows:
        made = dict(tables(pair, cohort, types, found, band=band))
        repeated = repeats(pair, cohort)
        if repeated:
            made["repeatability"] = repeated
    if outcome is not None:
        made["auc"] = stored_success.table(outcome)
    if masses.present:
        made["label_mass"] = dict(zip(ROLES, masses.tables(), strict=True))
    return made


def _verdicts(found: Mapping[str, Estimate], identified: Identification | None) -> dict[str, Any]:
    reversal: dict[str, bool | None] = {}
    for suffix in ("", EQUAL_TARGET):
        ref, alt = found["gain.ref" + suffix], found["gain.alt" + suffix]
        joined = verdicts.strict_mean_reversal(ref, alt)
        defined = ref.value is not None and alt.value is not None
        judged = ref.verdict is not None and alt.verdict is not None
        reversal["point" + suffix] = joined.point if defined else None
        reversal["supported" + suffix] = joined.supported if judged else None
    layouts = [e for name, e in found.items() if name.startswith("interaction.layout.")]
    agreement = verdicts.agreement(layouts)
    mean = found["interaction"]
    made: dict[str, Any] = {
        "strict_mean_reversal": reversal,
        "layouts": {
            "points_agree": None if mean.value is None else agreement.points_agree,
            "intervals_agree": None if mean.verdict is None else agreement.intervals_agree,
        },
        "location_agrees": verdicts.location_agrees(
            mean, found["interaction.median"], found["interaction.trimmed10"]
        ),
    }
    return made if identified is None else made | {"identification": identified.as_json()}


def _limits(
    faces: Faces, types: TargetTypes, outcome: auc.Auc | None, identified: Identification | None
) -> list[limits.Limit]:
    """The limits of every audit, then those of this one."""
    said = limits.of_cohort(len(faces.trajectories))
    if types.types is not None and len(faces):
        said.append(limits.POST_HOC_WEIGHTS)
    said += stored_success.notes(outcome)
    if identified is not None and identified.found is not None:
        said.append(limits.REFUSED_READINGS)
    if all(len(names) < 2 for names in faces.acquisitions):
        said.append(limits.absent("repeatability", "each channel has one acquisition, so flips may be noise"))
    return said


def _shortfall(faces: Faces, identified: Identification | None) -> CannotAnswerError | None:
    if identified is not None and faces.flow.shortfall is not None:
        return identified.error(faces.flow.shortfall)
    return faces.flow.shortfall
