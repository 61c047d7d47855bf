"""Appending to the log: the one transaction that makes events part of the ledger, and what follows it.

Objects are durable before it begins. Inside it the old head is checked, events, derived rows and the new
signed head are added, and the commit makes all of them visible at once. Then the tiles and the checkpoint
are published and the pin moves; whatever a crash leaves undone of that, the next writer or `repair` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from contracts.digest import blake3_digest
from contracts.errors import StorageError, UnknownKeyError
from ledger import append, derive, durable, events, heads, lock, pin, publish, seal, tree
from ledger.event_types import Event, KeyEvent
from ledger.heads import CheckedHead
from ledger.home import Home
from ledger.index import Index
from ledger.keys import SigningKey, key_id
from ledger.notes import TreeHead, sign_head
from ledger.object_names import list_name
from ledger.objects import Store
from ledger.pin import Pin
from ledger.server import Server
from ledger.server_errors import LOST, UNDONE
from ledger.trust import HEAD, Trust
from ledger.vkey import VerifierKey

LOCK_FILE = "writer.lock"
UNSURE = "see `ledger log` whether it was recorded, and run the command again if it was not"


@dataclass(frozen=True)
class Transaction:
    """What a builder of events may see: the ledger as it is, with every other writer locked out."""

    home: Home
    index: Index
    size: int
    trust: Trust

    @property
    def objects(self) -> Store:
        """The object store; what the events name must be in it."""
        return self.home.objects


@dataclass(frozen=True)
class Commit:
    """The head after a commit; events `first_index` up to `size` are new, none when the two are equal."""

    size: int
    first_index: int
    root: str
    note: bytes
    warnings: tuple[str, ...] = ()


def commit(
    home: Home,
    key: SigningKey,
    build: Callable[[Transaction], Sequence[Event]],
    *,
    wait: float = lock.WAIT,
    successor: SigningKey | None = None,
) -> Commit:
    """Appends the events that `build` returns after looking at the present state; none is fine.

    Where one of them rotates the key of the heads, `successor` is the new key and signs the new head.

    StorageError `locked` when another writer does not finish within `wait` seconds; UnknownKeyError when
    `key` is not the one that signs this log; TamperError when the log is not what was signed or pinned.
    Nothing is appended in any of these cases. What fails after the commit is a warning: it is recorded.
    A server that went away during the commit is asked again what came of it.
    """
    with writer(home, wait):
        note = b""
        try:
            with append.writing(home.catalog, wait) as appending, Index.open(home) as index:
                checked = heads.check(home, index, key=key.public)
                _refuse_former(checked, key)
                served = publish.check(home.objects, checked)
                publish.check_pending(index, served.size if served else 0)
                made = build(Transaction(home, index, checked.head.size, checked.trust.newest))
                vkey = checked.trust.extended(enumerate(made, checked.head.size)).heads.newest
                rows, leaves = _rows(home.objects, made, checked.leaves)
                warnings = _clock(index, made)
                if made:
                    signer = _signer(vkey, key, successor)
                    note = _signed(home.origin, [*checked.leaves, *leaves], signer, rows)
                    appending.append(derive.joined(rows))
                durable.crash_point("appended")
        except StorageError as error:
            if error.code != LOST or not _landed(home, note, error, wait):
                raise
        durable.crash_point("committed")
        note = note or checked.row.note
        first = checked.head.size
        head = Pin(home.origin, str(vkey), note)
        warnings += finish(home, head)
    return Commit(head.head.size, first, "sha256:" + head.head.root.hex(), note, warnings)


@contextmanager
def begin(home: Home, key: SigningKey) -> Iterator[Pin]:
    """The catalog of a new home with its first event and head: the key that signs it. Gives what to pin.

    A catalog on a server is taken away again when the rest of the home does not come about.
    """
    from ledger import catalog

    vkey = VerifierKey(home.origin, key.public.raw)
    rows, leaves = _rows(home.objects, [KeyEvent(HEAD, str(vkey))], [])
    note = _signed(home.origin, leaves, key, rows)
    catalog.create(home.catalog)
    try:
        with append.writing(home.catalog) as appending:
            appending.append(derive.joined(rows))
        head = Pin(home.origin, str(vkey), note)
        with Index.open(home) as index:
            publish.publish(home.objects, index, head)
        seal.write(home)
        yield head
    except BaseException:
        catalog.discard(home.catalog)
        raise


def writer(home: Home, wait: float = lock.WAIT) -> ExitStack:
    """Keeps out every other writer of this home, of copies that share its pin, and of a server's catalog."""
    with ExitStack() as stack:
        stack.enter_context(lock.hold(home.path / LOCK_FILE, wait))
        shared = pin.config_file(home.origin, ".lock")
        with durable.storage("locking the pin", shared):
            shared.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        stack.enter_context(lock.hold(shared, wait))
        if isinstance(home.catalog, Server):
            from ledger import server_lock

            stack.enter_context(server_lock.hold(home.catalog, wait))
        return stack.pop_all()


