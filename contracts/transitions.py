"""What contradicts itself about a transition, so that no side of it can be believed.

A target, its type and the kind of the step are said once per transition, success once per trajectory, and
one digest of candidates never stands for two sets of them. Entries of the ledger speak first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from contracts.digest import WIDTH, blake3_digest, unpack
from contracts.labels import ABSENT, Codes, Labels, Mask
from contracts.order import Ints, Keys, bound, dense
from contracts.pandera_config import failures
from contracts.side_models import TRANSITION_CODES, TransitionModel
from contracts.sides import Members, Rows, Sides

DOMAIN = b"ledger.candidates.v1\n"
_NONE = np.iinfo(np.int32).max
NO_SET = ""  # what a digest stands for that no set has the better claim to
BINDINGS = pa.schema([("digest", pa.binary(WIDTH)), ("set", pa.string()), ("transitions", pa.int64())])


@dataclass(frozen=True)
class Said:
    """The columns that speak about a transition as a whole, in canonical order; ABSENT where null."""

    target: Labels
    target_type: Labels
    step_kind: Labels
    candidates_hash: Labels
    success: Labels


def candidate_set_digest(candidates: list[str]) -> str:
    """The digest of a set of candidates: `ledger.candidates.v1`, then each name with its length, sorted."""
    names = sorted(name.encode() for name in set(candidates))
    return blake3_digest(DOMAIN + b"".join(len(name).to_bytes(4, "little") + name for name in names))


def judge_transitions(
    rows: Rows, sides: Sides, said: Said, known_sets: Mapping[str, str]
) -> Mapping[str, Mask]:
    """Which transitions break which rule of TransitionModel: a mask over all of them for each code.

    `known_sets` maps the text of a candidates digest to the `candidate_set_digest` it stands for anywhere
    in the ledger. Only transitions with fresh rows are judged.
    """
    keys = rows.keys
    verdicts = {code: np.zeros(keys.transitions, dtype=np.bool_) for code in TRANSITION_CODES}
    fresh = np.zeros(keys.transitions, dtype=np.bool_)
    fresh[keys.transition[sides.first[sides.judged]]] = True
    judged = np.flatnonzero(fresh)
    if not len(judged):
        return verdicts
    spoken = rows.fresh | rows.held
    target = span(said.target, spoken, keys.starts)
    frame = {
        "target": target,
        "target_type": span(said.target_type, spoken, keys.starts),
        "step_kind": span(said.step_kind, spoken, keys.starts),
        "success": _of_trajectory(keys, said.success, spoken),
    }
    strays = np.zeros(keys.transitions, dtype=np.bool_)
    strays[keys.transition[sides.stray]] = True
    numbers = np.arange(keys.transitions)
    known = among_candidates(keys, sides.members, said.target, numbers, target[0])
    several = np.flatnonzero(target[0] != target[1])
    known[several] &= among_candidates(keys, sides.members, said.target, several, target[1][several])
    columns: dict[str, np.ndarray[tuple[int], np.dtype[np.generic]]] = {
        f"{name}_{end}": values[judged]
        for name, both in frame.items()
        for end, values in zip(("low", "high"), both, strict=True)
    }
    columns |= {
        "target_known": known[judged],
        "candidates": sides.members.size[judged],
        "stray": strays[judged],
        "rebound": _rebound(rows, sides.members, said.candidates_hash, known_sets)[judged],
    }
    for failure in failures(TransitionModel, pl.DataFrame(columns)):
        verdicts[failure.check][judged[failure.rows]] = True
    return verdicts


def among_candidates(keys: Keys, members: Members, target: Labels, transition: Ints, codes: Codes) -> Mask:
    """Whether each target, by its code, is a candidate of the transition beside it; ABSENT is none."""
    as_candidate = pc.index_in(target.values, value_set=keys.candidate.values)
    candidate = np.append(pc.fill_null(as_candidate, ABSENT).to_numpy(zero_copy_only=False), ABSENT)
    return members.has(transition, candidate[codes].astype(np.int64))


def span(said: Labels, spoken: Mask, starts: Ints) -> tuple[Codes, Codes]:
    """The smallest and greatest code of a column in each run of rows, both ABSENT where it says nothing."""
    if not len(said.values) or len(starts) < 2:
        nothing = np.full(len(starts) - 1, ABSENT, dtype=np.int32)
        return nothing, nothing
    codes = said.codes if spoken.all() else np.where(spoken, said.codes, np.int32(ABSENT))
    high = np.maximum.reduceat(codes, starts[:-1])
    low = np.minimum.reduceat(np.where(codes == ABSENT, np.int32(_NONE), codes), starts[:-1])
    return np.where(high == ABSENT, np.int32(ABSENT), low), high


def _of_trajectory(keys: Keys, said: Labels, spoken: Mask) -> tuple[Codes, Codes]:
    """`span` over whole trajectories, given to each of their transitions."""
    trajectory = keys.trajectory.codes[keys.starts[:-1]]
    new = np.append(True, trajectory[1:] != trajectory[:-1])
    number = np.cumsum(new) - 1
    low, high = span(said, spoken, np.append(keys.starts[:-1][new], keys.starts[-1]))
    return low[number], high[number]


def _rebound(rows: Rows, members: Members, hashes: Labels, known_sets: Mapping[str, str]) -> Mask:
    """Transitions whose candidates digest stands for another set: in the ledger, or in more of the call.

    The set of the ledger is right; without one the set of most transitions is, and on a tie none is. A
    transition with too few candidates to be one is refused for that and has no vote.
    """
    keys = rows.keys
    rebound = np.zeros(keys.transitions, dtype=np.bool_)
    uses = _uses(rows, members, hashes)
    if uses is None:
        return rebound
    in_ledger = np.zeros(keys.transitions, dtype=np.bool_)
    in_ledger[keys.transition[rows.held]] = True
    held = np.zeros(len(uses.digest), dtype=np.bool_)
    held[uses.use[in_ledger[uses.transition]]] = True
    weight = uses.count + np.where(held, np.int64(2**40), 0)
    best = np.zeros(bound(hashes), dtype=np.int64)
    np.maximum.at(best, uses.digest, weight)
    right = weight == best[uses.digest]
    right &= (np.bincount(uses.digest[right], minlength=len(best)) == 1)[uses.digest] | held
    for i in _known(hashes, uses.digest, known_sets):
        right[i] = uses.set_digest(i, keys, members) == known_sets[_text(hashes, int(uses.digest[i]))]
    rebound[uses.transition[~right[uses.use]]] = True
    return rebound


@dataclass(frozen=True)
class _Uses:
    """Which candidates digests stand for which sets, and in how many transitions.

    Use u is of digest `digest[u]` for set `set[u]`, `example[set]` a transition with that set. Row by row,
    `transition` and `use` say who uses what.
    """

    digest: Ints
    set: Ints
    count: Ints
    example: Ints
    transition: Ints
    use: Ints

    def set_digest(self, use: int, keys: Keys, members: Members) -> str:
        return self.digest_of_set(int(self.set[use]), keys, members)

    def digest_of_set(self, number: int, keys: Keys, members: Members) -> str:
        names = keys.candidate.values.take(pa.array(members.candidates(int(self.example[number]))))
        return candidate_set_digest(names.to_pylist())


def _uses(rows: Rows, members: Members, hashes: Labels) -> _Uses | None:
    """A transition with too few candidates to be one is refused for that and has no vote."""
    keys = rows.keys
    votes = (members.size > 1)[keys.transition]
    at = np.flatnonzero((hashes.codes != ABSENT) & (rows.fresh | rows.held) & votes)
    if not len(at):
        return None
    width = bound(hashes)
    pair = keys.transition[at].astype(np.int64) * width + hashes.codes[at]
    _, pairs = dense(pair, keys.transitions * width)
    transition, digest = pairs // width, pairs % width
    sets, example = _set_numbers(members)
    radix = len(example) + 1
    uses, use, count = np.unique(digest * radix + sets[transition], return_inverse=True, return_counts=True)
    return _Uses(uses // radix, uses % radix, count, example, transition, use)


def bindings(rows: Rows, sides: Sides, hashes: Labels) -> pa.Table:
    """What the rows say of candidates digests: `digest`, the digest of its set, how many `transitions`."""
    uses = _uses(rows, sides.members, hashes)
    if uses is None:
        return BINDINGS.empty_table()
    numbers = np.unique(uses.set)
    names = [uses.digest_of_set(number, rows.keys, sides.members) for number in numbers.tolist()]
    columns = [
        hashes.values.take(pa.array(uses.digest)),
        pa.array(names, pa.string()).take(pa.array(np.searchsorted(numbers, uses.set))),
        pa.array(uses.count),
    ]
    return pa.table(columns, schema=BINDINGS)


def settled(told: pa.Table, known_sets: Mapping[str, str]) -> dict[str, str]:
    """The set each digest stands for that stands for several in `told` (BINDINGS) and is not known yet.

    The set of most transitions, on a tie NO_SET.
    """
    once = told.group_by(["digest", "set"]).aggregate([("transitions", "sum")])
    several = once.group_by("digest").aggregate([("set", "count")])
    several = several.filter(pc.greater(several.column("set_count"), 1))
    votes: dict[str, dict[str, int]] = {}
    if several.num_rows:
        found = once.filter(
            pc.is_in(once.column("digest"), value_set=several.column("digest").combine_chunks())
        )
        for row in found.to_pylist():
            votes.setdefault(unpack(row["digest"]), {})[row["set"]] = row["transitions_sum"]
    right = {}
    for digest, sets in votes.items():
        if digest not in known_sets:
            best = [name for name, count in sets.items() if count == max(sets.values())]
            right[digest] = best[0] if len(best) == 1 else NO_SET
    return right


def _known(hashes: Labels, use_digest: Ints, known_sets: Mapping[str, str]) -> Ints:
    """The uses of a digest that the ledger is known to bind."""
    if not known_sets:
        return np.empty(0, dtype=np.int64)
    known = [_text(hashes, code) in known_sets for code in range(len(hashes.values))]
    return np.flatnonzero(np.array(known, dtype=np.bool_)[use_digest])


def _text(hashes: Labels, code: int) -> str:
    return unpack(hashes.values[code].as_py())


def _set_numbers(members: Members) -> tuple[Ints, Ints]:
    """Equal candidate sets under equal numbers: one per transition, and a transition for each number."""
    numbers = np.zeros(len(members.size), dtype=np.int64)
    examples: list[Ints] = []
    total = 0
    for size in np.unique(members.size):
        at = np.flatnonzero(members.size == size)
        places = members.offset[at][:, None] + np.arange(size)
        table = np.ascontiguousarray(members.pairs[places] % members.width)
        whole = table.view(np.dtype((np.void, max(8 * int(size), 1)))).ravel() if size else np.zeros(len(at))
        _, first, number = np.unique(whole, return_index=True, return_inverse=True)
        numbers[at] = number + total
        examples.append(at[first])
        total += len(first)
    return numbers, np.concatenate(examples) if examples else np.empty(0, dtype=np.int64)
