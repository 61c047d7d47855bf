"""Do verdicts survive another mixture of target types? Any named vectors, under several weightings at once.

All weightings share the draws of the cohort. A verdict survives when every weighting gives the same strict
one; where the cohort's own verdict is not strict there is nothing to survive, and it is said so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from audits.statistics import sensitivity
from audits.statistics.cohort import Cohort, Progress, Statistic
from audits.statistics.estimate import Estimate, Reason, Verdict
from audits.statistics.moments import Mean, TypeMean
from audits.statistics.vectors import Vector
from audits.target_types import TargetTypes

COHORT, EQUAL, USER = "cohort", "equal-target", "user"
SUFFIX = {COHORT: "", EQUAL: "@equal-target", USER: "@user"}
ONE_TYPE = "@target:"
NOTHING_TO_SURVIVE = "no_strict_verdict"
NO_VERDICT = "no_verdict"
# What holds under one weighting of several estimates, None where a verdict is missing.
Conjunction = Callable[[Mapping[str, Estimate]], bool | None]


@dataclass(frozen=True)
class Reweighted:
    """The estimates of some vectors under several weightings; ids carry the suffix of the weighting."""

    names: tuple[str, ...]
    weightings: tuple[str, ...]
    types: tuple[str, ...]
    estimates: Mapping[str, Estimate]

    def under(self, weighting: str) -> dict[str, Estimate]:
        """The estimates of one weighting, by the plain name."""
        return {name: self.estimates[name + SUFFIX[weighting]] for name in self.names}


def reweight(
    vectors: Mapping[str, Vector],
    cohort: Cohort,
    types: TargetTypes,
    user: tuple[TargetTypes, Mapping[str, Fraction]] | None = None,
    progress: Progress | None = None,
) -> Reweighted:
    """Estimate `vectors` under cohort weights, equal weights of the types, and the user's, if given.

    Each type alone is estimated too: a mixture of types can take no value beyond theirs.
    """
    weightings = (COHORT, EQUAL) if user is None else (COHORT, EQUAL, USER)
    alone = types.names if types.types is not None else ()
    found: dict[str, Statistic | None] = {}
    for name, vector in vectors.items():
        found[name] = Mean(vector)
        found[name + SUFFIX[EQUAL]] = types.mean(vector)
        if user is not None:
            found[name + SUFFIX[USER]] = _weighted(vector, *user)
        found |= {name + ONE_TYPE + kind: _of_type(vector, types, kind) for kind in alone}
    computed = {name: statistic for name, statistic in found.items() if statistic is not None}
    if cohort.rows:
        estimates = cohort.evaluate(computed, progress=progress)
    else:
        estimates = dict.fromkeys(computed, Estimate(None, 0, 0, reason=Reason.EMPTY_COHORT))
    uncomputed = Estimate(None, cohort.rows, cohort.clusters, reason=Reason.TOO_MANY_TYPES)
    return Reweighted(
        names=tuple(vectors),
        weightings=weightings,
        types=alone,
        estimates={name: estimates.get(name, uncomputed) for name in found},
    )


def _weighted(vector: Vector, types: TargetTypes, weights: Mapping[str, Fraction]) -> TypeMean | None:
    """The mean with a weight for each type; types without one weigh nothing."""
    if types.types is None:
        return None
    return TypeMean(vector, types.types, [weights.get(name, Fraction(0)) for name in types.types.names])


def _of_type(vector: Vector, types: TargetTypes, kind: str) -> TypeMean | None:
    return _weighted(vector, types, {kind: Fraction(1)})


def survival(found: Reweighted, conjunctions: Mapping[str, Conjunction]) -> list[dict[str, Any]]:
    """One row per estimate and per conjunction: what holds under each weighting, and whether it survives."""
    rows = []
    for name in found.names:
        verdicts = {w: found.under(w)[name].verdict for w in found.weightings}
        stated = {w: None if v is None else v.value for w, v in verdicts.items()}
        strict = verdicts[COHORT] in (Verdict.POSITIVE, Verdict.NEGATIVE)
        rows.append({"of": name, "under": stated} | _survives(list(verdicts.values()), strict))
    for name, holds in conjunctions.items():
        under = {w: holds(found.under(w)) for w in found.weightings}
        rows.append({"of": name, "under": under} | _survives(list(under.values()), under[COHORT] is True))
    return rows


def _survives(values: Sequence[object], strict: bool) -> dict[str, Any]:
    """Whether the first of some values is worth keeping and all others are the same."""
    if None in values:
        return {"survives": None, "reason": NO_VERDICT}
    if not strict:
        return {"survives": None, "reason": NOTHING_TO_SURVIVE}
    return {"survives": all(value == values[0] for value in values)}


def every_mixture(
    found: Reweighted, vectors: Mapping[str, Vector], types: TargetTypes
) -> dict[str, str | None]:
    """The sign each vector has in every mixture of the types, where the intervals of all types support one.

    None where there are too many types to say.
    """
    if types.types is None or not found.types:
        return dict.fromkeys(found.names)
    made: dict[str, str | None] = {}
    for name in found.names:
        estimates = [found.estimates[name + ONE_TYPE + kind] for kind in found.types]
        means = [_mean(vectors[name], types, place) for place in range(len(found.types))]
        made[name] = sensitivity.sign_map(means, estimates).whole.value
    return made


def _mean(vector: Vector, types: TargetTypes, place: int) -> Fraction:
    """The mean of one type; 0 stands for a type without rows, whose estimate has no verdict anyway."""
    assert types.types is not None
    return vector.take(types.types.codes == place).mean or Fraction(0)
