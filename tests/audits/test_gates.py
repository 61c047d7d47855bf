"""Gates: each judged from a record alone, and never passed by what is undefined."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from audits import gates
from contracts.errors import UsageError

RESULT: dict[str, Any] = {
    "estimates": {"flip_share": {"value": 0.25}, "2019.strict_flip": {"value": 0.1}},
    "flow": {"transitions": 100, "complete": 90, "trajectories": 30},
    "provenance": {
        "entries_in": 200,
        "entries_by_level": {"attested": 150},
        "prespecification": {"prespecified": True},
    },
    "verdicts": {
        "strict_mean_reversal": {"supported": False, "supported@equal-target": None},
        "equivalence": {"established": True},
    },
}
PASSED = {
    "no_strict_reversal": True,
    "max_flip_share": 0.25,
    "equivalence": True,
    "min_complete_share": 0.9,
    "min_attested_share": 0.75,
    "min_trajectories": 30,
    "prespecified": True,
}


def changed(*path: str, to: object) -> dict[str, Any]:
    result = copy.deepcopy(RESULT)
    inside = result
    for part in path[:-1]:
        inside = inside[part]
    inside[path[-1]] = to
    return result


def reasons(result: dict[str, Any], **wanted: Any) -> list[str]:
    return [o.reason for o in gates.judge(result, gates.parse(wanted)) if o.reason is not None]


def test_every_gate_passes_at_its_edge() -> None:
    assert set(PASSED) == set(gates.GATES)
    assert reasons(RESULT, **PASSED) == []
    assert len(gates.judge(RESULT, PASSED)) == len(PASSED)


@pytest.mark.parametrize(
    ("wanted", "result", "said"),
    [
        ({"max_flip_share": 0.24}, RESULT, "share of flips: 0.25, 0.24 wanted"),
        ({"min_complete_share": 0.91}, RESULT, "complete: 0.9, 0.91 wanted"),
        ({"min_attested_share": 0.76}, RESULT, "attested: 0.75"),
        ({"min_trajectories": 31}, RESULT, "trajectories: 30, 31 wanted"),
        (
            {"no_strict_reversal": True},
            changed("verdicts", "strict_mean_reversal", "supported@equal-target", to=True),
            "a strict reversal",
        ),
        (
            {"equivalence": True},
            changed("verdicts", "equivalence", "established", to=False),
            "not established",
        ),
        ({"prespecified": True}, changed("provenance", "prespecification", to=None), "no plan preceded"),
        (
            {"prespecified": True},
            changed("provenance", "prespecification", "prespecified", to=False),
            "no plan",
        ),
    ],
)
def test_what_is_not_shown_is_not_passed(wanted: dict[str, Any], result: dict[str, Any], said: str) -> None:
    (reason,) = reasons(result, **wanted)
    assert said in reason


@pytest.mark.parametrize(
    ("wanted", "result", "said"),
    [
        (
            {"max_flip_share": 1.0},
            changed("estimates", "flip_share", to={"value": None, "reason": "empty_cohort"}),
            "share of flips: undefined, no complete transition",
        ),
        ({"max_flip_share": 1.0}, changed("estimates", to={}), "this audit has no share of flips"),
        (
            {"no_strict_reversal": True},
            changed("verdicts", "strict_mean_reversal", "supported", to=None)
            | {"estimates": {"gain.ref": {"value": 1.0, "verdict": None, "reason": "one_cluster"}}},
            "a reversal of the mean gain cannot be judged, one trajectory has no spread to resample",
        ),
        (
            {"no_strict_reversal": True},
            changed("verdicts", to={}),
            "this kind of audit states no reversal of the mean gain",
        ),
        (
            {"equivalence": True},
            changed("verdicts", to={}),
            "equivalence cannot be judged: the audit declared no band",
        ),
        (
            {"equivalence": True},
            changed("verdicts", "equivalence", to={"established": None, "reason": "too_few_clusters"}),
            "equivalence cannot be judged: fewer than 10 trajectories",
        ),
        (
            {"min_complete_share": 0.0},
            changed("flow", "transitions", to=0),
            "share of transitions that are complete: undefined, the record counts no transitions",
        ),
        (
            {"min_attested_share": 0.0},
            changed("provenance", "entries_in", to=0),
            "share of entries that are attested: undefined, no entry was in scope",
        ),
        ({"min_trajectories": 1}, changed("flow", to={}), "trajectories: this kind of audit counts none"),
    ],
)
def test_what_is_undefined_is_no_permission_and_says_why(
    wanted: dict[str, Any], result: dict[str, Any], said: str
) -> None:
    (reason,) = reasons(result, **wanted)
    assert reason == said


@pytest.mark.parametrize(
    "wrong",
    [
        {"bravery": 1},
        {"equivalence": 1},
        {"max_flip_share": 2},
        {"max_flip_share": True},
        {"min_trajectories": 1.5},
    ],
)
def test_a_gate_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        gates.parse(wrong)
    assert gates.parse({"equivalence": False}) == {}
