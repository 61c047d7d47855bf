"""Lines of a states file, and the routing that later pairs answers with the states they answer.

A states file is gold-free: a key that is not listed here is refused, so positive labels or document ids
cannot ride along. Requests carry an opaque id and bytes; what an id stands for is in the routing file
alone, which no collector needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.canonical import canonical
from contracts.digest import blake3_digest
from contracts.errors import ContractError
from contracts.jev_request import Displayed, Mode, Request, compile_choice, compile_state
from contracts.jev_state import CONSTRUCTORS, Candidate, Intervention, Pair, Passage, Proposition, State

REQUIRED = frozenset({"year", "query_id", "scenario", "query", "evidence", "targets", "candidates"})
OPTIONAL = frozenset({"questions", "variant", "intervention", "add"})
ARMS = ("before", "after")


@dataclass(frozen=True)
class StateKey:
    """Which state of the study this is; never part of a request."""

    year: int
    query_id: str
    scenario: str
    variant: str | None = None


@dataclass(frozen=True)
class Routed:
    """One request and what its answer will belong to."""

    id: str
    key: StateKey
    intervention: Intervention
    mode: Mode
    arm: str
    request: Request
    evidence_hash: str


def _refuse(what: str, where: str, **parts: object) -> ContractError:
    return ContractError(what, code="jev-state", where=where, **parts)  # type: ignore[arg-type]


def _text(value: object, where: str, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _refuse(f"{name} must be a non-empty text", where, got=type(value).__name__)
    return value


def _list(value: object, where: str, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise _refuse(f"{name} must be a list", where, got=type(value).__name__)
    return value


def _labelled(value: object, where: str, name: str) -> list[tuple[str, str]]:
    found = []
    for item in _list(value, where, name):
        if not isinstance(item, Mapping) or set(item) != {"label", "text"}:
            raise _refuse(f"every item of {name} must be an object of label and text", where)
        found.append((_text(item["label"], where, "label"), _text(item["text"], where, "text")))
    return found


def _passages(value: object, where: str, name: str) -> tuple[Passage, ...]:
    return tuple(Passage(_text(text, where, name)) for text in _list(value, where, name))


def parse_state(
    value: object, where: str, *, intervention: Intervention | None = None
) -> tuple[StateKey, Pair]:
    """One line of a states file as its key and its pair; ContractError names what it may not hold.

    `intervention` of the caller must agree with the line's own where both are given.
    """
    if not isinstance(value, Mapping):
        raise _refuse("a state must be a JSON object", where, got=type(value).__name__)
    if missing := sorted(REQUIRED - set(value)):
        raise _refuse("a state lacks a key", where, expected=", ".join(missing))
    if extra := sorted(set(value) - REQUIRED - OPTIONAL):
        raise _refuse(
            "a states file is gold-free and holds only what an evaluator may see",
            where,
            got=", ".join(extra)[:80],
            next_step="keep labels and document ids in the scorer-only file",
        )
    year = value["year"]
    if isinstance(year, bool) or not isinstance(year, int):
        raise _refuse("year must be an integer", where, got=type(year).__name__)
    variant = value.get("variant")
    key = StateKey(
        year,
        _text(value["query_id"], where, "query_id"),
        _text(value["scenario"], where, "scenario"),
        None if variant is None else _text(variant, where, "variant"),
    )
    state = State(
        query=_text(value["query"], where, "query"),
        evidence=_passages(value["evidence"], where, "evidence"),
        targets=tuple(Proposition(*item) for item in _labelled(value["targets"], where, "targets")),
        candidates=tuple(Candidate(*item) for item in _labelled(value["candidates"], where, "candidates")),
        questions=tuple(
            Proposition(*item) for item in _labelled(value.get("questions", []), where, "questions")
        ),
    )
    return key, _pair(state, value, where, intervention)


def _pair(state: State, value: Mapping[str, Any], where: str, wanted: Intervention | None) -> Pair:
    named = value.get("intervention", wanted)
    if named is None:
        raise _refuse(
            "no intervention is named", where, next_step="add it to the line, or give --intervention"
        )
    try:
        kind = Intervention(named)
    except ValueError as error:
        raise _refuse(
            "unknown intervention", where, expected=" | ".join(Intervention), got=str(named)[:40]
        ) from error
    if wanted is not None and kind is not wanted:
        raise _refuse("the line is of another intervention", where, expected=wanted, got=kind)
    add = value.get("add")
    if not isinstance(add, Mapping) or set(add) != {kind.value}:
        raise _refuse(f"`add` must hold {kind.value!r} and nothing else", where)
    added: Sequence[object]
    if kind is Intervention.EVIDENCE:
        added = _passages(add[kind.value], where, "add.evidence")
    else:
        made = Proposition if kind is Intervention.QUESTIONS else Candidate
        added = [made(*item) for item in _labelled(add[kind.value], where, f"add.{kind.value}")]
    try:
        return CONSTRUCTORS[kind](state, added)
    except ContractError as error:
        raise ContractError(
            error.what, code=error.code, where=f"{where}: {error.where or 'state'}"
        ) from error


def route(key: StateKey, pair: Pair, mode: Mode) -> tuple[Routed, ...]:
    """Every request of both arms of a pair, in arm and question order.

    The id is a digest of what the request stands for, so it is the same on every run and tells a
    collector nothing. Candidate expansion asks for one choice per arm; the other interventions ask for
    the targets in the given mode.
    """
    routed = []
    for arm, state in zip(ARMS, (pair.before, pair.after), strict=True):
        chosen = pair.intervention is Intervention.CANDIDATES
        requests = (compile_choice(state),) if chosen else compile_state(state, mode)
        for number, request in enumerate(requests):
            stands_for = [
                key.year,
                key.query_id,
                key.scenario,
                key.variant,
                pair.intervention,
                mode,
                arm,
                number,
            ]
            routed.append(
                Routed(
                    id=blake3_digest(canonical(stands_for)).removeprefix("blake3:")[:20],
                    key=key,
                    intervention=pair.intervention,
                    mode=mode,
                    arm=arm,
                    request=request,
                    evidence_hash=Displayed.of(state).digest,
                )
            )
    return tuple(routed)


def request_line(routed: Routed) -> dict[str, object]:
    """What a collector gets: an id, the request text, its digest, and how many numbers to answer."""
    return {
        "id": routed.id,
        "request": routed.request.data.decode(),
        "digest": routed.request.digest,
        "answers": len(routed.request.labels),
    }


def routing_line(routed: Routed) -> dict[str, object]:
    """What pairs the answer later; kept from the collector."""
    key = routed.key
    return {
        "id": routed.id,
        "year": key.year,
        "query_id": key.query_id,
        "scenario": key.scenario,
        **({} if key.variant is None else {"variant": key.variant}),
        "intervention": routed.intervention.value,
        "mode": routed.mode.value,
        "arm": routed.arm,
        "labels": list(routed.request.labels),
        "request_hash": routed.request.digest,
        "evidence_hash": routed.evidence_hash,
    }
