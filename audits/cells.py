"""The cells of one trajectory range: where each entry belongs, and which cells are not as they must be.

A transition is a grid endpoint x slot x layout x candidate, a slot being one acquisition of one arm.
Completeness is counted here cell by cell: that a contract once admitted whole sides is not relied on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from audits.flow import ABSENT, DUPLICATED, ENDPOINTS, PROVENANCE, Cell
from contracts.errors import CannotAnswerError
from contracts.labels import Labels
from contracts.order import dense, ranks
from ledger.snapshot import REVOKED, RULES, Arm, Readings, TrajectoryRange

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)

FILLED = 0
# Reason codes of cells: the index is the code.
CELL_REASONS = ("", ABSENT, DUPLICATED, *(PROVENANCE + rule for rule in RULES))
RULE_CODE = 3
_STEP_BITS = 31
# Cells of a range, of which each takes some ten bytes; complete transitions fill all of theirs.
_MOST_CELLS = 1 << 23
_EMPTY = 4  # times as many cells as entries are looked at in any case
_FEW = 4  # acquisitions of an arm are never too many


@dataclass(frozen=True)
class Axes:
    """What every transition of a scope must fill: L layouts of each acquisition of each arm.

    An arm without acquisitions has one slot that nothing can fill, so that nothing is complete. Arms with
    the same number in `same_view` have to show the same view; None or no number stands for no such demand.
    """

    arms: tuple[Arm, ...]
    acquisitions: tuple[tuple[str, ...], ...]
    layouts: int
    same_view: tuple[int | None, ...] = ()

    @cached_property
    def slots(self) -> tuple[tuple[int, str | None], ...]:
        """The slots as (arm index, acquisition id), in the order of arms, then acquisitions."""
        return tuple((arm, name) for arm, names in enumerate(self.acquisitions) for name in names or (None,))

    def of_arm(self, arm: int) -> slice:
        """The slots of one arm."""
        start = sum(len(names) or 1 for names in self.acquisitions[:arm])
        return slice(start, start + (len(self.acquisitions[arm]) or 1))

    def slot(self, arm: int, acquisition: str) -> int | None:
        """The slot of an acquisition, None where it is not (or no longer) in scope."""
        if acquisition not in self.acquisitions[arm]:
            return None
        return self.slots.index((arm, acquisition))

    @property
    def cells(self) -> int:
        """Cells of a transition for each of its candidates: endpoints x slots x layouts."""
        return len(ENDPOINTS) * len(self.slots) * self.layouts


@dataclass(frozen=True)
class RefusedAt:
    """A refused side in the grid: transition, arm, slot (None where its acquisition was revoked)."""

    transition: int
    arm: int
    slot: int | None
    index: int


@dataclass(frozen=True)
class Grid:
    """The transitions of a range, laid out cell by cell.

    Transition `t` is `step[t]` of the trajectory with rank `trajectory[t]` in `trajectories`. Its cells
    stand from `base[t]` on: endpoint-major, then slot, layout, candidate, of which there are `width[t]`,
    named by `candidates` from `first[t]` on (`width` 1 and no name where no entry names any). `state` is
    the reason code of every cell. `owner`, `endpoint` and `slot` place every reading that was kept, and
    `fits` says that its layout is one of its channel; `place` is the cell of every entry of those that fit,
    and `placed` which entries of all that were kept these are. `retired[t, arm]` says that all there is of
    an arm was revoked.
    """

    axes: Axes
    trajectories: pa.Array
    trajectory: Ints
    step: Ints
    base: Ints
    width: Ints
    first: Ints
    candidates: Ints
    candidate_names: pa.Array
    state: npt.NDArray[np.int8]
    owner: Ints
    endpoint: Ints
    slot: Ints
    fits: Mask
    place: Ints
    placed: Mask
    retired: Mask
    refused: tuple[RefusedAt, ...]

    @cached_property
    def side(self) -> Ints:
        """The side of every reading that was kept: transition times slots plus slot."""
        side: Ints = self.owner * len(self.axes.slots) + self.slot
        return side

    def by_cell(self, values: npt.NDArray[Scalar], absent: Scalar) -> npt.NDArray[Scalar]:
        """A value of every entry that was kept, by the cell it fills; `absent` where there is none."""
        found = np.full(len(self.state), absent, values.dtype)
        found[self.place] = values if self.placed.all() else values[self.placed]
        return found

    def __len__(self) -> int:
        return len(self.step)

    def name(self, t: int) -> str:
        """The trajectory of a transition."""
        return str(self.trajectories[int(self.trajectory[t])].as_py())

    def cell(self, t: int, at: int) -> Cell:
        """The cell at an index into `state`, in words."""
        place, index = divmod(at - int(self.base[t]), int(self.width[t]))
        place, layout = divmod(place, self.axes.layouts)
        endpoint, slot = divmod(place, len(self.axes.slots))
        arm = self.axes.slots[slot][0]
        named = int(self.first[t + 1] - self.first[t]) > 0
        candidate = self.candidate_names[int(self.candidates[self.first[t] + index])] if named else None
        return Cell(
            ENDPOINTS[endpoint],
            arm,
            self.acquisition(slot),
            layout,
            None if candidate is None else str(candidate.as_py()),
        )

    def acquisition(self, slot: int) -> str | None:
        """The acquisition of a slot where its arm has several, so that naming it says something."""
        arm, name = self.axes.slots[slot]
        return name if len(self.axes.acquisitions[arm]) > 1 else None


def lay_out(part: TrajectoryRange, axes: Axes) -> Grid:
    """Put every entry of a range in its cell, and say what is wrong with the cells that are not filled."""
    readings = Readings.concat([part.kept, part.out]) if len(part.out) else part.kept
    rows, kept = readings.table, len(part.kept)
    rule = np.concatenate([np.full(kept, -1), part.rule.astype(np.int64)])

    transition, keys, trajectories = _transitions(rows, part)
    arm, layout, endpoint = _ints(rows["arm"]), _ints(rows["layout"]), _after(rows)
    slot = _slots(arm, ranks(rows["acquisition_id"]), axes)
    revoked = rule == RULES.index(REVOKED)
    if (slot[~revoked] < 0).any():
        raise AssertionError("an entry of an acquisition that the selection does not list")
    fits = (layout >= 0) & (layout < axes.layouts) & ~revoked

    candidate = ranks(readings.cells["candidate"])
    radix = max(len(candidate.values), 1)
    code, of = candidate.codes.astype(np.int64), readings.of_entry
    fit = fits[of]
    if not fit.all():
        code, of = code[fit], of[fit]
    member, members = dense((transition * radix)[of] + code, max(len(keys), 1) * radix)
    named = np.bincount(members // radix, minlength=len(keys))
    first = np.concatenate([[0], np.cumsum(named)])
    width = np.maximum(named, 1)
    base = np.concatenate([[0], np.cumsum(width * axes.cells)])
    _require_room(int(base[-1]), len(of), axes)

    block = (endpoint * len(axes.slots) + slot) * axes.layouts + layout
    place = (base[transition] + block * width[transition] - first[transition])[of] + member
    entered = int(np.searchsorted(of, kept))
    times = np.bincount(place[:entered], minlength=int(base[-1]))
    state = np.full(int(base[-1]), CELL_REASONS.index(ABSENT), np.int8)
    state[times == 1] = FILLED
    state[times > 1] = CELL_REASONS.index(DUPLICATED)
    state[place[entered:]] = RULE_CODE + rule[of[entered:]]

    refused = tuple(_refused(part, keys, trajectories, axes))
    return Grid(
        axes=axes,
        trajectories=trajectories,
        trajectory=keys >> _STEP_BITS,
        step=keys & ((1 << _STEP_BITS) - 1),
        base=base[:-1],
        width=width,
        first=first,
        candidates=members % radix,
        candidate_names=candidate.values,
        state=state,
        owner=transition[:kept],
        endpoint=endpoint[:kept],
        slot=slot[:kept],
        fits=fits[:kept],
        place=place[:entered],
        placed=fit[: part.kept.cells.num_rows],
        retired=_retired(transition, arm, revoked, refused, (len(keys), len(axes.arms))),
        refused=refused,
    )


def _require_room(cells: int, entries: int, axes: Axes) -> None:
    """CannotAnswerError where nearly all cells of a range are empty, and there are too many to look at."""
    few = len(axes.slots) <= _FEW * len(axes.arms)
    if few or cells <= max(_MOST_CELLS, _EMPTY * entries):
        return
    arm = max(range(len(axes.arms)), key=lambda index: len(axes.acquisitions[index]))
    raise CannotAnswerError(
        "a complete transition has a side of every acquisition in scope, and there are too many",
        code="too-many-acquisitions",
        got=f"{len(axes.acquisitions[arm]):,} acquisitions of {axes.arms[arm].channel.name}",
        expected="acquisitions that most transitions have",
        next_step="name those that are meant with --acquisition; see `ledger acquisition list`",
    )


def _transitions(rows: pa.Table, part: TrajectoryRange) -> tuple[Ints, Ints, pa.Array]:
    """The transition of every row, the distinct transitions as packed keys in order, trajectory names."""
    refused = pa.array([side.trajectory_id for side in part.refused], pa.string()).dictionary_encode()
    named = ranks(pa.chunked_array([*rows["trajectory_id"].chunks, refused], rows["trajectory_id"].type))
    step = np.concatenate([_ints(rows["step"]), np.array([side.step for side in part.refused], np.int64)])
    key = named.codes.astype(np.int64) << _STEP_BITS | step
    # Rows of a transition stand together (those that entered, then those that did not), so only the
    # first of each run is compared with all the others.
    new = np.append(True, key[1:] != key[:-1])[: len(key)]
    keys, transition = np.unique(key[new], return_inverse=True)
    return transition[np.cumsum(new) - 1][: rows.num_rows], keys, named.values


def _slots(arm: Ints, acquisition: Labels, axes: Axes) -> Ints:
    """The slot of every row, -1 where its acquisition is not one of its arm."""
    slots = np.full((len(axes.arms), max(len(acquisition.values), 1)), -1)
    for code, name in enumerate(acquisition.values.to_pylist()):
        for index in range(len(axes.arms)):
            slot = axes.slot(index, name)
            slots[index, code] = -1 if slot is None else slot
    found: Ints = slots[arm, acquisition.codes]
    return found


def _after(rows: pa.Table) -> Ints:
    """0 for rows at endpoint before, 1 for rows at endpoint after."""
    endpoint = ranks(rows["endpoint"])
    places = np.array([ENDPOINTS.index(name) for name in endpoint.values.to_pylist()], np.int64)
    after: Ints = places[endpoint.codes]
    return after


def _refused(part: TrajectoryRange, keys: Ints, names: pa.Array, axes: Axes) -> list[RefusedAt]:
    code = {name: i for i, name in enumerate(names.to_pylist())} if part.refused else {}
    found = []
    for index, side in enumerate(part.refused):
        (arm,) = (
            i
            for i, a in enumerate(axes.arms)
            if a.channel.fingerprint == side.channel and a.takes(side.view_source)
        )
        t = int(np.searchsorted(keys, code[side.trajectory_id] << _STEP_BITS | side.step))
        found.append(RefusedAt(t, arm, axes.slot(arm, side.acquisition_id), index))
    return found


def _retired(
    transition: Ints, arm: Ints, revoked: Mask, refused: tuple[RefusedAt, ...], shape: tuple[int, int]
) -> Mask:
    """Where an arm of a transition has nothing but what was revoked."""
    gone, alive = np.zeros(shape, bool), np.zeros(shape, bool)
    if not revoked.any() and all(side.slot is not None for side in refused):
        return gone
    gone[transition[revoked], arm[revoked]] = True
    alive[transition[~revoked], arm[~revoked]] = True
    for side in refused:
        (gone if side.slot is None else alive)[side.transition, side.arm] = True
    retired: Mask = gone & ~alive
    return retired


def _ints(column: pa.ChunkedArray) -> Ints:
    return np.asarray(column.to_numpy(), np.int64)
