"""Which channels are the cells of a cube: found by what their specifications say, not by their names.

The cells must differ in the declared factors and in nothing else; what else differs is listed, and nothing
is computed then.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product

from contracts.channel import Channel, ChannelBook
from contracts.errors import CannotAnswerError, UsageError

Cell = tuple[str, str]
LISTED = 6


@dataclass(frozen=True)
class Factors:
    """Two paths of a specification with their levels; the order of the levels gives the signs."""

    paths: tuple[str, str]
    levels: tuple[tuple[str, ...], tuple[str, ...]]

    @classmethod
    def of(cls, paths: Sequence[str], levels: Sequence[Sequence[str]]) -> Factors:
        """Checked factors; UsageError for anything but two different ones of at least two levels each."""
        if len(paths) != 2 or len(set(paths)) != 2:
            raise UsageError(
                "a cube has two factors",
                expected="two different paths of a channel specification",
                got=", ".join(paths),
                where="--factors",
            )
        if len(levels) != 2:
            raise UsageError(
                "every factor needs its levels in order",
                expected="--levels once for each factor",
                got=f"{len(levels)} of 2",
                where="--levels",
            )
        for path, named in zip(paths, levels, strict=True):
            if len(named) < 2 or len(set(named)) != len(named):
                raise UsageError(
                    f"not the levels of {path}",
                    expected="at least two different levels",
                    got=",".join(named),
                    where="--levels",
                )
        made = cls((paths[0], paths[1]), (tuple(levels[0]), tuple(levels[1])))
        if len({name_of(cell) for cell in made.cells}) != len(made.cells):
            raise UsageError("levels whose names cannot be told apart in a cell", where="--levels")
        return made

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All pairs of levels, the first factor outermost."""
        return tuple(product(*self.levels))

    def cell(self, channel: Channel) -> Cell | None:
        """The cell a channel belongs to by its specification, None where it has none of these levels."""
        first, second = (_level(channel, p, named) for p, named in zip(self.paths, self.levels, strict=True))
        return None if first is None or second is None else (first, second)


def name_of(cell: Cell) -> str:
    """A cell as it stands in ids: `<level of the first factor>/<level of the second>`."""
    return "/".join(cell)


def find_cells(book: ChannelBook, patterns: Sequence[str], factors: Factors) -> dict[Cell, Channel]:
    """The channel of every cell among those whose name, or NAME@VERSION, a pattern matches.

    UsageError for a cell without a channel; CannotAnswerError where the channels found differ in anything
    beside the factors, which names every part that does.
    """
    named = [
        channel
        for channel in {c.fingerprint: c for c in reversed(book.channels)}.values()
        if any(fnmatchcase(text, p) for text in (channel.name, channel.reference) for p in patterns)
    ]
    named.sort(key=lambda channel: (channel.name.encode(), channel.version))
    found: dict[Cell, list[Channel]] = {cell: [] for cell in factors.cells}
    for channel in named:
        cell = factors.cell(channel)
        if cell is not None:
            found[cell].append(channel)
    empty = [cell for cell, channels in found.items() if not channels]
    if empty:
        raise _no_channel(empty, named, patterns, factors)
    check([channel for channels in found.values() for channel in channels], factors)
    return {cell: channels[0] for cell, channels in found.items()}


def check(channels: Sequence[Channel], factors: Factors) -> None:
    """Refuse channels that differ in anything but the factors, or of which two belong to one cell."""
    leaves = [channel.leaves for channel in channels]
    paths = sorted({path for found in leaves for path in found} - set(factors.paths))
    parts = [
        f"{path} ({_values(channels, [found.get(path) for found in leaves])})"
        for path in paths
        if len({found.get(path) for found in leaves}) > 1
    ]
    if not parts:
        return
    raise CannotAnswerError(
        "the channels of the cube differ in more than the declared factors, so nothing is computed: "
        + "; ".join(parts[:LISTED])
        + (f"; and {len(parts) - LISTED} more" if len(parts) > LISTED else ""),
        code="channels-differ",
        expected=f"differences in {' and '.join(factors.paths)} only",
        next_step="narrow --channels to the right ones, or see `ledger channel diff A B`",
    )


def _values(channels: Sequence[Channel], values: Sequence[str | None]) -> str:
    """Which channels have which value; the channels of the commonest value are `the others`."""
    by_value: dict[str | None, list[str]] = {}
    for channel, value in zip(channels, values, strict=True):
        by_value.setdefault(value, []).append(channel.reference if channel.version > 1 else channel.name)
    order = sorted(by_value, key=lambda value: (len(by_value[value]), value or ""))
    said = []
    for place, value in enumerate(order):
        common = place == len(order) - 1 and len(by_value[value]) > 1
        who = "the others" if common else " and ".join(by_value[value][:2])
        if not common and len(by_value[value]) > 2:
            who += f" and {len(by_value[value]) - 2} more"
        text = "absent" if value is None else (value if len(value) <= 40 else f"{value[:39]}…")
        said.append(f"{text} in {who}")
    return ", ".join(said)


def _no_channel(
    empty: Sequence[Cell], named: Sequence[Channel], patterns: Sequence[str], factors: Factors
) -> UsageError:
    cells = ", ".join(name_of(cell) for cell in empty[:LISTED])
    seen = {path: sorted({c.leaves[path] for c in named if path in c.leaves}) for path in factors.paths}
    levels = "; ".join(f"{path} {', '.join(values[:LISTED]) or 'absent'}" for path, values in seen.items())
    return UsageError(
        f"no channel for {len(empty)} of {len(factors.cells)} cells: {cells}",
        code="no-channel",
        expected=f"a channel of every pair of levels among those named {', '.join(patterns)}",
        got=f"{len(named)} channels with {levels}",
        next_step="check --channels, --factors and --levels, or register it with `ledger channel add FILE`",
    )


def _level(channel: Channel, path: str, levels: Sequence[str]) -> str | None:
    """The level that a channel's value at a path means: the text itself, or the number as it is written."""
    value = channel.leaves.get(path)
    for level in levels:
        if value in (level, json.dumps(level, ensure_ascii=False)):
            return level
    return None
