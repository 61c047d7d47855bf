"""What the predictions contract found, as findings with their lines and as rejected rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contracts.findings import ROWS, Finding, Findings, KeyValue, rejects_schema, shown
from contracts.jev_source import ARMS, MASS_KINDS
from contracts.labels import Labels
from contracts.row_faults import RULES as LABEL_RULES
from contracts.row_faults import Rule
from contracts.schema import JEV

if TYPE_CHECKING:
    from contracts.jev_rows import Predictions

Ints = NDArray[np.int64]
Rows = NDArray[np.integer]
RULES: Mapping[str, Rule] = {
    **LABEL_RULES,
    "intervention-unknown": Rule("is no intervention", "questions, evidence or candidates"),
    "mode-unknown": Rule("is no mode", "independent, visible-schema or joint"),
    "channel-missing": Rule(
        "is missing", "a registered channel in every line, or --channel NAME for a file that names none"
    ),
    "year-range": Rule("is out of range", "0 to 2,147,483,647"),
    "probability-range": Rule("is out of range", "0 to 1"),
    "pair-duplicate": Rule("occurs again in its group", "each (year, query_id, scenario) once"),
    "label-lost": Rule("lacks a label of before", "the same labels in both arms"),
    "label-gained": Rule("has a label that before lacks", "the same labels in both arms"),
    "nothing-expanded": Rule("expands no candidate", "every label of before and at least one more"),
    "no-preference": Rule(
        "leaves a preference without meaning", "two base labels, one of them above 0 in each arm"
    ),
    "positive-no-target": Rule("names a label that is no target", "labels of before or after"),
    "arm-unknown": Rule("is no arm", " or ".join(ARMS)),
    "mass-kind-unknown": Rule("is no kind of label mass", ", ".join(MASS_KINDS)),
    "mass-half-known": Rule("and mass_kind do not stand together", "both in a row, or neither"),
    "pair-disagrees": Rule(
        "or label mass is not what another entry says", "one evidence a pair, one label mass an arm"
    ),
    "label-misplaced": Rule(
        "is not the place of its label", "one place of its own for every label of the pair, or none at all"
    ),
    "scenario-missing": Rule("lacks a scenario of its group", "every query in every scenario of its group"),
}
_COLUMNS = {
    "pair-duplicate": "scenario",
    "label-lost": "after",
    "label-gained": "after",
    "nothing-expanded": "after",
    "no-preference": "before",
    "positive-no-target": "positive_labels",
    "scenario-missing": "scenario",
    "mass-half-known": "label_mass",
    "pair-disagrees": "evidence_hash",
    "label-misplaced": "label_position",
}


class PairFaults:
    """Puts the faults of one call's predictions into a Findings."""

    def __init__(self, predictions: Predictions, findings: Findings) -> None:
        self.predictions = predictions
        self.findings = findings

    def unread(self) -> None:
        """Values that could not be read as what their place allows, in line order."""
        for file in self.predictions.files:
            for bad in file.unread:
                place = f" {bad.column}" if bad.column else ""
                self._add(
                    bad.code,
                    bad.column or None,
                    file.name,
                    (bad.line,),
                    f"{file.name} line {bad.line}:{place} {bad.code.replace('-', ' ')}; "
                    f"expected {bad.wanted}, got {bad.got}",
                    wanted=bad.wanted,
                    got=bad.got,
                )
                self._reject(bad.code, bad.column, bad.wanted, [(file.name, bad.line, None, bad.got)])

    def labels(self, column: str, labels: Labels, pairs: Rows, failing: Mapping[str, Ints]) -> None:
        """Labels (by index) that break a rule; `pairs` says which pair each row of the column belongs to."""
        for code, marked in failing.items():
            self._labels(code, column, labels, pairs, marked, None)

    def told(self, code: str, column: str, labels: Labels, marked: Ints, sentence: str) -> None:
        """Labels of the pairs themselves with a sentence of their own."""
        self._labels(code, column, labels, np.arange(len(self.predictions)), marked, sentence)

    def _labels(
        self, code: str, column: str, labels: Labels, pairs: Rows, marked: Ints, sentence: str | None
    ) -> None:
        rule = RULES.get(code)
        for label in marked:
            at = pairs[np.flatnonzero(labels.codes == label)]
            value = shown(labels.values[int(label)].as_py())
            text = sentence or (f"{column} '{value}' {rule.what}; expected {rule.wanted}" if rule else code)
            self._at(code, column, at, text, rule.wanted if rule else None, value)

    def each(self, code: str, column: str, pairs: Rows, got: Sequence[object] | None = None) -> None:
        """Pairs that break a rule: a finding for each while examples are kept."""
        rule = RULES[code]
        column = _COLUMNS.get(code, column)
        for index, pair in enumerate(pairs[: self.findings.limit]):
            value = None if got is None else shown(got[index])
            text = f"{self._name(int(pair))}{column} {rule.what}; expected {rule.wanted}"
            self._at(
                code, column, np.array([pair]), text + (f", got {value}" if value else ""), rule.wanted, value
            )
        rest = pairs[self.findings.limit :]
        if len(rest):
            self.findings.tally(code, "row", len(rest))
            self._reject(code, column, rule.wanted, [(*self._where(int(p)), int(p), None) for p in rest])

    def _at(
        self, code: str, column: str, pairs: Rows, text: str, wanted: str | None, got: str | None
    ) -> None:
        places = [self._where(int(pair)) for pair in pairs[:ROWS]]
        file = places[0][0]
        lines = tuple(dict.fromkeys(line for name, line in places if name == file))
        more = f" and {len(pairs) - 1:,} more" if len(pairs) > 1 else ""
        self._add(
            code,
            column,
            file,
            lines,
            f"{file} line {lines[0]}{more}: {text}",
            count=len(pairs),
            wanted=wanted,
            got=got,
            key=self._key(int(pairs[0])),
        )
        self._reject(code, column, wanted, [(*self._where(int(p)), int(p), got) for p in pairs])

    def _add(
        self,
        code: str,
        column: str | None,
        file: str,
        lines: tuple[int, ...],
        message: str,
        *,
        count: int = 1,
        wanted: str | None = None,
        got: str | None = None,
        key: Mapping[str, KeyValue] | None = None,
    ) -> None:
        self.findings.add(
            Finding(
                code,
                "row",
                message,
                column=column,
                key=key,
                file=file,
                rows=lines,
                count=count,
                wanted=wanted,
                got=got,
            )
        )

    def _where(self, pair: int) -> tuple[str, int]:
        predictions = self.predictions
        return predictions.files[int(predictions.file[pair])].name, int(predictions.line[pair])

    def _key(self, pair: int) -> dict[str, KeyValue]:
        key: dict[str, KeyValue] = {"year": int(self.predictions.year[pair])}
        for name in ("query_id", "scenario", "intervention", "mode", "variant", "channel", "acquisition_id"):
            labels = self.predictions.text[name]
            code = int(labels.codes[pair])
            key[name] = None if code < 0 else shown(labels.values[code].as_py())
        return key

    def _name(self, pair: int) -> str:
        key = self._key(pair)
        return f"{key['query_id']}/{key['scenario']} of {key['year']}: "

    def _reject(
        self,
        code: str,
        column: str,
        wanted: str | None,
        rows: Sequence[tuple[str, int, int | None, str | None]],
    ) -> None:
        schema = rejects_schema(JEV)
        keys = [{} if pair is None else self._key(pair) for _, _, pair, _ in rows]
        constants = {"level": "row", "code": code, "column": column, "wanted": wanted}
        columns = []
        for item in schema:
            plain = item.type.value_type if pa.types.is_dictionary(item.type) else item.type
            if item.name == "file":
                values: list[object] = [row[0] for row in rows]
            elif item.name == "row":
                values = [row[1] for row in rows]
            elif item.name == "got":
                values = [row[3] for row in rows]
            elif item.name in constants:
                values = [constants[item.name]] * len(rows)
            else:
                values = [key.get(item.name) for key in keys]
            columns.append(pa.array(values, plain).cast(item.type))
        self.findings.reject(pa.table(columns, schema=schema))
