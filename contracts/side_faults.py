"""Which cells of a refused side are at fault: how many of each kind, and the first of each endpoint.

"First" is by layout, then candidate. A cell given twice is duplicated, whatever the readings in it say;
a row outside the expected cells is unknown; an expected cell without a row is absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from contracts.labels import Codes, Mask
from contracts.order import Ints
from contracts.sides import Rows, Sides

Kinds = NDArray[np.int8]
_FAR = np.iinfo(np.int64).max
# Absent cells have no rows to bound them: a file of single rows could miss a hundred times its size.
LISTED_CELLS = 1_000_000


class Fault(IntEnum):
    """What is wrong with a cell; its lower-case name is how refusals spell it."""

    NONE = 0
    ABSENT = 1
    DUPLICATED = 2
    UNKNOWN = 3
    FAILED = 4


@dataclass(frozen=True)
class SideFaults:
    """Cell faults of refused sides, row i being side `side[i]`.

    `absent` and `duplicated` count cells, `unknown` and `failed` rows. The three `first_*` are (sides, 2),
    before then after: the kind (Fault.NONE for a sound endpoint), the layout and the candidate rank; and
    `first_row` a row of that cell in canonical order, -1 where it has none.
    """

    side: Ints
    absent: Ints
    duplicated: Ints
    unknown: Ints
    failed: Ints
    first_kind: Ints
    first_layout: Ints
    first_candidate: Ints
    first_row: Ints


def row_faults(rows: Rows, sides: Sides) -> Kinds:
    """The kind of fault of every fresh row, Fault.NONE for a sound one."""
    repeat = rows.keys.repeat & sides.known
    twice = repeat.copy()
    twice[:-1] |= repeat[1:] & sides.known[:-1]
    kind = np.where(sides.known & rows.failed, np.int8(Fault.FAILED), np.int8(Fault.NONE))
    kind[twice] = Fault.DUPLICATED
    kind[rows.fresh & ~sides.known] = Fault.UNKNOWN
    return kind


def side_faults(rows: Rows, sides: Sides, refused: Ints, kind: Kinds) -> SideFaults:
    """The cell faults of the `refused` sides; `kind` is `row_faults` of all rows."""
    keys, members = rows.keys, sides.members
    number = np.full(len(sides), -1, dtype=np.int64)
    number[refused] = np.arange(len(refused))
    at = np.flatnonzero(rows.fresh & (number[sides.side] >= 0))
    width = members.width
    place = keys.layout[at].astype(np.int64) * width + keys.candidate.codes[at]
    group = number[sides.side[at]] * 2 + keys.after[at]
    order = np.lexsort((place, group))
    at, place, group = at[order], place[order], group[order]

    transition = keys.transition[sides.first[refused]]
    candidates = members.size[transition]
    half = sides.expected[refused] // 2
    gap = _first_gap(group, at, sides.known & ~keys.repeat, keys.layout, members.index, candidates, half)
    count = np.repeat(np.maximum(candidates, 1), 2)
    owner = np.repeat(transition, 2)
    missing = gap < np.repeat(half, 2)
    rank = members.pairs[(members.offset[owner] + gap % count)[missing]] % width
    absent_place = np.full(2 * len(refused), _FAR)
    absent_place[missing] = (gap // count)[missing] * width + rank

    faulty = np.flatnonzero(kind[at])
    groups, first = np.unique(group[faulty], return_index=True)
    faulty_place = np.full(2 * len(refused), _FAR)
    faulty_row = np.full(2 * len(refused), -1, dtype=np.int64)
    faulty_place[groups] = place[faulty[first]]
    faulty_row[groups] = at[faulty[first]]

    row = np.where(faulty_place < absent_place, faulty_row, -1)
    nearest = np.minimum(faulty_place, absent_place)
    first_kind = np.where(nearest == _FAR, Fault.NONE, np.where(row >= 0, kind[row], Fault.ABSENT))
    shape = (len(refused), 2)

    doubled = at[(kind[at] == Fault.DUPLICATED) & ~keys.repeat[at]]
    return SideFaults(
        side=refused,
        absent=sides.expected[refused] - sides.distinct[refused],
        duplicated=np.bincount(number[sides.side[doubled]], minlength=len(refused)),
        unknown=sides.unknown[refused],
        failed=sides.failed[refused],
        first_kind=first_kind.reshape(shape),
        first_layout=(nearest // width).reshape(shape),
        first_candidate=(nearest % width).reshape(shape),
        first_row=row.reshape(shape),
    )


def _first_gap(
    group: Ints, at: Ints, present: Mask, layout: Codes, index: Codes, candidates: Ints, half: Ints
) -> Ints:
    """The first expected cell without a row, per (side, endpoint); at least half the cells where none is.

    Within an endpoint the expected cells are numbered layout * candidates + place of the candidate, and
    the rows come in that order: the first row whose number is not its position leaves a gap there.
    """
    here = present[at]
    group, at = group[here], at[here]
    cell = layout[at].astype(np.int64) * candidates[group // 2] + index[at]
    size = np.bincount(group, minlength=2 * len(candidates))
    position = np.arange(len(at)) - (np.cumsum(size) - size)[group]
    gap = np.minimum(size, np.repeat(half, 2))
    gap[size == np.repeat(half, 2)] = _FAR
    off = np.flatnonzero(cell != position)
    groups, first = np.unique(group[off], return_index=True)
    gap[groups] = position[off[first]]
    return gap


def absent_cells(rows: Rows, sides: Sides, refused: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """The absent cells of sides, each as its side, endpoint (0 before, 1 after), layout, candidate rank.

    Sides are listed while their expected cells come to at most LISTED_CELLS; of the others `side_faults`
    has the counts.
    """
    keys, members = rows.keys, sides.members
    short = refused[sides.expected[refused] > sides.distinct[refused]]
    listed = short[np.cumsum(sides.expected[short]) <= LISTED_CELLS]
    expected = sides.expected[listed]
    start = np.cumsum(expected) - expected
    number = np.full(len(sides), -1, dtype=np.int64)
    number[listed] = np.arange(len(listed))
    at = np.flatnonzero(sides.known & (number[sides.side] >= 0))
    of = number[sides.side[at]]
    candidates = members.size[keys.transition[sides.first[listed]]]
    cell = (
        keys.after[at] * (expected[of] // 2)
        + keys.layout[at].astype(np.int64) * candidates[of]
        + members.index[at]
    )
    present = np.zeros(int(expected.sum()), dtype=np.bool_)
    present[start[of] + cell] = True
    missing = np.flatnonzero(~present)
    of = np.searchsorted(start, missing, side="right") - 1
    cell = missing - start[of]
    half = expected[of] // 2
    offset = members.offset[keys.transition[sides.first[listed]]][of]
    rank = members.pairs[offset + cell % candidates[of]] % members.width
    return listed[of], cell // half, (cell % half) // candidates[of], rank
