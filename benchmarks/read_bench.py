"""How fast the program starts, and how fast one home is looked up in and verified."""

from __future__ import annotations

from pathlib import Path

from case import LEDGER, Bar, Case, Home, faster_than, seconds
from data import trajectories_of, whole
from homes import filled

STATED = 10_000_000
FULL = "verify --full"


def cases(folder: Path, entries: int) -> list[Case]:
    """Read-only commands, each a whole process."""
    home = filled(folder.parent / f"home{entries}", entries)
    middle = f"traj{trajectories_of(entries) // 2:06d}"
    rows = whole(entries)
    return [
        on(home, "help", "--help"),
        on(home, "log", "log"),
        on(home, "scores of a trajectory", "scores", "--trajectory", middle, "--format", "jsonl"),
        on(home, "lineage of an entry", "lineage", _entry(home)),
        on(home, "verify", "verify", entries=rows),
        on(home, FULL, "verify", "--full", entries=rows),
    ]


def on(home: Home, name: str, *arguments: str, entries: int | None = None) -> Case:
    """A command on a home; its growth is of interest."""
    return Case(name, [*LEDGER, *arguments], home.environment, entries=entries, grows=True)


def _entry(home: Home) -> str:
    """The id of an entry in the middle of the first segment."""
    from ledger.entry_id import entry_id
    from ledger.home import read
    from ledger.index import Index

    with Index.open(read(home.folder / ".ledger")) as index:
        segment = index.segments()[0]
    return entry_id(segment.root, segment.rows // 2)


BARS: list[Bar] = [
    seconds("help", 0.3),
    seconds("log", 0.6),
    seconds("scores of a trajectory", 0.7, STATED),
    seconds("lineage of an entry", 0.7, STATED),
    seconds("verify", 1.5, STATED),
    seconds("verify", 1.0, 1_000_000),
    faster_than(FULL, 1_000_000, STATED),
]
