"""A new catalog from the published log and the objects: the catalog is an index, not the evidence."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import LedgerError, StorageError, TamperError, VerificationError
from ledger import append, catalog, derive, durable, events, heads, lock, log, pin, publish, tree
from ledger import trust as trusts
from ledger.catalog_file import absent, journal
from ledger.connection import Place
from ledger.engines import Progress, silent
from ledger.head_keys import HeadKeys
from ledger.home import Home
from ledger.index import Index
from ledger.keys import PublicKey
from ledger.notes import TreeHead
from ledger.objects import Objects, Store
from ledger.tiles import parse_bundle, tiles

BATCH = 1000
MAX_BUNDLE = 256 * (2 + 0xFFFF)
HEADS = "log/heads"


@dataclass(frozen=True)
class Rebuilt:
    """The head of the new catalog, how many heads it has, where the old catalog stands, what was left out.

    The old one is a file beside the new, or another schema of the same database.
    """

    size: int
    root: str
    heads: int
    kept: Place | None
    left_out: tuple[str, ...]


def rebuild(
    home: Home,
    *,
    key: PublicKey | None = None,
    trust_first: bool = False,
    wait: float = lock.WAIT,
    progress: Progress = silent,
) -> Rebuilt:
    """Makes the catalog again, every other writer locked out, and keeps the old one beside it.

    1. The checkpoint is signed by the key of its size, which the pin, `key` or `trust_first` vouch for.
    2. The entries lead to its root; the pin is a prefix of it.
    3. A catalog that still verifies is not further than the checkpoint: else `repair` has to publish first.
    4. Older signed heads that are prefixes are taken over; others are named and left out.
    5. Rows are derived from events and objects as a writer derives them, into a new file or schema, which is
       then renamed.
    """
    with log.writer(home, wait):
        if isinstance(home.catalog, Path) and home.catalog.is_dir():
            raise absent(home.catalog)
        objects = home.objects
        entries = _entries(objects)
        keys = _keys(entries)
        heads.trust(home, keys, pin.load(home.origin), key, trust_first)
        head = publish.published(objects, keys)
        leaves = [tree.leaf_hash(entry) for entry in entries]
        if head is None or tree.root(leaves) != head.root:
            raise TamperError(
                "published entries do not lead to the signed root", kind="tree", where="log/tile"
            )
        known = pin.load(home.origin)
        if known is not None:
            pin.check(known, head, leaves)
        _refuse_newer(home, head, key, trust_first)
        signed, left_out = _heads(objects, keys, leaves)
        with _beside(home) as new:
            _fill(new, objects, entries, leaves, signed, progress)
            durable.crash_point("catalog-rebuilt")
            kept = _exchange(home.catalog, new)
        log.finish(home, pin.Pin(home.origin, str(keys.at(head.size)), objects.read(publish.CHECKPOINT)))
        return Rebuilt(head.size, "sha256:" + head.root.hex(), len(signed), kept, left_out)


def _entries(objects: Objects) -> list[bytes]:
    """The events in the bundles, up to the size the checkpoint claims; nothing of it is trusted yet."""
    if not objects.exists(publish.CHECKPOINT):
        raise StorageError(
            "nothing was published, so there is nothing to rebuild from", code="missing-file",
            where=objects.where(publish.CHECKPOINT),
        )  # fmt: skip
    text = objects.read(publish.CHECKPOINT, limit=1 << 18).decode("utf-8", "replace").partition("\n\n")[0]
    size = TreeHead.parse(text + "\n").size
    found: list[bytes] = []
    for tile in tiles(size):
        if tile.level is None:
            name = f"log/{tile.path}"
            if not objects.exists(name):
                raise TamperError("a published bundle is missing", kind="tree", where=name)
            found.extend(parse_bundle(objects.read(name, limit=MAX_BUNDLE), tile))
    return found


def _keys(entries: Sequence[bytes]) -> HeadKeys:
    """The keys of the heads, as the entries tell them."""
    decoded = ((index, events.decode(entry)) for index, entry in enumerate(entries))
    return trusts.history((index, event) for index, event in decoded if event.type in heads.ABOUT_TRUST).heads


def _refuse_newer(home: Home, head: TreeHead, key: PublicKey | None, trust_first: bool) -> None:
    try:
        with Index.open(home) as index:
            checked = heads.check(home, index, key=key, trust_first=trust_first)
    except LedgerError:
        return  # a catalog that cannot be read or does not verify is what a rebuild is for
    if checked.head.size > head.size:
        raise StorageError(
            "the catalog is sound and further than the published log", code="unpublished",
            where=home.catalog, expected=f"size {head.size}", got=f"size {checked.head.size}",
            next_step="run `ledger repair` first: a rebuild would lose the newest events",
        )  # fmt: skip


def _heads(
    objects: Store, keys: HeadKeys, leaves: Sequence[bytes]
) -> tuple[dict[int, tuple[TreeHead, bytes]], tuple[str, ...]]:
    """Every signed head that is a prefix of the log, the checkpoint among them; the names of the others."""
    found: dict[int, tuple[TreeHead, bytes]] = {}
    left_out = []
    names = [publish.CHECKPOINT, *objects.list(HEADS)]
    for name, read in zip(names, objects.read_each(names, 1 << 18), strict=True):
        try:
            note = read()
            head = keys.verify(note)
        except VerificationError:
            left_out.append(name)
        else:
            found.setdefault(head.size, (head, note))
    roots = prefix_roots(leaves, found)
    for size, (head, _) in list(found.items()):
        if roots.get(size) != head.root:
            left_out.append(publish.head_name(size))
            del found[size]
    return dict(sorted(found.items())), tuple(left_out)


def prefix_roots(leaves: Sequence[bytes], sizes: Collection[int]) -> dict[int, bytes]:
    """The roots of the first n leaves for many n, in one pass over the leaves."""
    roots: dict[int, bytes] = {}
    full: list[tuple[int, bytes]] = []  # the full subtrees so far, as (level, root), largest first
    for size, leaf in enumerate(leaves, 1):
        level, top = 0, leaf
        while full and full[-1][0] == level:
            top = tree.node_hash(full.pop()[1], top)
            level += 1
        full.append((level, top))
        if size in sizes:
            root = full[-1][1]
            for _, left in reversed(full[:-1]):
                root = tree.node_hash(left, root)
            roots[size] = root
    return roots


@contextmanager
def _beside(home: Home) -> Iterator[Place]:
    """Where a new catalog is made before it takes the old one's place; nothing stays there afterwards."""
    place = home.catalog
    if isinstance(place, Path):
        new = home.stage_at.fresh(".catalog")
        try:
            yield new
        finally:
            for path in (new, journal(new)):
                path.unlink(missing_ok=True)
    else:
        from ledger import server_schema

        fresh = place.beside("_new")
        server_schema.drop(fresh)  # what a rebuild that was cut off left
        try:
            yield fresh
        except BaseException:
            catalog.discard(fresh)
            raise


