"""Whether every side is whole: both endpoints, all layouts, all candidates, each once, all scored.

A side is one transition under one view source, channel and acquisition. Its expected cells are
2 endpoints x L layouts of the channel x the candidates of the transition. Rows stand in canonical order,
so a cell given twice stands beside its twin: counting the distinct expected cells that are present
decides completeness and uniqueness exactly, whatever the number of cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from contracts.labels import Codes, Mask
from contracts.order import Ints, Keys, bound, dense, pack
from contracts.pandera_config import failures
from contracts.side_models import CELL_CODES, SIDE_CODES, SideModel


@dataclass(frozen=True)
class Rows:
    """Coded rows with what each is: `fresh` ones are judged, `held` ones are entries of the ledger.

    A row that is neither was dropped: it repeats an entry. `failed` marks a reading without a score.
    """

    keys: Keys
    fresh: Mask
    held: Mask
    failed: Mask


@dataclass(frozen=True)
class Members:
    """The candidates of each transition: those of its entries, else those of its fresh rows.

    `pairs` are the distinct (transition, candidate) as transition * width + candidate rank, ascending;
    the candidates of transition t are `size[t]` pairs from `offset[t]`. `index` is the place of a row's
    candidate among them, -1 where it is none.
    """

    width: int
    pairs: Ints
    size: Ints
    offset: Ints
    index: Codes

    def candidates(self, transition: int) -> Ints:
        """Candidate ranks of one transition, ascending."""
        start = self.offset[transition]
        return self.pairs[start : start + self.size[transition]] % self.width

    def has(self, transition: Ints, candidate: Ints) -> Mask:
        """Whether each candidate rank (-1 for one that occurs nowhere) is a member of its transition."""
        return (candidate >= 0) & np.isin(transition * self.width + candidate, self.pairs)


@dataclass(frozen=True)
class Sides:
    """The sides of some rows, in the order of their keys, and what was counted in each.

    `side` numbers the side of every row and `first` a row of every side. `judged` sides have fresh rows;
    `whole` ones are in the ledger already, so every fresh row of theirs is beyond the expected cells.
    `known` rows lie in an expected cell; `stray` rows carry a candidate that hardly any cell of their
    transition has. Counts are per side: `expected` cells, `distinct` of them present, `repeated`,
    `unknown` and `failed` rows.
    """

    side: Ints
    first: Ints
    judged: Mask
    whole: Mask
    members: Members
    known: Mask
    stray: Mask
    expected: Ints
    distinct: Ints
    repeated: Ints
    unknown: Ints
    failed: Ints

    def __len__(self) -> int:
        return len(self.first)


def count_sides(rows: Rows, layouts: Ints, labels: Ints) -> Sides:
    """Number the sides of some rows and count their cells.

    `layouts` is L and `labels` the number of labels (0 where not said) by rank of the channel.
    """
    keys = rows.keys
    packed, size = pack(
        [
            (keys.transition, max(keys.transitions, 1)),
            (keys.view_source.codes, bound(keys.view_source)),
            (keys.channel.codes, bound(keys.channel)),
            (keys.acquisition.codes, bound(keys.acquisition)),
        ]
    )
    side, distinct = dense(packed, size)
    first = np.zeros(len(distinct), dtype=np.int64)
    first[side[::-1]] = np.arange(len(side) - 1, -1, -1)
    counted = _count(rows, layouts, side, first, np.zeros(len(side), dtype=np.bool_))
    short = counted.judged & ~counted.whole & (counted.distinct != counted.expected)
    if short.any():
        transition, channel = keys.transition[first], keys.channel.codes[first]
        asked = np.zeros(keys.transitions, dtype=np.bool_)
        asked[transition[short]] = True
        asked[transition[labels[channel] == counted.members.size[transition]]] = False
        asked[keys.transition[rows.held]] = False
        stray = _strays(rows, counted, asked, 2 * layouts[channel])
        if stray.any():
            return _count(rows, layouts, side, first, stray)
    return counted


def _count(rows: Rows, layouts: Ints, side: Ints, first: Ints, stray: Mask) -> Sides:
    keys = rows.keys
    whole = np.zeros(len(first), dtype=np.bool_)
    whole[side[rows.held]] = True
    members = _members(rows, stray)
    known = rows.fresh & (members.index >= 0) & (keys.layout < layouts[keys.channel.codes])
    if whole.any():
        known &= ~whole[side]

    def per_side(mask: Mask) -> Ints:
        return np.bincount(side if mask.all() else side[mask], minlength=len(first))

    expected = 2 * layouts[keys.channel.codes[first]] * members.size[keys.transition[first]]
    expected[whole] = 0
    return Sides(
        side=side,
        first=first,
        judged=per_side(rows.fresh) > 0,
        whole=whole,
        members=members,
        known=known,
        stray=stray,
        expected=expected,
        distinct=per_side(known & ~keys.repeat),
        repeated=per_side(known & keys.repeat),
        unknown=per_side(rows.fresh & ~known),
        failed=per_side(known & rows.failed),
    )


def _members(rows: Rows, stray: Mask) -> Members:
    keys = rows.keys
    width = bound(keys.candidate)
    pair = keys.transition.astype(np.int64) * width + keys.candidate.codes
    ids, distinct = dense(pair, max(keys.transitions, 1) * width)
    defining = rows.fresh & ~stray
    if rows.held.any():
        in_ledger = np.zeros(keys.transitions, dtype=np.bool_)
        in_ledger[keys.transition[rows.held]] = True
        defining = rows.held | (defining & ~in_ledger[keys.transition])
    member = np.zeros(len(distinct), dtype=np.bool_)
    member[ids if defining.all() else ids[defining]] = True
    owner = distinct // width
    size = np.bincount(owner[member], minlength=keys.transitions)
    offset = np.cumsum(size) - size
    place = (np.cumsum(member) - 1 - offset[owner]).astype(np.int32)
    place[~member] = -1
    return Members(width=width, pairs=distinct[member], size=size, offset=offset, index=place[ids])


def _strays(rows: Rows, sides: Sides, asked: Mask, cells: Ints) -> Mask:
    """Rows whose candidate is in fewer than half the cells of its transition and fills no side.

    One misspelt candidate would otherwise make every other cell of its transition look incomplete, and
    the wrong rows would be blamed. `asked` are transitions with an incomplete side and candidates that
    neither labels nor entries vouch for; `cells` is how many cells hold one candidate, by side.
    """
    keys = rows.keys
    stray = np.zeros(len(keys), dtype=np.bool_)
    at = np.flatnonzero(asked[keys.transition] & rows.fresh & ~keys.repeat)
    if not len(at):
        return stray
    width = sides.members.width
    side, transition = sides.side[at], keys.transition[at].astype(np.int64)
    new = np.ones(len(at), dtype=np.bool_)
    for part in (side, keys.endpoint.codes[at], keys.layout[at]):
        new[1:] &= part[1:] == part[:-1]
    new[1:] = ~new[1:]
    in_transition = np.bincount(transition[new], minlength=keys.transitions)
    of_side, held = np.unique(side * width + keys.candidate.codes[at], return_counts=True)
    filled = of_side[held == cells[of_side // width]]
    filling = keys.transition[sides.first[filled // width]].astype(np.int64) * width + filled % width
    pairs, ids, count = np.unique(
        transition * width + keys.candidate.codes[at], return_inverse=True, return_counts=True
    )
    rare = (2 * count < in_transition[pairs // width]) & ~np.isin(pairs, filling)
    stray[at] = rare[ids]
    leaders = ~keys.repeat
    spread: Mask = stray[leaders][np.cumsum(leaders) - 1]
    return spread


def judge_sides(
    rows: Rows, sides: Sides, labels: Ints, donor_self: Mask, donor_view: Mask
) -> Mapping[str, Mask]:
    """Which sides break which rule of SideModel: a mask over all sides for each of its codes.

    `labels` is the number of labels by rank of the channel, 0 where the channel does not say.
    """
    keys = rows.keys
    judged = np.flatnonzero(sides.judged)
    first = sides.first[judged]
    wanted = np.where(sides.whole[judged], 0, labels[keys.channel.codes[first]])
    frame = pl.DataFrame(
        {
            "expected": sides.expected[judged],
            "distinct": sides.distinct[judged],
            "repeated": sides.repeated[judged],
            "unknown": sides.unknown[judged],
            "failed": sides.failed[judged],
            "candidates": sides.members.size[keys.transition[first]],
            "labels": wanted,
            "donor_self": donor_self[judged],
            "donor_view": donor_view[judged],
        }
    ).with_columns(pl.col("labels").replace(0, None))
    verdicts = {code: np.zeros(len(sides), dtype=np.bool_) for code in (*CELL_CODES, *SIDE_CODES)}
    for failure in failures(SideModel, frame):
        verdicts[failure.check][judged[failure.rows]] = True
    return verdicts
