"""Entries of predictions as targets: both arms of a label side by side, segment by segment.

Rows stand in key order, so the arms of a target are neighbours, the after arm first. Request digests, nearly
all different and of no use to a statistic, are reduced to whether one is there and whether both are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contracts.digest import unpack
from contracts.errors import TamperError
from contracts.labels import Labels, distinct, in_order, joined
from contracts.order import dense, labelled, pack
from contracts.schema import JEV, JEV_POSITIVES
from ledger.index_rows import SegmentRow
from ledger.jev_scope import PredictionScope
from ledger.objects import Objects
from ledger.pages import plain
from ledger.segment_reader import SegmentReader

Mask = npt.NDArray[np.bool_]

GROUP = ("channel", "acquisition_id", "intervention", "mode", "variant")
TEXT = ("query_id", "scenario", "label", *GROUP)
NUMBERS = ("year", "probability", "label_position", "label_mass")
AFTER = "after"
_REQUEST = JEV.columns[JEV.names.index("request_hash")]
_TYPES: dict[str, type[np.generic]] = {"year": np.int32, "label_position": np.int16}


@dataclass
class Columns:
    """Columns of one row a target, growing: texts as codes with labels of their own, numbers as they are."""

    texts: dict[str, list[tuple[npt.NDArray[np.int32], pa.Array]]] = field(default_factory=dict)
    numbers: dict[str, list[npt.NDArray[Any]]] = field(default_factory=dict)
    rows: int = 0

    def add(self, texts: dict[str, Labels], numbers: dict[str, npt.NDArray[Any]]) -> None:
        """Take in some rows, with no more labels than they have."""
        for name, labels in texts.items():
            used = joined([(labels.codes, labels.values)], labels.values.type)
            self.texts.setdefault(name, []).append((used.codes, used.values))
        for name, values in numbers.items():
            self.numbers.setdefault(name, []).append(values)
        self.rows += len(numbers["year"])

    def number(self, name: str, kind: type[np.generic]) -> npt.NDArray[Any]:
        """One column of numbers; its parts are let go."""
        return np.concatenate([np.empty(0, kind), *self.numbers.pop(name, [])], dtype=kind)


def together(parts: Sequence[Columns], name: str) -> Labels:
    """A text column of several collections behind each other, as ranks of common labels; parts are let go."""
    kind = pa.binary(33) if name == "channel" else pa.string()
    found = [piece for part in parts for piece in part.texts.pop(name, [])]
    if not found:
        return Labels(np.empty(0, np.int32), pa.array([], kind))
    return in_order(distinct(joined(found, kind)))


def targets(
    objects: Objects, segments: Sequence[SegmentRow], scope: PredictionScope
) -> Iterator[tuple[SegmentRow, Columns]]:
    """The targets of each segment of predictions that are in scope; each file verified as it is read."""
    names = [*TEXT, "arm", "mass_kind", *NUMBERS, "request_hash"]
    carried: pa.Table | None = None
    for number, segment in enumerate(segments):
        columns = Columns()
        with SegmentReader.whole(objects, segment) as reader:
            last = reader.group_starts[-1]
            for stop, group in zip(reader.group_starts[1:], reader.groups(names), strict=True):
                table = within(group, scope)
                if carried is not None:
                    table = pa.concat_tables([carried, table])
                # Rows are cut into groups and segments anywhere, so the last may be half of a target.
                carried, more = None, stop < last or number + 1 < len(segments)
                if more and table.num_rows and table["arm"][-1].as_py() == AFTER:
                    carried, table = table.slice(table.num_rows - 1), table.slice(0, table.num_rows - 1)
                if table.num_rows:
                    _reduce(table, columns)
        yield segment, columns


def positives(objects: Objects, segment: SegmentRow, scope: PredictionScope) -> Columns:
    """The positive labels of one segment that are in scope."""
    assert segment.kind == JEV_POSITIVES.kind
    columns = Columns()
    with SegmentReader.whole(objects, segment) as reader:
        for group in reader.groups([*TEXT, "year"]):
            table = within(group, scope)
            texts = {name: labelled(table.column(name)) for name in TEXT}
            columns.add(texts, {"year": np.asarray(table.column("year").to_numpy(), np.int32)})
    return columns


def within(table: pa.Table, scope: PredictionScope) -> pa.Table:
    """The rows whose group and scenario are in scope, judged once for each distinct group."""
    labels = {name: labelled(table.column(name)) for name in GROUP if name != "variant"}
    number, found = dense(*pack([(each.codes + 1, len(each.values) + 1) for each in labels.values()]))
    first = np.zeros(len(found), np.int64)
    first[number] = np.arange(len(number))
    texts = {name: [*each.values.to_pylist(), None] for name, each in labels.items()}
    holds = np.zeros(len(found), bool)
    for index, row in enumerate(first.tolist()):
        parts = {name: texts[name][labels[name].codes[row]] for name in labels}
        channel = None if parts["channel"] is None else unpack(parts["channel"])
        holds[index] = scope.holds(
            channel, str(parts["acquisition_id"]), parts["intervention"], parts["mode"]
        )
    keep: Mask = holds[number]
    if scope.scenarios is not None:
        scenario = labelled(table.column("scenario"))
        keep &= scenario.rows_of(np.array([v in scope.scenarios for v in scenario.values.to_pylist()], bool))
    return table if keep.all() else table.filter(pa.array(keep))


def _reduce(table: pa.Table, into: Columns) -> None:
    """Rows in key order to targets; TamperError where an arm is missing or there twice."""
    labels = {name: labelled(table.column(name)) for name in TEXT}
    numbers = {name: _plain(table.column(name)) for name in NUMBERS}
    new = np.ones(table.num_rows, bool)
    new[1:] = numbers["year"][1:] != numbers["year"][:-1]
    for each in labels.values():
        new[1:] |= each.codes[1:] != each.codes[:-1]
    start = np.flatnonzero(new)
    size = np.diff(np.append(start, table.num_rows))
    arm = labelled(table.column("arm"))
    after = arm.rows_of(np.array([value == AFTER for value in arm.values.to_pylist()], bool))
    both = size == 2
    if bool(np.any(size > 2)) or not bool(after[start].all()) or bool(after[start[both] + 1].any()):
        raise TamperError(
            "predictions are not as the contract admits them: an arm is missing or there twice",
            kind="data",
            next_step="run `ledger verify --full`",
        )
    other = np.where(both, start + 1, start)
    asked, same = _requests(table)
    kind = labelled(table.column("mass_kind"))
    into.add(
        {name: Labels(each.codes[start], each.values) for name, each in labels.items()}
        | {
            "kind_before": Labels(np.where(both, kind.codes[other], np.int32(-1)), kind.values),
            "kind_after": Labels(kind.codes[start], kind.values),
        },
        {
            "year": numbers["year"][start],
            "label_position": numbers["label_position"][start],
            "before": np.where(both, numbers["probability"][other], np.nan),
            "after": numbers["probability"][start],
            "mass_before": np.where(both, numbers["label_mass"][other], np.nan),
            "mass_after": numbers["label_mass"][start],
            "entries": size.astype(np.int8),
            "unasked": ((~asked[start]).astype(np.int8) + (both & ~asked[other])).astype(np.int8),
            "half_bound": both & (asked[start] != asked[other]),
            "unchanged": both & same[other],
        },
    )


def _requests(table: pa.Table) -> tuple[Mask, Mask]:
    """Whether each row has a request digest, and whether it is that of the row above."""
    array = plain(table.column("request_hash"), _REQUEST)
    asked = array.is_valid().to_numpy(zero_copy_only=False)
    same = np.zeros(len(array), bool)
    if asked.any():
        width = array.type.byte_width
        raw = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width :][: len(array) * width]
        rows = raw.reshape(len(array), width)
        same[1:] = (rows[1:] == rows[:-1]).all(axis=1) & asked[1:] & asked[:-1]
    return asked, same


def _plain(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """A column of numbers, nulls as NaN or -1."""
    if pa.types.is_floating(column.type):
        return np.asarray(column.to_numpy(), np.float64)
    filled = column.fill_null(-1) if column.null_count else column
    return np.asarray(filled.to_numpy())
