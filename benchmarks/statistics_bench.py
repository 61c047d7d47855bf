"""How fast intervals are made: beside scipy and arch on the same cluster sums, and over a million clusters.

The sizes are those of the bars, whatever number of entries is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import peer_python
from case import Bar, Case, Measured, seconds

HERE = Path(__file__).resolve().parent
REPEATS = 200  # of a few milliseconds each, so that what is compared is not the start of Python
PEERS = ("ledger", "scipy", "arch")
DRAWN_BY = ("numpy", "numba")
MEANS = "bootstrap of 1M clusters by {}"
ORDER = "median and trimmed mean, 100k clusters"


def cases(folder: Path, entries: int) -> list[Case]:
    """Both ways to draw must give the same interval, or the benchmark ends there."""
    del entries
    made = [
        _case(_small(peer, repeats), "small", peer, str(repeats))
        for peer in PEERS
        for repeats in (0, REPEATS)
    ]
    interval = str(folder / "interval.txt")
    made += [_case(MEANS.format(name), "means", name, "1", interval) for name in DRAWN_BY]
    return [*made, _case(ORDER, "order", "ledger", "1", str(folder / "order.txt"))]


def _case(name: str, question: str, by: str, *words: str) -> Case:
    foreign = by in ("scipy", "arch")
    there = by in peer_python.versions() if foreign else by == "ledger" or find_spec(by) is not None
    python = peer_python.python() if foreign else sys.executable
    command = [python, str(HERE / "statistics_case.py"), question, by, *words]
    return Case(name, command, missing=None if there else f"{by}: not installed")


def _small(peer: str, repeats: int) -> str:
    return f"bootstrap of 100 clusters x {repeats} by {peer}"


def _once(found: Mapping[str, Measured], peer: str) -> float:
    """The seconds of one bootstrap, without the start of the process."""
    return (found[_small(peer, REPEATS)].seconds - found[_small(peer, 0)].seconds) / REPEATS


def _against(peer: str, at_least: float) -> Bar:
    needs = tuple(_small(name, repeats) for name in ("ledger", peer) for repeats in (0, REPEATS))
    return Bar(
        f"bootstrap of 100 clusters: {peer} / ledger",
        lambda found: _once(found, peer) / _once(found, "ledger"),
        needs,
        at_least=at_least,
        unit="x",
    )


def _processor(case: str, at_most: float) -> Bar:
    return Bar(
        f"{case}: processor seconds", lambda of: of[case].processor, (case,), at_most=at_most, unit="s"
    )


BARS: list[Bar] = [
    *(_against(peer, at_least) for peer, at_least in (("scipy", 1.0), ("arch", 4.0))),
    *(_processor(MEANS.format(name), at_most) for name, at_most in (("numpy", 90.0), ("numba", 20.0))),
    seconds(ORDER, 10.0),
]
