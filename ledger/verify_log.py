"""Whether the published log is the one in the catalog: checkpoint, signed heads, tiles, entry bundles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from contracts.errors import LedgerError, MalformedError, StorageError
from ledger.head_keys import HeadKeys
from ledger.index import Index
from ledger.notes import TreeHead
from ledger.objects import Objects, Store
from ledger.problems import Problems
from ledger.publish import CHECKPOINT, REPAIR, head_name, published
from ledger.tiles import HEIGHT, Tile, parse_bundle, parse_tile, tile_bytes, tiles
from ledger.tree import leaf_hash, leaves_reader, prefix_roots

OBJECTS = "objects"
MAX_NOTE = 1 << 18
MAX_FILE = 1 << 25  # twice a bundle of 256 entries of 64 KiB


@dataclass(frozen=True)
class Log:
    """The log as the catalog has it: the keys of its heads, the first `len(leaves)` leaf hashes."""

    keys: HeadKeys
    leaves: Sequence[bytes]

    @property
    def size(self) -> int:
        return len(self.leaves)


def check_heads(found: Problems, index: Index, log: Log) -> dict[int, bytes]:
    """Every signed head in the catalog: signature, size and root. Returns the notes by size."""
    sizes = [size for size in index.heads() if size <= log.size]
    notes: dict[int, bytes] = {}
    for size, root in zip(sizes, prefix_roots(log.leaves, sizes), strict=True):
        entry = f"head of size {size}"
        with found.guard("signature", found.catalog, entry):
            row = index.head(size)
            notes[size] = row.note
            head = log.keys.verify(row.note)
            if head.size != size or row.root != "sha256:" + head.root.hex():
                found.add("catalog", found.catalog, "stored head differs from its signed note", entry)
            if head.root != root:
                found.add("tree", found.catalog, "the events do not lead to the signed root", entry)
    return notes


def check_published(
    found: Problems, objects: Store, log: Log, notes: dict[int, bytes], progress: Callable[[int], None]
) -> None:
    """The files under `log/` against the catalog; what a crash left unpublished is a notice."""
    head = _checkpoint(found, objects, log)
    if head is not None and prefix_roots(log.leaves, [head.size]) != [head.root]:
        _blame(found, objects, log, head)
        return  # every file would differ from the catalog: the one difference is told
    size = head.size if head is not None else 0
    signed_heads = objects.read_each(map(head_name, notes), MAX_FILE)
    for (signed, note), read in zip(notes.items(), signed_heads, strict=True):
        _check(found, head_name(signed), read, note.__eq__, "signature", required=signed <= size)
    for name in sorted(set(objects.list("log/heads")) - {head_name(signed) for signed in notes}):
        _other_head(found, objects, name, log)
    named = {f"log/{tile.path}": tile for tile in [*tiles(size), *tiles(log.size, size)]}
    for (name, tile), read in zip(named.items(), objects.read_each(named, MAX_FILE), strict=True):
        _check(found, name, read, _right(tile, log), "tree", required=_within(tile, size))
        progress(tile.stop if tile.level is None else log.size)
    _other_tiles(found, objects, log, named)
    if head is not None and size < log.size:
        found.notices.append(f"{log.size - size} signed events are not published yet; {REPAIR}")


def _right(tile: Tile, log: Log) -> Callable[[bytes], bool]:
    """Whether the bytes of a published file are those of the tree; entries by their leaves."""

    def right(data: bytes) -> bool:
        if tile.level is not None:
            return data == tile_bytes(tile, leaves_reader(log.leaves))
        try:
            entries = parse_bundle(data, tile)
        except MalformedError:
            return False
        return [leaf_hash(entry) for entry in entries] == list(log.leaves[tile.start : tile.stop])

    return right


def _within(tile: Tile, size: int) -> bool:
    """Whether all that a file holds belongs to the tree of `size` leaves."""
    return tile.stop <= size >> HEIGHT * (tile.level or 0)


def _checkpoint(found: Problems, objects: Objects, log: Log) -> TreeHead | None:
    """The published head where it is signed and no larger than the catalog's log."""
    where = f"{OBJECTS}/{CHECKPOINT}"
    with found.guard("signature", where):
        head = published(objects, log.keys)
        if head is None:
            found.add("data", where, f"the checkpoint is missing; {REPAIR}")
        elif head.size > log.size:
            found.add(
                "rolled-back-head", where,
                f"the catalog holds {log.size} events and the published log {head.size}; "
                "restore the newest copy of the catalog, or run `ledger rebuild`",
            )  # fmt: skip
        else:
            return head
    return None


def _blame(found: Problems, objects: Objects, log: Log, head: TreeHead) -> None:
    """The published head does not fit the catalog: if it fits the tiles, the catalog was changed."""
    where = f"{OBJECTS}/{CHECKPOINT}"
    leaves: list[bytes] = []
    try:
        for tile in tiles(head.size):
            if tile.level == 0:
                leaves.extend(parse_tile(objects.read(f"log/{tile.path}", limit=MAX_FILE), tile))
    except LedgerError:
        leaves = []  # the tiles are no witness either
    if prefix_roots(leaves, [head.size]) != [head.root]:
        found.add("tree", where, "the published head is of another log", f"head of size {head.size}")
        return
    pairs = enumerate(zip(leaves, log.leaves, strict=False))
    changed = next(i for i, (published_leaf, stored) in pairs if published_leaf != stored)
    found.add(
        "catalog", found.catalog, "the event is not the one that was signed and published", f"event {changed}"
    )


def _other_head(found: Problems, objects: Objects, name: str, log: Log) -> None:
    """A published head the catalog does not know: it was forgotten there, or belongs to another history."""
    where = f"{OBJECTS}/{name}"
    with found.guard("signature", where):
        head = log.keys.verify(objects.read(name, limit=MAX_NOTE))
        if head.size > log.size:
            message = f"a head of {head.size} events was signed and the catalog holds {log.size}"
            found.add("rolled-back-head", where, message)
        elif prefix_roots(log.leaves, [head.size]) != [head.root]:
            found.add("tree", where, "a head of another history was signed")
        else:
            found.add("catalog", found.catalog, "a signed head is missing", f"head of size {head.size}")


def _check(
    found: Problems,
    name: str,
    read: Callable[[], bytes],
    right: Callable[[bytes], bool],
    kind: str,
    *,
    required: bool,
) -> None:
    """One published file; its absence is a problem only where it is required."""
    where = f"{OBJECTS}/{name}"
    with found.guard("data", where):
        try:
            data = read()
        except StorageError as error:
            if error.code != "missing-object":
                raise
            if required:
                found.add("data", where, f"the file is missing; {REPAIR}")
        else:
            if not right(data):
                found.add(kind, where, f"the file is not what the signed log holds; {REPAIR}")


def _other_tiles(found: Problems, objects: Store, log: Log, names: Collection[str]) -> None:
    """Files of the tree beyond those of the newest head: partial ones of older heads must hold true too."""
    for name in objects.list("log/tile"):
        if name in names:
            continue
        try:
            tile = Tile.parse(name.removeprefix("log/"))
        except MalformedError:
            tile = None
        if tile is None or not _within(tile, log.size):
            found.notices.append(f"{OBJECTS}/{name} is not a file of this log")
        else:
            read = partial(objects.read, name, limit=MAX_FILE)
            _check(found, name, read, _right(tile, log), "tree", required=False)
