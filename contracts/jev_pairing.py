"""Answers of a collector and the routing of its requests, joined to prediction lines.

An answer is `{"id": …, "p": number | [numbers]}` with an optional `label_mass` in [0, 1]; the numbers
stand in the order in which the request asked. All problems are found before anything is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from contracts.errors import ContractError

PAIR = ("year", "query_id", "scenario", "variant", "intervention", "mode")
SHOWN = 3


@dataclass
class _Arm:
    """What one arm of a pair has been answered so far."""

    p: dict[str, float] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)
    evidence: str | None = None
    masses: list[float] = field(default_factory=list)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value) if 0.0 <= value <= 1.0 else None


def _answers(
    lines: Iterable[tuple[str, Any]], problems: list[str]
) -> dict[str, tuple[list[float], float | None]]:
    answers: dict[str, tuple[list[float], float | None]] = {}
    for where, value in lines:
        if not isinstance(value, Mapping) or not isinstance(value.get("id"), str) or "p" not in value:
            problems.append(f"{where}: an answer is an object of id and p")
            continue
        given = value["p"] if isinstance(value["p"], list) else [value["p"]]
        numbers = [number for item in given if (number := _number(item)) is not None]
        mass = value.get("label_mass")
        if len(numbers) != len(given) or not given:
            problems.append(f"{where}: p must be numbers in [0, 1]")
        elif mass is not None and _number(mass) is None:
            problems.append(f"{where}: label_mass must be a number in [0, 1]")
        elif value["id"] in answers:
            problems.append(f"{where}: id {value['id'][:40]!r} is answered twice")
        else:
            answers[value["id"]] = (numbers, None if mass is None else float(mass))
    return answers


def pair_answers(
    routing: Iterable[tuple[str, Any]],
    answers: Iterable[tuple[str, Any]],
    positives: Mapping[tuple[int, str, str], list[str]] | None = None,
) -> list[dict[str, Any]]:
    """Prediction lines in the order of the routing file; ContractError names what cannot be paired.

    `routing` and `answers` are (where, parsed line). `positives` maps (year, query_id, scenario) to the
    scorer-only labels; without it the lines carry none and must be given them before ingest. The label
    mass of an arm is the least of its answers, the one that says how weak the support may be.
    """
    problems: list[str] = []
    given = _answers(answers, problems)
    pairs: dict[tuple[Any, ...], dict[str, _Arm]] = {}
    for where, line in routing:
        answer = given.pop(line["id"], None)
        if answer is None:
            problems.append(f"{where}: request {line['id']} has no answer")
            continue
        numbers, mass = answer
        labels = line["labels"]
        if len(numbers) != len(labels):
            problems.append(
                f"{where}: request {line['id']} asks for {len(labels)} numbers, {len(numbers)} came"
            )
            continue
        arm = pairs.setdefault(tuple(line.get(name) for name in PAIR), {}).setdefault(line["arm"], _Arm())
        arm.p.update(zip(labels, numbers, strict=True))
        arm.requests.update(dict.fromkeys(labels, line["request_hash"]))
        arm.evidence = line["evidence_hash"]
        if mass is not None:
            arm.masses.append(mass)
    problems += [f"answer {name[:40]!r} belongs to no request of this routing" for name in given]
    if positives is not None:
        problems += [
            f"state {key[1]}/{key[2]} has no line in the scorer-only file"
            for key in sorted({tuple(k[:3]) for k in pairs} - set(positives), key=str)
        ]
    if problems:
        rest = f" (and {len(problems) - SHOWN} more)" if len(problems) > SHOWN else ""
        raise ContractError("; ".join(problems[:SHOWN]) + rest, code="jev-unpaired")
    return [_line(key, arms, positives) for key, arms in pairs.items()]


def _line(
    key: tuple[Any, ...], arms: Mapping[str, _Arm], positives: Mapping[tuple[int, str, str], list[str]] | None
) -> dict[str, Any]:
    line: dict[str, Any] = {name: value for name, value in zip(PAIR, key, strict=True) if value is not None}
    for name in ("before", "after"):
        arm = arms[name]
        line[name] = arm.p
        hashes = set(arm.requests.values())
        line[f"{name}_request_hash"] = next(iter(hashes)) if len(hashes) == 1 else arm.requests
        if arm.masses:
            line[f"{name}_label_mass"] = min(arm.masses)
    line["evidence_hash"] = arms["before"].evidence
    if positives is not None:
        line["positive_labels"] = sorted(positives[key[0], key[1], key[2]])
    return line
