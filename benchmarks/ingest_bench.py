"""How fast a million scores become entries, beside the same rows put into SQLite or rewritten as Parquet."""

from __future__ import annotations

import sys
from pathlib import Path

from case import LEDGER, Bar, Case, megabytes, times
from data import write
from homes import copied, new_home

HERE = Path(__file__).resolve().parent


def cases(folder: Path, entries: int) -> list[Case]:
    """Each starts from nothing: contracts, pages, tree, signature and every fsync are in the time."""
    source = write(folder / "scores.parquet", entries)
    template = new_home(folder / "empty")
    fresh = copied(template, folder / "fresh")
    target = folder / "baseline"

    def baseline(kind: str) -> Case:
        def clear() -> None:
            for path in folder.glob("baseline*"):
                path.unlink()

        command = [sys.executable, str(HERE / "baselines.py"), kind, str(source), str(target)]
        return Case(kind, command, prepare=clear, entries=entries)

    return [
        Case(
            "ingest",
            [*LEDGER, "ingest", str(source)],
            fresh.environment,
            prepare=lambda: copied(template, fresh.folder) and None,
            entries=entries,
        ),
        baseline("sqlite"),
        baseline("rewrite"),
    ]


BARS: list[Bar] = [
    times("ingest: rows/s against sqlite executemany", "sqlite", "ingest", at_least=3.0),
    times("ingest: time against a pyarrow rewrite", "ingest", "rewrite", at_most=4.0),
    megabytes("ingest", 1000),
]