def finish(home: Home, head: Pin) -> tuple[str, ...]:
    """Publishes the log up to a committed head and moves the pin; a failing disk becomes a warning."""
    try:
        with Index.open(home) as index:
            publish.publish(home.objects, index, head)
        durable.crash_point("published")
        seal.write(home)
        durable.crash_point("sealed")
        if pin.load(head.origin) != head:
            pin.store(head)
    except StorageError as error:
        return (f"recorded, but not yet published: {error}; `ledger repair` finishes it",)
    durable.crash_point("pinned")
    return ()


def _landed(home: Home, note: bytes, lost: StorageError, wait: float) -> bool:
    """Whether a head was recorded by a transaction whose end was not heard of.

    Entering the next transaction waits for the end of that one, so the answer is final; where nobody
    answers, the error says that it is not known.
    """
    try:
        with append.writing(home.catalog, wait), Index.open(home) as index:
            found = any(index.head(size).note == note for size in index.heads())
    except StorageError:
        lost.next_step = UNSURE
        return False
    if not found:
        lost.next_step = f"run the command again: {UNDONE}"
    return found


def _rows(
    objects: Store, made: Sequence[Event], before: Sequence[bytes]
) -> tuple[derive.Pending, list[bytes]]:
    """The table rows of new events, `event` first, and the leaf hashes among them."""

    def store(data: bytes) -> str:
        digest = blake3_digest(data)
        objects.put(list_name(digest), data)
        return digest

    rows: derive.Pending = {}
    leaves: list[bytes] = []
    for place, event in enumerate((events.fit(event, store) for event in made), len(before)):
        for name in events.object_names(event):
            if not objects.exists(name):
                raise StorageError(
                    "an object of a new event is gone", code="missing-object", where=name,
                    next_step="run the command again",
                )  # fmt: skip
        data = events.encode(event)
        leaves.append(tree.leaf_hash(data))
        derive.add(rows, place, data, leaves[-1], objects)
    return rows, leaves


def _signed(origin: str, leaves: Sequence[bytes], key: SigningKey, rows: derive.Pending) -> bytes:
    """The note of the new head, which joins the rows."""
    head = TreeHead(origin, len(leaves), tree.root(leaves))
    note = sign_head(head, key)
    rows["head"] = [[{"size": head.size, "root": head.root, "note": note}]]
    return note


def _refuse_former(checked: CheckedHead, key: SigningKey) -> None:
    if key.public.raw != checked.vkey.public:
        (since, _), place = checked.trust.heads.periods[-1], checked.row.size
        raise UnknownKeyError(
            "the key no longer signs the heads of this log", where=f"head of size {place}",
            expected=f"the key that replaced it at event {since}", got=key_id(key.public)[:16],
            next_step="name that one with --key or LEDGER_KEY, or finish with: ledger key rotate head",
        )  # fmt: skip


def _signer(vkey: VerifierKey, key: SigningKey, successor: SigningKey | None) -> SigningKey:
    """The one of two keys that signs the new head."""
    for signer in (key, successor):
        if signer is not None and signer.public.raw == vkey.public:
            return signer
    raise AssertionError("whoever rotates the key of the heads brings the new one")


def _clock(index: Index, made: Sequence[Event]) -> tuple[str, ...]:
    """Time is informative: a clock that went backwards is worth a word, not a refusal."""
    last = next(index.events(index.size - 1, index.size)).time
    early = [event.time for event in made if event.time < last]
    return (f"the clock is behind the log: {early[0]} comes after {last}",) if early else ()
