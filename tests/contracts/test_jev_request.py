"""The three interventions hold fixed what they must, and request bytes see nothing they should not."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import jev_request as request
from contracts.errors import ContractError
from contracts.jev_request import Displayed, Mode, compile_choice, compile_state
from contracts.jev_state import (
    Candidate,
    Intervention,
    Pair,
    Passage,
    Proposition,
    State,
    add_evidence,
    add_questions,
    expand_candidates,
)

TEXT = st.text(min_size=1, max_size=20).filter(lambda t: t.strip() != "")


def base() -> State:
    return State(
        query="what lowers fever",
        evidence=(Passage("aspirin lowers fever"), Passage("the sky is blue"), Passage("rest helps")),
        targets=(
            Proposition("p1", "passage 1 answers the query"),
            Proposition("p2", "passage 2 answers the query"),
        ),
        candidates=(Candidate("A", "passage 1"), Candidate("B", "passage 2")),
    )


def test_each_intervention_changes_its_own_part_and_nothing_else() -> None:
    state = base()
    for pair, part in (
        (add_questions(state, [Proposition("x", "is it long")]), "questions"),
        (add_evidence(state, [Passage("paracetamol does too")]), "evidence"),
        (expand_candidates(state, [Candidate("C", "neither")]), "candidates"),
    ):
        changed = [
            f.name for f in fields(State) if getattr(pair.before, f.name) != getattr(pair.after, f.name)
        ]
        assert changed == [part]
        assert pair.intervention == part


@pytest.mark.parametrize("intervention", list(Intervention))
@pytest.mark.parametrize("part", ["query", "targets", "evidence", "candidates", "questions"])
def test_a_pair_that_moves_what_must_stay_is_refused_and_says_what(
    intervention: Intervention, part: str
) -> None:
    state = base()
    moved = {
        "query": "another query",
        "targets": state.targets[:1],
        "evidence": (*state.evidence, Passage("new")),
        "candidates": (*state.candidates, Candidate("C", "neither")),
        "questions": (Proposition("q", "new"),),
    }
    after = replace(state, **{part: moved[part]})
    if part == intervention:
        assert Pair(intervention, state, after).after is after
        return
    with pytest.raises(ContractError) as caught:
        Pair(intervention, state, after)
    assert caught.value.where == part


@pytest.mark.parametrize("intervention", list(Intervention))
def test_an_intervention_that_adds_nothing_or_reorders_is_refused(intervention: Intervention) -> None:
    state = base()
    with pytest.raises(ContractError, match="adds nothing"):
        Pair(intervention, state, state)
    if intervention is not Intervention.QUESTIONS:
        part = str(intervention)
        turned = replace(state, **{part: tuple(reversed(getattr(state, part)))})
        with pytest.raises(ContractError):
            Pair(intervention, state, turned)


def test_labels_and_passages_occur_once() -> None:
    state = base()
    with pytest.raises(ContractError, match="question label occurs twice"):
        add_questions(state, [Proposition("p1", "again")])
    with pytest.raises(ContractError, match="candidate label occurs twice"):
        expand_candidates(state, [Candidate("A", "again")])
    with pytest.raises(ContractError, match="displayed already"):
        add_evidence(state, [Passage("rest helps")])


@given(added=st.lists(TEXT, min_size=1, max_size=4, unique=True))
def test_independent_bytes_are_stable_under_added_questions_and_candidates(added: list[str]) -> None:
    state = base()
    questions = add_questions(state, [Proposition(f"q{i}", text) for i, text in enumerate(added)])
    options = expand_candidates(state, [Candidate(f"c{i}", text) for i, text in enumerate(added)])
    for pair in (questions, options):
        before, after = (compile_state(s, Mode.INDEPENDENT) for s in (pair.before, pair.after))
        assert [r.data for r in before] == [r.data for r in after]


@pytest.mark.parametrize("mode", [Mode.VISIBLE_SCHEMA, Mode.JOINT])
def test_modes_that_show_the_schema_change_when_a_question_joins(mode: Mode) -> None:
    pair = add_questions(base(), [Proposition("x", "is it long")])
    assert [r.digest for r in compile_state(pair.before, mode)] != [
        r.digest for r in compile_state(pair.after, mode)
    ]


@pytest.mark.parametrize("mode", list(Mode))
def test_visible_evidence_changes_every_request(mode: Mode) -> None:
    pair = add_evidence(base(), [Passage("one more")])
    before, after = compile_state(pair.before, mode), compile_state(pair.after, mode)
    assert all(x.digest != y.digest for x, y in zip(before, after, strict=True))


def test_candidate_expansion_leaves_the_evidence_bytes_alone() -> None:
    pair = expand_candidates(base(), [Candidate("C", "neither")])
    assert Displayed.of(pair.before).digest == Displayed.of(pair.after).digest
    assert compile_choice(pair.before).data != compile_choice(pair.after).data


def test_nothing_that_compiles_a_request_can_receive_gold_or_routing() -> None:
    allowed = {
        "Displayed": {"query", "passages"},
        "State": {"query", "evidence", "targets", "candidates", "questions"},
    }
    assert {f.name for f in fields(Displayed)} == allowed["Displayed"]
    assert {f.name for f in fields(State)} == allowed["State"]
    assert {f.name for f in fields(Passage)} == {"text"}
    assert list(inspect.signature(request.independent).parameters) == ["evidence", "question"]
    assert inspect.signature(request.independent).parameters["question"].annotation == "str"


def test_bytes_are_the_same_every_time_and_golden() -> None:
    requests = compile_state(base(), Mode.INDEPENDENT)
    assert requests[0].data == (
        b'{"evidence":["aspirin lowers fever","the sky is blue","rest helps"],'
        b'"format":"ledger.jev-request.v1",'
        b'"mode":"independent","query":"what lowers fever","question":"passage 1 answers the query"}'
    )
    assert [r.data for r in requests] == [r.data for r in compile_state(base(), Mode.INDEPENDENT)]
