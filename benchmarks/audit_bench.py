"""How fast entries are audited beside a naive query for the same mean, and how much memory that takes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from case import LEDGER, Bar, Case, Fact, Home, fact, growth, megabytes, seconds, times
from data import whole
from homes import filled
from peer_python import peer
from read_bench import on

STATED = 10_000_000
MANY = 1000
AUDIT = ("audit", "transport", "--ref", "direct", "--alt", "generated", "--no-record")
ONE_CALL, MANY_CALLS, MEANS = "audit", f"audit, {MANY} segments", "audit, means and layouts alone"
QUERY = "DuckDB query of the mean Ω"
DIFFERENCE = "mean Ω: audit less query"
PEERS_UP_TO = 10_000_000
AGREE_TO = 1e-9


def cases(folder: Path, entries: int) -> list[Case | Fact]:
    """The same entries from one call and from a thousand, and the query over the files of the one."""
    home = filled(folder.parent / f"home{entries}", entries)
    rows = whole(entries)
    script = str(Path(__file__).with_name("audit_means.py"))
    made: list[Case | Fact] = [
        on(home, ONE_CALL, *AUDIT, entries=rows),
        Case(
            MEANS, [sys.executable, script, "direct", "generated"], home.environment, entries=rows, grows=True
        ),
    ]
    if entries > PEERS_UP_TO:
        return made
    many = filled(folder / "many", entries, MANY)
    audit = _said(home, AUDIT)
    named = audit["environment"]["channels"]
    digests = ["1e" + named[role]["fingerprint"].removeprefix("blake3:") for role in ("ref", "alt")]
    files = [str(path) for path in home.segment_files if path.suffix == ".parquet"]
    query = peer(QUERY, "duckdb", "omega", *files, *digests, entries=rows)
    interaction = audit["result"]["estimates"]["interaction"]["value"]
    return [
        *made,
        on(many, MANY_CALLS, *AUDIT, entries=rows),
        query,
        Fact(DIFFERENCE, lambda: _difference(interaction, query), query.missing),
    ]


def _said(home: Home, words: Sequence[str]) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    ran = subprocess.run(
        [*LEDGER, *words, "--json"], env=dict(home.environment), stdout=subprocess.PIPE, check=True
    )
    return json.loads(ran.stdout)["predicate"]


def _difference(audited: float, query: Case) -> float:
    """A query that answers something else must not be compared with: the benchmark ends there."""
    ran = subprocess.run(query.command, env=dict(query.environment), stdout=subprocess.PIPE, check=True)
    asked = float(ran.stdout)
    if not abs(audited - asked) <= AGREE_TO:
        sys.exit(f"the mean Ω of the audit is {audited!r}, that of the query {asked!r}")
    return abs(audited - asked)


BARS: list[Bar] = [
    times("audit's means and layouts / DuckDB query, time", MEANS, QUERY, at_most=2.5, of=STATED),
    times("audit / DuckDB query, time", ONE_CALL, QUERY, at_most=5.0, of=STATED),
    fact(DIFFERENCE, AGREE_TO),
    megabytes(ONE_CALL, 512, STATED),
    megabytes(MANY_CALLS, 512, STATED),
    growth(f"audit: memory, {MANY} segments / one call", MANY_CALLS, ONE_CALL, 1.2, STATED),
    seconds(ONE_CALL, 6.0, 1_000_000),
]
