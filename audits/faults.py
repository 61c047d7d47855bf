"""The first reason why a transition is not complete, and which acquisitions are to blame.

Faults are ordered by endpoint (before, after), arm, acquisition, layout, candidate; the first names the
reason. What is wrong with a transition as a whole counts only where no single cell is at fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from audits.cells import CELL_REASONS, FILLED, RULE_CODE, Grid, Ints, Mask
from audits.face_contract import refused_faces
from audits.flow import (
    ABSENT,
    CANDIDATES_DIFFER,
    DUPLICATED,
    ENDPOINTS,
    EXAMPLES,
    FACE,
    LAYOUT_UNKNOWN,
    REFUSED,
    SEVERAL_DONORS,
    SINGLE_CANDIDATE,
    TARGET_UNKNOWN,
    TARGETS_DIFFER,
    Cell,
    Example,
    ReasonCount,
)
from contracts.order import ranks
from ledger.snapshot import ANY_DONOR, REVOKED, RULES, TrajectoryRange

COMPLETE = 0
MISSING = CELL_REASONS.index(ABSENT)
TWICE = CELL_REASONS.index(DUPLICATED)
NO_TARGET, TWO_TARGETS, FOREIGN_TARGET = -1, -2, -3


@dataclass(frozen=True)
class RangeFlow:
    """The flow of one range; `complete` is the mask of its complete transitions.

    `lacking` and `alone` count transitions by slot, `corners` by (arm, endpoint).
    """

    complete: Mask
    excluded: ReasonCount
    lacking: Ints
    alone: Ints
    corners: Ints


@dataclass(frozen=True)
class _Blocks:
    """The faulty blocks, ascending: a block is one endpoint of one slot of one transition.

    `code` is the reason of a block's first faulty cell and `at` that cell in `Grid.state`, or -1 where a
    refused side says it (`cell`). `missing` is whether anything of it is not there.
    """

    block: Ints
    code: Ints
    at: Ints
    cells: dict[int, Cell]
    missing: Mask


class _Reasons:
    """Reason texts by code: those of cells, then others in the order in which they come up."""

    def __init__(self) -> None:
        self.texts = list(CELL_REASONS)

    def code(self, text: str) -> int:
        """The code of a reason, new if it has none yet."""
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text)


def judge(part: TrajectoryRange, grid: Grid, target: Ints) -> RangeFlow:
    """Find the complete transitions of a range, and the first reason of every other.

    `target` is the place of the target among its transition's candidates, by transition; below 0 stands
    one of NO_TARGET (no entry), TWO_TARGETS or FOREIGN_TARGET.
    """
    slots = len(grid.axes.slots)
    reasons = _Reasons()
    blocks = _faulty_blocks(part, grid, reasons)
    owner, within = np.divmod(blocks.block, len(ENDPOINTS) * slots)
    endpoint, slot = np.divmod(within, slots)
    arm = np.array([arm for arm, _ in grid.axes.slots], np.int64)[slot]

    first = np.flatnonzero(_starts(owner))
    code = np.full(len(grid), COMPLETE)
    code[owner[first]] = blocks.code[first]
    where = dict(zip(owner[first].tolist(), first.tolist(), strict=True))
    code[_differing_candidates(grid, code == MISSING)] = reasons.code(CANDIDATES_DIFFER)
    # each donor fills the same cells, so what is there twice is there once from each of them
    several = _several_donors(part, grid)
    code[several & (code == TWICE)] = reasons.code(SEVERAL_DONORS)
    for whole, text in _whole_faults(part, grid, target, several):
        code[whole & (code == COMPLETE)] = reasons.code(text)
    sides = np.unique(owner * slots + slot)
    faulty = np.zeros((len(grid), slots), bool)
    faulty.reshape(-1)[sides] = True
    for text, refused in refused_faces(part, grid, faulty):
        code[refused[code[refused] == COMPLETE]] = reasons.code(FACE + text)

    per_transition = np.bincount(sides // slots, minlength=len(grid))
    corners = np.unique(
        ((arm * len(ENDPOINTS)) + endpoint)[blocks.missing] * len(grid) + owner[blocks.missing]
    )
    return RangeFlow(
        complete=code == COMPLETE,
        excluded=_count(grid, code, where, blocks, reasons),
        lacking=np.bincount(sides % slots, minlength=slots),
        alone=np.bincount(sides[per_transition[sides // slots] == 1] % slots, minlength=slots),
        corners=len(grid)
        - np.bincount(corners // max(len(grid), 1), minlength=len(grid.axes.arms) * len(ENDPOINTS)).reshape(
            -1, len(ENDPOINTS)
        ),
    )


def _faulty_blocks(part: TrajectoryRange, grid: Grid, reasons: _Reasons) -> _Blocks:
    """What the entries say, then what the refused sides say instead of them."""
    slots, per_slot = len(grid.axes.slots), len(ENDPOINTS) * len(grid.axes.slots)
    at = np.flatnonzero(grid.state != FILLED)
    owner = np.searchsorted(grid.base, at, side="right") - 1
    block = owner * per_slot + (at - grid.base[owner]) // (grid.width[owner] * grid.axes.layouts)
    first = np.flatnonzero(_starts(block))
    code = grid.state[at[first]].astype(np.int64)
    missing = np.logical_or.reduceat(grid.state[at] == MISSING, first) if len(first) else np.zeros(0, bool)
    found = _Blocks(block[first], code, at[first], {}, missing)

    arm = np.array([arm for arm, _ in grid.axes.slots], np.int64)
    retired = grid.retired[found.block // per_slot, arm[found.block % slots]]
    found.code[retired & (found.code == MISSING)] = RULE_CODE + RULES.index(REVOKED)
    return _with_refused(found, part, grid, reasons) if grid.refused else found


def _with_refused(found: _Blocks, part: TrajectoryRange, grid: Grid, reasons: _Reasons) -> _Blocks:
    """Blocks of refused sides at the cell that the contract blamed, instead of as wholly absent."""
    slots = len(grid.axes.slots)
    replaced: list[int] = []
    cells: dict[int, tuple[int, bool, Cell]] = {}
    for refused in grid.refused:
        if refused.slot is None:
            continue
        blocks = [
            (refused.transition * len(ENDPOINTS) + e) * slots + refused.slot for e in range(len(ENDPOINTS))
        ]
        replaced += blocks
        side = part.refused[refused.index]
        acquisition = grid.acquisition(refused.slot)
        for block, endpoint in zip(blocks, ENDPOINTS, strict=True):
            faults = sorted((f.layout, f.candidate, f.kind) for f in side.faults if f.endpoint == endpoint)
            if faults:
                layout, candidate, kind = faults[0]
                cell = Cell(endpoint, refused.arm, acquisition, layout, candidate)
                cells[block] = (reasons.code(kind), True, cell)
        if not side.faults:
            cell = Cell(ENDPOINTS[0], refused.arm, acquisition)
            cells[blocks[0]] = (reasons.code(REFUSED + side.reason), False, cell)
    kept = ~np.isin(found.block, replaced)
    numbers = np.concatenate([found.block[kept], np.array(list(cells), np.int64)])
    order = np.argsort(numbers)
    return _Blocks(
        block=numbers[order],
        code=np.concatenate([found.code[kept], np.array([c for c, _, _ in cells.values()], np.int64)])[order],
        at=np.concatenate([found.at[kept], np.full(len(cells), -1)])[order],
        cells={at: cell for at, (_, _, cell) in cells.items()},
        missing=np.concatenate([found.missing[kept], np.array([m for _, m, _ in cells.values()], bool)])[
            order
        ],
    )


def _whole_faults(
    part: TrajectoryRange, grid: Grid, target: Ints, several: Mask
) -> Iterator[tuple[Mask, str]]:
    """What is wrong with whole transitions, in the order in which it is their reason."""
    outside = np.zeros(len(grid), bool)
    outside[grid.owner[~grid.fits]] = True
    yield outside, LAYOUT_UNKNOWN
    yield target == TWO_TARGETS, TARGETS_DIFFER
    yield target == FOREIGN_TARGET, TARGET_UNKNOWN
    yield grid.width < 2, SINGLE_CANDIDATE
    yield several, SEVERAL_DONORS


def _differing_candidates(grid: Grid, among: Mask) -> Mask:
    """The transitions of which every side is whole by its own candidates, but not by everybody's."""
    if not among.any():
        return among
    slots, layouts = len(grid.axes.slots), grid.axes.layouts
    owner = np.searchsorted(grid.base, grid.place, side="right") - 1
    rows = np.flatnonzero(among[owner])
    if not len(rows):
        return np.zeros(len(grid), bool)
    owner = owner[rows]
    within = grid.place[rows] - grid.base[owner]
    index = within % grid.width[owner]
    side = owner * slots + within // (grid.width[owner] * layouts) % slots
    entries = np.bincount(side, minlength=len(grid) * slots)
    width = int(grid.width.max())
    own = np.bincount(np.unique(side * width + index) // width, minlength=len(grid) * slots)
    whole = (own > 0) & (entries == own * len(ENDPOINTS) * layouts)
    differing: Mask = among & whole.reshape(-1, slots).all(axis=1)
    return differing


def _several_donors(part: TrajectoryRange, grid: Grid) -> Mask:
    """The transitions with more than one donor in an arm that takes any."""
    several = np.zeros(len(grid), bool)
    any_donor = np.array([arm.view_source == ANY_DONOR for arm in grid.axes.arms], bool)
    if any_donor.any():
        arm = np.asarray(part.kept.table["arm"].to_numpy(), np.int64)
        source = ranks(part.kept.table["view_source"]).codes
        group = grid.owner * len(any_donor) + arm
        one = np.zeros(len(grid) * len(any_donor), np.int64)
        one[group] = source
        several[grid.owner[any_donor[arm] & (source != one[group])]] = True
    return several


def _count(grid: Grid, code: Ints, where: dict[int, int], blocks: _Blocks, reasons: _Reasons) -> ReasonCount:
    """The excluded transitions by reason; only the first few of each are put into words."""
    counted = ReasonCount()
    for reason in np.unique(code[code != COMPLETE]).tolist():
        of_reason = np.flatnonzero(code == reason)
        examples = []
        for t in of_reason[:EXAMPLES].tolist():
            cell = None
            if t in where and blocks.code[where[t]] == reason:
                block, at = int(blocks.block[where[t]]), int(blocks.at[where[t]])
                cell = blocks.cells[block] if at < 0 else grid.cell(t, at)
            examples.append(Example(reasons.texts[reason], grid.name(t), int(grid.step[t]), cell))
        counted.add(reasons.texts[reason], len(of_reason), examples)
    return counted


def _starts(groups: Ints) -> Mask:
    """Where a new group begins in ascending group numbers."""
    starts = np.ones(len(groups), bool)
    starts[1:] = groups[1:] != groups[:-1]
    return starts
