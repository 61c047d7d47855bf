"""Faces: the margins of every complete transition, laid out as arrays, and the flow of all the others.

Assembled range by range with one pure function of a range, so memory is bounded by a range, and a range
can be assembled anywhere. Joining the ranges in order gives the same arrays however they were cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from audits.cells import Axes, Grid, Ints, Mask, lay_out
from audits.faults import FOREIGN_TARGET, NO_TARGET, TWO_TARGETS, RangeFlow, judge
from audits.flow import (
    SUCCESSES_DIFFER,
    TARGET_TYPES_DIFFER,
    AcquisitionFlow,
    Example,
    Flow,
    ReasonCount,
)
from audits.layout_balance import LayoutBalance, RangeBalance, of_range
from audits.shortfall import shortfall
from audits.statistics.kernel import margins
from contracts.errors import CannotAnswerError
from contracts.order import ranks
from ledger.snapshot import Arm, Readings, Selection, TrajectoryRange

UNKNOWN = -1  # success of a trajectory that stores none, or stores both


@dataclass(frozen=True)
class Labels:
    """A label for every transition: its text is `names[codes[i]]`; `names` ascend by UTF-8 bytes."""

    names: tuple[str, ...]
    codes: npt.NDArray[np.int32]


@dataclass(frozen=True)
class Faces:
    """The n complete transitions of a scope, ascending by (trajectory, step).

    `trajectories` are the clusters, ascending by UTF-8 bytes, and `cluster` (int32[n]) the number of each
    transition's. `margins[arm]` is int64[n, 2, L, acquisitions of the arm] in units of 2^-40: the second
    axis is the endpoint, 0 before and 1 after; `acquisitions[arm]` names the last one. `target_type` is
    None where no entry gives one; a transition without one has its target as its type. `success` is 0, 1
    or UNKNOWN, constant in a cluster.
    """

    trajectories: tuple[str, ...]
    cluster: npt.NDArray[np.int32]
    step: npt.NDArray[np.int32]
    target: Labels
    target_type: Labels | None
    success: npt.NDArray[np.int8]
    margins: tuple[Ints, ...]
    acquisitions: tuple[tuple[str, ...], ...]
    layouts: int
    flow: Flow
    balance: LayoutBalance

    def __len__(self) -> int:
        return len(self.step)


@dataclass(frozen=True)
class RangeFaces:
    """What one trajectory range contributes; `cluster` counts from 0 within the range.

    `margins` is int64[n, 2, L, slots]; `target` and `target_type` are texts, a type None where absent.
    """

    trajectories: tuple[str, ...]
    cluster: Ints
    step: Ints
    target: pa.Array
    target_type: pa.Array
    success: npt.NDArray[np.int8]
    margins: Ints
    flow: RangeFlow
    balance: RangeBalance
    transitions: int
    set_aside: ReasonCount
    kept_by_arm: Ints
    broken_by_arm: Ints


class Beside(Protocol):
    """Something summarised of every range beside the faces."""

    @property
    def look(self) -> Callable[[TrajectoryRange], Any]:
        """What is wanted of one range: a pure function that can be pickled, called wherever the range is."""
        ...

    def add(self, found: Any) -> None:
        """Takes what `look` gave for the next range."""
        ...


@dataclass(frozen=True)
class _Work:
    """The faces of a range, and what the others want of it."""

    axes: Axes
    looks: tuple[Callable[[TrajectoryRange], Any], ...]

    def __call__(self, part: TrajectoryRange) -> tuple[RangeFaces, tuple[Any, ...]]:
        return assemble_range(part, self.axes), tuple(look(part) for look in self.looks)


def assemble(
    selection: Selection, beside: Sequence[Beside] = (), *, same_view: Sequence[int | None] | None = None
) -> Faces:
    """The faces of everything a selection holds; `flow.shortfall` says why when there are none.

    `same_view` numbers the arms that must show the same view at an endpoint by group, None for an arm with
    a view of its own.
    """
    arms = selection.scope.arms
    groups = (None,) * len(arms) if same_view is None else tuple(same_view)
    acquisitions = tuple(selection.acquisitions[arm] for arm in arms)
    axes = Axes(arms, acquisitions, common_layouts(arms), groups)
    parts = []
    for faces, seen in selection.map(_Work(axes, tuple(each.look for each in beside))):
        parts.append(faces)
        for each, found in zip(beside, seen, strict=True):
            each.add(found)
    return join(parts, axes, selection)


def common_layouts(arms: Sequence[Arm]) -> int:
    """L of all the arms; CannotAnswerError when they differ, so that no layout of one has a partner."""
    layouts = {arm.channel.layouts for arm in arms}
    if len(layouts) != 1 or None in layouts:
        raise CannotAnswerError(
            "channels with different numbers of layouts cannot be compared layout by layout",
            code="layouts-differ",
            got=", ".join(f"{arm.channel.name} {arm.channel.layouts or 'none'}" for arm in arms),
            expected="the same presentation.layouts",
        )
    return int(layouts.pop() or 0)


def assemble_range(part: TrajectoryRange, axes: Axes) -> RangeFaces:
    """The faces of one trajectory range."""
    grid = lay_out(part, axes)
    target = _Target.of(part, grid)
    flow = judge(part, grid, target.place)
    done = np.flatnonzero(flow.complete)
    set_aside = ReasonCount()
    types = _target_types(part, grid, set_aside)
    success = _success(part, grid, set_aside)
    clusters, cluster = np.unique(grid.trajectory[done], return_inverse=True)
    arms = len(axes.arms)
    return RangeFaces(
        trajectories=tuple(grid.trajectories.take(pa.array(clusters)).to_pylist()),
        cluster=cluster,
        step=grid.step[done],
        target=target.names.take(pa.array(target.code[done])),
        target_type=types.take(pa.array(done)),
        success=success[grid.trajectory[done]],
        margins=_margins(part, grid, target.place, done),
        flow=flow,
        balance=of_range(part, grid, done),
        transitions=len(grid),
        set_aside=set_aside,
        kept_by_arm=_by_arm(part.kept, arms),
        broken_by_arm=_by_arm(part.out, arms),
    )


@dataclass(frozen=True)
class _Target:
    """The target of every transition: code into `names`, and place among the transition's candidates."""

    names: pa.Array
    code: Ints
    place: Ints

    @classmethod
    def of(cls, part: TrajectoryRange, grid: Grid) -> _Target:
        named = ranks(part.kept.table["target"])
        code, differ = _one_each(grid.owner, named.codes, len(grid))
        place = np.full(len(grid), NO_TARGET)
        known = np.flatnonzero(code >= 0)
        # candidates are listed by transition, ascending, so the pair is searched for as one number
        radix = len(grid.candidate_names) + 1
        listed = np.repeat(np.arange(len(grid)), np.diff(grid.first)) * radix + grid.candidates
        candidate = pc.index_in(named.values, value_set=grid.candidate_names)
        wanted = _filled(candidate, len(grid.candidate_names))[code[known]] + known * radix
        at = np.minimum(np.searchsorted(listed, wanted), max(len(listed) - 1, 0))
        found = listed[at] == wanted if len(listed) else np.zeros(len(known), bool)
        place[known] = np.where(found, at - grid.first[known], FOREIGN_TARGET)
        place[differ] = TWO_TARGETS
        return cls(named.values, code, place)


