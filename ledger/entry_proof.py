"""The proof of one entry in one file: its page, the page's path in its segment, and the segment's event in
the log under a signed head.

A C2SP tlog-proof of the segment event. What leads from the event to the entry stands in `extra`, as
canonical JSON {v, event, page, path, row} with base64 values; nothing there is believed before the path
and the tlog-proof were followed to the signed root.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contracts.canonical import canonical, parse_canonical
from contracts.errors import MalformedError, VerificationError
from ledger import events, foreign_head, tree
from ledger.entry_id import entry_id
from ledger.event_types import SegmentEvent
from ledger.fields import Fields
from ledger.identify import EntryFound
from ledger.keys import PublicKey
from ledger.notes import TreeHead
from ledger.page_values import page_row
from ledger.pages import PAGE_ROWS, page_bytes, page_count
from ledger.reading import Reading
from ledger.segment_reader import SegmentReader, schema_of
from ledger.tlog_proof import MAX_EXTRA, TlogProof
from ledger.vkey import decode_base64

VERSION = 1


@dataclass(frozen=True)
class ProvedEntry:
    """An entry that a signed log holds: its values with digests as text, and where it stands."""

    id: str
    head: TreeHead
    event: int
    row: int
    segment: SegmentEvent
    payload: bytes
    values: Mapping[str, Any]


def prove(reading: Reading, found: EntryFound) -> bytes:
    """The proof of an entry at the head that is read."""
    segment, page = found.segment, found.row // PAGE_ROWS
    reading.confirm(segment.event)
    start = page * PAGE_ROWS
    with SegmentReader.ranged(reading.objects, segment) as reader:
        table = reader.read(start, min(start + PAGE_ROWS, segment.rows))
        read = tree.leaves_reader(reader.leaves)
        path = tree.inclusion_proof(page, page_count(segment.rows), read)
    extra = canonical(
        {
            "v": VERSION,
            "event": _text(reading.event_row(segment.event).data),
            "page": _text(page_bytes(table, 0, schema_of(segment))),
            "path": [_text(found) for found in path],
            "row": found.row,
        }
    )
    return event_proof(reading, segment.event, extra)


def event_proof(reading: Reading, event: int, extra: bytes | None = None) -> bytes:
    """The tlog-proof of one event at the head that is read."""
    path = tree.inclusion_proof(event, reading.size, tree.leaves_reader(reading.head.leaves))
    return TlogProof(event, tuple(path), reading.head.row.note, extra).to_bytes()


def check(data: bytes, key: PublicKey | None) -> ProvedEntry:
    """The entry that a file proves, after these steps have all passed; needs no ledger.

    1. The file is a tlog-proof whose checkpoint is signed by `key`, else by the pinned key of its log.
    2. The event in `extra` is the leaf that the proof leads from.
    3. It is the event of a segment whose columns this version knows.
    4. The page is a leaf of that segment's entries root.
    5. The page has the row, and nothing beside its rows.
    """
    proof = TlogProof.parse(data)
    head = foreign_head.verify(proof.checkpoint, key)  # 1
    extra = _Extra.parse(proof.extra)
    proof.check(extra.event, head)  # 2
    event = events.decode(extra.event)
    if not isinstance(event, SegmentEvent):  # 3
        raise MalformedError("the proved event is no segment", expected="a segment event", got=event.type)
    if not 0 <= extra.row < event.rows:
        raise MalformedError("the segment has no such row", expected=f"below {event.rows}", got=extra.row)
    page, pages = extra.row // PAGE_ROWS, page_count(event.rows)
    root = bytes.fromhex(event.root.removeprefix("sha256:"))
    try:
        tree.verify_inclusion(tree.leaf_hash(extra.page), page, pages, extra.path, root)  # 4
    except VerificationError as error:
        raise VerificationError(
            "the page is not the one in the segment", code="bad-proof", where=f"page {page}"
        ) from error
    rows = min(PAGE_ROWS, event.rows - page * PAGE_ROWS)
    values = page_row(extra.page, rows, extra.row % PAGE_ROWS, schema_of(event))  # 5
    return ProvedEntry(
        entry_id(event.root, extra.row), head, proof.index, extra.row, event, extra.event, values
    )


@dataclass(frozen=True)
class _Extra:
    """What leads from an event to an entry, as the file claims it."""

    event: bytes
    page: bytes
    path: tuple[bytes, ...]
    row: int

    @classmethod
    def parse(cls, data: bytes | None) -> _Extra:
        if data is None:
            raise MalformedError("a proof of an event only", expected="extra data with a page of entries")
        fields = Fields.of(parse_canonical(data, limit=MAX_EXTRA), "extra")
        if (version := fields.whole("v")) != VERSION:
            raise MalformedError("extra data of another version", expected=VERSION, got=version)
        found = cls(
            decode_base64(fields.text("event")),
            decode_base64(fields.text("page")),
            fields.list("path", _hash),
            fields.whole("row"),
        )
        fields.close()
        return found


def _hash(value: object) -> bytes:
    if not isinstance(value, str):
        raise MalformedError("not a hash", expected="base64")
    return decode_base64(value)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
