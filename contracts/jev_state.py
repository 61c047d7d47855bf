"""States of a request-independence study and the three interventions on them, kept apart.

A state is what an evaluator is shown and asked: a query, displayed evidence, target propositions and
the candidates eligible for the action. `questions` adds request questions and holds evidence, targets
and candidates fixed; `evidence` adds displayed passages and holds targets, questions and candidates
fixed; `candidates` expands the eligible set and holds everything displayed fixed. What an intervention
must hold fixed is checked on the pair it made, so a pair read from a file meets the same check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from contracts.errors import ContractError


class Intervention(StrEnum):
    """What was added between the before and the after state."""

    QUESTIONS = "questions"
    EVIDENCE = "evidence"
    CANDIDATES = "candidates"


@dataclass(frozen=True)
class Passage:
    """One displayed piece of evidence: its text alone, so no document id can reach a request."""

    text: str


@dataclass(frozen=True)
class Proposition:
    """One question of a request: `label` keys its answer, `text` is what the evaluator reads."""

    label: str
    text: str


@dataclass(frozen=True)
class Candidate:
    """One option the action may choose."""

    label: str
    text: str


@dataclass(frozen=True)
class State:
    """What is shown and asked. `targets` are scored; `questions` are asked beside them and are not."""

    query: str
    evidence: tuple[Passage, ...]
    targets: tuple[Proposition, ...]
    candidates: tuple[Candidate, ...]
    questions: tuple[Proposition, ...] = ()

    def __post_init__(self) -> None:
        if not self.query.strip():
            raise ContractError("a state needs a query", code="jev-empty-query")
        if not self.targets:
            raise ContractError("a state needs at least one target proposition", code="jev-no-target")
        asked = [item.label for item in (*self.targets, *self.questions)]
        for what, labels in (("question", asked), ("candidate", [c.label for c in self.candidates])):
            twice = sorted({label for label in labels if labels.count(label) > 1})
            if twice:
                raise ContractError(
                    f"a {what} label occurs twice", code="jev-label-twice", got=", ".join(twice)
                )
            if "" in labels:
                raise ContractError(f"a {what} label is empty", code="jev-empty-label")


@dataclass(frozen=True)
class Pair:
    """A state before and after one intervention, with everything else held fixed."""

    intervention: Intervention
    before: State
    after: State

    def __post_init__(self) -> None:
        before, after = self.before, self.after
        name = self.intervention
        for part in ("query", "targets"):
            _fixed(name, part, getattr(before, part), getattr(after, part))
        grown: dict[str, tuple[object, object]] = {}
        for part in ("questions", "evidence", "candidates"):
            old, new = getattr(before, part), getattr(after, part)
            if part != name:
                _fixed(name, part, old, new)
            else:
                grown[part] = (old, new)
        for part, (old, new) in grown.items():
            _grown(name, part, old, new)  # type: ignore[arg-type]


def _fixed(intervention: str, part: str, before: object, after: object) -> None:
    if before != after:
        raise ContractError(
            f"the intervention {intervention!r} must hold the {part} fixed, and they differ",
            code="jev-not-fixed",
            where=part,
            next_step="make each intervention from the same base state, one at a time",
        )


def _grown(intervention: str, part: str, before: Sequence[object], after: Sequence[object]) -> None:
    if tuple(after[: len(before)]) != tuple(before):
        raise ContractError(
            f"the intervention {intervention!r} may only add after the {part} that were there",
            code="jev-not-added",
            where=part,
        )
    if len(after) == len(before):
        raise ContractError(
            f"the intervention {intervention!r} adds nothing", code="jev-nothing-added", where=part
        )


def add_questions(state: State, questions: Sequence[Proposition]) -> Pair:
    """Ask more in the same request; evidence, targets and candidates stay as they are."""
    return Pair(Intervention.QUESTIONS, state, replace(state, questions=(*state.questions, *questions)))


def add_evidence(state: State, passages: Sequence[Passage]) -> Pair:
    """Display more evidence; targets, questions and eligible candidates stay as they are."""
    shown = {passage.text for passage in state.evidence}
    again = [passage.text for passage in passages if passage.text in shown]
    if again:
        raise ContractError(
            "a passage is displayed already; showing it twice adds no evidence", code="jev-shown-twice"
        )
    return Pair(Intervention.EVIDENCE, state, replace(state, evidence=(*state.evidence, *passages)))


def expand_candidates(state: State, candidates: Sequence[Candidate]) -> Pair:
    """Let the action choose among more options; everything displayed as evidence stays as it is."""
    return Pair(Intervention.CANDIDATES, state, replace(state, candidates=(*state.candidates, *candidates)))


CONSTRUCTORS: dict[Intervention, Callable[..., Pair]] = {
    Intervention.QUESTIONS: add_questions,
    Intervention.EVIDENCE: add_evidence,
    Intervention.CANDIDATES: expand_candidates,
}
