"""Any table of a record as rows of text: known or not, each becomes a grid that a page can show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from audits.wording import interval, number, undefined
from contracts.findings import shown

ROWS = 200  # rows of one grid; the record has them all
CELL = 160  # characters of one cell
NAME = 80  # characters of an id


@dataclass(frozen=True)
class Grid:
    """A heading, columns and rows of text; `more` rows are left out."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: int = 0


@dataclass(frozen=True)
class Line:
    """One estimate as a page shows it."""

    name: str
    value: str
    percentile: str
    second: str
    verdict: str
    primary: bool


def grids(tables: Mapping[str, Any]) -> list[Grid]:
    """Every table of a record."""
    found = [made for name, value in tables.items() for made in _split(name.replace("_", " "), value)]
    return [made for made in found if made.rows]


def settings(title: str, value: Mapping[str, Any]) -> Grid:
    """What was asked for, as it was: numbers without grouping, and what is null was not set."""
    rows = ([path, _setting(leaf)] for path, leaf in _paths(value, ""))
    return _cut(title, ("", "value"), rows, sum(1 for _ in _paths(value, "")))


def lines(estimates: Mapping[str, Any]) -> list[Line]:
    """Every estimate, the primary ones first."""
    found = [_line(name, fields) for name, fields in estimates.items()]
    return sorted(found, key=lambda line: not line.primary)


def cell(value: object) -> str:
    """A value of a record in a few characters; what is null is undefined, never 0."""
    if value is None:
        return "undefined"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return number(value, signed=value < 0)
    if isinstance(value, str):
        return shown(value, CELL)
    return shown(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")), CELL)


def _line(name: str, fields: Mapping[str, Any]) -> Line:
    ends, why = fields["ci95"], fields.get("reason")
    signed = "verdict" in fields
    second = ""
    for key, words in (("ci95_t", "t"), ("ci95_wilson", "Wilson")):
        if fields.get(key):
            second = f"{words} {interval(fields[key], signed=signed)}"
    bound = fields.get("zero_event_upper95")
    if bound is not None:
        percentile = f"below {number(bound, signed=False)}"
    else:
        percentile = undefined(why) if ends is None else interval(ends, signed=signed)
    marks = [mark.replace("_", " ") for mark in ("fragile", "mc_sensitive") if fields.get(mark)]
    return Line(
        shown(name, NAME),
        undefined(why) if fields["value"] is None else number(fields["value"], signed=signed),
        percentile,
        second,
        ", ".join(part for part in (fields.get("verdict", ""), *marks) if part),
        fields.get("role") == "primary",
    )


def _setting(value: object) -> str:
    if value is None:
        return "not set"
    return str(value) if type(value) in (int, float) else cell(value)


def _split(title: str, value: object) -> Iterator[Grid]:
    """A table, and after it each list of rows that it holds as a table of its own."""
    inner = {}
    if isinstance(value, Mapping):
        inner = {name: part for name, part in value.items() if _is_rows(part)}
        value = {name: part for name, part in value.items() if name not in inner}
    yield _grid(title, value)
    for name, part in inner.items():
        yield _grid(f"{title}: {str(name).replace('_', ' ')}", part)


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _grid(title: str, value: object) -> Grid:
    if isinstance(value, list) and _is_rows(value):
        columns = tuple(dict.fromkeys(key for item in value for key in item))
        return _cut(title, columns, ([_at(item, key) for key in columns] for item in value), len(value))
    if isinstance(value, Mapping) and value and all(_flat(item) for item in value.values()):
        columns = tuple(dict.fromkeys(key for item in value.values() for key in item))
        rows = ([shown(name, NAME), *(_at(item, key) for key in columns)] for name, item in value.items())
        return _cut(title, ("", *columns), rows, len(value))
    pairs = list(_paths(value, ""))
    return _cut(title, ("", "value"), ([shown(path, NAME), cell(leaf)] for path, leaf in pairs), len(pairs))


def _at(item: Mapping[str, Any], key: str) -> str:
    """A cell of a row; a dash where the row has no such part."""
    return cell(item[key]) if key in item else "–"


def _flat(value: object) -> bool:
    if not isinstance(value, Mapping) or not value:
        return False
    return not any(isinstance(inner, Mapping) for inner in value.values())


def _paths(value: object, path: str) -> Iterable[tuple[str, object]]:
    """Every leaf of nested objects; a list is one leaf."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _paths(inner, f"{path} {key}".replace("_", " ").strip())
    else:
        yield path, value


def _cut(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], total: int) -> Grid:
    kept = tuple(tuple(row) for row, _ in zip(rows, range(ROWS), strict=False))
    named = tuple(shown(column.replace("_", " "), NAME) for column in columns)
    return Grid(title, named, kept, total - len(kept))
