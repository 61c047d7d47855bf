"""Small studies of predictions: files of pairs in known groups, and a ledger that takes them in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from audits.statistics import label_mass
from ledger.ingest import ingest
from ledger.receipt import Receipt
from tests.audits.cohorts import Ledger

SCENARIOS = ("zero", "one", "two")
LABELS = ("p1", "p2")
Pair = dict[str, Any]


def digest(*parts: object) -> str:
    return "sha256:" + hashlib.sha256(repr(parts).encode()).hexdigest()


def pair(query: str = "q00", scenario: str = "zero", year: int = 2019, **more: Any) -> Pair:
    """One pair in the fewest columns; `more` replaces or adds."""
    positives = list(LABELS[: SCENARIOS.index(scenario)]) if scenario in SCENARIOS else []
    arms = {"before": {"p1": 0.25, "p2": 0.75}, "after": {"p1": 0.25, "p2": 0.75}}
    return {
        "year": year,
        "query_id": query,
        "scenario": scenario,
        "positive_labels": positives,
        **arms,
        **more,
    }


def study(
    queries: int = 12, *, flips: int = 0, year: int = 2019, bound: bool = True, **group: Any
) -> list[Pair]:
    """Every query in three scenarios; the first `flips` queries flip p1 in scenario `one`.

    `bound` adds request digests that differ between the arms.
    """
    made = []
    for q in range(queries):
        for scenario in SCENARIOS:
            flipped = q < flips and scenario == "one"
            key = (year, q, scenario, sorted(group.items()))
            digests = {f"{arm}_request_hash": digest(arm, key) for arm in ("before", "after")}
            made.append(
                pair(
                    f"q{q:02d}",
                    scenario,
                    year,
                    **({"after": {"p1": 0.625, "p2": 0.75}} if flipped else {}),
                    **(digests if bound else {}),
                    **group,
                )
            )
    return made


def write(path: Path, pairs: Sequence[Pair | str]) -> Path:
    path.write_text("".join((p if isinstance(p, str) else json.dumps(p)) + "\n" for p in pairs), "utf-8")
    return path


def take_in(
    ledger: Ledger, pairs: Sequence[Pair | str], name: str = "pairs.jsonl", **options: Any
) -> Receipt:
    """Ingest some pairs as one file."""
    path = write(ledger.folder / name, pairs)
    return ingest(ledger.home, [path], key=ledger.key, labels=label_mass, **options)
