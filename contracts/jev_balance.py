"""Three-passage states balanced over zero, one and two positives, from judged passages.

Each query gives one state per scenario. Which passages are drawn, and where they are displayed, follows
from a digest of the seed and the ids, so the same files and seed give the same states on any machine
and the place of a positive says nothing. Balanced scenarios are not a production distribution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blake3 import blake3

from contracts.jev_state import Intervention

PASSAGES = 3
SCENARIOS = {"zero": 0, "one": 1, "two": 2}
LABELS = tuple(f"p{number + 1}" for number in range(PASSAGES))
QUESTIONS = (
    ("q1", "Every displayed passage is written in the language of the query."),
    ("q2", "At least one displayed passage contains a number."),
    ("q3", "The displayed passages contradict each other."),
)


@dataclass(frozen=True)
class Judged:
    """The judged passages of one query that may be drawn: ids of positives and of the others."""

    query_id: str
    positives: tuple[str, ...]
    others: tuple[str, ...]


@dataclass(frozen=True)
class Balanced:
    """The states of a study, its scorer-only lines, and the queries that were too thin to use."""

    states: tuple[dict[str, object], ...]
    gold: tuple[dict[str, object], ...]
    skipped: tuple[str, ...]


def _ranked(ids: Sequence[str], *parts: object) -> list[str]:
    """The ids in an order that depends on `parts` and nothing else."""
    head = "\x00".join(str(part) for part in parts)
    return sorted(ids, key=lambda item: (blake3(f"{head}\x00{item}".encode()).digest(), item))


def balance(
    judged: Sequence[Judged],
    topics: Mapping[str, str],
    passages: Mapping[str, str],
    *,
    year: int,
    seed: int,
    intervention: Intervention,
) -> Balanced:
    """States and scorer-only lines for every query with two positives and enough others.

    `topics` maps query ids to texts and `passages` document ids to texts. A query is skipped, and
    named, when it has fewer than two positives or three other passages (four where the intervention
    displays a further one). Queries come in id order.
    """
    needed = PASSAGES + (intervention is Intervention.EVIDENCE)
    states, gold, skipped = [], [], []
    for item in sorted(judged, key=lambda j: j.query_id):
        if len(item.positives) < max(SCENARIOS.values()) or len(item.others) < needed:
            skipped.append(item.query_id)
            continue
        for scenario, count in SCENARIOS.items():
            parts = (seed, year, item.query_id, scenario)
            chosen = _ranked(item.positives, "positive", *parts)[:count]
            others = _ranked(item.others, "other", *parts)
            drawn = chosen + others[: PASSAGES - count]
            shown = _ranked(drawn, "display", *parts)
            spare = others[PASSAGES - count :][:1]
            states.append(
                {
                    "year": year,
                    "query_id": item.query_id,
                    "scenario": scenario,
                    "query": topics[item.query_id],
                    "evidence": [passages[doc] for doc in shown],
                    "targets": [_target(label, number) for number, label in enumerate(LABELS)],
                    **_asked(intervention, [passages[doc] for doc in spare]),
                }
            )
            positive = [label for label, doc in zip(LABELS, shown, strict=True) if doc in chosen]
            gold.append(
                {
                    "year": year,
                    "query_id": item.query_id,
                    "scenario": scenario,
                    "positive_labels": positive,
                    "documents": dict(zip(LABELS, shown, strict=True)),
                }
            )
    return Balanced(tuple(states), tuple(gold), tuple(skipped))


def _target(label: str, number: int) -> dict[str, str]:
    return {"label": label, "text": f"Passage {number + 1} answers the query."}


def _asked(intervention: Intervention, spare: list[str]) -> dict[str, object]:
    """The eligible candidates and what the intervention will add."""
    options = [{"label": label, "text": f"Passage {number + 1}"} for number, label in enumerate(LABELS)]
    made: dict[str, object] = {"intervention": intervention.value}
    if intervention is Intervention.CANDIDATES:
        return {**made, "candidates": options[:-1], "add": {"candidates": options[-1:]}}
    if intervention is Intervention.EVIDENCE:
        return {**made, "candidates": options, "add": {"evidence": spare}}
    return {
        **made,
        "candidates": options,
        "add": {"questions": [{"label": k, "text": t} for k, t in QUESTIONS]},
    }
