"""The verdicts over sides and transitions as findings, and their rows as rejects.

One finding for a side and a broken rule, or for a transition and the contradiction that refuses all its
sides; sentences are made for the first of each code only, the rest is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from contracts.findings import Finding, Findings
from contracts.labels import Labels, Mask
from contracts.order import Ints
from contracts.side_faults import Fault, absent_cells
from contracts.side_models import (
    CANDIDATES_DIFFER,
    CANDIDATES_FEW,
    CANDIDATES_LABELS,
    CELL_DUPLICATED,
    CELL_MISSING,
    CELL_UNKNOWN,
    DONOR_SELF,
    DONOR_VIEW,
    READING_FAILED,
    TARGET_UNKNOWN,
)
from contracts.side_rejects import Rejects
from contracts.side_sentences import Scene, duplicated, failed, missing, other, unknown
from contracts.transition_sentences import COLUMNS, about_transition, said_once, strangers
from contracts.transitions import Said

_CELLS: Mapping[str, Callable[[Scene, int], Finding]] = {
    CELL_MISSING: missing,
    CELL_DUPLICATED: duplicated,
    CELL_UNKNOWN: unknown,
    READING_FAILED: failed,
}
_COLUMNS = {CANDIDATES_LABELS: "candidate", DONOR_SELF: "view_source", DONOR_VIEW: "view_hash"}


def report(
    findings: Findings,
    scene: Scene,
    said: Said,
    of_side: Mapping[str, Mask],
    of_transition: Mapping[str, Mask],
) -> None:
    """Add every verdict to `findings`, in the order of the transitions."""
    told: list[tuple[int, Finding]] = []
    transition = scene.rows.keys.transition[scene.sides.first]
    for code, mask in of_side.items():
        sides = np.flatnonzero(mask)
        for side in sides[: findings.limit].tolist():
            sentence = _CELLS[code](scene, side) if code in _CELLS else other(scene, code, side)
            told.append((int(transition[side]), sentence))
    judged = np.bincount(transition[scene.sides.judged], minlength=scene.rows.keys.transitions)
    for code, mask in of_transition.items():
        for t in np.flatnonzero(mask)[: findings.limit].tolist():
            told.append((t, about_transition(scene, said, code, t, int(judged[t]))))
    for _, finding in sorted(told, key=lambda pair: pair[0]):
        findings.add(finding)
    counts = findings.by_code
    for code, mask in of_side.items():
        if rest := int(mask.sum()) - counts.get(code, 0):
            findings.tally(code, "side", rest)
    for code, mask in of_transition.items():
        if rest := int(judged[mask].sum()) - counts.get(code, 0):
            findings.tally(code, "side", rest)


def reject(
    findings: Findings,
    scene: Scene,
    said: Said,
    of_side: Mapping[str, Mask],
    of_transition: Mapping[str, Mask],
) -> None:
    """Give `findings` every row at fault, and the absent cells."""
    rows, sides, keys = scene.rows, scene.sides, scene.rows.keys
    rejects = Rejects(keys, scene.origin, scene.channels)
    for code, mask in of_side.items():
        at = np.flatnonzero(rows.fresh & mask[sides.side]) if mask.any() else np.empty(0, dtype=np.int64)
        if not len(at):
            continue
        if code == CELL_MISSING:
            side, *cell = absent_cells(rows, sides, np.flatnonzero(mask))
            findings.reject(rejects.absent(code, sides.first[side], *cell))
        elif code == CELL_DUPLICATED:
            twice = at[scene.kind[at] == Fault.DUPLICATED]
            cell = np.cumsum(~keys.repeat)[twice]
            _, number, count = np.unique(cell, return_inverse=True, return_counts=True)
            times, label = np.unique(count, return_inverse=True)
            values = pa.array([f"{n} times" for n in times.tolist()], pa.string())
            given = Labels(label[number].astype(np.int32), values)
            findings.reject(rejects.rows(twice, "side", code, wanted="once", got=given))
        elif code == CELL_UNKNOWN:
            strange = at[scene.kind[at] == Fault.UNKNOWN]
            named = Labels(keys.candidate.codes[strange], keys.candidate.values)
            findings.reject(rejects.rows(strange, "side", code, column="candidate", got=named))
        elif code == READING_FAILED:
            lost = at[rows.failed[at] & sides.known[at]]
            ended = Labels(scene.status.codes[lost], scene.status.values)
            findings.reject(rejects.rows(lost, "side", code, column="status", wanted="ok", got=ended))
        else:
            findings.reject(rejects.rows(at, "side", code, column=_COLUMNS[code]))
    for code, mask in of_transition.items():
        if mask.any():
            at = np.flatnonzero(rows.fresh & mask[keys.transition])
            if code == CANDIDATES_DIFFER:
                at = at[sides.stray[at]]
            wanted = None
            if code == TARGET_UNKNOWN:
                at = strangers(scene, said, at)
                wanted = _candidates(scene, at)
            spoken = _spoken(scene, said, code)
            got = None if spoken is None else Labels(spoken.codes[at], spoken.values)
            findings.reject(rejects.rows(at, "side", code, column=COLUMNS[code], wanted=wanted, got=got))


def _candidates(scene: Scene, at: Ints) -> Labels:
    """The candidates of the transition of each of some rows, as one text."""
    transitions, number = np.unique(scene.rows.keys.transition[at], return_inverse=True)
    texts = [scene.candidates(int(t)) for t in transitions]
    values = list(dict.fromkeys(texts))
    place = {text: i for i, text in enumerate(values)}
    codes = np.array([place[text] for text in texts], dtype=np.int32)
    return Labels(codes[number], pa.array(values, pa.string()))


def _spoken(scene: Scene, said: Said, code: str) -> Labels | None:
    """The column whose values are what was found, where that is text."""
    if code in (CANDIDATES_DIFFER, CANDIDATES_FEW):
        return scene.rows.keys.candidate
    return said_once(said, code)
