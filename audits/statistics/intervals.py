"""Intervals from replicates, and the verdict an interval supports.

Source: STATISTICS rules 6 and 7; Hyndman & Fan, Sample quantiles in statistical packages (1996), type 7.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, sqrt
from typing import Final

import numpy as np

from audits.statistics import critical, exact
from audits.statistics.estimate import Interval, Verdict

LEVEL95: Final = Fraction(95, 100)
LEVEL90: Final = Fraction(90, 100)
FEWEST_CLUSTERS: Final = 10
"""Below this many clusters an interval carries no verdict."""
UNDEFINED_LIMIT: Final = Fraction(1, 100)
"""Above this share of undefined replicates an interval is refused."""


def tails(level: Fraction) -> tuple[Fraction, Fraction]:
    """The two probabilities an equal-tailed interval ends at: 95/100 gives 1/40 and 39/40."""
    return (1 - level) / 2, (1 + level) / 2


def quantile7(ordered: exact.Float, p: Fraction) -> float:
    """The type 7 quantile of an ascending, non-empty array, at the exact rational position (B-1)p."""
    position = (len(ordered) - 1) * p
    place = floor(position)
    low = float(ordered[place])
    if position == place:
        return low
    return low + (float(ordered[place + 1]) - low) * exact.rounded(position - place)


def percentile(ordered: exact.Float, level: Fraction) -> Interval:
    """The equal-tailed percentile interval of ascending replicates."""
    low, high = tails(level)
    return quantile7(ordered, low), quantile7(ordered, high)


def student(value: float, standard_error: float, clusters: int, level: Fraction) -> Interval:
    """value ± t(C-1) times the standard error; at least two clusters."""
    half = critical.student(exact.rounded(tails(level)[1]), clusters - 1) * standard_error
    return value - half, value + half


def wilson(rate: float, size: float, z: float) -> Interval:
    """Wilson's score interval of a rate over `size` (perhaps fractional, positive) trials."""
    spread = z * sqrt(rate * (1.0 - rate) / size + z * z / (4.0 * size * size))
    centre, scale = rate + z * z / (2.0 * size), 1.0 + z * z / size
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def verdict(interval: Interval) -> Verdict:
    """The sign the interval supports; an endpoint of exactly 0 supports none."""
    if interval[0] > 0:
        return Verdict.POSITIVE
    return Verdict.NEGATIVE if interval[1] < 0 else Verdict.UNRESOLVED


def monte_carlo_sensitive(ordered: exact.Float, p: Fraction, edge: float) -> bool:
    """Whether `edge` lies where another seed could put the quantile p of ascending replicates.

    That range goes from the order statistic at rank (B-1)p - 1.96 sqrt(B p (1-p)), rounded down, to the one
    at (B-1)p + 1.96 sqrt(B p (1-p)), rounded up. A range of one single value is sensitive to nothing.
    """
    size = len(ordered)
    reach = 1.96 * sqrt(size * p * (1 - p))
    centre = exact.rounded((size - 1) * p)
    low = float(ordered[max(0, floor(centre - reach))])
    high = float(ordered[min(size - 1, ceil(centre + reach))])
    return low <= edge <= high and low < high


def ascending(replicates: exact.Replicates) -> exact.Float:
    """The defined replicates, sorted."""
    return np.sort(replicates.values[replicates.defined])
