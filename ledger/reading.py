"""A read-only look at a ledger whose head was checked, for commands that look things up.

What the catalog says about an event is believed only after the event's bytes were found under the signed
root and the same rows were derived from them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from contracts.errors import TamperError
from ledger import derive, events, heads, tree
from ledger.event_types import Event
from ledger.heads import CheckedHead
from ledger.home import Home
from ledger.index import Index
from ledger.index_rows import EventRow
from ledger.keys import PublicKey
from ledger.objects import Objects


@dataclass(frozen=True)
class Reading:
    """An open catalog at a checked head; `size` events are in view."""

    home: Home
    index: Index
    objects: Objects
    head: CheckedHead
    _confirmed: dict[int, Event] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        """The size of the head that is looked at."""
        return self.head.row.size

    def event_row(self, event: int) -> EventRow:
        """The stored bytes of an event, which are the leaf the head commits to."""
        row = next(self.index.events(event, event + 1), None)
        if row is None or tree.leaf_hash(row.data) != self.head.leaves[event]:
            raise TamperError("an event is not what was signed", kind="catalog", where=f"event {event}")
        return row

    def confirm(self, event: int) -> Event:
        """The event at a leaf index, and that the catalog says of it what it says itself."""
        if event not in self._confirmed:
            decoded = events.decode(self.event_row(event).data)
            for table, rows in derive.rows(event, decoded, self.objects).items():
                if self.index.table_rows(table, event, event + 1) != list(rows):
                    raise TamperError(
                        "the catalog says something else than the log", kind="catalog",
                        where=f"{table} of event {event}", next_step="run `ledger rebuild`",
                    )  # fmt: skip
            self._confirmed[event] = decoded
        return self._confirmed[event]

    def revocation(self, target: str, *kinds: str) -> dict[str, object] | None:
        """The first revocation of a thing of these kinds; channels go by fingerprint, see `event_types`."""
        for row in self.index.revocations(self.size):
            if row.target_id == target and row.target_kind in kinds:
                self.confirm(row.event)
                return {"event": row.event, "time": row.time, "reason": row.reason}
        return None

    def proof_length(self, event: int) -> int:
        """How many hashes lead from an event to the signed root; the path is checked."""
        path = tree.inclusion_proof(event, self.size, tree.leaves_reader(self.head.leaves))
        tree.verify_inclusion(self.head.leaves[event], event, self.size, path, self.head.head.root)
        return len(path)


@contextmanager
def reading(
    home: Home, *, at: int | None = None, key: PublicKey | None = None, trust_first: bool = False
) -> Iterator[Reading]:
    """Opens a home for look-ups at its newest head or the one of size `at`; see `heads.check`."""
    with Index.open(home) as index:
        head = heads.check(home, index, key=key, trust_first=trust_first, at=at)
        yield Reading(home, index, home.objects, head)
