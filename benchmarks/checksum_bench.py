"""How many bytes a second a quick verification checks once it has started, beside b3sum on the same files."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from case import Bar, Case, Fact
from homes import filled, new_home
from peer_python import SCRIPT
from read_bench import on

VERIFY, START, SUM, BYTES = (
    "verify, large",
    "verify, no entries",
    "b3sum of the segments",
    "bytes of segments",
)
ENTRIES = 120_000_000  # a little more than 2 GB of segments


def cases(folder: Path, entries: int) -> list[Case | Fact]:
    """Files are in memory after the first turn, for both."""
    home = filled(folder / "home", entries)
    empty = new_home(folder / "empty")
    files = home.segment_files
    program = shutil.which("b3sum")
    command = [program] if program else [sys.executable, SCRIPT, "blake3"]
    return [
        on(empty, START, "verify"),
        on(home, VERIFY, "verify"),
        Case(SUM, [*command, *map(str, files)]),
        Fact(BYTES, lambda: float(sum(path.stat().st_size for path in files))),
    ]


BARS: list[Bar] = [
    Bar(
        "verify after start-up / b3sum, time",
        lambda of: (of[VERIFY].seconds - of[START].seconds) / of[SUM].seconds,
        (VERIFY, START, SUM),
        at_most=1.5,
        unit="x",
        of=ENTRIES,
    ),
    Bar(
        "bytes of segments that b3sum reads",
        lambda of: of[BYTES].value or 0.0,
        (BYTES,),
        at_least=2e9,
        of=ENTRIES,
    ),
]
