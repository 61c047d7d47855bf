"""Lines of JSON as rows, strictly, and their values by declared type.

`NaN` and `Infinity`, which JSON does not have and Python writes, are read so that the row rules can
refuse them by name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from contracts.errors import ContractError, StorageError
from contracts.findings import shown
from contracts.source_table import INCOMING, ValueType
from ledger.source_values import Unreads, cut

Row = Mapping[str, object]
# What a column of each type is read as, before text is coded.
PLAIN: Mapping[ValueType, pa.DataType] = {
    "text": pa.string(),
    "digest": pa.string(),
    "stand-in": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}
_INT64 = 2**63


class _RepeatedKeyError(ValueError):
    """Raised inside the parser; its text is the key."""


class _WrongTypeError(ValueError):
    """A value of a JSON type its column does not take."""


class _MinusZero(int):
    """The JSON number `-0`: an integer, whose nearest float64 is not that of 0."""


def not_json_lines(name: str, what: str, line: int | None) -> ContractError:
    """The error for a file that reads well and holds something else than JSON Lines."""
    return ContractError(
        what,
        code="not-json-lines",
        expected="one JSON object on each line",
        where=name if line is None else f"{name}, line {line}",
        next_step="write each row with `json.dumps` on a line of its own",
    )


def cut_off(name: str, line: int) -> StorageError:
    """The error for a last line that is not JSON and has no line end: the rest of the file is not there."""
    return StorageError(
        "the last line is cut off",
        code="truncated",
        expected="one JSON object on each line",
        where=f"{name}, line {line}",
        next_step="copy or write it again",
    )


def parse_line(text: str, number: int, name: str, *, open_ended: bool = False) -> Row:
    """One line as an object; `number` and `name` say where, `open_ended` that no line end follows."""
    try:
        row = _DECODE(text)
    except _RepeatedKeyError as error:
        raise ContractError(
            f"key {shown(str(error), 40)} occurs twice in one object",
            code="duplicate-column",
            expected="every key once",
            where=f"{name}, line {number}",
        ) from error
    except (ValueError, RecursionError) as error:
        if open_ended:
            raise cut_off(name, number) from error
        raise not_json_lines(name, "the line is not JSON", number) from error
    if not isinstance(row, dict):
        raise not_json_lines(name, "the line is not a JSON object", number)
    return row


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKeyError(next(key for key in keys if keys.count(key) > 1))
    return found


def _whole(text: str) -> int:
    return _MinusZero() if text == "-0" else int(text)


_DECODE = json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole).decode


def typed(name: str, rows: Sequence[Row], first_row: int, unreads: Unreads) -> pa.Array:
    """A column by its declared type; values of another JSON type are null and noted."""
    declared = INCOMING[name].type
    good: list[object] = []
    bad, texts = [], []
    for index, row in enumerate(rows):
        value = row.get(name)
        try:
            good.append(None if value is None else _converted(value, declared))
        except (_WrongTypeError, UnicodeEncodeError):
            good.append(None)
            bad.append(first_row + index)
            texts.append(cut(json.dumps(value)))
    unreads.add(name, np.array(bad, np.int64), pa.array(texts, pa.string()))
    return pa.array(good, PLAIN[declared])


def _converted(value: object, declared: ValueType) -> object:
    """One value as its column takes it; text must not hold a lone surrogate."""
    if declared == "number" and isinstance(value, int | float) and not isinstance(value, bool):
        return _nearest(value)
    if declared == "integer" and isinstance(value, int) and not isinstance(value, bool):
        if -_INT64 <= value < _INT64:
            return int(value)
    elif declared == "boolean" and isinstance(value, bool):
        return value
    elif declared in ("text", "digest", "stand-in") and isinstance(value, str):
        value.encode("utf-8")
        return value
    raise _WrongTypeError


def _nearest(value: float) -> float:
    if isinstance(value, _MinusZero):
        return -0.0
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)
