"""Exponential, logarithm and margins that are the same bits on every machine.

Library exp and log differ between processors and builds, so a margin F would too. Here both are made of
IEEE 754 additions, subtractions, multiplications, divisions and scalings by powers of two only, in a fixed
order, after the argument reductions of FreeBSD's msun (e_exp.c, e_log.c; Sun Microsystems 1993), and stay
within 1 ulp of the exact value. A compiler may fuse a*b + c into one rounding, which would change bits;
numpy cannot, because every array operation here is its own call that stores a rounded float64 array.

Sources: STATISTICS rule 1; margin F = e_target - log(sum over competitors of exp(e)).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float64]

GRID_BITS: Final = 40
"""A margin is an integer number of 2^-40 (9.1e-13)."""
MARGIN_LIMIT: Final = 2.0**22
"""Margins this large or larger do not fit the grid and are refused."""

_LOWEST = -745.0  # below it exp is 0 by definition
_HIGHEST = 709.0  # e^709 is finite; nothing here needs more
_INVERSE_LN2 = float.fromhex("0x1.71547652b82fep+0")
# ln 2 in two parts; the high part ends in 21 zero bits, so its product with an exponent is exact
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_EXP = tuple(
    float.fromhex(c)
    for c in (
        "0x1.555555555553ep-3",
        "-0x1.6c16c16bebd93p-9",
        "0x1.1566aaf25de2cp-14",
        "-0x1.bbd41c5d26bf1p-20",
        "0x1.6376972bea4d0p-25",
    )
)
_LOG = tuple(
    float.fromhex(c)
    for c in (
        "0x1.5555555555593p-1",
        "0x1.999999997fa04p-2",
        "0x1.2492494229359p-2",
        "0x1.c71c51d8e78afp-3",
        "0x1.7466496cb03dep-3",
        "0x1.39a09d078c69fp-3",
        "0x1.2f112df3e5244p-3",
    )
)
_HALF_ROOT = float.fromhex("0x1.6a09e667f3bcdp-1")
_CHUNK = 16_384  # rows worked on at once: the temporaries stay in the processor's cache
_NETWORK_LIMIT = 8  # up to here a sorting network over columns beats a sort of every row


def exp(x: npt.ArrayLike) -> Float:
    """e to the x, within 1 ulp; 0 below -745. Any shape; -inf is allowed, above 709 and NaN are refused."""
    values = np.asarray(x, dtype=np.float64)
    if not bool(np.all(values <= _HIGHEST)):
        raise ValueError("exp takes numbers up to 709")
    return _exp(values.reshape(-1)).reshape(values.shape)


def log(x: npt.ArrayLike) -> Float:
    """The natural logarithm, within 1 ulp, of finite positive numbers of any shape; others are refused."""
    values = np.asarray(x, dtype=np.float64)
    if not bool(np.all((values > 0) & (values < np.inf))):
        raise ValueError("log takes finite positive numbers")
    return _log(values.reshape(-1)).reshape(values.shape)


def logsumexp(values: npt.ArrayLike) -> float:
    """log of the sum of the exponentials of a list, added in ascending order; -inf when all of them are -inf.

    Equal lists in any order give equal bits. An empty list, NaN or +inf is refused.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64).ravel())
    if ordered.size == 0 or not ordered[-1] < np.inf:
        raise ValueError("logsumexp takes a non-empty list of numbers that are finite or -inf")
    top = float(ordered[-1])
    if top == -np.inf:
        return top
    # cumsum adds strictly from left to right; sum would add in pairs
    return top + float(_log(np.cumsum(_exp(ordered - top))[-1:])[0])


