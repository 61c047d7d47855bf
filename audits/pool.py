"""Does a pooled score keep the sign of its parts? Gains of several channels and of their mixture.

A mixture of gains turns its sign wherever its components oppose, at weights that nobody measured. So the
signs are mapped on the vertices (one channel alone) and edges (two channels) of all mixtures, and a sign
is called stable only where the intervals of all components involved support it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from audits import limits
from audits.arms import called, parse_arm
from audits.design import RESAMPLES, SEED, Design, scope_of
from audits.faces import Faces, assemble
from audits.record import audit_result
from audits.results import Audited
from audits.statistics import sensitivity, vectors
from audits.statistics.cohort import Cohort, Progress
from audits.statistics.estimate import Estimate, Reason
from audits.statistics.moments import Mean
from audits.statistics.vectors import Vector
from audits.weights import Weight, as_options, from_options, matched, shares
from contracts.errors import UsageError
from ledger.snapshot import Arm, Level, Snapshot

AUDIT = "pool"
POOLED = "pooled"
WEIGHTS = "weights"
POST_HOC = limits.Limit(
    "post-hoc-pool", "The weights of the pool are post hoc: no plan declared them before the scores."
)
FEWEST = 2


def pool(
    snapshot: Snapshot,
    channels: Sequence[str | Arm],
    *,
    weights: Mapping[str, Weight] | Sequence[Weight] | None = None,
    where: Mapping[str, Sequence[str]] | None = None,
    acquisitions: Sequence[tuple[str | None, str]] = (),
    require: Level = Level.BOUND,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    progress: Progress | None = None,
) -> Audited:
    """Audit the mixture of `channels` (arms, or `CHANNEL[:SOURCE]`), pooled with `weights` or alike.

    `weights`: one per channel, in their order or by the name they were given. They are brought to a sum
    of one, so 2 and 1 mean two thirds and one third.
    """
    arms = [c if isinstance(c, Arm) else parse_arm(c, snapshot, "--channels") for c in channels]
    if len(arms) < FEWEST:
        raise UsageError("a pool has several channels", expected="A,B", got=len(arms), where="--channels")
    names = role_names(arms)
    design = Design(
        audit=AUDIT,
        roles=names,
        scope=scope_of(arms, where=where, acquisitions=acquisitions, require=require),
        primary=POOLED,
        resamples=resamples,
        seed=seed,
        options={WEIGHTS: as_options(_weights(names, weights))},
    )
    return run(snapshot, design, progress=progress)


def role_names(arms: Sequence[Arm]) -> tuple[str, ...]:
    """What to call each arm: by channel, with the version where two share a name."""
    plain = [called(arm) for arm in arms]
    return tuple(
        name if plain.count(name) == 1 else name.replace(arm.channel.name, _versioned(arm), 1)
        for name, arm in zip(plain, arms, strict=True)
    )


def _versioned(arm: Arm) -> str:
    return f"{arm.channel.name}@{arm.channel.version}"


def _weights(
    names: Sequence[str], given: Mapping[str, Weight] | Sequence[Weight] | None
) -> dict[str, Fraction]:
    """The share of each name."""
    if given is None:
        return shares(dict.fromkeys(names, 1))
    if isinstance(given, Mapping):
        return shares(matched(given, names))
    if len(given) != len(names):
        raise UsageError("one weight per channel", expected=len(names), got=len(given), where="--weights")
    return shares(dict(zip(names, given, strict=True)))


def run(snapshot: Snapshot, design: Design, *, progress: Progress | None = None) -> Audited:
    """Run a design, new or read back from a record."""
    weights = from_options(design.option(WEIGHTS, list))
    selection = snapshot.select(design.scope)
    faces = assemble(selection)
    cohort = Cohort(faces.cluster, len(faces.trajectories), seed=design.seed, resamples=design.resamples)
    gains = {} if not len(faces) else _gains(design.roles, faces)
    mixed = {} if not gains else {POOLED: vectors.combine(*((weights[n], gains[n]) for n in design.roles))}
    found = _estimates(design.roles, gains, mixed, cohort, progress)
    mapped = _sign_map(design.roles, gains, found)
    audit = audit_result(
        snapshot,
        design,
        selection,
        faces,
        estimates=found,
        tables={
            "weights": {name: float(weight) for name, weight in weights.items()},
            "sign_map": mapped,
        },
        verdicts={"pooled_sign": None if mapped is None else mapped["whole"]},
        said=[*limits.of_cohort(cohort.clusters), POST_HOC],
    )
    return Audited(audit, faces, {f"gain.{name}": v for name, v in gains.items()} | mixed)


def _gains(roles: Sequence[str], faces: Faces) -> dict[str, Vector]:
    return {name: vectors.gain(margins) for name, margins in zip(roles, faces.margins, strict=True)}


def _estimates(
    roles: Sequence[str],
    gains: Mapping[str, Vector],
    mixed: Mapping[str, Vector],
    cohort: Cohort,
    progress: Progress | None,
) -> dict[str, Estimate]:
    if not gains:
        none = Estimate(None, 0, 0, reason=Reason.EMPTY_COHORT)
        return {**{f"gain.{name}": none for name in roles}, POOLED: none}
    named = {f"gain.{name}": Mean(vector) for name, vector in gains.items()}
    return cohort.evaluate(named | {name: Mean(v) for name, v in mixed.items()}, progress=progress)


def _sign_map(
    roles: Sequence[str], gains: Mapping[str, Vector], found: Mapping[str, Estimate]
) -> dict[str, Any] | None:
    """The signs of every mixture; an edge turns at a weight of its second channel, None where it does not."""
    if not gains:
        return None
    means = [mean for name in roles if (mean := gains[name].mean) is not None]
    mapped = sensitivity.sign_map(means, [found[f"gain.{name}"] for name in roles])
    return {
        "vertices": {name: sign.value for name, sign in zip(roles, mapped.vertices, strict=True)},
        "edges": [
            {
                "first": roles[edge.first],
                "second": roles[edge.second],
                "turns_at": None if edge.turns_at is None else float(edge.turns_at),
                "sign": edge.sign.value,
            }
            for edge in mapped.edges
        ],
        "whole": mapped.whole.value,
    }
