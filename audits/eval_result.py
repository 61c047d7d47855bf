"""An audit's verdicts in the form of the in-toto `eval-result` proposal (in-toto/attestation, PR 575).

That form knows claims of a metric against a threshold and whether they passed. The claims here are the
plan's gates, or where there is none what the record's own verdicts say; numbers stay in the record, which
is the evidence the statement points at.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from audits import gates, prespecified
from contracts.canonical import canonical
from contracts.digest import sha256_digest
from contracts.errors import CannotAnswerError
from ledger.statement import Statement, Subject

PREDICATE = "https://in-toto.io/attestation/eval-result/v0.1"
ENVELOPE = "application/vnd.in-toto+json"
URN = "urn:evaluator-ledger:"
# How a gate reads as a claim: the metric, and the side of the threshold that passes.
CLAIMS: Mapping[str, tuple[str, str]] = {
    "no_strict_reversal": ("strict_mean_reversal.supported", "<="),
    "max_flip_share": ("flip_share", "<="),
    "equivalence": ("equivalence.established", ">="),
    "min_complete_share": ("complete_share", ">="),
    "min_attested_share": ("attested_share", ">="),
    "min_trajectories": ("trajectories", ">="),
    "prespecified": ("prespecified", ">="),
}


def eval_result(
    stated: Statement, *, record: str, event: int, signer: str, wanted: Mapping[str, bool | float]
) -> Statement:
    """The statement about an audit's record (`sha256:` of its envelope, at a leaf of the log).

    `signer` is the key id of who signs this; `wanted` are the gates to claim, those of the plan.
    CannotAnswerError where neither gates nor verdicts make a claim.
    """
    predicate = stated.predicate
    result, environment = _inside(predicate, "result"), _inside(predicate, "environment")
    claims = [*_gated(result, wanted)] or [*_verdicts(result)]
    if not claims:
        raise CannotAnswerError("the record has no verdict to claim", code="no-claims", got=record[:23])
    origin = stated.subjects[0].name.rpartition("@")[0]
    said = prespecified.of(result)
    made: dict[str, Any] = {
        "evaluator": {"id": f"{URN}key:{signer}"},
        "evaluatedAt": environment.get("time"),
        "suite": {
            "name": f"evaluator-ledger/{predicate.get('audit')}",
            "version": str(predicate.get("schema")),
        },
        "claims": claims,
        "sampleSize": _samples(result),
        "model": _described(
            ", ".join(f"{c['name']}@{c['version']}" for c in _inside(environment, "channels").values()),
            [c["fingerprint"] for c in _inside(environment, "channels").values()],
        ),
        "dataset": _described(
            stated.subjects[0].name,
            [{"name": s.name, "digest": dict(s.digest)} for s in stated.subjects],
        ),
        "assuranceLevel": "self_attested",
        "subjectProfile": "receipt",
        "evidence": [
            {
                "name": "audit record",
                "digest": {"sha256": record.removeprefix("sha256:")},
                "mediaType": ENVELOPE,
                "uri": f"{URN}{origin}:event:{event}",
            }
        ],
        "harness": {
            "name": "evaluator-ledger",
            "version": str(_inside(environment, "versions").get("evaluator-ledger", "unknown")),
        },
    }
    if said is not None and said["prespecified"]:
        made["preRegistration"] = {"alg": "sha256", "value": str(said["plan"]).removeprefix("sha256:")}
    return Statement((Subject("audit record", {"sha256": record.removeprefix("sha256:")}),), PREDICATE, made)


def _gated(result: Mapping[str, Any], wanted: Mapping[str, bool | float]) -> Iterator[dict[str, Any]]:
    for outcome in gates.judge(result, wanted):
        metric, comparator = CLAIMS[outcome.gate]
        limit = 0 if outcome.gate == "no_strict_reversal" else outcome.wanted
        yield _claim(metric, comparator, limit, outcome.passed)


def _verdicts(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What the record's own verdicts claim: no reversal, equivalence, no strict flip of a year."""
    verdicts = result["verdicts"]
    for name in ("no_strict_reversal", "equivalence"):
        outcome = gates.GATES[name].judge(name, True, result)
        if outcome.got is not None:
            yield _claim(*CLAIMS[name], 0 if name == "no_strict_reversal" else 1, outcome.passed)
    for prefix, seen in verdicts.get("flips", {}).items():
        yield _claim(f"{prefix}.strict_flip", "<=", 0, seen == "none_seen")


def _claim(metric: str, comparator: str, threshold: bool | float, passed: bool) -> dict[str, Any]:
    """One claim; a threshold is a decimal text, so that no reader's float changes it."""
    shown = str(int(threshold)) if threshold == int(threshold) else format(threshold, "f").rstrip("0")
    return {"metric": metric, "comparator": comparator, "threshold": shown, "passed": passed}


def _samples(result: Mapping[str, Any]) -> int:
    """The units the estimates are over: the largest cohort where they differ."""
    complete = result["flow"].get("complete")
    counts = [fields.get("n") or 0 for fields in result["estimates"].values()]
    return int(complete if isinstance(complete, int) else max(counts, default=0))


def _described(name: str, value: object) -> dict[str, Any]:
    """A resource descriptor whose content is what its digest is over."""
    data = canonical(value)
    return {
        "name": name,
        "digest": {"sha256": sha256_digest(data).removeprefix("sha256:")},
        "mediaType": "application/json",
        "content": base64.b64encode(data).decode(),
    }


def _inside(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, Mapping) else {}
