"""The flow of transitions through an audit: how many came, how many are complete, why the others are not.

Nothing here names a channel: a cell says which arm it belongs to, and `text` or `as_json` are told what
to call the arms, so a record can speak of roles and a table for people of channels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from contracts.errors import CannotAnswerError

ENDPOINTS = ("before", "after")
EXAMPLES = 3

ABSENT = "absent"
DUPLICATED = "duplicated"
CANDIDATES_DIFFER = "candidates-differ"
TARGETS_DIFFER = "targets-differ"
TARGET_UNKNOWN = "target-no-candidate"
SINGLE_CANDIDATE = "single-candidate"
SEVERAL_DONORS = "several-donors"
LAYOUT_UNKNOWN = "layout-unknown"
SUCCESSES_DIFFER = "successes-differ"
TARGET_TYPES_DIFFER = "target-types-differ"
PROVENANCE = "provenance:"
REFUSED = "refused:"
FAILED = "failed:"
FACE = "face:"

_SENTENCES = {
    CANDIDATES_DIFFER: "candidates differ between sides",
    TARGETS_DIFFER: "targets differ between sides",
    TARGET_UNKNOWN: "target is none of the candidates",
    SINGLE_CANDIDATE: "no competitor beside the target",
    LAYOUT_UNKNOWN: "a layout that its channel does not have",
    SEVERAL_DONORS: "several donors for one transition",
    SUCCESSES_DIFFER: "success is stored as true and as false",
    TARGET_TYPES_DIFFER: "target types differ between entries",
}


@dataclass(frozen=True)
class Cell:
    """One place of a face, as far as it is known; `arm` is an index, a layout counts from 0."""

    endpoint: str
    arm: int
    acquisition: str | None = None
    layout: int | None = None
    candidate: str | None = None

    def text(self, names: Sequence[str]) -> str:
        """The cell in words, with arm `i` called `names[i]`."""
        parts = [self.endpoint, names[self.arm]]
        if self.acquisition is not None:
            parts.append(f"acquisition {self.acquisition}")
        if self.layout is not None:
            parts.append(f"layout {self.layout}")
        if self.candidate is not None:
            parts.append(f"candidate {self.candidate}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Example:
    """One transition (a trajectory where `step` is None) and the first cell at fault in it, if one is."""

    reason: str
    trajectory: str
    step: int | None
    cell: Cell | None = None

    def text(self, names: Sequence[str]) -> str:
        """`traj000/step05: after, direct, layout 2, candidate B absent`."""
        where = self.trajectory if self.step is None else f"{self.trajectory}/step{self.step:02d}"
        if self.cell is None:
            return f"{where}: {_of_transition(self.reason)}"
        return f"{where}: {self.cell.text(names)} {_at_cell(self.reason)}"


def _of_transition(reason: str) -> str:
    """A reason in the words that follow a transition."""
    if reason.startswith(FACE):
        return f"refused by the face contract ({reason.removeprefix(FACE)})"
    return _SENTENCES.get(reason, reason)


def _at_cell(reason: str) -> str:
    """A reason in the words that follow a cell."""
    if reason.startswith(PROVENANCE):
        return f"breaks {reason.removeprefix(PROVENANCE)}"
    if reason.startswith(FAILED):
        return f"failed ({reason.removeprefix(FAILED)})"
    if reason.startswith(REFUSED):
        return f"in a refused side ({reason.removeprefix(REFUSED)})"
    return reason


@dataclass(frozen=True)
class Exclusion:
    """The transitions (or trajectories) left out for one first reason, with the first few of them."""

    reason: str
    count: int
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class AcquisitionFlow:
    """How many transitions lack a whole side of an acquisition, and how many only that side."""

    arm: int
    acquisition: str
    lacking: int
    alone: int


@dataclass(frozen=True)
class Flow:
    """Where the transitions of a scope went; `transitions` = `complete` + all of `excluded`.

    `trajectories` is the number of clusters with a complete transition. `corners[arm]` counts the
    transitions whose cells (before, after) are all there in that arm, so a corner nobody scored has 0.
    `set_aside` lists optional attributes that contradict themselves and are therefore not used.
    `shortfall` is the error to raise, once the record is written, when no transition is complete.
    """

    transitions: int
    complete: int
    trajectories: int
    excluded: tuple[Exclusion, ...]
    by_acquisition: tuple[AcquisitionFlow, ...]
    corners: tuple[tuple[int, int], ...]
    set_aside: tuple[Exclusion, ...] = ()
    shortfall: CannotAnswerError | None = field(default=None, compare=False)

    def as_json(self, names: Sequence[str]) -> dict[str, object]:
        """The flow as it stands in a record, with arm `i` called `names[i]`."""
        return {
            "transitions": self.transitions,
            "complete": self.complete,
            "trajectories": self.trajectories,
            "excluded": [
                {"reason": e.reason, "transitions": e.count, "examples": [x.text(names) for x in e.examples]}
                for e in self.excluded
            ],
            "by_acquisition": [
                {
                    "arm": names[a.arm],
                    "acquisition": a.acquisition,
                    "lacking": a.lacking,
                    "removed_alone": a.alone,
                }
                for a in self.by_acquisition
            ],
            "set_aside": [
                {"reason": e.reason, "count": e.count, "examples": [x.text(names) for x in e.examples]}
                for e in self.set_aside
            ],
        }


@dataclass
class ReasonCount:
    """Exact counts by reason with the first few examples of each, in the order they are added."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[Example]] = field(default_factory=dict)

    def wants(self, reason: str) -> int:
        """How many more examples of a reason are of use."""
        return EXAMPLES - len(self.examples.get(reason, ()))

    def add(self, reason: str, count: int, examples: Iterable[Example] = ()) -> None:
        """Count `count` transitions; examples beyond the first few are not kept."""
        self.counts[reason] = self.counts.get(reason, 0) + count
        kept = self.examples.setdefault(reason, [])
        kept.extend(list(examples)[: EXAMPLES - len(kept)])

    def merge(self, later: ReasonCount) -> None:
        """Add what was counted in a later range."""
        for reason, count in later.counts.items():
            self.add(reason, count, later.examples[reason])

    def exclusions(self) -> tuple[Exclusion, ...]:
        """By falling count, then by reason."""
        order = sorted(self.counts, key=lambda reason: (-self.counts[reason], reason))
        return tuple(Exclusion(r, self.counts[r], tuple(self.examples[r])) for r in order)
