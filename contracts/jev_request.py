"""Request bytes built from common evidence and questions, by functions that cannot see anything else.

The gold-free rule is in the types. `Displayed` holds the query and passage texts and nothing besides:
there is no field for a positive label, a document id, a scenario or a routing key, and the independent
compiler takes one question's text, so the other questions cannot reach its bytes. Bytes are canonical
JSON (RFC 8785), hence the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from contracts.canonical import canonical
from contracts.digest import blake3_digest
from contracts.jev_state import Candidate, State

FORMAT = "ledger.jev-request.v1"


class Mode(StrEnum):
    """How much of the request schema an evaluator sees, and how much it answers at once."""

    INDEPENDENT = "independent"
    VISIBLE_SCHEMA = "visible-schema"
    JOINT = "joint"


@dataclass(frozen=True)
class Displayed:
    """The evidence every question of a state has in common: the query and the passage texts, in order."""

    query: str
    passages: tuple[str, ...]

    @classmethod
    def of(cls, state: State) -> Displayed:
        return cls(state.query, tuple(passage.text for passage in state.evidence))

    @property
    def digest(self) -> str:
        """BLAKE3 of the evidence alone; candidate expansion leaves it as it is."""
        return blake3_digest(canonical({"passages": list(self.passages), "query": self.query}))


@dataclass(frozen=True)
class Request:
    """One request to send: its bytes, their digest, and the labels whose answers it asks for."""

    data: bytes
    labels: tuple[str, ...]

    @property
    def digest(self) -> str:
        return blake3_digest(self.data)


def independent(evidence: Displayed, question: str) -> bytes:
    """One question alone: it and the evidence are all the evaluator sees."""
    return _encode(Mode.INDEPENDENT, evidence, {"question": question})


def visible_schema(evidence: Displayed, question: str, fields: Sequence[str]) -> bytes:
    """One question to answer, with every field of the request schema in view; `fields` in display order."""
    return _encode(Mode.VISIBLE_SCHEMA, evidence, {"question": question, "schema": list(fields)})


def joint(evidence: Displayed, questions: Sequence[str]) -> bytes:
    """All questions answered in one output, in display order."""
    return _encode(Mode.JOINT, evidence, {"questions": list(questions)})


def choice(evidence: Displayed, candidates: Sequence[Candidate]) -> bytes:
    """One choice among eligible candidates; the labels are the answer tokens and so are displayed."""
    options = [{"label": candidate.label, "text": candidate.text} for candidate in candidates]
    return canonical({"candidates": options, "format": FORMAT, **_shown(evidence)})


def _shown(evidence: Displayed) -> dict[str, object]:
    return {"evidence": list(evidence.passages), "query": evidence.query}


def _encode(mode: Mode, evidence: Displayed, asked: dict[str, object]) -> bytes:
    return canonical({"format": FORMAT, "mode": mode.value, **_shown(evidence), **asked})


def compile_state(state: State, mode: Mode) -> tuple[Request, ...]:
    """The requests that ask every target of a state, in target order; the joint mode needs only one.

    In the independent mode a target's bytes depend on the evidence and its own text alone, so added
    questions and added candidates leave them as they are.
    """
    evidence = Displayed.of(state)
    asked = [item.text for item in (*state.targets, *state.questions)]
    labels = tuple(target.label for target in state.targets)
    if mode is Mode.JOINT:
        return (Request(joint(evidence, asked), labels),)
    if mode is Mode.VISIBLE_SCHEMA:
        return tuple(Request(visible_schema(evidence, t.text, asked), (t.label,)) for t in state.targets)
    return tuple(Request(independent(evidence, t.text), (t.label,)) for t in state.targets)


def compile_choice(state: State) -> Request:
    """The request that asks for one of the eligible candidates."""
    return Request(choice(Displayed.of(state), state.candidates), tuple(c.label for c in state.candidates))
