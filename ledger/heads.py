"""Whether the log in the catalog is the one that was signed and last seen; holding the value means yes.

The key that signs heads is named by the event at index 0 and by those that rotated it since. They are
believed because of something outside the home: the pin, a key the caller brings, or the caller's explicit
wish to trust on first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from contracts.errors import TamperError, UnknownKeyError, VerificationError
from ledger import events, pin, tree
from ledger import trust as trusts
from ledger.event_types import Event, KeyChangeEvent, PolicyEvent
from ledger.head_keys import HeadKeys
from ledger.home import Home
from ledger.index import Index
from ledger.index_rows import EventRow, HeadRow
from ledger.keys import PublicKey, key_id
from ledger.notes import TreeHead
from ledger.pin import Pin
from ledger.trust import TrustHistory
from ledger.vkey import VerifierKey, parse_vkey

ABOUT_TRUST = (KeyChangeEvent.type, PolicyEvent.type)


@dataclass(frozen=True)
class CheckedHead:
    """A verified head, the leaf hashes its root was recomputed from, and the pin it was held against.

    `vkey` signed it. `trust` is the history of keys and policy up to the newest head.
    """

    row: HeadRow
    head: TreeHead
    vkey: VerifierKey
    leaves: Sequence[bytes]
    pin: Pin | None
    trust: TrustHistory


@contextmanager
def opened(home: Home) -> Iterator[Index]:
    """The catalog of a home for a look that verifies no more than this: where this machine has a pin, the
    head is held against it as `check` does, so that a restored backup is not taken for the present.
    """
    with Index.open(home) as index:
        if pin.load(home.origin) is not None:
            check(home, index)
        yield index


def history(index: Index) -> TrustHistory:
    """Keys and policy as the log tells them; says nothing about whether to trust its first key.

    Each event is looked at only after its bytes were found to have its leaf hash. Events that the catalog
    calls by another type are not seen here: what follows from that fails to verify, or is compared again
    by whoever reads every event.
    """

    def told() -> Iterator[tuple[int, Event]]:
        for row in events_in_tree(index, 0, 1):
            yield 0, events.decode(row.data)
        for row in index.events_of(ABOUT_TRUST):
            if row.index == 0:
                continue
            if tree.leaf_hash(row.data) != row.leaf:
                raise _changed(row)
            yield row.index, events.decode(row.data)

    return trusts.history(told())


def check(
    home: Home,
    index: Index,
    *,
    key: PublicKey | None = None,
    trust_first: bool = False,
    at: int | None = None,
) -> CheckedHead:
    """The newest head, or the one of size `at`, after these steps have all passed.

    1. Every change of keys or policy was signed by those who could make it. The pinned key is the one that
       signed heads of the pinned size; without a pin `key` signs or once signed them, or anything does when
       `trust_first`. A `key` that is given must be one of them in any case.
    2. The key of its size signed the newest head, for the origin the home's settings name.
    3. Stored size and root of the head are those in the note.
    4. There are exactly as many events as the head says, and its root follows from their leaf hashes.
    5. The pin, where there is one, is no larger than the head and a prefix of it.
    6. For an older head, steps 2 to 4 again, with its own size.
    """
    told = history(index)
    keys = told.heads
    known = pin.load(home.origin)
    trust(home, keys, known, key, trust_first)
    newest = index.head()
    head = _signed(home, newest, keys)
    leaves = index.leaves(newest.size)
    _same_events(newest, head, leaves, index.event_count())
    if known is not None:
        pin.check(known, head, leaves)
    if at is None or at == newest.size:
        return CheckedHead(newest, head, keys.at(head.size), leaves, known, told)
    older = index.head(at)
    head, leaves = _signed(home, older, keys), leaves[: older.size]
    _same_events(older, head, leaves, older.size)
    return CheckedHead(older, head, keys.at(head.size), leaves, known, told)


def events_in_tree(index: Index, start: int, stop: int) -> Iterator[EventRow]:
    """The events from `start` up to `stop`, each only after its bytes were found to have its leaf hash."""
    for row in index.events(start, stop):
        if tree.leaf_hash(row.data) != row.leaf:
            raise _changed(row)
        yield row


def _changed(row: EventRow) -> TamperError:
    return TamperError("an event is not the one in the tree", kind="catalog", where=f"event {row.index}")


def trust(home: Home, keys: HeadKeys, known: Pin | None, key: PublicKey | None, trust_first: bool) -> None:
    """Returns when the pin, a key or the caller's wish vouches for the keys of a log's heads."""
    vkey = keys.newest if known is None else keys.at(known.head.size)
    if known is not None and known.vkey != str(vkey):
        raise UnknownKeyError(
            "the log names another key for its heads than the pinned one",
            where=pin.config_file(home.origin, ".pin"),
            expected=_short(parse_vkey(known.vkey)), got=_short(vkey),
        )  # fmt: skip
    if key is not None and not keys.named(key.raw):
        raise UnknownKeyError(
            "the key given is not the one that signs the heads of this log", where="--key",
            expected=f"heads signed by {key_id(key)[:16]}", got=f"heads signed by {_short(vkey)}",
            next_step="give the key of this log, or look for the log of that key",
        )  # fmt: skip
    if known is None and key is None and not trust_first:
        raise VerificationError(
            f"nothing on this machine vouches for the log {home.origin}: it has no pin here", code="no-pin",
            where=home.path,
            next_step="give its public key with --key; or, only for a first look, --trust-first",
        )  # fmt: skip


def _signed(home: Home, row: HeadRow, keys: HeadKeys) -> TreeHead:
    where = f"head of size {row.size}"
    try:
        if home.origin != keys.origin:
            raise UnknownKeyError(
                "a trusted key signed the head of another log", expected=home.origin, got=keys.origin
            )
        head = keys.verify(row.note)
    except VerificationError as error:
        error.where = error.where or where
        raise
    if head.size != row.size or "sha256:" + head.root.hex() != row.root:
        raise TamperError("stored head differs from its signed note", kind="catalog", where=where)
    return head


def _same_events(row: HeadRow, head: TreeHead, leaves: Sequence[bytes], stored: int) -> None:
    if stored > head.size:
        raise TamperError(
            "events follow the newest signed head", kind="unsigned-tail", where=f"event {head.size}",
            expected=f"{head.size} events", got=stored,
        )  # fmt: skip
    if stored < head.size or len(leaves) != head.size:
        raise TamperError(
            "events before the newest head are missing", kind="catalog",
            where=f"event {stored}" if stored < head.size else None,
            expected=f"{head.size} events", got=min(stored, len(leaves)),
        )  # fmt: skip
    if tree.root(leaves) != head.root:
        raise TamperError(
            "the events do not lead to the signed root", kind="tree", where=f"head of size {row.size}"
        )


def _short(vkey: VerifierKey) -> str:
    return key_id(PublicKey(vkey.public))[:16]
