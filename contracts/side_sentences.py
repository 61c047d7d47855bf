"""What is wrong with one side, in one sentence: what, where, expected, found.

`face traj000/step05: layout 2 missing in (after, generated); expected 4 layouts, found 3`
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contracts.findings import ROWS, Finding, KeyValue, shown
from contracts.labels import Labels
from contracts.order import Ints
from contracts.refusals import ENDPOINTS
from contracts.side_faults import Fault, Kinds
from contracts.side_models import (
    CANDIDATES_LABELS,
    CELL_DUPLICATED,
    CELL_MISSING,
    CELL_UNKNOWN,
    DONOR_SELF,
    READING_FAILED,
)
from contracts.side_rejects import Origin
from contracts.sides import Rows, Sides

NAMED = 8  # candidates named in a sentence
_LARGEST_GRID = 10_000_000


@dataclass(frozen=True)
class Scene:
    """Everything a sentence may need: the rows and sides, how channels are called, where rows came from."""

    rows: Rows
    sides: Sides
    kind: Kinds
    status: Labels
    channels: tuple[str, ...]
    layouts: Ints
    labels: Ints
    origin: Origin

    def face(self, transition: int) -> str:
        """`face traj000/step05`, the transition a sentence is about."""
        row = int(self.rows.keys.starts[transition])
        return f"face {self.trajectory(row)}/step{int(self.rows.keys.step[row]):02d}"

    def trajectory(self, row: int) -> str:
        keys = self.rows.keys
        return shown(keys.trajectory.values[int(keys.trajectory.codes[row])].as_py())

    def candidate(self, rank: int) -> str:
        return shown(self.rows.keys.candidate.values[rank].as_py())

    def candidates(self, transition: int) -> str:
        """The candidates of a transition, the first few by name."""
        ranks = self.sides.members.candidates(transition)
        more = f", … ({len(ranks)})" if len(ranks) > NAMED else ""
        return ", ".join(self.candidate(int(rank)) for rank in ranks[:NAMED]) + more

    def place(self, side: int, *first: str) -> str:
        """`(after, generated)`: the channel, and the view source and acquisition where they tell apart.

        What tells apart is asked of the transition alone, so a sentence does not depend on other rows.
        """
        keys, row = self.rows.keys, int(self.sides.first[side])
        view = keys.view_source.values[int(keys.view_source.codes[row])].as_py()
        parts = [*first, shown(self.channels[int(keys.channel.codes[row])])]
        parts += [shown(view)] if view != "own" else []
        t = int(keys.transition[row])
        beside = keys.acquisition.codes[keys.starts[t] : keys.starts[t + 1]]
        if (beside != keys.acquisition.codes[row]).any():
            parts.append(shown(keys.acquisition.values[int(keys.acquisition.codes[row])].as_py()))
        return f"({', '.join(parts)})"

    def rows_of(self, side: int) -> Ints:
        """The fresh rows of one side, in canonical order."""
        keys, row = self.rows.keys, int(self.sides.first[side])
        t = int(keys.transition[row])
        at = np.arange(keys.starts[t], keys.starts[t + 1])
        here: Ints = at[(self.sides.side[at] == side) & self.rows.fresh[at]]
        return here

    def key(self, side: int) -> dict[str, KeyValue]:
        """The columns that name a side; its channel by name where it has one."""
        keys, row = self.rows.keys, int(self.sides.first[side])
        return {
            "trajectory_id": keys.trajectory.values[int(keys.trajectory.codes[row])].as_py(),
            "step": int(keys.step[row]),
            "view_source": keys.view_source.values[int(keys.view_source.codes[row])].as_py(),
            "channel": self.channels[int(keys.channel.codes[row])],
            "acquisition_id": keys.acquisition.values[int(keys.acquisition.codes[row])].as_py(),
        }

    def cited(self, at: Ints) -> str:
        """`scores.csv row 7, other.csv row 9`: where rows stand, the first three of them."""
        places = [f"{shown(self.origin.name(int(i)))} row {int(self.origin.row[i])}" for i in at[:3]]
        return ", ".join(places) + (", …" if len(at) > 3 else "")

    def finding(
        self, code: str, side: int, message: str, at: Ints, cell: dict[str, KeyValue], wanted: str, got: str
    ) -> Finding:
        """A finding about a side; its row numbers are those in the file of the first row."""
        file = self.origin.name(int(at[0])) if len(at) else None
        numbers = tuple(int(self.origin.row[i]) for i in at if self.origin.name(int(i)) == file)
        return Finding(
            code=code,
            level="side",
            message=f"{self.face(int(self.rows.keys.transition[self.sides.first[side]]))}: {message}",
            key={**self.key(side), **cell},
            file=file,
            rows=numbers[:ROWS],
            wanted=wanted,
            got=got,
        )


def missing(scene: Scene, side: int) -> Finding:
    """The first absent cells of a side, as the largest piece they make up: endpoint, layout or candidate."""
    keys, sides = scene.rows.keys, scene.sides
    t = int(keys.transition[sides.first[side]])
    channel = int(keys.channel.codes[sides.first[side]])
    layouts, size = int(scene.layouts[channel]), int(sides.members.size[t])
    expected, distinct = int(sides.expected[side]), int(sides.distinct[side])
    nowhere = np.empty(0, dtype=np.int64)
    if expected > _LARGEST_GRID:
        text = f"{expected - distinct:,} cells missing in {scene.place(side)}; expected {expected:,}"
        return scene.finding(CELL_MISSING, side, text, nowhere, {}, wanted=str(expected), got=str(distinct))
    at = scene.rows_of(side)
    at = at[sides.known[at]]
    grid = np.zeros((2, layouts, size), dtype=np.bool_)
    grid[keys.after[at], keys.layout[at], sides.members.index[at]] = True
    if not grid[0].any() or not grid[1].any():
        return _half_missing(scene, side, int(grid[0].any()))
    end = int(np.flatnonzero(~grid.all(axis=(1, 2)))[0])
    where = scene.place(side, ENDPOINTS[end])
    gone = np.flatnonzero(~grid[end].any(axis=1))
    layout = int(np.flatnonzero(~grid[end].all(axis=1))[0])
    cell: dict[str, KeyValue] = {"endpoint": ENDPOINTS[end], "layout": layout}
    if len(gone) and gone[0] == layout:
        what = _layouts(gone)
        told, wanted, found = size * len(gone), layouts, layouts - len(gone)
        unit = "layouts" if layouts > 1 else "layout"
    else:
        lacking = np.flatnonzero(~grid[end, layout])
        names = [scene.candidate(int(sides.members.candidates(t)[i])) for i in lacking[:NAMED]]
        what = f"{'candidates' if len(lacking) > 1 else 'candidate'} {', '.join(names)} of layout {layout}"
        told, wanted, found, unit = len(lacking), size, size - len(lacking), "candidates"
        cell["candidate"] = names[0]
    text = f"{what} missing in {where}; expected {wanted} {unit}, found {found}"
    text += _more(expected - distinct - told, "cell missing", "cells missing")
    return scene.finding(
        CELL_MISSING, side, text, nowhere, cell, wanted=f"{wanted} {unit}", got=f"{found} {unit}"
    )


def _layouts(gone: Ints) -> str:
    names = ", ".join(str(layout) for layout in gone[:NAMED]) + (", …" if len(gone) > NAMED else "")
    return f"{'layouts' if len(gone) > 1 else 'layout'} {names}"


def _half_missing(scene: Scene, side: int, end: int) -> Finding:
    """A side without one endpoint (`end`); says where that endpoint stands if another acquisition has it."""
    keys, sides = scene.rows.keys, scene.sides
    row = int(sides.first[side])
    t = int(keys.transition[row])
    at = np.arange(keys.starts[t], keys.starts[t + 1])
    same = np.ones(len(at), dtype=np.bool_)
    for codes in (keys.view_source.codes, keys.channel.codes):
        same &= codes[at] == codes[row]
    twin = at[same & (sides.side[at] != side) & (keys.after[at] == end)]
    missing_end, found_end = ENDPOINTS[end], ENDPOINTS[1 - end]
    found = found_end if sides.distinct[side] else "neither"
    text = f"{missing_end} missing in {scene.place(side)}; expected before and after, found {found}"
    if len(twin):
        other = keys.acquisition.values[int(keys.acquisition.codes[twin[0]])].as_py()
        text += f"; {missing_end} stands under acquisition {shown(other)}, one acquisition must bring both"
    cell: dict[str, KeyValue] = {"endpoint": missing_end}
    nowhere = np.empty(0, dtype=np.int64)
    return scene.finding(CELL_MISSING, side, text, nowhere, cell, wanted="before and after", got=found)


def duplicated(scene: Scene, side: int) -> Finding:
    """The first cell of a side that is given more than once, with the rows that give it."""
    rows = scene.rows_of(side)
    at, more = _first_cell(scene, rows[scene.kind[rows] == Fault.DUPLICATED])
    cell, where = _cell(scene, side, int(at[0]))
    text = (
        f"candidate {cell['candidate']} of layout {cell['layout']} given {len(at)} times in {where} "
        f"({scene.cited(at)}); expected once" + _more(more, "row of another cell", "rows of other cells")
    )
    return scene.finding(CELL_DUPLICATED, side, text, at, cell, wanted="once", got=f"{len(at)} times")


def unknown(scene: Scene, side: int) -> Finding:
    """The first row of a side that lies in none of its cells."""
    rows = scene.rows_of(side)
    at, more = _first_cell(scene, rows[scene.kind[rows] == Fault.UNKNOWN])
    cell, where = _cell(scene, side, int(at[0]))
    keys = scene.rows.keys
    layouts = int(scene.layouts[keys.channel.codes[at[0]]])
    if scene.sides.whole[side]:
        wanted = "no more cells, the side is whole in the ledger"
    elif int(keys.layout[at[0]]) >= layouts:
        wanted = f"layouts 0 to {layouts - 1}"
    else:
        wanted = f"one of {scene.candidates(int(keys.transition[at[0]]))}"
    text = (
        f"unknown candidate {cell['candidate']} of layout {cell['layout']} in {where} ({scene.cited(at)}); "
        f"expected {wanted}" + _more(more, "unknown row", "unknown rows")
    )
    return scene.finding(CELL_UNKNOWN, side, text, at, cell, wanted=wanted, got=str(cell["candidate"]))


def failed(scene: Scene, side: int) -> Finding:
    """The first reading of a side that brought no score, or its layout where that failed as a whole."""
    keys, rows = scene.rows.keys, scene.rows_of(side)
    lost = rows[scene.rows.failed[rows] & scene.sides.known[rows]]
    at, more = _first_cell(scene, lost)
    cell, where = _cell(scene, side, int(at[0]))
    status = scene.status.codes[at[0]]
    word = shown(scene.status.values[int(status)].as_py())
    alike = lost[(keys.layout[lost] == keys.layout[at[0]]) & (keys.after[lost] == keys.after[at[0]])]
    subject = f"reading of candidate {cell['candidate']}, layout {cell['layout']}"
    size = int(scene.sides.members.size[keys.transition[at[0]]])
    if len(np.unique(keys.candidate.codes[alike])) == size and (scene.status.codes[alike] == status).all():
        subject, more, at = f"layout {cell['layout']}", more + len(at) - len(alike), alike
        del cell["candidate"]
    text = f"{subject} failed in {where} with status {word} ({scene.cited(at)}); expected ok"
    text += _more(more, "failed reading", "failed readings")
    return scene.finding(READING_FAILED, side, text, at, cell, wanted="ok", got=word)


def other(scene: Scene, code: str, side: int) -> Finding:
    """A side whose cells may be sound: candidates that do not fill the labels, or the wrong donor."""
    keys, row = scene.rows.keys, int(scene.sides.first[side])
    place, at = scene.place(side), scene.rows_of(side)
    if code == CANDIDATES_LABELS:
        t = int(keys.transition[row])
        got = f"{int(scene.sides.members.size[t])} candidates"
        wanted = f"{int(scene.labels[keys.channel.codes[row]])}, one for each label of the channel"
        text = f"{got} ({scene.candidates(t)}) in {place}; expected {wanted}"
    elif code == DONOR_SELF:
        got = shown(keys.view_source.values[int(keys.view_source.codes[row])].as_py())
        wanted = "another trajectory or step"
        text = f"view source {got} is the step itself in {place}; expected {wanted}"
    else:
        wanted, got = "the view_hash of the donor's own rows", "another"
        text = f"view_hash in {place} is not the donor's; expected {wanted}"
    return scene.finding(code, side, f"{text} ({scene.cited(at)})", at, {}, wanted=wanted, got=got)


def _first_cell(scene: Scene, at: Ints) -> tuple[Ints, int]:
    """Those of some rows in the first cell (before, after; layout; candidate), and how many are not."""
    keys = scene.rows.keys
    at = at[np.lexsort((keys.candidate.codes[at], keys.layout[at], keys.after[at]))]
    same = np.ones(len(at), dtype=np.bool_)
    for codes in (keys.after, keys.layout, keys.candidate.codes):
        same &= codes[at] == codes[at[0]]
    cell = at[same]
    return cell[np.lexsort((scene.origin.row[cell], scene.origin.file[cell]))], int((~same).sum())


def _cell(scene: Scene, side: int, row: int) -> tuple[dict[str, KeyValue], str]:
    keys = scene.rows.keys
    endpoint = ENDPOINTS[int(keys.after[row])]
    cell: dict[str, KeyValue] = {
        "endpoint": endpoint,
        "layout": int(keys.layout[row]),
        "candidate": scene.candidate(int(keys.candidate.codes[row])),
    }
    return cell, scene.place(side, endpoint)


def _more(count: int, one: str, many: str) -> str:
    return "" if count <= 0 else f", and {count:,} more {one if count == 1 else many}"
