"""The predictions of a scope, verified and judged, as columns of targets.

Segments are read a row group at a time. Request digests, nearly all different and of no use to a statistic,
are reduced on the way to whether one is there and whether it equals the other arm's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contracts.digest import unpack
from contracts.errors import TamperError
from contracts.labels import ABSENT, Labels
from contracts.order import dense, labelled, pack, ranks
from contracts.schema import JEV, JEV_POSITIVES
from ledger.index_rows import SegmentRow
from ledger.jev_scope import Group, GroupCount, PredictionScope, judged
from ledger.objects import Objects
from ledger.pages import plain
from ledger.segment_reader import SegmentReader

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

GROUP = ("channel", "acquisition_id", "intervention", "mode", "variant")
PAIR = ("query_id", "year", "scenario", *GROUP)
_CODED = ("query_id", "scenario", "label", *GROUP)
_ENTRY = ("arm", "probability", "label_position", "request_hash", "label_mass", "mass_kind")
AFTER = "after"


@dataclass(frozen=True, eq=False)
class Targets:
    """The targets of every admitted group, each with both arms; a pair's targets are side by side.

    `group`, `query`, `scenario` and `label` are codes in the byte order of their names, `pair` counts pairs.
    `before` is NaN for a label that only the after arm has. `position` is the place in the pair's own label
    order, ABSENT where it has none. Masses are NaN where absent, `kind_*` codes into `kinds`.
    """

    group: Ints
    year: Ints
    query: Ints
    scenario: Ints
    label: Ints
    pair: Ints
    before: Floats
    after: Floats
    positive: Mask
    position: Ints
    mass_before: Floats
    mass_after: Floats
    kind_before: Ints
    kind_after: Ints

    def take(self, rows: Ints | Mask) -> Targets:
        """Some of the targets."""
        return Targets(**{name: column[rows] for name, column in vars(self).items()})

    def __len__(self) -> int:
        return len(self.pair)


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


@dataclass
class _Collected:
    """Columns of the rows in scope, growing row group by row group."""

    columns: dict[str, list[pa.Array]] = field(default_factory=dict)
    asked: list[Mask] = field(default_factory=list)
    same: list[Mask] = field(default_factory=list)
    rows: int = 0

    def add(self, table: pa.Table, names: Sequence[str]) -> None:
        for name in names:
            self.columns.setdefault(name, []).extend(table.column(name).chunks)
        self.rows += table.num_rows

    def column(self, name: str, kind: pa.DataType) -> pa.ChunkedArray:
        chunks = self.columns.get(name, [])
        return pa.chunked_array(chunks) if chunks else pa.chunked_array([], kind)

    def integers(self, name: str) -> Ints:
        chunks = self.columns.get(name, [])
        parts = [np.asarray(c.fill_null(ABSENT).to_numpy(zero_copy_only=False), np.int64) for c in chunks]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def floats(self, name: str) -> Floats:
        parts = [np.asarray(c.to_numpy(zero_copy_only=False), np.float64) for c in self.columns.get(name, [])]
        return np.concatenate(parts) if parts else np.empty(0)


def select(
    scope: PredictionScope, objects: Objects, segments: Sequence[SegmentRow], revoked: frozenset[str]
) -> Predictions:
    """The predictions of a scope from segments in the order of the log."""
    entries, positives = _Collected(), _Collected()
    used: list[SegmentRow] = []
    for segment in segments:
        into = {JEV.kind: entries, JEV_POSITIVES.kind: positives}.get(segment.kind)
        if into is not None and _read(objects, segment, scope, into):
            used.append(segment)
    return _assembled(scope, entries, positives, tuple(used), revoked)


def _read(objects: Objects, segment: SegmentRow, scope: PredictionScope, into: _Collected) -> bool:
    """Takes in the rows of one verified segment that are in scope; whether there were any."""
    before, last = into.rows, b""
    kept = ["query_id", "year", "scenario", "label", *GROUP]
    if segment.kind == JEV.kind:
        kept += [name for name in _ENTRY if name != "request_hash"]
    with SegmentReader.whole(objects, segment) as reader:
        for table in reader.groups(kept if segment.kind != JEV.kind else [*kept, "request_hash"]):
            keep = _in_scope(table, scope)
            if segment.kind == JEV.kind:
                asked, same, last = _requests(table, last)
                into.asked.append(asked[keep])
                into.same.append(same[keep])
            into.add(table.select(kept) if keep.all() else table.select(kept).filter(pa.array(keep)), kept)
    return into.rows > before


def _requests(table: pa.Table, last: bytes) -> tuple[Mask, Mask, bytes]:
    """Whether each row has a request digest, and whether it is that of the row above; the last one."""
    column = JEV.columns[JEV.names.index("request_hash")]
    array = plain(table.column("request_hash"), column)
    asked = array.is_valid().to_numpy(zero_copy_only=False)
    same = np.zeros(len(array), bool)
    if not asked.any():
        return asked, same, b""
    width = array.type.byte_width
    raw = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width :][: len(array) * width]
    rows = raw.reshape(len(array), width)
    same[1:] = (rows[1:] == rows[:-1]).all(axis=1)
    same[0] = bool(last) and rows[0].tobytes() == last
    same[1:] &= asked[:-1]
    return asked, same & asked, rows[-1].tobytes() if asked[-1] else b""


def _in_scope(table: pa.Table, scope: PredictionScope) -> Mask:
    """The rows whose group and scenario are in scope, judged once for each distinct group."""
    labels = {name: labelled(table.column(name)) for name in GROUP if name != "variant"}
    packed, _ = pack([(each.codes + 1, len(each.values) + 1) for each in labels.values()])
    found, first, number = np.unique(packed, return_index=True, return_inverse=True)
    texts = {name: [*each.values.to_pylist(), None] for name, each in labels.items()}
    holds = np.zeros(len(found), bool)
    for index, row in enumerate(first.tolist()):
        parts = {name: texts[name][labels[name].codes[row]] for name in labels}
        channel = parts["channel"]
        holds[index] = scope.holds(
            None if channel is None else unpack(channel),
            str(parts["acquisition_id"]),
            parts["intervention"],
            parts["mode"],
        )
    keep: Mask = holds[number.reshape(-1)]
    if scope.scenarios is not None:
        scenario = labelled(table.column("scenario"))
        wanted = np.array([value in scope.scenarios for value in scenario.values.to_pylist()], bool)
        keep &= scenario.rows_of(wanted)
    return keep


def _assembled(
    scope: PredictionScope,
    entries: _Collected,
    positives: _Collected,
    used: tuple[SegmentRow, ...],
    revoked: frozenset[str],
) -> Predictions:
    count = entries.rows
    labels = {name: _both(entries, positives, name) for name in _CODED}
    codes = {name: each.codes.astype(np.int64) for name, each in labels.items()}
    codes["year"] = np.concatenate([entries.integers("year"), positives.integers("year")])
    limits = {name: len(each.values) + 2 for name, each in labels.items()}
    limits["year"] = int(codes["year"].max(initial=0)) + 2
    group, groups = _groups(codes, limits, labels)
    parts = [(codes[n] + 1, limits[n]) for n in ("query_id", "year", "scenario")]
    pair, pair_limit = pack([*parts, (group, max(len(groups), 1))])
    target, _ = pack([(pair, pair_limit), (codes["label"] + 1, limits["label"])])
    start = np.flatnonzero(np.diff(target[:count], prepend=-1) != 0)
    size = np.diff(np.append(start, count))
    after = _after(entries)
    _require_arms(after, start, size)
    both = size == 2
    other = np.where(both, start + 1, start)  # the after arm sorts before the before arm
    asked, same = _stacked(entries.asked), _stacked(entries.same)
    kinds = labelled(entries.column("mass_kind", pa.string()))
    mass, probability = entries.floats("label_mass"), entries.floats("probability")
    counted = _counts(
        groups,
        group[:count],
        entries=np.ones(count, np.int64),
        without_digest=~asked,
        pairs=_at(start[np.diff(pair[start], prepend=-1) != 0], count),
        half_bound=_at(start[both & (asked[start] != asked[other])], count),
        unchanged=_at(start[both & same[other]], count),
    )
    judgements = tuple(
        judged(each, counts, revoked, scope.require) for each, counts in zip(groups, counted, strict=True)
    )
    found = Targets(
        group=group[start],
        year=codes["year"][start],
        query=codes["query_id"][start],
        scenario=codes["scenario"][start],
        label=codes["label"][start],
        pair=np.cumsum(np.diff(pair[start], prepend=-1) != 0) - 1,
        before=np.where(both, probability[other], np.nan),
        after=probability[start],
        positive=np.isin(target[start], target[count:]),
        position=entries.integers("label_position")[start],
        mass_before=np.where(both, mass[other], np.nan),
        mass_after=mass[start],
        kind_before=np.where(both, kinds.codes[other], ABSENT).astype(np.int64),
        kind_after=kinds.codes[start].astype(np.int64),
    )
    admitted = np.array([each.rule is None for each in judgements] or [False])
    return Predictions(
        scope=scope,
        groups=judgements,
        targets=found if admitted.all() else found.take(admitted[found.group]),
        queries=labels["query_id"].values,
        scenarios=tuple(labels["scenario"].values.to_pylist()),
        labels=labels["label"].values,
        kinds=tuple(kinds.values.to_pylist()),
        used_segments=used,
    )


def _both(entries: _Collected, positives: _Collected, name: str) -> Labels:
    """A column of the entries and, behind them, of the positives, as ranks of common labels."""
    kind = pa.binary(33) if name == "channel" else pa.string()
    chunks = [
        chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        for part in (entries, positives)
        for chunk in part.column(name, kind).chunks
    ]
    return ranks(pa.chunked_array(chunks, pa.dictionary(pa.int32(), kind)))


def _groups(
    codes: dict[str, Ints], limits: dict[str, int], labels: dict[str, Labels]
) -> tuple[Ints, list[Group]]:
    """The number of each row's group, and the groups."""
    packed, limit = pack([(codes[name] + 1, limits[name]) for name in GROUP])
    number, _ = dense(packed, limit)
    _, first = np.unique(number, return_index=True)
    groups = []
    for row in first.tolist():
        code = {name: int(codes[name][row]) for name in GROUP}
        text = {n: None if c < 0 else labels[n].values[c].as_py() for n, c in code.items()}
        channel = text["channel"]
        groups.append(
            Group(
                channel=None if channel is None else unpack(channel),
                acquisition=str(text["acquisition_id"]),
                intervention=text["intervention"],
                mode=text["mode"],
                variant=text["variant"],
            )
        )
    return number, groups


def _after(entries: _Collected) -> Mask:
    arm = labelled(entries.column("arm", pa.string()))
    return arm.rows_of(np.array([value == AFTER for value in arm.values.to_pylist()], bool))


def _require_arms(after: Mask, start: Ints, size: Ints) -> None:
    """Every target has an after arm and at most one before arm, as the contract admitted it."""
    second = start[size == 2] + 1
    if bool(np.any(size > 2)) or not bool(after[start].all()) or bool(after[second].any()):
        raise TamperError(
            "predictions are not as the contract admits them: an arm is missing or there twice",
            kind="data",
            next_step="run `ledger verify --full`",
        )


def _counts(
    groups: Sequence[Group], group: Ints, **weights: npt.NDArray[np.generic]
) -> Iterator[dict[str, int]]:
    sums = {name: np.bincount(group, weights=each, minlength=len(groups)) for name, each in weights.items()}
    for index in range(len(groups)):
        yield {name: int(each[index]) for name, each in sums.items()}


def _at(rows: Ints, count: int) -> Mask:
    marked = np.zeros(count, bool)
    marked[rows] = True
    return marked


def _stacked(parts: Sequence[Mask]) -> Mask:
    return np.concatenate(parts) if parts else np.zeros(0, bool)
