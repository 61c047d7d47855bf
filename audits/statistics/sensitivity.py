"""What would turn a sign: pooling weights, recalibration, the excluded transitions, an unseen corner.

Every function takes exact means (Fraction) and returns an exact one, or None where the question has no
answer. Sources: STATISTICS transport rows 12, 14, 15, 24, 25.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import combinations
from typing import Final, Literal

from audits.statistics.estimate import Estimate, Verdict

Corner = tuple[Literal["ref", "alt"], Literal["before", "after"]]

CORNER_SIGNS: Final[dict[Corner, int]] = {
    ("ref", "before"): 1,
    ("ref", "after"): -1,
    ("alt", "before"): -1,
    ("alt", "after"): 1,
}
"""The sign each corner's margin carries in Ω."""


def _opposed(a: Fraction, b: Fraction) -> bool:
    return (a > 0 > b) or (a < 0 < b)


def pooled_sign_threshold(ref: Fraction, alt: Fraction) -> Fraction | None:
    """w* = m_ref / (m_ref - m_alt): the weight of alt at which (1-w) m_ref + w m_alt turns its sign.

    None unless the means have strictly opposite signs.
    """
    return ref / (ref - alt) if _opposed(ref, alt) else None


def recalibration_ratio(ref: Fraction, alt: Fraction) -> Fraction | None:
    """m_ref / m_alt: the ratio of calibration slopes a_alt / a_ref at which Ω turns its sign.

    None unless the means share a strict sign; offsets cancel and cannot turn anything.
    """
    return ref / alt if ref != 0 and alt != 0 and not _opposed(ref, alt) else None


def tipping_mean(total: Fraction, excluded: int) -> Fraction | None:
    """-Σ / n_excluded: the mean the excluded transitions would need for the sign to turn; None for none."""
    return -total / excluded if excluded else None


def missing_corner(
    known: dict[Corner, Fraction], missing: Corner, low: Fraction, high: Fraction
) -> tuple[Fraction, Fraction]:
    """The interval Ω lies in when one corner was never seen and its margin is declared to be in [low, high].

    `known`: the mean margins of the three other corners. Repeats of those do not narrow it.
    """
    if set(known) | {missing} != set(CORNER_SIGNS) or missing in known:
        raise ValueError("three known corners and the one that is missing are needed")
    if low > high:
        raise ValueError(f"the declared range is empty: [{low}, {high}]")
    part = sum((CORNER_SIGNS[name] * value for name, value in known.items()), Fraction(0))
    ends = sorted((part + CORNER_SIGNS[missing] * low, part + CORNER_SIGNS[missing] * high))
    return ends[0], ends[1]


class PooledSign(StrEnum):
    """What can be said of the sign of every mixture of some components."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    DEPENDS = "depends_on_weights"


@dataclass(frozen=True)
class Edge:
    """Two components: where their mixture turns (the weight of the second), if it does, and its sign."""

    first: int
    second: int
    turns_at: Fraction | None
    sign: PooledSign


@dataclass(frozen=True)
class SignMap:
    """The sign of a mixture on its vertices, its edges and as a whole."""

    vertices: tuple[PooledSign, ...]
    edges: tuple[Edge, ...]
    whole: PooledSign


def sign_map(means: Sequence[Fraction], estimates: Sequence[Estimate]) -> SignMap:
    """Where the sign of a mixture of components is stable.

    `means`: the exact means, `estimates`: their estimates. A sign is stable only where all intervals
    involved have the same strict verdict; one that holds 0, or has no verdict, makes it depend on weights.
    """
    if not means or len(means) != len(estimates):
        raise ValueError("one mean and one estimate per component are needed")
    vertices = tuple(_pooled([estimate]) for estimate in estimates)
    edges = tuple(
        Edge(a, b, pooled_sign_threshold(means[a], means[b]), _pooled([estimates[a], estimates[b]]))
        for a, b in combinations(range(len(means)), 2)
    )
    return SignMap(vertices, edges, _pooled(estimates))


def _pooled(estimates: Sequence[Estimate]) -> PooledSign:
    verdicts = {estimate.verdict for estimate in estimates}
    if verdicts == {Verdict.POSITIVE}:
        return PooledSign.POSITIVE
    return PooledSign.NEGATIVE if verdicts == {Verdict.NEGATIVE} else PooledSign.DEPENDS