def margins(energies: npt.ArrayLike, target: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """The margin F of every row, in units of 2^-40, rounded half to even.

    `energies` float64[n, K], one score per candidate; `target` integer[n], the reviewed candidate's column.
    The competitors are added in ascending order of energy, so relabelled candidates give the same bits.
    Refused with ValueError: K < 2 (no competitor), a target outside [0, K), energies that are not finite,
    a margin of 2^22 or more.
    """
    table = np.asarray(energies, dtype=np.float64)
    chosen = np.asarray(target)
    if table.ndim != 2 or chosen.shape != table.shape[:1]:
        raise ValueError(f"energies need the shape (n, K) and target (n,), got {table.shape}, {chosen.shape}")
    rows, width = table.shape
    if width < 2:
        raise ValueError("a margin needs at least one competitor beside the target")
    if chosen.dtype.kind not in "iu":
        raise ValueError(f"target holds column numbers, got {chosen.dtype}")
    if rows and not (int(chosen.min()) >= 0 and int(chosen.max()) < width):
        raise ValueError(f"target holds column numbers below {width}")
    out = np.empty(rows, dtype=np.int64)
    for start in range(0, rows, _CHUNK):
        part = slice(start, min(start + _CHUNK, rows))
        out[part] = _margins(table[part], chosen[part])
    return out


def _margins(table: Float, target: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    columns = list(np.array(table.T, order="C"))
    if not all(bool(np.isfinite(column).all()) for column in columns):
        raise ValueError("energies are finite numbers")
    own = columns[0].copy()
    for place, column in enumerate(columns[1:], 1):
        np.copyto(own, column, where=target == place)
    # competitor j is candidate j, or candidate j + 1 from the target on
    rivals = [np.where(target <= j, columns[j + 1], columns[j]) for j in range(len(columns) - 1)]
    ordered = _ascending(rivals)
    top = ordered.pop()
    total = np.zeros_like(top)
    for energy in ordered:
        total += _exp(energy - top)
    total += 1.0  # the largest competitor: exp(0)
    margin = (own - top) - _log(total)
    if not bool(np.all(np.abs(margin) < MARGIN_LIMIT)):
        raise ValueError("a margin of 2^22 or more does not fit the grid")
    grid: Float = np.rint(margin * 2.0**GRID_BITS)
    return grid.astype(np.int64)


def _ascending(columns: list[Float]) -> list[Float]:
    """The same numbers, every row sorted over the columns."""
    if len(columns) > _NETWORK_LIMIT:
        return list(np.array(np.sort(np.stack(columns, axis=1), axis=1).T, order="C"))
    for end in range(len(columns) - 1, 0, -1):
        for i in range(end):
            low = np.minimum(columns[i], columns[i + 1])
            columns[i + 1] = np.maximum(columns[i], columns[i + 1])
            columns[i] = low
    return columns


def _exp(x: Float) -> Float:
    clipped = np.maximum(x, _LOWEST)
    power = np.rint(clipped * _INVERSE_LN2)
    high = clipped - power * _LN2_HIGH
    low = power * _LN2_LOW
    r = high - low
    t = r * r
    c = r - t * _horner(t, _EXP)
    y = 1.0 - ((low - (r * c) / (2.0 - c)) - high)
    # two factors, so that a result below 2^-1022 is rounded once, by the second product
    whole = power.astype(np.int64)
    half = whole >> 1
    y = (y * _power_of_two(half)) * _power_of_two(whole - half)
    y[x < _LOWEST] = 0.0
    return y


def _log(x: Float) -> Float:
    fraction, exponent = np.frexp(x)
    small = fraction < _HALF_ROOT
    f = fraction * np.where(small, 2.0, 1.0) - 1.0
    k = (exponent - small).astype(np.float64)
    s = f / (2.0 + f)
    z = s * s
    half_square = 0.5 * f * f
    r = z * _horner(z, _LOG)
    return (((s * (half_square + r) + k * _LN2_LOW) - half_square) + f) + k * _LN2_HIGH


def _horner(t: Float, coefficients: tuple[float, ...]) -> Float:
    total = t * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        total += coefficient
        total *= t
    total += coefficients[0]
    return total


def _power_of_two(exponent: npt.NDArray[np.int64]) -> Float:
    """2 to the integer, for exponents of normal numbers, by writing the exponent field."""
    bits: npt.NDArray[np.int64] = (exponent + 1023) << 52
    return bits.view(np.float64)