def _exchange(old: Place, new: Place) -> Place | None:
    """Puts the new catalog in the old one's place and keeps that under another name."""
    if isinstance(old, Path) and isinstance(new, Path):
        return _swap(old, new)
    from ledger import server_schema

    assert not isinstance(old, Path), "a new catalog stands beside the old one"
    assert not isinstance(new, Path), "a new catalog stands beside the old one"
    return server_schema.swap(old, new)


def _fill(
    place: Place, objects: Objects, entries: Sequence[bytes], leaves: Sequence[bytes],
    signed: dict[int, tuple[TreeHead, bytes]], progress: Progress,
) -> None:  # fmt: skip
    catalog.create(place)
    with append.writing(place) as appending:
        for batch, rows in enumerate(_rows(objects, entries, leaves)):
            progress("events", batch * BATCH, len(entries))
            appending.append(rows)
        head_rows: list[derive.Row] = [
            {"size": size, "root": head.root, "note": note} for size, (head, note) in signed.items()
        ]
        appending.append({"head": head_rows})


def _rows(objects: Objects, entries: Sequence[bytes], leaves: Sequence[bytes]) -> Iterator[derive.Rows]:
    """The rows of all events, in batches."""
    for low in range(0, len(entries), BATCH):
        rows: derive.Pending = {}
        for place in range(low, min(low + BATCH, len(entries))):
            derive.add(rows, place, entries[place], leaves[place], objects)
        yield derive.joined(rows)


def _swap(old: Path, new: Path) -> Path | None:
    """The same for files.

    The old journal goes first: beside the new file SQLite would play it back into the wrong database.
    """
    with durable.storage("replacing the catalog", old):
        kept = _free_name(old) if old.exists() else None
        if kept is not None:
            if journal(old).exists():
                durable.replace(journal(old), journal(kept))
            os.link(old, kept)
            durable.sync(old.parent)
        else:
            journal(old).unlink(missing_ok=True)
        durable.crash_point("catalog-kept")
        durable.replace(new, old)
    return kept


def _free_name(path: Path) -> Path:
    number = 1
    while (kept := path.with_name(f"{path.name}.old-{number}")).exists():
        number += 1
    return kept
