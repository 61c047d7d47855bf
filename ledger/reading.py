"""A read-only look at a ledger whose head was checked, for commands that look things up.

What the catalog says about an event is believed only after the event's bytes were found under the signed
root and the same rows were derived from them again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from contracts.errors import TamperError
from ledger import derive, events, heads, tree
from ledger.event_types import Event, SegmentEvent
from ledger.heads import CheckedHead
from ledger.home import Home
from ledger.index import Index
from ledger.index_rows import EventRow, SegmentRow
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
            raise _changed(event)
        return row

    def confirm(self, event: int) -> Event:
        """The event at a leaf index, and that the catalog says of it what it says itself."""
        if event not in self._confirmed:
            decoded = events.decode(self.event_row(event).data)
            for table, rows in derive.rows(event, decoded, self.objects).items():
                if self.index.table_rows(table, event, event + 1) != list(rows):
                    raise _contradicts(table, event)
            self._confirmed[event] = decoded
        return self._confirmed[event]

    def confirm_files(self, segments: Sequence[SegmentRow]) -> None:
        """That the catalog says of these segments what the log does, as far as it leads to their rows.

        What else it says of one, as of its sources, takes `confirm`, which is much slower.
        """
        events_read = {row.index: row for row in self.index.events_of((SegmentEvent.type,))}
        for segment in segments:
            row = events_read.get(segment.event)
            if row is None or tree.leaf_hash(row.data) != self.head.leaves[segment.event]:
                raise _changed(segment.event)
            said = json.loads(row.data)
            if any(said[name] != value for name, value in _leading(segment).items()):
                raise _contradicts("segment", segment.event)

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


def _leading(segment: SegmentRow) -> dict[str, object]:
    """What the event of a segment says of where its rows are and which they may be."""
    return {
        "kind": segment.kind,
        "schema": segment.schema,
        "file": segment.file,
        "rows": segment.rows,
        "rows_file": segment.rows_file,
        "leaves": segment.leaves,
        "root": segment.root,
        "first": list(segment.first),
        "last": list(segment.last),
    }


def _changed(event: int) -> TamperError:
    return TamperError("an event is not what was signed", kind="catalog", where=f"event {event}")


def _contradicts(table: str, event: int) -> TamperError:
    return TamperError(
        "the catalog says something else than the log", kind="catalog", where=f"{table} of event {event}",
        next_step="run `ledger rebuild`",
    )  # fmt: skip


@contextmanager
def reading(
    home: Home, *, at: int | None = None, key: PublicKey | None = None, trust_first: bool = False
) -> Iterator[Reading]:
    """Opens a home for look-ups at its newest head or the one of size `at`; see `heads.check`."""
    with Index.open(home) as index:
        head = heads.check(home, index, key=key, trust_first=trust_first, at=at)
        yield Reading(home, index, home.objects, head)
