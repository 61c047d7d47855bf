"""Critical values of Student's t and the normal distribution, rounded to 10 significant digits.

They are rounded before use so that no release of a mathematics library can change a byte of a result.
For whole degrees of freedom Student's distribution is a finite sum (Abramowitz & Stegun 26.7.3, 26.7.4),
solved here by Newton's method; for many degrees the expansion about the normal quantile (26.7.5) is exact
far beyond the digits kept. Source: STATISTICS rule 6.
"""

from __future__ import annotations

from functools import lru_cache
from math import atan, exp, lgamma, log, pi, sqrt
from statistics import NormalDist

_EXPANSION_FROM = 2_000  # the first neglected term is below 1e-15 there
_STEPS = 60


def ten_digits(x: float) -> float:
    """The number rounded to 10 significant decimal digits."""
    return float(f"{x:.9e}")


@lru_cache(maxsize=256)
def normal(p: float) -> float:
    """z with P(Z <= z) = p, for p in (0, 1), to 10 significant digits."""
    return ten_digits(NormalDist().inv_cdf(p))


@lru_cache(maxsize=1024)
def student(p: float, dof: int) -> float:
    """t with P(T <= t) = p, for p in (1/2, 1) and a whole number of degrees of freedom, to 10 digits."""
    if dof < 1:
        raise ValueError(f"degrees of freedom start at 1, got {dof}")
    if not 0.5 < p < 1.0:
        raise ValueError(f"p lies between 1/2 and 1, got {p}")
    z = NormalDist().inv_cdf(p)
    return ten_digits(_expansion(z, dof) if dof >= _EXPANSION_FROM else _solve(2.0 * p - 1.0, z, dof))


def _expansion(z: float, dof: int) -> float:
    """A&S 26.7.5, to the fourth power of 1/dof."""
    s = z * z
    g1 = z * (s + 1) / 4
    g2 = z * ((5 * s + 16) * s + 3) / 96
    g3 = z * (((3 * s + 19) * s + 17) * s - 15) / 384
    g4 = z * ((((79 * s + 776) * s + 1482) * s - 1920) * s - 945) / 92160
    return z + (g1 + (g2 + (g3 + g4 / dof) / dof) / dof) / dof


def _central(t: float, dof: int) -> float:
    """P(-t <= T <= t): A&S 26.7.3 for odd and 26.7.4 for even degrees; all terms are positive."""
    cos2 = dof / (dof + t * t)
    sine = t / sqrt(dof + t * t)
    odd = dof % 2
    term, series = 1.0, 1.0
    for k in range(2 + odd, dof - 1, 2):
        term *= cos2 * (k - 1) / k
        series += term
    if not odd:
        return sine * series
    angle = atan(t / sqrt(dof))
    return 2.0 / pi * (angle + (sine * sqrt(cos2) * series if dof > 1 else 0.0))


def _solve(central: float, z: float, dof: int) -> float:
    """Newton's method from below: the distribution function is concave there, so it never overshoots."""
    scale = lgamma((dof + 1) / 2) - lgamma(dof / 2) - 0.5 * log(dof * pi)
    t = z
    for _ in range(_STEPS):
        density = exp(scale - (dof + 1) / 2 * log(1.0 + t * t / dof))
        step = (_central(t, dof) - central) / (2.0 * density)
        t -= step
        if abs(step) <= 1e-14 * t:
            break
    return t
