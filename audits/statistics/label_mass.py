"""What a label readout keeps and what it hides: conditional probabilities and label mass.

p_l = exp(z_l - lse over the labels) says how the mass on the labels is divided, M = exp(lse over the labels
- lse over the vocabulary) how much there is. M needs the full vocabulary: from the best k only it is a lower
bound or unavailable, never 1.0. Source: STATISTICS JEV rows 1 and 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from audits.statistics import exact, intervals, kernel

_BELOW_ONE = -(2.0**-53)  # exp of it is the largest float64 below 1


class MassKind(StrEnum):
    """What a label mass is."""

    EXACT = "exact"
    LOWER_BOUND = "lower_bound"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True)
class Readout:
    """Conditional probabilities in the order of the labels, and the label mass; None where undefined."""

    probabilities: tuple[float, ...] | None
    mass: float | None
    kind: MassKind


def from_logits(vocabulary: npt.ArrayLike, labels: Sequence[int]) -> Readout:
    """Read labels out of full-vocabulary logits (finite or -inf), given by their places.

    When every label is at -inf the mass is 0 and the probabilities are undefined. Refused: no labels, a
    label twice or outside the vocabulary, NaN, +inf, a vocabulary all at -inf.
    """
    logits = np.asarray(vocabulary, dtype=np.float64)
    places = list(labels)
    if not places or len(set(places)) != len(places):
        raise ValueError("labels are distinct places in the vocabulary, at least one")
    if logits.ndim != 1 or not all(0 <= place < len(logits) for place in places):
        raise ValueError(f"labels are places in a list of {logits.size} logits")
    whole = kernel.logsumexp(logits)
    if whole == -np.inf:
        raise ValueError("at least one logit of the vocabulary is finite")
    own = kernel.logsumexp(logits[places])
    if own == -np.inf:
        return Readout(None, 0.0, MassKind.EXACT)
    mass = min(1.0, float(kernel.exp(own - whole)))
    return Readout(tuple(kernel.exp(logits[places] - own).tolist()), mass, MassKind.EXACT)


def from_top(logprobs: Sequence[float | None]) -> Readout:
    """Read labels out of the best k log-probabilities; None for a label that is not among them.

    The mass is the sum over the labels seen, a lower bound that stays below 1 (reported log-probabilities
    are rounded, so a sum of 1 proves nothing); with none seen it is unavailable. Probabilities are undefined
    unless every label was seen, and then divide what was seen.
    """
    if not logprobs:
        raise ValueError("at least one label is needed")
    seen = [value for value in logprobs if value is not None]
    if not seen:
        return Readout(None, None, MassKind.UNAVAILABLE)
    own = kernel.logsumexp(seen)
    if own == -np.inf:
        return Readout(None, 0.0, MassKind.LOWER_BOUND)
    whole = len(seen) == len(logprobs)
    parts = tuple(kernel.exp(np.array(seen) - own).tolist()) if whole else None
    return Readout(parts, float(kernel.exp(min(own, _BELOW_ONE))), MassKind.LOWER_BOUND)


def preference(first: float, second: float) -> float | None:
    """q = p_A / (p_A + p_B) from two probabilities; None when both are 0."""
    return None if first + second == 0 else first / (first + second)


def preference_of_logits(first: float, second: float) -> float:
    """q = 1 / (1 + exp(z_B - z_A)) from two finite logits, by the exponential that cannot overflow."""
    small = float(kernel.exp(-abs(first - second)))
    return 1.0 / (1.0 + small) if first >= second else small / (1.0 + small)


@dataclass(frozen=True)
class MassTable:
    """The label masses of one arm. Minimum, median and share are over the exact ones; None without any."""

    n: int
    unavailable: int
    lower_bounds: int
    min: float | None
    median: float | None
    share_below_half: float | None


def table(masses: npt.ArrayLike, kinds: Sequence[MassKind] | None = None) -> MassTable:
    """Summarise label masses; NaN marks one that is unavailable, `kinds` (else exact) says what the rest are.

    Bounds are counted and never averaged with exact masses.
    """
    values = np.asarray(masses, dtype=np.float64)
    known = ~np.isnan(values)
    bounds = np.zeros(len(values), dtype=np.bool_)
    if kinds is not None:
        if len(kinds) != len(values):
            raise ValueError(f"{len(values)} masses need as many kinds, got {len(kinds)}")
        known &= np.array([kind != MassKind.UNAVAILABLE for kind in kinds], dtype=np.bool_)
        bounds = np.array([kind == MassKind.LOWER_BOUND for kind in kinds], dtype=np.bool_) & known
    if not bool(np.all((values[known] >= 0) & (values[known] <= 1))):
        raise ValueError("a label mass lies in [0, 1]")
    usable = np.sort(values[known & ~bounds])
    below = int(np.count_nonzero(usable < 0.5))
    return MassTable(
        n=len(values),
        unavailable=int(np.count_nonzero(~known)),
        lower_bounds=int(np.count_nonzero(bounds)),
        min=float(usable[0]) if len(usable) else None,
        median=intervals.quantile7(usable, Fraction(1, 2)) if len(usable) else None,
        share_below_half=exact.rounded(Fraction(below, len(usable))) if len(usable) else None,
    )
