"""Does one channel repeat itself? Its gains over acquisitions of the same transitions.

Within SD, ICC(1) and the share of steady signs are about one evaluator asked again. They say nothing about
another evaluator, so a record of this audit is never evidence of transport.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from audits import limits
from audits.arms import parse_arm
from audits.design import RESAMPLES, SEED, Design, scope_of
from audits.faces import Faces, assemble
from audits.record import audit_result, estimate_fields
from audits.results import Audited
from audits.statistics import flips, vectors
from audits.statistics import repeatability as repeats
from audits.statistics.cohort import Cohort, Progress
from audits.statistics.estimate import Estimate
from audits.statistics.moments import Mean
from audits.statistics.vectors import Vector
from contracts.errors import CannotAnswerError
from ledger.snapshot import Arm, Level, Snapshot

AUDIT = "repeatability"
ROLES = ("channel",)
NAME = "name"  # what the record calls the channel: a name is an alias, so it is part of what was asked
NO_TRANSPORT = limits.Limit(
    "no-evidence-of-transport",
    "A channel that repeats itself may still disagree with every other; this says nothing of transport.",
)
NUMBERS = ("within_sd", "icc1", "sign_agreement")


def repeatability(
    snapshot: Snapshot,
    channel: str | Arm,
    *,
    where: Mapping[str, Sequence[str]] | None = None,
    acquisitions: Sequence[tuple[str | None, str]] = (),
    require: Level = Level.BOUND,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    progress: Progress | None = None,
) -> Audited:
    """Audit how steady `channel` (an arm, or `CHANNEL[:SOURCE]`) is over its acquisitions in scope."""
    arm = channel if isinstance(channel, Arm) else parse_arm(channel, snapshot, "--channel")
    name = arm.channel.name
    design = Design(
        audit=AUDIT,
        roles=ROLES,
        scope=scope_of([arm], where=where, acquisitions=acquisitions, require=require),
        primary=f"{name}.{NUMBERS[0]}",
        resamples=resamples,
        seed=seed,
        options={NAME: name},
    )
    return run(snapshot, design, progress=progress)


def run(snapshot: Snapshot, design: Design, *, progress: Progress | None = None) -> Audited:
    """Run a design, new or read back from a record."""
    selection = snapshot.select(design.scope)
    faces = assemble(selection)
    cohort = Cohort(faces.cluster, len(faces.trajectories), seed=design.seed, resamples=design.resamples)
    names = faces.acquisitions[0]
    own = vectors.acquisition_gains(faces.margins[0])
    whole = vectors.gain(faces.margins[0]) if names else Vector(np.zeros(0, np.int64), 1)
    found = repeats.repeatability(cohort, own, progress=progress)
    estimates = {f"{design.option(NAME, str)}.{part}": getattr(found, part) for part in NUMBERS}
    tables = {
        "acquisitions": _acquisitions(names, own, cohort, progress),
        "pairs": _pairs(names, own, cohort.rows),
    }
    audit = audit_result(
        snapshot,
        design,
        selection,
        faces,
        estimates=estimates,
        tables=tables,
        verdicts={"evidence_of_transport": False},
        said=[*_common(cohort), NO_TRANSPORT],
        shortfall=_shortfall(found, faces),
    )
    each = {f"gain.{name}": gain for name, gain in zip(names, own, strict=True)}
    return Audited(audit, faces, {"gain": whole, **each})


def _acquisitions(
    names: Sequence[str], gains: Sequence[Vector], cohort: Cohort, progress: Progress | None
) -> list[dict[str, Any]]:
    """The mean gain and the signs of each acquisition, on the transitions that have all of them."""
    found: dict[str, Estimate] = {}
    if cohort.rows:
        means = {name: Mean(v) for name, v in zip(names, gains, strict=True)}
        found = cohort.evaluate(means, progress=progress)
    return [
        {
            "acquisition": name,
            "gain": estimate_fields(found[name], primary=False) if found else None,
            "signs": asdict(flips.signs(gain)),
        }
        for name, gain in zip(names, gains, strict=True)
    ]


def _pairs(names: Sequence[str], gains: Sequence[Vector], rows: int) -> list[dict[str, Any]]:
    """How often two acquisitions have strictly opposite signs: flips of a channel against itself."""
    if not rows:
        return []
    return [
        {
            "first": names[a],
            "second": names[b],
            "opposite_signs": (opposite := int(np.count_nonzero(flips.strict(gains[a], gains[b])))),
            "share": float(Fraction(opposite, rows)),
        }
        for a, b in combinations(range(len(names)), 2)
    ]


def _shortfall(found: repeats.Repeatability, faces: Faces) -> CannotAnswerError | None:
    if faces.flow.shortfall is not None or found.acquisitions > 1:
        return faces.flow.shortfall
    return CannotAnswerError(
        "one acquisition cannot show how a channel repeats itself",
        code="one-acquisition",
        expected="at least two acquisitions of the channel in scope",
        got=", ".join(faces.acquisitions[0]) or "none",
        next_step="ingest a repeat under another acquisition_id, or check --acquisition",
    )


def _common(cohort: Cohort) -> list[limits.Limit]:
    """The limits of every audit but the one that this audit answers."""
    return [limit for limit in limits.of_cohort(cohort.clusters) if limit is not limits.NOT_REPEATABILITY]