def _margins(part: TrajectoryRange, grid: Grid, target: Ints, done: Ints) -> Ints:
    """F of every cell of the complete transitions, int64[n, 2, L, slots]."""
    slots, layouts = len(grid.axes.slots), grid.axes.layouts
    out = np.empty((len(done), 2, slots, layouts), np.int64)
    energy = grid.by_cell(np.asarray(part.kept.cells["energy"].to_numpy()), np.float64(np.nan))
    width = grid.width[done]
    for k in np.unique(width).tolist():
        of_width = np.flatnonzero(width == k)
        chosen = np.repeat(target[done[of_width]], grid.axes.cells)
        if len(of_width) == len(grid):  # all there is, as it stands
            table = energy.reshape(-1, k)
        else:
            table = energy[grid.base[done[of_width], None] + np.arange(grid.axes.cells * k)].reshape(-1, k)
        out[of_width] = margins(table, chosen).reshape(-1, 2, slots, layouts)
    return out.transpose(0, 1, 3, 2)


def _target_types(part: TrajectoryRange, grid: Grid, set_aside: ReasonCount) -> pa.Array:
    """The target type of every transition, None where absent or contradictory."""
    named = ranks(part.kept.table["target_type"])
    present = named.codes >= 0
    code, differ = _one_each(grid.owner[present], named.codes[present], len(grid))
    if differ.any():
        of = np.flatnonzero(differ)
        set_aside.add(
            TARGET_TYPES_DIFFER,
            len(of),
            (Example(TARGET_TYPES_DIFFER, grid.name(t), int(grid.step[t])) for t in of[:3].tolist()),
        )
    return named.values.take(pa.array(code, mask=(code < 0) | differ))


