"""What the row level found, as findings for people and as rejected rows for programs.

A fault of a label is one finding for all rows of a file that carry it; a fault of a number is one finding
a row. Counts are exact and every failing row is a reject, whatever the number of examples kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.findings import ROWS, SHOWN, Finding, Findings, KeyValue, rejects_schema, shown
from contracts.labels import Labels
from contracts.raw_rows import ColumnFault, Positions, RawRows
from contracts.row_models import ENDPOINTS, MAX_INT16, MAX_INT32, MAX_LABEL_BYTES, STATUSES
from contracts.schema import TRANSPORT

CODED = pa.dictionary(pa.int32(), pa.string())
_DIGEST = "blake3: or sha256: and 64 lower-case hex digits"
_OK = "a finite number, or no energy and a status other than ok"


_INSTEAD = {
    "channel": "add it, or name the channel once with --channel NAME",
    "acquisition_id": "add it, or name the acquisition once with --acquisition ID",
}


@dataclass(frozen=True)
class Rule:
    """How a broken rule is told: the column `what`; expected `wanted`."""

    what: str
    wanted: str


RULES: Mapping[str, Rule] = {
    "not-text": Rule("is not text", "text"),
    "not-a-number": Rule("is not a number", "a decimal number"),
    "not-an-integer": Rule("is not an integer", "a whole number without point or exponent"),
    "not-a-boolean": Rule("is neither true nor false", "true or false"),
    "null": Rule("is empty", "a value in every row"),
    "empty": Rule("is an empty text", "at least one character"),
    "too-long": Rule("is too long", f"at most {MAX_LABEL_BYTES:,} bytes of UTF-8"),
    "control-character": Rule("holds a control character", "printable characters only"),
    "outer-space": Rule("begins or ends with a space", "no outer spaces"),
    "look-alike": Rule("cannot be told apart by eye", "no invisible characters and one spelling per label"),
    "not-nfc": Rule("is not in Unicode normal form C", "NFC, as unicodedata.normalize('NFC', text) gives it"),
    "endpoint-unknown": Rule("is no endpoint", " or ".join(ENDPOINTS)),
    "status-unknown": Rule("is no status", ", ".join(STATUSES)),
    "view-source-syntax": Rule("is no view source", "own, before, after or donor:TRAJECTORY[/STEP]"),
    "unknown-channel": Rule("is not registered", "a registered channel"),
    "ambiguous-channel": Rule("means several specifications", "one version of it"),
    "channel-without-layouts": Rule("cannot carry scores", "a channel with presentation.layouts"),
    "bad-digest": Rule("is not a digest", _DIGEST),
    "missing-digest": Rule("is missing in some rows of the file", "a digest in every scored row, or in none"),
    "view-hash-missing": Rule(
        "is missing in some rows of the file",
        "a digest in every scored row whose channel shows a view, or in none",
    ),
    "digest-disagrees": Rule("is not the digest of the text beside it", "the digest of that text"),
    "step-range": Rule("is out of range", f"0 to {MAX_INT32}"),
    "position-range": Rule("is out of range", f"0 to {MAX_INT16}"),
    "layout-out-of-range": Rule("is out of range", "0 to L - 1 of the channel's presentation.layouts"),
    "label-mass-range": Rule("is out of range", "0 to 1"),
    "nan": Rule("is NaN", _OK),
    "infinite": Rule("is infinite", _OK),
    "energy-too-large": Rule("is too large", "at most 2^20 in size"),
    "null-energy": Rule("is missing though status is ok", _OK),
    "energy-with-status": Rule("is given though the reading failed", "no energy unless status is ok"),
    "float32-energy": Rule("is in single precision", 'float64, or a channel with readout.dtype = "float32"'),
}


class RowFaults:
    """Puts the faults of one call's rows into a Findings."""

    def __init__(self, rows: RawRows, findings: Findings) -> None:
        self.rows = rows
        self.findings = findings
        self._names = pa.array([file.name for file in rows.files], pa.string())

    def column(self, fault: ColumnFault) -> None:
        """A column that a whole file lacks or has with the wrong type."""
        file = self.rows.files[fault.file].name
        if fault.got is None:
            step = _INSTEAD.get(fault.column, "add it")
            if close := get_close_matches(fault.column, self.rows.files[fault.file].ignored, n=1, cutoff=0.7):
                step = f"did you mean it by {close[0]}? rename that column, or {step}"
            code = "missing-column"
            message = f"required column {fault.column} is missing; expected {fault.wanted}; {step}"
        else:
            code = "wrong-type"
            message = (
                f"column {fault.column} has the wrong type; expected {fault.wanted}, got {fault.got}; "
                "write it as that type, nothing is converted"
            )
            if fault.wanted == "an integer type" and fault.got in ("double", "float"):
                message += " (in pandas, astype(int))"
        self.findings.add(
            Finding(
                code,
                "file",
                f"{file}: {message}",
                column=fault.column,
                file=file,
                wanted=fault.wanted,
                got=fault.got,
            )
        )
        here = {"file": file, "level": "file", "code": code, "column": fault.column}
        row = {**here, "wanted": fault.wanted, "got": fault.got}
        schema = rejects_schema()
        self.findings.reject(
            pa.table(
                [pa.array([row.get(f.name)], _plain(f.type)).cast(f.type) for f in schema], schema=schema
            )
        )

    def labels(
        self,
        code: str,
        column: str,
        labels: Labels,
        marked: Positions,
        *,
        wanted: str | None = None,
        tell: Callable[[int], str | None] | None = None,
    ) -> None:
        """Labels (by index) that break a rule: a finding for each label and file, with its rows.

        `tell` gives the sentence about one label where the rule's own does not say enough.
        """
        mask = np.zeros(len(labels.values), np.bool_)
        mask[marked] = True
        positions = np.flatnonzero(labels.rows_of(mask))
        wanted = wanted or RULES[code].wanted
        got = labels.at(positions)
        cut = pc.utf8_slice_codeunits(got.dictionary, 0, SHOWN)
        self._reject(code, column, positions, wanted, pa.DictionaryArray.from_arrays(got.indices, cut))
        groups = labels.codes[positions].astype(np.int64) * len(self.rows.files)
        groups += self.rows.file_of(positions)
        found, first, counts = np.unique(groups, return_index=True, return_counts=True)
        shown_groups = np.argsort(first)[: self.findings.limit]
        for group, count in zip(found[shown_groups], counts[shown_groups], strict=True):
            label = int(group) // len(self.rows.files)
            self._label_finding(
                code,
                column,
                positions[groups == group],
                wanted=wanted,
                got=shown(labels.values[label].as_py()),
                told=tell(label) if tell else None,
            )
            assert count > 0
        rest = len(positions) - int(counts[shown_groups].sum())
        if rest:
            self.findings.tally(code, "row", rest)

    def _label_finding(
        self, code: str, column: str, positions: Positions, *, wanted: str, got: str, told: str | None
    ) -> None:
        file, numbers = self._where(positions)
        more = f" and {len(positions) - 1:,} more" if len(positions) > 1 else ""
        sentence = told or f"{column} '{got}' {RULES[code].what}; expected {wanted}"
        named = _named(self._key(int(positions[0])), column, got) if code == "status-unknown" else ""
        message = f"{file} row {numbers[0]}{named}{more}: {sentence}"
        finding = Finding(
            code,
            "row",
            message,
            column=column,
            file=file,
            rows=numbers,
            count=len(positions),
            wanted=wanted,
            got=got,
        )
        self.findings.add(finding)

    def each(
        self,
        code: str,
        column: str,
        positions: Positions,
        got: pa.Array | None = None,
        *,
        wanted: str | None = None,
    ) -> None:
        """Rows that break a rule: a finding for each, while examples are kept; `got` in row order."""
        if not len(positions):
            return
        what, wanted = RULES[code].what, wanted or RULES[code].wanted
        texts = pa.nulls(len(positions), CODED) if got is None else _texts(got)
        self._reject(code, column, positions, wanted, texts)
        kept = positions[: self.findings.limit]
        for index, position in enumerate(kept):
            here = np.array([position])
            file, numbers = self._where(here)
            key = self._key(int(position))
            value = texts[index].as_py()
            text = None if value is None else shown(value)
            message = (
                f"{file} row {numbers[0]}{_named(key, column, text)}: {column} {what}; expected {wanted}"
            )
            finding = Finding(
                code,
                "row",
                message + (f", got {text}" if text is not None else "") + _mending(code, text),
                column=column,
                key=key,
                file=file,
                rows=numbers,
                wanted=wanted,
                got=text,
            )
            self.findings.add(finding)
        if len(positions) > len(kept):
            self.findings.tally(code, "row", len(positions) - len(kept))

    def _where(self, positions: Positions) -> tuple[str, tuple[int, ...]]:
        """The file of the first position, and the first row numbers."""
        first = positions[:ROWS]
        file = self.rows.files[int(self.rows.file_of(first)[0])]
        return file.name, tuple(self.rows.row_numbers[first].tolist())

    def _key(self, position: int) -> dict[str, KeyValue]:
        """The entry key of a row as far as its columns could be read; the channel as the file gives it."""
        key: dict[str, KeyValue] = {}
        for name in TRANSPORT.key:
            if name in self.rows.text:
                labels = self.rows.text[name]
                code = int(labels.codes[position])
                key[name] = None if code < 0 else shown(labels.values[code].as_py())
            else:
                key[name] = self.rows.numbers[name][position].as_py()
        return key

    def _reject(self, code: str, column: str, positions: Positions, wanted: str, got: pa.Array) -> None:
        count = len(positions)
        at = pa.array(positions)
        files = pa.DictionaryArray.from_arrays(pa.array(self.rows.file_of(positions)), self._names)
        keys = [
            self.rows.text[name].at(positions)
            if name in self.rows.text
            else self.rows.numbers[name].take(at).cast(pa.int64())
            for name in TRANSPORT.key
        ]
        columns = [
            files,
            pa.array(self.rows.row_numbers[positions]),
            _constant("row", count),
            _constant(code, count),
            _constant(column, count),
            *keys,
            _constant(wanted, count),
            got,
        ]
        self.findings.reject(pa.table(columns, schema=rejects_schema()))


def _mending(code: str, got: str | None) -> str:
    """How to write a value that a program spoiled, where that is plain to see."""
    if code == "not-an-integer" and got is not None and re.fullmatch(r"[+-]?[0-9]+\.0*", got):
        return "; pandas makes floats of integers with gaps, write the column with astype(int)"
    return ""


def _named(key: Mapping[str, KeyValue], column: str, got: str | None) -> str:
    """The key as people say it, or nothing where its first parts are unknown.

    A part that could not be read stands as the file gives it.
    """
    if got is not None and column in key and key[column] is None:
        key = {**key, column: got}
    step = key["step"]
    if key["trajectory_id"] is None or step is None:
        return ""
    rest = [
        key["endpoint"],
        key["channel"],
        f"layout {key['layout']}",
        key["acquisition_id"],
        key["candidate"],
    ]
    told = f"{step:02d}" if isinstance(step, int) else step
    return f" ({key['trajectory_id']}/step{told} {' '.join(str(part) for part in rest)})"


def _constant(text: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([text]))


def _texts(values: pa.Array) -> pa.DictionaryArray:
    if pa.types.is_dictionary(values.type):
        return values
    return values.cast(pa.string()).dictionary_encode()


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
