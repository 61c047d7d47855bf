"""The predictions of a scope, verified and judged by whole groups, as columns of targets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contracts.digest import unpack
from contracts.labels import Labels
from contracts.order import dense, pack
from contracts.schema import JEV, JEV_POSITIVES
from ledger.index_rows import SegmentRow
from ledger.jev_scope import Group, GroupCount, PredictionScope, judged
from ledger.jev_targets import GROUP, TEXT, Columns, positives, targets, together
from ledger.objects import Objects
from ledger.scope import Standing

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Targets:
    """The targets of every admitted group, each with both arms; a pair's targets are side by side.

    `group`, `query`, `scenario` and `label` are codes in the byte order of their names, `pair` counts pairs.
    `before` is NaN for a label that only the after arm has. `position` is the place in the pair's own label
    order, -1 where it has none. Masses are NaN where absent, `kind_*` codes into `kinds`, -1 where absent.
    """

    group: Codes
    year: Codes
    query: Codes
    scenario: Codes
    label: Codes
    pair: Codes
    before: Floats
    after: Floats
    positive: Mask
    position: npt.NDArray[np.int16]
    mass_before: Floats
    mass_after: Floats
    kind_before: Codes
    kind_after: Codes

    def take(self, rows: Ints | Mask) -> Targets:
        """Some of the targets."""
        return Targets(**{name: _some(column, rows) for name, column in vars(self).items()})

    def __len__(self) -> int:
        return len(self.pair)


def _some(column: npt.NDArray[Any], rows: Ints | Mask) -> npt.NDArray[Any]:
    """Some of a column; one that holds a single value everywhere goes on holding it once."""
    if len(column) and column.strides == (0,):
        return np.broadcast_to(column[0], int(np.count_nonzero(rows)) if rows.dtype == bool else len(rows))
    return column[rows]


def _once(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same column, held as one value where nothing is known of any target."""
    if not len(column):
        return column
    absent = np.isnan(column).all() if column.dtype.kind == "f" else (column == -1).all()
    return np.broadcast_to(column[0], len(column)) if absent else column


@dataclass(frozen=True)
class Predictions:
    """What a scope selects: every group with what keeps it out, and the targets of those that enter.

    `groups` are in the order of their parts' bytes, absent parts first; `targets.group` points into it.
    """

    scope: PredictionScope
    groups: tuple[GroupCount, ...]
    targets: Targets
    queries: pa.Array
    scenarios: tuple[str, ...]
    labels: pa.Array
    kinds: tuple[str, ...]
    used_segments: tuple[SegmentRow, ...]


def select(
    scope: PredictionScope,
    objects: Objects,
    segments: Sequence[SegmentRow],
    standing: Callable[[Collection[str]], Standing],
) -> Predictions:
    """The predictions of a scope from segments in the order of the log; `standing` tells of acquisitions."""
    found, scored = Columns(), Columns()
    used: list[SegmentRow] = []
    for segment, columns in targets(objects, [s for s in segments if s.kind == JEV.kind], scope):
        _extend(found, columns)
        if columns.rows:
            used.append(segment)
    for segment in segments:
        if segment.kind == JEV_POSITIVES.kind:
            columns = positives(objects, segment, scope)
            _extend(scored, columns)
            if columns.rows:
                used.append(segment)
    used.sort(key=lambda segment: segment.event)
    return _assembled(scope, found, scored, tuple(used), standing)


def _extend(whole: Columns, part: Columns) -> None:
    for name, pieces in part.texts.items():
        whole.texts.setdefault(name, []).extend(pieces)
    for name, numbers in part.numbers.items():
        whole.numbers.setdefault(name, []).extend(numbers)
    whole.rows += part.rows


