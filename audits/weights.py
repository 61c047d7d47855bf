"""Weights as people give them: `NAME=WEIGHT` parts or numbers, exact, brought to a sum of one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

from contracts.errors import MalformedError, UsageError

WHERE = "--weights"
T = TypeVar("T")
Weight = Fraction | float | int | str
# Decimal or a ratio of whole numbers; bounded, so that no exponent asks for a number of gigabytes.
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?|[0-9]{1,15}/[0-9]{1,15}", re.ASCII)


def parse_weights(text: str) -> dict[str, str]:
    """`A=0.5,B=0.5` by name, in the order given; a name may itself hold an equals sign."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, sign, value = part.strip().rpartition("=")
        if not sign or not name or not _NUMBER.fullmatch(value):
            raise UsageError("not a weight", expected="NAME=NUMBER,NAME=NUMBER", got=part[:80], where=WHERE)
        if name in found:
            raise UsageError("a weight is given twice", got=name[:80], where=WHERE)
        found[name] = value
    return found


def matched(weights: Mapping[str, T], names: Sequence[str]) -> dict[str, T]:
    """Weights that are given to exactly these names, in their order; UsageError for any others."""
    if set(weights) != set(names):
        raise UsageError(
            "weights of other names than those they are for",
            expected=", ".join(name[:40] for name in names),
            got=", ".join(name[:40] for name in weights),
            where=WHERE,
        )
    return {name: weights[name] for name in names}


def shares(weights: Mapping[str, Weight]) -> dict[str, Fraction]:
    """Weights as shares of their sum; UsageError for a negative or non-finite one, or none above 0."""
    try:
        exact = {name: _exact(weight) for name, weight in weights.items()}
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        raise UsageError("not a weight", expected="a finite number", where=WHERE) from error
    if any(weight < 0 for weight in exact.values()) or not any(exact.values()):
        raise UsageError(
            "weights that weigh nothing",
            expected="numbers of at least 0, one of them above 0",
            got=", ".join(f"{name[:40]}={weight}" for name, weight in list(exact.items())[:5]),
            where=WHERE,
        )
    total = sum(exact.values(), Fraction(0))
    return {name: weight / total for name, weight in exact.items()}


def _exact(weight: Weight) -> Fraction:
    """A float as the decimal it is written as: 0.1 means a tenth."""
    return Fraction(repr(weight)) if isinstance(weight, float) else Fraction(weight)


def as_options(weights: Mapping[str, Fraction]) -> list[list[str]]:
    """Shares as they stand in a design: pairs of name and ratio, in order."""
    return [[name, str(weight)] for name, weight in weights.items()]


def from_options(pairs: Sequence[Sequence[str]]) -> dict[str, Fraction]:
    """Shares read back from a design; MalformedError where they are none."""
    try:
        found = {str(name): Fraction(str(weight)) for name, weight in pairs}
        same = len(found) == len(pairs) and as_options(found) == [list(pair) for pair in pairs]
    except (ValueError, TypeError, ZeroDivisionError) as error:
        raise MalformedError("not the weights of a design", where="design") from error
    if not same or sum(found.values()) != 1 or min(found.values()) < 0:
        raise MalformedError("not the weights of a design", where="design")
    return found
