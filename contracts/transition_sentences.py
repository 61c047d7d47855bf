"""What a transition contradicts itself in, in one sentence, with the rows that are the odd ones out."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from contracts.digest import unpack
from contracts.findings import ROWS, Finding, KeyValue, shown
from contracts.labels import ABSENT, Labels
from contracts.order import Ints
from contracts.refusals import ENDPOINTS
from contracts.side_models import (
    CANDIDATES_DIFFER,
    CANDIDATES_FEW,
    CANDIDATES_REBOUND,
    TARGET_UNKNOWN,
    TWO_STEP_KINDS,
    TWO_SUCCESSES,
    TWO_TARGET_TYPES,
    TWO_TARGETS,
)
from contracts.side_sentences import Scene
from contracts.transitions import Said, among_candidates

CLOSE = 0.6  # of two spellings that may be meant for one
COLUMNS = {
    TWO_TARGETS: "target",
    TARGET_UNKNOWN: "target",
    TWO_TARGET_TYPES: "target_type",
    TWO_STEP_KINDS: "step_kind",
    TWO_SUCCESSES: "success",
    CANDIDATES_FEW: "candidate",
    CANDIDATES_DIFFER: "candidate",
    CANDIDATES_REBOUND: "candidates_hash",
}


@dataclass(frozen=True)
class _Contradiction:
    """`text` says what is wrong; `blamed` are the odd rows out, empty where it is all of the transition."""

    text: str
    wanted: str
    got: str
    blamed: Ints


def said_once(said: Said, code: str) -> Labels | None:
    """The text column that a contradiction is about, if it is one that is said once per step."""
    columns = {
        TWO_TARGETS: said.target,
        TARGET_UNKNOWN: said.target,
        TWO_TARGET_TYPES: said.target_type,
        TWO_STEP_KINDS: said.step_kind,
    }
    return columns.get(code)


def about_transition(scene: Scene, said: Said, code: str, transition: int, sides: int) -> Finding:
    """The finding that refuses all `sides` sides of one transition."""
    keys, rows = scene.rows.keys, scene.rows
    span = np.arange(keys.starts[transition], keys.starts[transition + 1])
    spoken = span[rows.fresh[span] | rows.held[span]]
    told = _contradiction(scene, said, code, transition, spoken)
    blamed = told.blamed[rows.fresh[told.blamed]]
    cited = blamed if len(blamed) else span[rows.fresh[span]]
    file = scene.origin.name(int(cited[0]))
    where = "" if code == CANDIDATES_DIFFER else f" ({scene.cited(cited)})"  # strays say it themselves
    key: dict[str, KeyValue] = {
        "trajectory_id": keys.trajectory.values[int(keys.trajectory.codes[span[0]])].as_py(),
        "step": int(keys.step[span[0]]),
    }
    return Finding(
        code=code,
        level="side",
        message=f"{scene.face(transition)}: {told.text}; expected {told.wanted}, found {told.got}{where}",
        column=COLUMNS[code],
        key=key,
        file=file,
        rows=tuple(int(scene.origin.row[i]) for i in cited if scene.origin.name(int(i)) == file)[:ROWS],
        count=sides,
        wanted=told.wanted,
        got=told.got,
    )


def _contradiction(scene: Scene, said: Said, code: str, transition: int, spoken: Ints) -> _Contradiction:
    candidates = scene.candidates(transition) or "none"
    if code == TARGET_UNKNOWN:
        strange = strangers(scene, said, spoken)
        targets = np.unique(said.target.codes[strange])
        names = " and ".join(_label(said.target, int(value)) for value in targets[:3])
        return _Contradiction("target is no candidate", f"one of {candidates}", names, strange)
    if code == TWO_SUCCESSES:
        text = f"success changes within trajectory {scene.trajectory(int(spoken[0]))}"
        return _Contradiction(text, "one value per trajectory", "true and false", spoken[:0])
    if code == CANDIDATES_FEW:
        return _Contradiction("too few candidates", "at least 2", candidates, spoken[:0])
    if code == CANDIDATES_DIFFER:
        return _strays(scene, candidates, spoken)
    if code == CANDIDATES_REBOUND:
        codes = said.candidates_hash.codes[spoken]
        digest = unpack(said.candidates_hash.values[int(codes[codes != ABSENT][0])].as_py())
        text = f"candidates_hash {digest[:19]}… stands for another set elsewhere"
        return _Contradiction(text, "one set of candidates per digest", candidates, spoken[:0])
    column = said_once(said, code)
    assert column is not None, f"no sentence for {code}"
    codes = column.codes[spoken]
    values, counts = np.unique(codes[codes != ABSENT], return_counts=True)
    names = " and ".join(
        f"{_label(column, int(value))} in {count:,} {'row' if count == 1 else 'rows'}"
        for value, count in zip(values[:3], counts[:3], strict=True)
    )
    held = codes[scene.rows.held[spoken] & (codes != ABSENT)]
    ledger = f" (the ledger has {_label(column, int(held[0]))})" if len(held) else ""
    odd = spoken[codes == values[np.argmin(counts)]]
    word = COLUMNS[code]
    return _Contradiction(f"{len(values)} values of {word}", f"one {word} per step", names + ledger, odd)


def strangers(scene: Scene, said: Said, at: Ints) -> Ints:
    """Those of some rows whose target is none of the candidates of their transition."""
    keys, told = scene.rows.keys, at[said.target.codes[at] != ABSENT]
    transition = keys.transition[told].astype(np.int64)
    codes = said.target.codes[told]
    strange: Ints = told[~among_candidates(keys, scene.sides.members, said.target, transition, codes)]
    return strange


def _strays(scene: Scene, candidates: str, spoken: Ints) -> _Contradiction:
    """Candidates that are not those of most cells: how many have each, and what the first may mean."""
    keys, stray = scene.rows.keys, spoken[scene.sides.stray[spoken]]
    row = int(stray[0])
    cell = np.stack(
        [np.asarray(each[spoken], np.int64) for each in (scene.sides.side, keys.after, keys.layout)]
    )
    cells = np.unique(cell, axis=1).shape[1]
    codes, counts = np.unique(keys.candidate.codes[stray], return_counts=True)
    names = ", ".join(
        f"{scene.candidate(int(code))} in {count:,} of {cells:,} cells"
        for code, count in zip(codes[:3], counts[:3], strict=True)
    )
    where = scene.place(int(scene.sides.side[row]), ENDPOINTS[int(keys.after[row])])
    close = get_close_matches(scene.candidate(int(codes[0])), candidates.split(", "), n=1, cutoff=CLOSE)
    meant = f"; is it {close[0]} misspelt?" if close else ""
    got = f"{names}, first in layout {int(keys.layout[row])} of {where}{meant}"
    wanted = f"{candidates} in every cell"
    return _Contradiction(f"candidates differ between cells ({scene.cited(stray)})", wanted, got, stray)


def _label(column: Labels, code: int) -> str:
    return shown(column.values[code].as_py())
