"""Canonical JSON (RFC 8785) with strict readers: one value, one sequence of bytes.

The serialiser is the `rfc8785` library, or the faster one of the standard library where both write the
same. Neither refuses all it should (a lone surrogate in a key, endless nesting), so a walk over the value
comes first. The readers refuse what two implementations could understand differently: repeated keys, NaN,
integers a double cannot hold. Everything refused is a MalformedError.
"""

from __future__ import annotations

import json
import math

import rfc8785

from contracts.errors import MalformedError

MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 64
MAX_BYTES = 64 * 1024
_RANGE = "at most 2^53 - 1 in size"
# Writes the form of RFC 8785 for values without floats and with ASCII keys, whose order by code point is that
# by UTF-16: it escapes what has to be escaped, in the same spelling, and nothing else.
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
# No double above 2^53 is written with more digits than this before RFC 8785 turns to an exponent.
_LONGEST_WHOLE = len("-295147905179352830000")


def canonical(value: object) -> bytes:
    """The canonical bytes of a JSON value made of None, bool, int, float, str, list, tuple and dict."""
    if _check(value, None, MAX_DEPTH):
        return _ENCODER.encode(value).encode()
    try:
        return rfc8785.dumps(value)  # type: ignore[arg-type]
    except rfc8785.CanonicalizationError as error:
        raise MalformedError(f"not representable in canonical json ({error})") from error


def parse(
    data: bytes, *, limit: int = MAX_BYTES, depth: int = MAX_DEPTH, whole_floats: bool = False
) -> object:
    """The value of strict JSON bytes of at most `limit` bytes and `depth` levels.

    Integers outside +-(2^53 - 1) are refused; with `whole_floats` those that are exactly how
    RFC 8785 writes a double come back as that double, so every canonical text can be read.
    """
    value = decode(data, limit=limit, whole_floats=whole_floats)
    _check(value, None, depth)
    return value


def decode(data: bytes, *, limit: int = MAX_BYTES, whole_floats: bool = False) -> object:
    """Like `parse`, for readers that judge numbers, texts and depth themselves to report every fault.

    Integers that are too large may come back as another one that is too large.
    """
    if len(data) > limit:
        raise MalformedError("json too long", expected=f"at most {limit} bytes", got=len(data))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError(f"json is not utf-8 (byte {error.start})") from error
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_int=_whole_float if whole_floats else _integer
        )
    except json.JSONDecodeError as error:
        raise MalformedError(
            f"not json: {error.msg.lower()} (line {error.lineno} column {error.colno})"
        ) from error
    except RecursionError as error:
        raise MalformedError("json nested too deeply") from error


def parse_canonical(data: bytes, *, limit: int = MAX_BYTES, depth: int = MAX_DEPTH) -> object:
    """The value of JSON bytes that are already canonical; any other spelling of it is refused."""
    value = parse(data, limit=limit, depth=depth, whole_floats=True)
    if canonical(value) != data:
        raise MalformedError("json is not in canonical form", expected="the form of rfc 8785")
    return value


def at_key(path: str, key: str | int) -> str:
    """The path of a key or list index inside the value at `path`, for messages: `a.b[0]."odd key"`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    name = key if key.isidentifier() else json.dumps(key)[:80]
    return f"{path}.{name}" if path else name


# The steps from the root to a value, innermost last: ((None, "a"), 0) is `a[0]`. Rendered on failure only.
Trail = tuple["Trail", str | int] | None


def _path(trail: Trail) -> str | None:
    return at_key(_path(trail[0]) or "", trail[1]) if trail else None


def _check(value: object, trail: Trail, depth: int) -> bool:
    """Raise unless `value` is plain JSON; `depth` is the number of levels still allowed.

    Returns whether `_ENCODER` writes it canonically: without floats, all keys ASCII.
    """
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, str):
        _check_text(value, trail)
        return True
    if isinstance(value, int | float):
        return _check_number(value, trail)
    if isinstance(value, dict | list | tuple):
        if depth == 0:
            raise MalformedError("json nested too deeply")
        if isinstance(value, dict):
            return _check_object(value, trail, depth)
        plain = True
        for index, item in enumerate(value):
            plain &= _check(item, (trail, index), depth - 1)
        return plain
    raise MalformedError("not a json value", got=type(value).__name__, where=_path(trail))


def _check_object(value: dict[object, object], trail: Trail, depth: int) -> bool:
    plain = True
    for key, item in value.items():
        if not isinstance(key, str):
            raise MalformedError("object key is not a string", got=type(key).__name__, where=_path(trail))
        _check_text(key, trail)
        plain &= key.isascii() & _check(item, (trail, key), depth - 1)
    return plain


def _check_number(value: int | float, trail: Trail) -> bool:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise MalformedError("number is not finite", got=value, where=_path(trail))
        return False
    if abs(value) > MAX_INTEGER:
        raise MalformedError("integer too large for json", expected=_RANGE, where=_path(trail))
    return True


def _check_text(text: str, trail: Trail) -> None:
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise MalformedError("text holds a lone surrogate", where=_path(trail)) from error


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise MalformedError("repeated key in a json object", got=at_key("", key))
            seen.add(key)
    return members


def _integer(text: str) -> int:
    if len(text) <= _LONGEST_WHOLE:
        return int(text)
    return -MAX_INTEGER - 1 if text.startswith("-") else MAX_INTEGER + 1


def _whole_float(text: str) -> int | float:
    if len(text) <= _LONGEST_WHOLE and abs(int(text)) > MAX_INTEGER:
        number = float(text)
        if rfc8785.dumps(number).decode() == text:
            return number
    return _integer(text)
