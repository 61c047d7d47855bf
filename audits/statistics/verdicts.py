"""Statements that join several estimates: reversal, agreement of layouts and locations, equivalence, bridges.

They are read off estimates whose intervals share the same draws. A conjunction of verdicts needs no
adjustment for multiplicity; a statement about which of several does, and uses the max-t band.
Sources: STATISTICS rule 7, transport rows 6, 9, 10, 18, 19.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, sqrt

import numpy as np

from audits.statistics import exact, intervals
from audits.statistics.estimate import Estimate, Interval, Verdict

_STRICT = (Verdict.POSITIVE, Verdict.NEGATIVE)


def _sign(value: float | None) -> int:
    return 0 if value is None else (value > 0) - (value < 0)


@dataclass(frozen=True)
class Reversal:
    """Whether two means have strictly opposite signs, as points and as intervals."""

    point: bool
    supported: bool


def strict_mean_reversal(ref: Estimate, alt: Estimate) -> Reversal:
    """Opposite strict signs; supported when both intervals exclude 0, on opposite sides."""
    return Reversal(
        point=_sign(ref.value) * _sign(alt.value) == -1,
        supported={ref.verdict, alt.verdict} == set(_STRICT),
    )


@dataclass(frozen=True)
class Agreement:
    """Whether several estimates share a strict sign, as points and as intervals."""

    points_agree: bool
    intervals_agree: bool


def agreement(estimates: Sequence[Estimate]) -> Agreement:
    """Whether all points have one strict sign and, separately, all intervals one strict verdict."""
    signs = {_sign(estimate.value) for estimate in estimates}
    verdicts = {estimate.verdict for estimate in estimates}
    return Agreement(
        points_agree=len(signs) == 1 and 0 not in signs,
        intervals_agree=len(verdicts) == 1 and verdicts <= set(_STRICT),
    )


def location_agrees(mean: Estimate, *others: Estimate) -> bool | None:
    """Whether median and trimmed mean have the verdict of the mean; None where one has no verdict."""
    verdicts = [estimate.verdict for estimate in (mean, *others)]
    return None if None in verdicts else len(set(verdicts)) == 1


@dataclass(frozen=True)
class Equivalence:
    """Whether both 90 % intervals lie strictly inside (-band, band); never that there is a difference.

    `smallest_band`: a band is established exactly when it is larger than this, known only afterwards.
    """

    band: float
    established: bool
    smallest_band: float
    ci90: Interval
    ci90_t: Interval


def equivalence(estimate: Estimate, band: float) -> Equivalence | None:
    """The equivalence statement for a declared band d > 0; None where a 90 % interval is missing."""
    if not band > 0:
        raise ValueError(f"an equivalence band is a positive number, got {band}")
    if estimate.ci90 is None or estimate.ci90_t is None:
        return None
    reach = max(abs(end) for end in (*estimate.ci90, *estimate.ci90_t))
    return Equivalence(band, reach < band, reach, estimate.ci90, estimate.ci90_t)


@dataclass(frozen=True)
class Bridge:
    """What holds at every vertex of a bridge."""

    all_interactions_negative: bool
    strict_reversal_everywhere: bool
    all_auc_gaps_positive: bool | None


@dataclass(frozen=True)
class Vertex:
    """The estimates of one vertex; `auc_gap` is None where there is no stored success."""

    ref: Estimate
    alt: Estimate
    interaction: Estimate
    auc_gap: Estimate | None = None


def bridge(vertices: Sequence[Vertex]) -> Bridge:
    """The conjunctions over the observed vertices, by interval verdicts; None where a gap is missing."""
    if not vertices:
        raise ValueError("a bridge needs at least one observed vertex")
    gaps = [vertex.auc_gap for vertex in vertices]
    return Bridge(
        all_interactions_negative=all(v.interaction.verdict == Verdict.NEGATIVE for v in vertices),
        strict_reversal_everywhere=all(strict_mean_reversal(v.ref, v.alt).supported for v in vertices),
        all_auc_gaps_positive=(
            None if None in gaps else all(gap.verdict == Verdict.POSITIVE for gap in gaps if gap is not None)
        ),
    )


def max_t_band(
    points: Mapping[str, float],
    replicates: Mapping[str, exact.Replicates],
    level: Fraction = intervals.LEVEL95,
) -> dict[str, Interval] | None:
    """Simultaneous intervals for several estimands from the same draws: point ± q SD.

    q is the type 7 quantile at `level` of the largest abs(replicate - point) / SD over the estimands, SD
    (ddof 1) that of the replicates. Replicates undefined for any of them are left out; None when more than
    1 % are, or fewer than two remain. An estimand whose replicates are all equal gets a point.
    """
    kept = np.logical_and.reduce([replicates[name].defined for name in points])
    if np.count_nonzero(~kept) > intervals.UNDEFINED_LIMIT * len(kept) or np.count_nonzero(kept) < 2:
        return None
    spread: dict[str, float] = {}
    largest = np.zeros(int(np.count_nonzero(kept)))
    for name, point in points.items():
        values = replicates[name].values[kept]
        # fsum is rounded once, so the spread does not depend on how the replicates are grouped
        centre = fsum(values.tolist()) / len(values)
        spread[name] = sqrt(fsum(((values - centre) ** 2).tolist()) / (len(values) - 1))
        if spread[name] > 0:
            largest = np.maximum(largest, np.abs(values - point) / spread[name])
    reach = intervals.quantile7(np.sort(largest), level)
    return {
        name: (point - reach * spread[name], point + reach * spread[name]) for name, point in points.items()
    }