def _success(part: TrajectoryRange, grid: Grid, set_aside: ReasonCount) -> npt.NDArray[np.int8]:
    """The stored success of every trajectory: 0, 1 or UNKNOWN where absent or contradictory."""
    column = part.kept.table["success"]
    stored = _filled(column.cast(pa.int8()), UNKNOWN)
    present = stored != UNKNOWN
    names = len(grid.trajectories)
    code, differ = _one_each(grid.trajectory[grid.owner[present]], stored[present], names)
    if differ.any():
        of = np.flatnonzero(differ)
        examples = (
            Example(SUCCESSES_DIFFER, str(grid.trajectories[t].as_py()), None) for t in of[:3].tolist()
        )
        set_aside.add(SUCCESSES_DIFFER, len(of), examples)
    code[differ] = UNKNOWN
    return code.astype(np.int8)


def _one_each(group: Ints, value: npt.NDArray[np.integer], groups: int) -> tuple[Ints, Mask]:
    """A value of every group, -1 where it has none, and the groups that hold two different ones."""
    one = np.full(groups, -1)
    one[group] = value
    differ = np.zeros(groups, bool)
    differ[group[value != one[group]]] = True
    return one, differ


def join(parts: Sequence[RangeFaces], axes: Axes, selection: Selection) -> Faces:
    """The faces of consecutive ranges as one value; `selection.provenance` must be complete."""
    excluded, set_aside = ReasonCount(), ReasonCount()
    for part in parts:
        excluded.merge(part.flow.excluded)
        set_aside.merge(part.set_aside)
    offsets = np.cumsum([0, *(len(part.trajectories) for part in parts)])
    complete = sum(len(part.step) for part in parts)
    flow = Flow(
        transitions=sum(part.transitions for part in parts),
        complete=complete,
        trajectories=int(offsets[-1]),
        excluded=excluded.exclusions(),
        by_acquisition=_by_acquisition(parts, axes),
        corners=_corners(parts, axes),
        set_aside=set_aside.exclusions(),
    )
    if not complete:
        kept, broken = (
            np.sum([np.zeros(len(axes.arms), np.int64), *counts], axis=0)
            for counts in ([p.kept_by_arm for p in parts], [p.broken_by_arm for p in parts])
        )
        flow = replace(flow, shortfall=shortfall(flow, selection, kept.tolist(), broken.tolist()))
    target = pa.chunked_array([part.target for part in parts], pa.string())
    types = pa.chunked_array([part.target_type for part in parts], pa.string())
    typed = types.null_count < len(types)
    margin = [np.empty((0, 2, axes.layouts, len(axes.slots)), np.int64), *(part.margins for part in parts)]
    return Faces(
        trajectories=tuple(name for part in parts for name in part.trajectories),
        cluster=_joined([p.cluster + o for p, o in zip(parts, offsets.tolist(), strict=False)], np.int32),
        step=_joined([part.step for part in parts], np.int32),
        target=_labels(target),
        target_type=_labels(pc.coalesce(types, target)) if typed else None,
        success=_joined([part.success for part in parts], np.int8),
        margins=tuple(
            np.concatenate([each[..., axes.of_arm(arm)][..., : len(names)] for each in margin])
            for arm, names in enumerate(axes.acquisitions)
        ),
        acquisitions=axes.acquisitions,
        layouts=axes.layouts,
        flow=flow,
        balance=LayoutBalance.of([part.balance for part in parts]),
    )


def _by_acquisition(parts: Sequence[RangeFaces], axes: Axes) -> tuple[AcquisitionFlow, ...]:
    none = np.zeros(len(axes.slots), np.int64)
    lacking = sum((part.flow.lacking for part in parts), none).tolist()
    alone = sum((part.flow.alone for part in parts), none).tolist()
    return tuple(
        AcquisitionFlow(arm, name, lacking[slot], alone[slot])
        for slot, (arm, name) in enumerate(axes.slots)
        if name is not None
    )


def _corners(parts: Sequence[RangeFaces], axes: Axes) -> tuple[tuple[int, int], ...]:
    counts = sum((part.flow.corners for part in parts), np.zeros((len(axes.arms), 2), np.int64))
    return tuple((before, after) for before, after in counts.tolist())


def _labels(texts: pa.ChunkedArray) -> Labels:
    found = ranks(texts)
    return Labels(tuple(found.values.to_pylist()), found.codes.astype(np.int32))


def _joined(arrays: Sequence[npt.NDArray[np.generic]], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *(array.astype(dtype) for array in arrays)])


def _by_arm(readings: Readings, arms: int) -> Ints:
    """How many entries each arm has."""
    arm = np.asarray(readings.table["arm"].to_numpy(), np.int64)
    found = np.zeros(arms, np.int64)
    np.add.at(found, arm, readings.lengths)
    return found


def _filled(column: pa.ChunkedArray | pa.Array, absent: int) -> Ints:
    """An integer column with `absent` where it is null."""
    return np.asarray(pc.fill_null(column, absent).to_numpy(), np.int64)
