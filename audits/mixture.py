"""Which verdicts survive another mixture of targets, of a ref/alt pair or of any other audit?

The cohort's mixture of target types is an accident of what was collected. Means are estimated under cohort
weights, equal weights and, if given, the user's, and for each type alone. What they are means of is what
the audit that is reweighted estimates: a pair's gains and interaction, a face's shares, a cube's contrasts,
the gains and interactions of a bridge with their conjunctions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from audits import limits
from audits.arms import parse_arm
from audits.design import MIN_RESAMPLES, RESAMPLES, SEED, Design, scope_of
from audits.record import estimate_fields, schema
from audits.results import Audited
from audits.reweighting import Conjunction, every_mixture, reweight, survival
from audits.statistics import verdicts
from audits.statistics.cohort import Cohort, Progress
from audits.statistics.estimate import Estimate, Verdict
from audits.statistics.vectors import Vector
from audits.target_types import target_types as types_of
from audits.transport_tables import ROLES
from audits.weights import Weight, as_options, from_options, shares
from contracts.errors import MalformedError, UsageError
from ledger.snapshot import Arm, Level, Snapshot

AUDIT = "mixture"
PRIMARY = "interaction"
WEIGHTS = "weights"
OF, INNER = "of", "inner"  # the kind of the audit that is reweighted, and the options of its design
PAIR = ("gain.ref", "gain.alt", PRIMARY)
PAIRS = ("transport", "contrast")
MODULES = {
    "transport": "audits.transport",
    "contrast": "audits.transport",
    "face": "audits.face",
    "cube": "audits.cube",
    "bridge": "audits.bridge",
}


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
    design = Design(
        audit=AUDIT,
        roles=ROLES,
        scope=scope_of(arms, where=where, acquisitions=acquisitions, require=require),
        primary=PRIMARY,
        resamples=resamples,
        seed=seed,
        target_types=None if target_types is None else tuple(sorted(target_types)),
        options={OF: "contrast", INNER: {}, **_weighted(weights)},
    )
    return run(snapshot, design, progress=progress)


def reweigh(
    snapshot: Snapshot,
    asked: Design,
    *,
    weights: Mapping[str, Weight] | None = None,
    target_types: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    progress: Progress | None = None,
) -> Audited:
    """Audit what reweighting does to the verdicts of another audit, asked for by its design."""
    if asked.audit not in MODULES:
        raise UsageError(
            "an audit that has no means over targets to reweight",
            expected=", ".join(MODULES),
            got=asked.audit,
            where="--of",
        )
    design = replace(
        asked,
        audit=AUDIT,
        resamples=resamples,
        seed=seed,
        quoted="cohort",
        target_types=None if target_types is None else tuple(sorted(target_types)),
        missing_corner_range=None,
        options={OF: asked.audit, INNER: dict(asked.options), **_weighted(weights)},
    )
    return run(snapshot, design, progress=progress)


def _weighted(weights: Mapping[str, Weight] | None) -> dict[str, Any]:
    return {} if weights is None else {WEIGHTS: as_options(dict(sorted(shares(weights).items())))}


def run(snapshot: Snapshot, design: Design, *, progress: Progress | None = None) -> Audited:
    """Run a design, new or read back from a record."""
    weights = from_options(design.option(WEIGHTS, list)) if WEIGHTS in design.options else None
    base = _base(snapshot, design)
    faces, named = base.faces, _vectors(base, design)
    cohort = Cohort(faces.cluster, len(faces.trajectories), seed=design.seed, resamples=design.resamples)
    types = types_of(faces, design.target_types)
    user = None if weights is None else (types_of(faces, tuple(weights)), weights)
    found = reweight(named, cohort, types, user, progress)
    conjunctions = _conjunctions(base)
    tables: dict[str, Any] = {"survival": survival(found, conjunctions)}
    if cohort.rows:
        tables["targets"] = dict(types.table(cohort))
    if user is not None:
        tables["user_weights"] = _user(user[0].table(cohort) if cohort.rows else {}, user[1])
    joined = {
        name: {w: holds(found.under(w)) for w in found.weightings} for name, holds in conjunctions.items()
    }
    result = {
        **base.result,
        "design": design.as_json(),
        "estimates": {
            name: estimate_fields(estimate, primary=name == design.primary)
            for name, estimate in found.estimates.items()
        },
        "tables": tables,
        "verdicts": {
            **joined,
            "every_mixture": every_mixture(found, named, types),
            "layout_balance": base.result["verdicts"]["layout_balance"],
        },
        "limits": limits.as_json([*limits.of_cohort(cohort.clusters), limits.POST_HOC_WEIGHTS]),
    }
    audit = replace(base.audit, audit=AUDIT, schema=schema(AUDIT), result=result)
    return Audited(audit, faces, named)


def _base(snapshot: Snapshot, design: Design) -> Audited:
    """The audit that is reweighted, for its vectors: its own intervals are not used, so few draws do."""
    of = design.option(OF, str)
    if of not in MODULES:
        raise MalformedError("not an audit to reweight", where="design", got=of[:40])
    inner = replace(
        design, audit=of, options=design.option(INNER, dict), resamples=MIN_RESAMPLES, target_types=None
    )
    found: Audited = import_module(MODULES[of]).run(snapshot, inner)
    return found


def _vectors(base: Audited, design: Design) -> Mapping[str, Vector]:
    """What is reweighted, by id; of a cohort without a transition, vectors without a row."""
    pair = design.option(OF, str) in PAIRS
    if len(base.faces):
        return {name: base.vectors[name] for name in (PAIR if pair else base.vectors)}
    names = PAIR if pair else [name for name in base.estimates if "auc" not in name.split(".")[-1]]
    return dict.fromkeys(names, Vector(np.zeros(0, np.int64), 1))


def _conjunctions(base: Audited) -> dict[str, Conjunction]:
    """The statements that join several verdicts of the audit that is reweighted."""
    ids = set(base.estimates)
    if set(PAIR) <= ids:
        return {"strict_mean_reversal": _reversal}
    prefixes = [name.removesuffix(PRIMARY) for name in base.estimates if name.endswith(f".{PRIMARY}")]
    if not prefixes:
        return {}
    return {
        "all_interactions_negative": lambda found: _all(
            [None if (v := found[p + PRIMARY].verdict) is None else v is Verdict.NEGATIVE for p in prefixes]
        ),
        "strict_reversal_everywhere": lambda found: _all([_reversal(found, p) for p in prefixes]),
    }


def _all(parts: Sequence[bool | None]) -> bool | None:
    return None if None in parts else all(parts)


def _reversal(found: Mapping[str, Estimate], prefix: str = "") -> bool | None:
    """Whether both gains exclude 0 on opposite sides; None where a verdict is missing."""
    ref, alt = found[f"{prefix}gain.ref"], found[f"{prefix}gain.alt"]
    if ref.verdict is None or alt.verdict is None:
        return None
    return verdicts.strict_mean_reversal(ref, alt).supported


def _user(table: Mapping[str, Any], weights: Mapping[str, Fraction]) -> dict[str, Any]:
    """The user's weights as shares, and how many transitions are of types without one."""
    return {
        "weights": {name: float(weight) for name, weight in weights.items()},
        "unweighted_transitions": table.get("unweighted"),
    }
