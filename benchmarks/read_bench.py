"""How fast a million entries are looked up, verified and audited, in one segment and in a hundred."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from case import LEDGER, Bar, Case, Home, growth, megabytes, seconds
from data import PER_TRAJECTORY, write
from homes import fill, new_home

SEGMENTS = 100


def cases(folder: Path, entries: int) -> list[Case]:
    """Read-only commands on two homes with the same entries."""
    total = max(entries // PER_TRAJECTORY, 1)
    one, many = new_home(folder / "one"), new_home(folder / "many")
    fill(one, [[write(folder / "all.parquet", entries)]])
    fill(many, [[path] for path in _parts(folder, entries, total)])
    middle = f"traj{total // 2:06d}"
    made = [Case("help", [*LEDGER, "--help"])]
    for name, home in (("one segment", one), (f"{SEGMENTS} segments", many)):
        made += [
            _on(home, f"verify, {name}", "verify"),
            _on(
                home, f"scores of a trajectory, {name}", "scores", "--trajectory", middle, "--format", "jsonl"
            ),
            _on(home, f"lineage of an entry, {name}", "lineage", _entry(home)),
            _on(
                home,
                f"audit, {name}",
                "audit",
                "transport",
                "--ref",
                "direct",
                "--alt",
                "generated",
                "--no-record",
            ),
        ]
    return made


def _on(home: Home, name: str, *arguments: str) -> Case:
    return Case(name, [*LEDGER, *arguments], home.environment)


def _parts(folder: Path, entries: int, total: int) -> list[Path]:
    """A file for each segment, its trajectories next to each other."""
    edges = [total * part // SEGMENTS for part in range(SEGMENTS + 1)]
    spans = [(low, high) for low, high in pairwise(edges) if low < high]
    return [write(folder / f"part{low}.parquet", entries, trajectories=(low, high)) for low, high in spans]


def _entry(home: Home) -> str:
    """The id of an entry in the middle of the first segment."""
    from ledger.entry_id import entry_id
    from ledger.home import read
    from ledger.index import Index

    with Index.open(read(home.folder / ".ledger")) as index:
        segment = index.segments()[0]
    return entry_id(segment.root, segment.rows // 2)


BARS: list[Bar] = [
    seconds("help", 0.4),
    seconds("verify, one segment", 1.0),
    seconds("scores of a trajectory, one segment", 0.7),
    seconds("lineage of an entry, one segment", 1.0),
    seconds("audit, one segment", 6.0),
    megabytes("audit, one segment", 1000),
    growth(
        f"audit: memory of {SEGMENTS} segments against one",
        f"audit, {SEGMENTS} segments",
        "audit, one segment",
        1.1,
    ),
]
