"""The next step after an ingest: a pair of channels that can be audited, found without trying all of them."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from itertools import combinations

import pytest

from contracts.channel import Channel, ChannelBook
from ledger.ingest_notes import next_audit


@dataclass(frozen=True)
class Part:
    channel: str | None


@dataclass(frozen=True)
class Segment:
    """What is asked of a segment: its first and last trajectory, and whose rows it has."""

    first: tuple[str, int]
    last: tuple[str, int]
    scope: tuple[Part, ...]


def channel(number: int, layouts: int | None, view: str = "none") -> Channel:
    shown: dict[str, object] = {} if layouts is None else {"layouts": layouts}
    spec = {"readout": {"kind": "joint-label"}, "view": {"kind": view}, "presentation": shown}
    return Channel(f"c{number}", 1, spec, f"blake3:{number:064x}")


def segment(low: int, high: int, channels: list[Channel]) -> Segment:
    parts = tuple(Part(each.fingerprint) for each in channels)
    return Segment((f"t{low:03d}", 0), (f"t{high:03d}", 3), (*parts, Part(None)))


def every_pair(
    new: dict[str, set[str]], segments: list[Segment], book: ChannelBook, meeting: set[frozenset[str]]
) -> str | None:
    """The same by trying all."""
    ready = sorted((c for c in book.channels if c.layouts is not None), key=lambda c: c.needs_view)

    def overlap(a: Channel, b: Channel) -> bool:
        mine, other = (
            [(s.first[0], s.last[0]) for s in segments if Part(c.fingerprint) in s.scope] for c in (a, b)
        )
        return any(x[0] <= y[1] and y[0] <= x[1] for x in mine for y in other)

    fitting = [pair for pair in combinations(ready, 2) if pair[0].layouts == pair[1].layouts]
    pairs = [(a, b) for a, b in fitting if frozenset((a.fingerprint, b.fingerprint)) in meeting]
    pairs = pairs or [pair for pair in fitting if overlap(*pair)]
    if not pairs:
        return None
    a, b = max(pairs, key=lambda pair: sum(c.fingerprint in new for c in pair))
    return f"ledger audit transport --ref {a.name} --alt {b.name}"


@pytest.mark.parametrize("seed", range(80))
def test_it_is_the_pair_that_trying_all_of_them_finds(seed: int) -> None:
    chance = random.Random(seed)
    channels = [
        channel(n, chance.choice([2, 2, 3, None]), chance.choice(["none", "generated"]))
        for n in range(chance.randrange(7))
    ]
    some = [c for c in channels if chance.random() < 0.6]
    segments = []
    for _ in range(chance.randrange(6)):
        low = chance.randrange(40)
        mine = [c for c in channels if chance.random() < 0.3]
        segments.append(segment(low, low + chance.randrange(8), mine))
    pairs = [frozenset((a.fingerprint, b.fingerprint)) for a, b in combinations(channels, 2)]
    meeting = {pair for pair in pairs if chance.random() < 0.2} if chance.random() < 0.5 else set()
    given = ({c.fingerprint: {"run"} for c in some}, segments, ChannelBook(tuple(channels)), meeting)
    assert next_audit(*given) == every_pair(*given)  # type: ignore[arg-type]


@pytest.mark.parametrize("apart", [True, False], ids=["none meet", "all meet"])
@pytest.mark.parametrize("known", [True, False], ids=["known to the ledger", "new"])
def test_thousands_of_channels_take_a_moment(apart: bool, known: bool) -> None:
    channels = [channel(n, 2) for n in range(4000)]
    groups = [[c] for c in channels] if apart else [channels] * 3
    segments = [segment(n, n, mine) for n, mine in enumerate(groups)] if known else []
    if apart:
        segments = [Segment((f"t{n:05d}", 0), (f"t{n:05d}", 0), s.scope) for n, s in enumerate(segments)]
    started = time.process_time()
    found = next_audit(
        {c.fingerprint: {"run"} for c in channels[10:]},
        segments,
        ChannelBook(tuple(channels)),
        set(),  # type: ignore[arg-type]
    )
    assert time.process_time() - started < 3
    assert (found is not None) == (known and not apart)
