"""The log as files anybody can serve: tiles and entries, every signed head, and last of all the checkpoint.

They follow the catalog and never lead it. A checkpoint that is there speaks only of files that are there
too, so a reader between two steps sees the log as it was.
"""

from __future__ import annotations

from collections.abc import Iterator

from contracts.errors import StorageError, TamperError, VerificationError
from ledger import durable, tree
from ledger.head_keys import HeadKeys
from ledger.heads import CheckedHead, events_in_tree, history
from ledger.index import Index
from ledger.notes import TreeHead
from ledger.objects import Objects, Store
from ledger.pin import Pin
from ledger.tiles import HEIGHT, WIDTH, Tile, bundle_bytes, tile_bytes, tiles

CHECKPOINT = "log/checkpoint"
REPAIR = "run `ledger repair` to publish the log again from the catalog"


def head_name(size: int) -> str:
    """The file with the signed head of that size."""
    return f"log/heads/{size}"


def published(objects: Objects, keys: HeadKeys) -> TreeHead | None:
    """The verified head in the checkpoint, None where nothing was published yet."""
    try:
        return keys.verify(objects.read(CHECKPOINT, limit=1 << 18))
    except StorageError as error:
        if error.code == "missing-object":
            return None
        raise
    except VerificationError as error:
        error.where = error.where or CHECKPOINT
        error.next_step = error.next_step or REPAIR
        raise


def check(objects: Objects, checked: CheckedHead) -> TreeHead | None:
    """The published head, which must be a prefix of the checked one."""
    found = published(objects, checked.trust.heads)
    if found is None:
        return None
    if found.size > checked.head.size:
        raise TamperError(
            "the catalog is behind the published log", kind="rolled-back-head", where=CHECKPOINT,
            expected=f"at least {found.size} events", got=checked.head.size,
            next_step="restore the newest copy of the catalog, or run `ledger rebuild`",
        )  # fmt: skip
    if tree.root(checked.leaves[: found.size]) != found.root:
        raise TamperError("the published log is another log", kind="tree", where=CHECKPOINT)
    return found


def check_pending(index: Index, published_size: int) -> None:
    """Holds to the tree the events that the next publication writes, which begins with a whole bundle."""
    for _ in events_in_tree(index, published_size // WIDTH * WIDTH, index.size):
        continue


def publish(objects: Store, index: Index, head: Pin) -> None:
    """Brings the published files up to a committed head; only what the checkpoint lacks is written."""
    old = published(objects, history(index).heads)
    since = old.size if old else 0
    if old is None or since < head.head.size:
        for name, data in files(index, head, since):
            objects.publish(name, data)
        for name in superseded(objects, since, head.head.size):
            objects.remove(name)


def files(index: Index, head: Pin, since: int = 0) -> Iterator[tuple[str, bytes]]:
    """The files and bytes that a head adds to what one of size `since` published, in the order to write."""
    size = head.head.size
    read = tree.leaves_reader(index.leaves(size))
    for tile in tiles(size, since):
        if tile.level is None:
            data = bundle_bytes([event.data for event in events_in_tree(index, tile.start, tile.stop)])
        else:
            data = tile_bytes(tile, read)
        yield f"log/{tile.path}", data
    for signed in index.heads(since):
        yield head_name(signed), index.head(signed).note
    durable.crash_point("tiles-published")
    yield CHECKPOINT, head.note


def superseded(objects: Store, since: int, size: int) -> Iterator[str]:
    """Partial files that neither the head of `size` nor a reader who still holds that of `since` needs.

    Where a tile has become full, such a reader falls back to it (C2SP tlog-tiles), so none are kept.
    """
    for level in (None, *range(0, 64 // HEIGHT)):
        old, new = (n >> HEIGHT * (level or 0) for n in (since, size))
        if new == 0:
            return
        index = old // WIDTH
        widths = (old % WIDTH, new - index * WIDTH)
        kept = {Tile(level, index, width).path for width in widths if width} if widths[1] < WIDTH else ()
        folder = f"log/{Tile(level, index, 1).path.rpartition('/')[0]}"
        yield from (name for name in list(objects.list(folder)) if name.removeprefix("log/") not in kept)
