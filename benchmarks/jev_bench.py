"""How fast a million pairs of predictions are taken in and audited, with every query drawn 5,000 times."""

from __future__ import annotations

import random
import sys
from importlib.util import find_spec
from pathlib import Path

from case import LEDGER, Bar, Case, megabytes, seconds
from homes import copied, fill, new_home

YEARS = (2019, 2020)
SCENARIOS = ("zero", "one", "two")
LABELS = ("p1", "p2", "p3")
NUMPY_ALONE = (
    sys.executable,
    "-c",
    "import audits.statistics.compiled as c; c.WORTHWHILE = 1 << 63; from cli.main import run; run()",
)
CHANCE = 0.02  # of an answer to land on the other side


def cases(folder: Path, entries: int) -> list[Case]:
    """The file taken into an empty home, and audits of a home that holds nothing else."""
    source = _write(folder / "pairs.jsonl", entries)
    template = new_home(folder / "empty")
    fresh = copied(template, folder / "fresh")
    home = new_home(folder / "full")
    fill(home, [[source]])
    asked = ("audit", "jev", "--require", "declared", "--no-record")
    made = [
        Case(
            "ingest of pairs",
            [*LEDGER, "ingest", str(source)],
            fresh.environment,
            prepare=lambda: copied(template, fresh.folder) and None,
            entries=entries,
        ),
        Case("audit jev", [*NUMPY_ALONE, *asked], home.environment, entries=entries),
    ]
    missing = None if find_spec("numba") else "numba: not installed"
    return [
        *made,
        Case("audit jev with numba", [*LEDGER, *asked], home.environment, entries=entries, missing=missing),
    ]


def _write(path: Path, pairs: int) -> Path:
    """At least so many pairs: two years of queries, each in three scenarios of three passages."""
    draw = random.Random(20260928)
    queries = -(-pairs // (len(SCENARIOS) * len(YEARS)))
    with path.open("w", encoding="ascii") as file:
        for year in YEARS:
            for query in range(queries):
                for positives, scenario in enumerate(SCENARIOS):
                    file.write(_line(draw, year, query, scenario, positives))
    return path


def _line(draw: random.Random, year: int, query: int, scenario: str, positives: int) -> str:
    before = [round(draw.random(), 4) for _ in LABELS]
    after = [round(1 - p, 4) if draw.random() < CHANCE else p for p in before]
    arms = [
        "{" + ", ".join(f'"{label}": {p}' for label, p in zip(LABELS, arm, strict=True)) + "}"
        for arm in (before, after)
    ]
    positive = ", ".join(f'"{label}"' for label in LABELS[:positives])
    return (
        f'{{"year": {year}, "query_id": "{year}-q{query:06d}", "scenario": "{scenario}", '
        f'"before": {arms[0]}, "after": {arms[1]}, "positive_labels": [{positive}]}}\n'
    )


STATED = 1_000_000  # pairs
BARS: list[Bar] = [
    seconds("audit jev", 15.0, STATED),
    megabytes("audit jev", 1000, STATED),
    megabytes("ingest of pairs", 1000, STATED),
]
