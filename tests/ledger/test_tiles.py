"""Tiles: which files a tree has, how they are called, and that their bytes are one to one with it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import MalformedError
from ledger.tiles import Tile, bundle_bytes, parse_bundle, parse_tile, tile_bytes, tiles
from ledger.tree import leaf_hash, leaves_reader, root

ENTRIES = [str(i).encode() * (i % 5) for i in range(70_000)]
LEAVES = [leaf_hash(entry) for entry in ENTRIES[:1000]]
READ = leaves_reader(LEAVES)


def paths(size: int, since: int = 0) -> list[str]:
    return [tile.path for tile in tiles(size, since)]


@pytest.mark.parametrize(
    ("tile", "path"),
    [
        (Tile(0, 0), "tile/0/000"),
        (Tile(0, 1067), "tile/0/x001/067"),
        (Tile(2, 1234067), "tile/2/x001/x234/067"),
        (Tile(None, 7, 112), "tile/entries/007.p/112"),
        (Tile(1, 1000, 1), "tile/1/x001/000.p/1"),
        (Tile(63, 999), "tile/63/999"),
    ],
)
def test_paths(tile: Tile, path: str) -> None:
    assert tile.path == path
    assert Tile.parse(path) == tile


@given(st.none() | st.integers(0, 63), st.integers(0, 2**50), st.integers(1, 256))
def test_a_path_comes_back(level: int | None, index: int, width: int) -> None:
    tile = Tile(level, index, width)
    assert Tile.parse(tile.path) == tile


@pytest.mark.parametrize(
    "path",
    [
        *("", "tile/0/0", "tile/0/0000", "tile/00/000", "tile/64/000", "tile/0/x000/000", "tile/0/000.p/0"),
        *("tile/0/000.p/256", "tile/0/000.p/01", "tile/0/000.p/", "/tile/0/000", "tile/0/001/000"),
        *("tile/data/000", "tile/0/000\n", "tile/0/٠٠٠", "tile/-1/000", "tile/0/../0/000"),
    ],
)
def test_other_spellings_are_refused(path: str) -> None:
    with pytest.raises(MalformedError):
        Tile.parse(path)


def test_the_files_of_trees_at_the_edges() -> None:
    assert paths(0) == []
    assert paths(1) == ["tile/entries/000.p/1", "tile/0/000.p/1"]
    assert paths(255) == ["tile/entries/000.p/255", "tile/0/000.p/255"]
    assert paths(256) == ["tile/entries/000", "tile/0/000", "tile/1/000.p/1"]
    assert paths(257) == [
        "tile/entries/000", "tile/entries/001.p/1", "tile/0/000", "tile/0/001.p/1", "tile/1/000.p/1",
    ]  # fmt: skip
    assert paths(65_536)[-1] == "tile/2/000.p/1"


def test_the_example_of_seventy_thousand() -> None:
    found = list(tiles(70_000))
    level = {n: [tile for tile in found if tile.level == n] for n in (None, 0, 1, 2, 3)}
    assert len(level[0]) == len(level[None]) == 274
    assert [tile.width for tile in level[0][-2:]] == [256, 112]
    assert [tile.width for tile in level[1]] == [256, 17]
    assert [tile.width for tile in level[2]] == [1]
    assert level[3] == []


def test_growing_writes_exactly_the_files_the_smaller_tree_lacks() -> None:
    sizes = [0, 1, 2, 255, 256, 257, 511, 512, 1000, 65_535, 65_536, 65_537, 66_000]
    for old, new in itertools.combinations_with_replacement(sizes, 2):
        assert set(tiles(new, old)) == set(tiles(new)) - set(tiles(old))


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 600, 1000])
def test_contents_read_back_as_the_tree(size: int) -> None:
    hashes: dict[int, list[bytes]] = {}
    entries: list[bytes] = []
    for tile in tiles(size):
        if tile.level is None:
            data = bundle_bytes(ENTRIES[tile.start : tile.stop])
            entries += parse_bundle(data, tile)
        else:
            hashes.setdefault(tile.level, []).extend(parse_tile(tile_bytes(tile, READ), tile))
    assert entries == ENTRIES[:size]
    assert hashes[0] == LEAVES[:size] == [leaf_hash(entry) for entry in entries]
    for i, top in enumerate(hashes.get(1, [])):
        assert top == root(hashes[0][i * 256 : (i + 1) * 256])
    assert len(hashes.get(1, [])) == size // 256


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=256))
def test_a_bundle_comes_back_or_is_refused_when_cut(entries: list[bytes]) -> None:
    tile = Tile(None, 0, len(entries))
    data = bundle_bytes(entries)
    assert parse_bundle(data, tile) == tuple(entries)
    for damaged in (data[:-1], data + b"\x00", data + b"\x00\x00", data[1:]):
        try:
            assert parse_bundle(damaged, tile) != tuple(entries)
        except MalformedError:
            continue


def test_wrong_lengths_are_refused() -> None:
    with pytest.raises(MalformedError, match="tile of the wrong length"):
        parse_tile(b"\x00" * 33, Tile(0, 0, 1))
    for data, message in (
        (b"\x00", "is cut"),
        (b"\x00\x05a", "is cut"),
        (b"", "wrong width"),
        (b"\x00\x00" * 3, "wrong width"),
    ):
        with pytest.raises(MalformedError, match=message):
            parse_bundle(data, Tile(None, 0, 2))
    assert parse_bundle(bundle_bytes([b"x" * 0xFFFF]), Tile(None, 0, 1)) == (b"x" * 0xFFFF,)
    with pytest.raises(MalformedError, match="too long for a bundle"):
        bundle_bytes([b"x" * 0x10000])
