"""The log as static files (C2SP tlog-tiles): which files a tree of some size has, and their bytes.

A tile holds up to 256 consecutive hashes of the levels 0, 8, 16, …; an entry bundle holds the entries
under one tile of level 0. The last file of a level may be partial and then says its width in its path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from contracts.errors import MalformedError
from ledger.tree import HASH, Reader

WIDTH = 256
HEIGHT = 8
MAX_ENTRY = 0xFFFF
_PATH = re.compile(
    r"tile/(?:(?P<level>0|[1-9][0-9]?)|entries)/(?P<index>(?:x[0-9]{3}/)*[0-9]{3})(?:\.p/(?P<width>[1-9][0-9]{0,2}))?",
    re.ASCII,
)


@dataclass(frozen=True)
class Tile:
    """One file of `width` items (256 when full): a tile of `level`, or an entry bundle where that is None."""

    level: int | None
    index: int
    width: int = WIDTH

    @property
    def path(self) -> str:
        """The path below the log: `tile/0/x001/067`, `tile/entries/000.p/5`."""
        digits = str(self.index)
        groups = digits.zfill(-(-len(digits) // 3) * 3)
        parts = [groups[i : i + 3] for i in range(0, len(groups), 3)]
        name = "/".join([*(f"x{part}" for part in parts[:-1]), parts[-1]])
        partial = f".p/{self.width}" if self.width < WIDTH else ""
        return f"tile/{'entries' if self.level is None else self.level}/{name}{partial}"

    @property
    def start(self) -> int:
        """The first hash of its level, or the first entry, that the file holds."""
        return self.index * WIDTH

    @property
    def stop(self) -> int:
        """One past its last hash or entry."""
        return self.start + self.width

    @classmethod
    def parse(cls, path: str) -> Tile:
        """The file a path stands for; MalformedError on any other spelling."""
        match = _PATH.fullmatch(path)
        if match:
            level, width = match["level"], match["width"]
            index = int(match["index"].replace("/", "").replace("x", ""))
            tile = cls(None if level is None else int(level), index, int(width or WIDTH))
            if tile.path == path and (tile.level or 0) < 64:
                return tile
        raise MalformedError("not the path of a tile", got=ascii(path[:80]))


def tiles(size: int, since: int = 0) -> Iterator[Tile]:
    """The files of a tree of `size` leaves that one of `since` leaves lacks: bundles first, then levels."""
    for level in (None, *range((max(size.bit_length(), 1) + HEIGHT - 1) // HEIGHT)):
        old, new = (n >> HEIGHT * (level or 0) for n in (since, size))
        if new > old:
            for index in range(old // WIDTH, -(-new // WIDTH)):
                yield Tile(level, index, min(WIDTH, new - index * WIDTH))


def tile_bytes(tile: Tile, read: Reader) -> bytes:
    """The content of a tile of hashes, from the stored hashes of the tree."""
    if tile.level is None:
        raise AssertionError("a bundle holds entries, not hashes")
    level = tile.level * HEIGHT
    return b"".join(read([(level, index) for index in range(tile.start, tile.stop)]))


def bundle_bytes(entries: Sequence[bytes]) -> bytes:
    """The content of an entry bundle: each entry after its length in two bytes, big-endian."""
    for entry in entries:
        if len(entry) > MAX_ENTRY:
            raise MalformedError(
                "entry too long for a bundle", expected=f"at most {MAX_ENTRY} bytes", got=len(entry)
            )
    return b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries)


def parse_tile(data: bytes, tile: Tile) -> tuple[bytes, ...]:
    """The hashes in a tile; MalformedError when it is not exactly as wide as it should be."""
    if len(data) != tile.width * HASH:
        raise MalformedError(
            "tile of the wrong length", expected=tile.width * HASH, got=len(data), where=tile.path
        )
    return tuple(data[i : i + HASH] for i in range(0, len(data), HASH))


def parse_bundle(data: bytes, tile: Tile) -> tuple[bytes, ...]:
    """The entries in a bundle; MalformedError when it is cut or holds more or fewer than it should."""
    entries: list[bytes] = []
    at = 0
    while at < len(data) and len(entries) <= tile.width:
        stop = at + 2 + int.from_bytes(data[at : at + 2], "big")
        if stop > len(data) or at + 2 > len(data):
            raise MalformedError("entry bundle is cut", where=tile.path)
        entries.append(data[at + 2 : stop])
        at = stop
    if len(entries) != tile.width:
        raise MalformedError("entry bundle of the wrong width", expected=tile.width, where=tile.path)
    return tuple(entries)
