"""Finishing what a crash or a full disk left undone; the log itself is never touched.

Everything here follows from the catalog's verified head. A catalog that does not verify is not repaired:
evidence is for `verify` to name, and `rebuild` makes a catalog from the published log.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import MalformedError, StorageError, TamperError, VerificationError
from ledger import catalog, durable, heads, lock, log, pin, publish, seal
from ledger.catalog_file import journal, open_readonly
from ledger.events import digests_in
from ledger.heads import CheckedHead
from ledger.home import Home
from ledger.index import Index
from ledger.keys import PublicKey
from ledger.object_names import digest_in
from ledger.pin import Pin
from ledger.underway import any_underway
from ledger.verify_log import MAX_FILE

GRACE = 3600.0


@dataclass(frozen=True)
class Action:
    """One thing that was done: what kind, to which file."""

    what: str
    name: str


@dataclass(frozen=True)
class Repair:
    """What was done, what was left because a writer may still be at it, and files that are not ours."""

    actions: tuple[Action, ...]
    young: tuple[str, ...]
    strays: tuple[str, ...]


def repair(
    home: Home,
    *,
    key: PublicKey | None = None,
    trust_first: bool = False,
    grace: float = GRACE,
    wait: float = lock.WAIT,
) -> Repair:
    """Brings a home into order, every other writer locked out; a second call finds nothing to do.

    1. An unfinished transaction is rolled back, an older catalog migrated.
    2. The head is checked as `heads.check` does, and every event against the tree; an error ends the
       repair before anything is touched.
    3. Published files that are missing or differ from the catalog are written again.
    4. A pin that is behind moves forward; a missing one is made when `key` or `trust_first` vouch for it.
    5. Staged files and objects that no event names are removed when older than `grace` seconds, unless a
       call is under way: whatever its age, one of them may be its.
    """
    with log.writer(home, wait):
        actions: list[Action] = []
        place = home.catalog
        if isinstance(place, Path) and journal(place).exists():
            actions.append(Action("rolled back an unfinished transaction", home.catalog_name))
        if catalog.migrate(place, wait):
            actions.append(Action("migrated the catalog", home.catalog_name))
            seal.write(home)
        with Index.open(home) as index:
            checked = heads.check(home, index, key=key, trust_first=trust_first)
            events = [json.loads(row.data) for row in heads.events_in_tree(index, 0, index.size)]
            head = Pin(home.origin, str(checked.vkey), checked.row.note)
            actions += _publish(home, index, checked, head)
            actions += _seal(home)
            if checked.pin is None or checked.pin.head != checked.head:
                pin.store(head)
                actions.append(Action("moved the pin to the head", f"size {head.head.size}"))
        young: list[str] = []
        before = -math.inf if any_underway(home.staged()) else time.time() - grace
        actions += _clear(home, set(digests_in(events)), before, young)
        return Repair(tuple(actions), tuple(young), tuple(home.objects.strays()))


def _seal(home: Home) -> Iterator[Action]:
    """A seal that a crash left behind is renewed; one that names other bytes is damage, not a crash."""
    place = home.catalog
    if not isinstance(place, Path):
        return
    with closing(open_readonly(place)) as connection:
        notice = seal.check(connection, home, place)
    if notice is not None or seal.read(home) is None:
        seal.write(home)
        yield Action("sealed the catalog", seal.SEAL)


def _publish(home: Home, index: Index, checked: CheckedHead, head: Pin) -> Iterator[Action]:
    objects = home.objects
    try:
        publish.check(objects, checked)
    except TamperError:
        raise
    except VerificationError as error:
        yield Action(f"published again: it was damaged ({error.what})", publish.CHECKPOINT)
    files, ahead = itertools.tee(publish.files(index, head))
    stored = objects.read_each((name for name, _ in ahead), MAX_FILE)
    for (name, data), read in zip(files, stored, strict=True):
        try:
            if read() == data:
                continue
        except MalformedError:
            pass  # longer than any file of the log: it is written over
        except StorageError as error:
            if error.code != "missing-object":
                objects.remove(name)
        objects.publish(name, data)
        yield Action("published", name)


def _clear(home: Home, named: set[str], before: float, young: list[str]) -> Iterator[Action]:
    objects = home.objects
    for path in home.staged():
        name = f"{path.parent.name}/{path.name}"
        with durable.storage("clearing the staging directory", path):
            if path.lstat().st_mtime > before:
                young.append(name)
                continue
            path.unlink()
        yield Action("removed a staged file", name)
    for name in objects.list():
        digest = digest_in(name)
        if digest is None or digest in named:
            continue
        if objects.modified(name) > before:
            young.append(name)
            continue
        objects.remove(name)
        yield Action("removed an object that no event names", name)
