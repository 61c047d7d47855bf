"""A channel specification as TOML text that reads back as the same specification."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

_ESCAPED = frozenset('"\\')
_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def specification(name: str, tables: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    """The lines of the file: the name, then each table. A null, which only JSON has, stands as a comment."""
    yield f"name = {_text(name)}"
    for table, values in tables.items():
        yield ""
        yield f"[{table}]"
        for key, value in values.items():
            if value is None:
                yield f"# {_key(key)} is null, which only the JSON form can say"
            elif isinstance(value, str) and "\n" in value:
                yield f'{_key(key)} = """'
                lines = [_text(line)[1:-1] for line in value.split("\n")]
                yield from lines[:-1]
                yield f'{lines[-1]}"""'
            else:
                yield f"{_key(key)} = {_value(value)}"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    """A basic string; what a terminal would not show as itself is escaped."""
    return '"' + "".join(map(_letter, text)) + '"'


def _letter(letter: str) -> str:
    if letter in _ESCAPED:
        return "\\" + letter
    if not letter.isprintable():
        point = ord(letter)
        return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
    return letter


def _value(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return json.dumps(value)