def _assembled(
    scope: PredictionScope,
    found: Columns,
    scored: Columns,
    used: tuple[SegmentRow, ...],
    standing: Callable[[Collection[str]], Standing],
) -> Predictions:
    count = found.rows
    texts = {name: together([found, scored], name) for name in TEXT}
    kinds = together([_renamed(found, "kind_before"), _renamed(found, "kind_after")], "kind")
    year = np.concatenate([found.number("year", np.int32), scored.number("year", np.int32)])
    group, groups = _groups({name: texts.pop(name) for name in GROUP})
    pair, limit = pack(
        [
            *((texts[name].codes, len(texts[name].values) + 1) for name in ("query_id", "scenario")),
            (year, int(year.max(initial=0)) + 1),
            (group, max(len(groups), 1)),
        ]
    )
    new = np.diff(pair[:count], prepend=-1) != 0
    target, _ = pack([(pair, limit), (texts["label"].codes, len(texts["label"].values) + 1)])
    positive = _among(target[:count], np.sort(target[count:]))
    del pair, target
    group = group[:count]
    counted = _counts(
        groups,
        group,
        entries=found.number("entries", np.int8),
        pairs=new,
        without_digest=found.number("unasked", np.int8),
        half_bound=found.number("half_bound", np.bool_),
        unchanged=found.number("unchanged", np.bool_),
    )
    said = standing({each.acquisition for each in groups})
    judgements = tuple(
        judged(each, counts, said, scope.require) for each, counts in zip(groups, counted, strict=True)
    )
    made = Targets(
        group=group.astype(np.int32),
        year=year[:count],
        query=texts["query_id"].codes[:count],
        scenario=texts["scenario"].codes[:count],
        label=texts["label"].codes[:count],
        pair=np.cumsum(new, dtype=np.int32) - np.int32(1),
        before=found.number("before", np.float64),
        after=found.number("after", np.float64),
        positive=positive,
        position=_once(found.number("label_position", np.int16)),
        mass_before=_once(found.number("mass_before", np.float64)),
        mass_after=_once(found.number("mass_after", np.float64)),
        kind_before=_once(kinds.codes[:count]),
        kind_after=_once(kinds.codes[count:]),
    )
    admitted = np.array([each.rule is None for each in judgements] or [False])
    return Predictions(
        scope=scope,
        groups=judgements,
        targets=made if admitted.all() else made.take(admitted[made.group]),
        queries=texts["query_id"].values,
        scenarios=tuple(texts["scenario"].values.to_pylist()),
        labels=texts["label"].values,
        kinds=tuple(kinds.values.to_pylist()),
        used_segments=used,
    )


def _renamed(columns: Columns, name: str) -> Columns:
    """The kinds of one arm's label mass, to be coded together with the other's."""
    return Columns(texts={"kind": columns.texts.pop(name, [])})


def _groups(texts: dict[str, Labels]) -> tuple[Ints, list[Group]]:
    """The number of each row's group, and the groups in the order of their parts, absent ones first."""
    packed, limit = pack([(texts[name].codes + 1, len(texts[name].values) + 1) for name in GROUP])
    number, _ = dense(packed, limit)
    del packed
    _, first = np.unique(number, return_index=True)
    groups = []
    for row in first.tolist():
        codes = {name: int(texts[name].codes[row]) for name in GROUP}
        part = {name: None if code < 0 else texts[name].values[code].as_py() for name, code in codes.items()}
        channel = part["channel"]
        groups.append(
            Group(
                channel=None if channel is None else unpack(channel),
                acquisition=str(part["acquisition_id"]),
                intervention=part["intervention"],
                mode=part["mode"],
                variant=part["variant"],
            )
        )
    return number, groups


def _among(values: Ints, wanted: Ints) -> Mask:
    """Which values are among ascending ones; both come nearly in order, so a search costs little."""
    place = np.minimum(np.searchsorted(wanted, values), max(len(wanted) - 1, 0))
    return wanted[place] == values if len(wanted) else np.zeros(len(values), bool)


def _counts(
    groups: Sequence[Group], group: Ints, **weights: npt.NDArray[np.generic]
) -> Iterator[dict[str, int]]:
    """The sums of some weights by group."""
    sums = {name: np.bincount(group, weights=each, minlength=len(groups)) for name, each in weights.items()}
    for index in range(len(groups)):
        yield {name: int(each[index]) for name, each in sums.items()}
