"""Predictions files, line by line into columns: strict JSON, any order of keys, bounded memory.

Lines are read in batches so that a million pairs cost columns and not a million objects. Type faults
are collected with their lines; only bytes that are no JSON Lines file at all end the reading.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pyarrow as pa

from contracts.errors import ContractError
from contracts.findings import shown
from contracts.jev_source import (
    ARMS,
    CELLS,
    KNOWN,
    NAMES,
    PAIRS,
    POSITIVES,
    BadValue,
    LabelReader,
    SourcePredictions,
)

BATCH = 65_536  # lines held as Python objects at once
LONGEST = 16 << 20  # a line may carry the logits of a whole vocabulary, twice
MAX_INT16 = 2**15 - 1
_JSON = {dict: "object", list: "array", str: "text", bool: "boolean", type(None): "null"}


class _DuplicateKeyError(ValueError):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        raise _DuplicateKeyError(next(name for name in names if names.count(name) > 1))
    return made


def _constant(text: str) -> float:
    # A collector writes the logit of an impossible token so; NaN and +Infinity are never a reading.
    if text != "-Infinity":
        raise ValueError(f"{text} is no JSON number")
    return -math.inf


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"number {text[:20]} is out of range")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_constant, parse_float=_float)


@dataclass
class _Columns:
    """The columns of one batch, growing."""

    pairs: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in PAIRS.names})
    cells: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in CELLS.names})
    positives: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in POSITIVES.names})


@dataclass
class _Reader:
    """Reads the lines of one file; `reader` is the arithmetic of logits."""

    reader: LabelReader | None
    bad: list[BadValue] = field(default_factory=list)
    ignored: dict[str, None] = field(default_factory=dict)
    count: int = 0

    def fault(self, line: int, column: str, code: str, wanted: str, got: object) -> None:
        self.bad.append(BadValue(line, column, code, wanted, shown(got)))

    def take(self, number: int, raw: bytes, into: _Columns) -> None:
        """One line into the columns, or its faults onto the list."""
        try:
            value = _DECODER.decode(raw.decode("utf-8"))
        except _DuplicateKeyError as error:
            self.fault(number, "", "duplicate-key", "every key once", error)
            return
        except UnicodeDecodeError:
            self.fault(number, "", "not-utf8", "UTF-8 text", "other bytes")
            return
        except RecursionError:
            self.fault(number, "", "too-deep", "one flat object", "deep nesting")
            return
        except ValueError as error:
            self.fault(number, "", "not-json", "one JSON object", str(error))
            return
        if not isinstance(value, dict):
            self.fault(number, "", "not-an-object", "one JSON object", type(value).__name__)
            return
        if not KNOWN.issuperset(value):
            self.ignored.update(dict.fromkeys(name for name in value if name not in KNOWN))
        self._pair(number, value, into)

    def _pair(self, line: int, value: Mapping[str, Any], into: _Columns) -> None:
        pairs = into.pairs
        pairs["line"].append(line)
        year = value.get("year")
        if type(year) is not int:
            self.fault(line, "year", "wrong-type", "an integer", _kind(value, "year"))
            year = None
        pairs["year"].append(year)
        for name in NAMES:
            text = value.get(name)
            if text is not None and type(text) is not str:
                self.fault(line, name, "wrong-type", "text", _kind(value, name))
                text = None
            pairs[name].append(text)
        positions = self._order(line, value)
        for arm, name in enumerate(ARMS):
            self._arm(line, arm, name, value, positions, into)
        labels = value.get("positive_labels")
        if type(labels) is not list or any(type(label) is not str for label in labels):
            self.fault(
                line, "positive_labels", "wrong-type", "a list of labels", _kind(value, "positive_labels")
            )
        else:
            if len(set(labels)) < len(labels):
                self.fault(line, "positive_labels", "duplicate-label", "every label once", "a label twice")
            into.positives["pair"] += [self.count] * len(labels)
            into.positives["label"] += labels
        self.count += 1

    def _order(self, line: int, value: Mapping[str, Any]) -> Mapping[str, int] | None:
        order = value.get("label_order")
        if order is None:
            return None
        if (
            type(order) is not list
            or len(order) > MAX_INT16
            or any(type(label) is not str for label in order)
        ):
            self.fault(line, "label_order", "wrong-type", "a list of labels", _kind(value, "label_order"))
            return None
        if len(set(order)) != len(order):
            self.fault(line, "label_order", "duplicate-label", "every label once", "a label twice")
        return {label: position for position, label in enumerate(order)}

    def _arm(
        self,
        line: int,
        arm: int,
        name: str,
        value: Mapping[str, Any],
        positions: Mapping[str, int] | None,
        into: _Columns,
    ) -> None:
        given = value.get(name)
        derived, mass, kind = self._logits(line, name, value)
        if given is None and derived is not None:
            given = derived
        if type(given) is not dict:
            self.fault(line, name, "wrong-type", "an object of label and probability", _kind(value, name))
            given = {}
        elif not given:
            self.fault(line, name, "empty-arm", "at least one label", "none")
        claimed = value.get(f"{name}_label_mass")
        if claimed is not None:
            if type(claimed) not in (int, float):
                self.fault(
                    line, f"{name}_label_mass", "wrong-type", "a number", _kind(value, f"{name}_label_mass")
                )
            elif kind is None:
                mass, kind = float(claimed), "given"
        into.pairs[f"{name}_label_mass"].append(mass)
        into.pairs[f"{name}_mass_kind"].append(kind)
        self._cells(line, arm, name, given, into)
        into.cells["request_hash"] += self._hashes(line, f"{name}_request_hash", value, given)
        into.cells["label_position"] += [
            None if positions is None else positions.get(label) for label in given
        ]
        if positions is not None and any(label not in positions for label in given):
            self.fault(line, "label_order", "label-not-ordered", "every label of both arms", "one is missing")

    def _cells(self, line: int, arm: int, name: str, given: Mapping[str, Any], into: _Columns) -> None:
        values = list(given.values())
        if not {float, int}.issuperset(map(type, values)):
            for label, item in given.items():
                if type(item) not in (float, int):
                    self.fault(line, name, "number-as-text", "a JSON number", f"{label}: {json.dumps(item)}")
            values = [item if type(item) in (float, int) else None for item in values]
        cells = into.cells
        cells["pair"] += [self.count] * len(values)
        cells["arm"] += [arm] * len(values)
        cells["label"] += given
        cells["probability"] += values

    def _hashes(
        self, line: int, name: str, value: Mapping[str, Any], given: Mapping[str, Any]
    ) -> list[str | None]:
        """One digest for the whole arm, or one per label where each was asked alone."""
        hashes = value.get(name)
        if hashes is None or type(hashes) is str:
            return [hashes] * len(given)
        if type(hashes) is dict and all(type(item) is str for item in hashes.values()):
            return [hashes.get(label) for label in given]
        self.fault(line, name, "wrong-type", "a digest, or an object of label and digest", _kind(value, name))
        return [None] * len(given)

    def _logits(
        self, line: int, name: str, value: Mapping[str, Any]
    ) -> tuple[dict[str, float] | None, float | None, str | None]:
        """(probabilities, mass, how it is known) from `<arm>_logits`; all None where it is absent.

        Shapes: {"vocabulary": [z…], "labels": {label: position}} gives both; {"top": {token: logprob}} gives
        a lower bound of the mass on the arm's labels, since tokens beyond the best k are unseen.
        """
        column = f"{name}_logits"
        logits = value.get(column)
        if logits is None:
            return None, None, None
        assert self.reader is not None, "reading logits needs their arithmetic"
        given = value.get(name)
        top: Any = logits["top"] if type(logits) is dict and set(logits) == {"top"} else None
        if _numbers(top) and type(given) is dict:
            bound = self.reader.from_top([top.get(label) for label in given]) if given else None
            mass = None if bound is None else bound.mass
            return None, mass, None if mass is None else "lower_bound"
        if not _whole_vocabulary(logits):
            self.fault(
                line,
                column,
                "wrong-type",
                "vocabulary and labels, or top beside the arm",
                _kind(value, column),
            )
            return None, None, None
        labels = list(logits["labels"])
        if type(given) is dict and set(given) != set(labels):
            self.fault(line, column, "labels-disagree", "the labels of the arm", ", ".join(labels))
            return None, None, None
        found = self.reader.from_logits(logits["vocabulary"], list(logits["labels"].values()))
        if found.probabilities is None:
            self.fault(line, column, "no-label-mass", "an allowed label above minus infinity", "none")
            return None, None, None
        return dict(zip(labels, found.probabilities, strict=True)), found.mass, "exact"


def _whole_vocabulary(logits: object) -> bool:
    return (
        type(logits) is dict
        and set(logits) == {"vocabulary", "labels"}
        and type(logits["vocabulary"]) is list
        and all(type(item) in (int, float) for item in logits["vocabulary"])
        and any(item != -math.inf for item in logits["vocabulary"])
        and _positions(logits["labels"], len(logits["vocabulary"]))
    )


def _numbers(value: object) -> bool:
    return type(value) is dict and bool(value) and all(type(item) in (int, float) for item in value.values())


def _positions(value: object, size: int) -> bool:
    return (
        type(value) is dict
        and bool(value)
        and all(type(item) is int and 0 <= item < size for item in value.values())
        and len(set(value.values())) == len(value)
    )


def _kind(value: Mapping[str, Any], name: str) -> str:
    return f"{name} absent" if name not in value else f"a JSON {_JSON.get(type(value[name]), 'number')}"


def _lines(file: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    number = 0
    while raw := file.readline(LONGEST + 1):
        number += 1
        if len(raw) > LONGEST:
            raise ContractError(
                "a line is too long",
                code="not-json-lines",
                where=f"{name}, line {number}",
                expected=f"at most {LONGEST:,} bytes",
                got="more",
                next_step="leave out what is no prediction",
            )
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if raw.strip():
            yield number, raw


def _table(columns: Mapping[str, list[Any]], schema: pa.Schema) -> pa.Table:
    arrays = []
    for item in schema:
        kind = item.type.value_type if pa.types.is_dictionary(item.type) else item.type
        values = columns[item.name]
        if item.name == "year":
            values = [None if v is None or abs(v) > 2**62 else v for v in values]
        array = pa.array(values, kind)
        arrays.append(array.dictionary_encode() if pa.types.is_dictionary(item.type) else array)
    return pa.table(arrays, schema=schema)


def read(file: BinaryIO, name: str, digest: str, labels: LabelReader | None = None) -> SourcePredictions:
    """One predictions file from its bytes; ContractError where it holds no line at all."""
    reader = _Reader(labels)
    parts: list[tuple[pa.Table, pa.Table, pa.Table]] = []
    columns, held = _Columns(), 0

    def close() -> None:
        nonlocal columns, held
        parts.append(
            (_table(columns.pairs, PAIRS), _table(columns.cells, CELLS), _table(columns.positives, POSITIVES))
        )
        columns, held = _Columns(), 0

    for number, raw in _lines(file, name):
        reader.take(number, raw, columns)
        held += 1
        if held == BATCH:
            close()
    if held:
        close()
    if not parts:
        raise ContractError("the file holds no line", code="empty-file", where=name)
    pairs, cells, positives = (pa.concat_tables(each) for each in zip(*parts, strict=True))
    return SourcePredictions(name, digest, pairs, cells, positives, tuple(reader.bad), tuple(reader.ignored))
