"""Verifying a bundle on a machine without the ledger: from a public key to the numbers of an audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.canonical import canonical
from contracts.digest import sha256_digest
from contracts.errors import MalformedError, TamperError
from ledger import bundle, envelope, events, foreign_head, pin, publish, statement, tree, trust
from ledger.audit_scope import head_size
from ledger.bundle import Bundled, Manifest
from ledger.bundle_write import Recompute
from ledger.event_types import AuditEvent, RevocationEvent
from ledger.heads import CheckedHead
from ledger.index_rows import HeadRow
from ledger.keys import PublicKey
from ledger.notes import MAX_NOTE, TreeHead
from ledger.object_names import digest_in, record_name, segment_name
from ledger.objects import stream_digest
from ledger.pages import PAGE_ROWS, entries_root, page_leaves
from ledger.rebuild import MAX_BUNDLE
from ledger.segment_reader import SegmentReader
from ledger.snapshot import Snapshot, view
from ledger.statement import Statement
from ledger.tiles import parse_bundle, tiles
from ledger.tlog_proof import MAX_PROOF, TlogProof
from ledger.trust import TrustHistory
from ledger.verify_records import checked_payload

MAX_EVENTS = 10_000_000
Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class Checked:
    """What a bundle was found to say; holding the value means that every step of `verify` has passed.

    `recomputed` is false where this version does not know the kind of audit. `revoked_since` are the
    revocations logged after the audit, `unread` members that nothing needed.
    """

    head: TreeHead
    record: str
    event: int
    at: int
    statement: Statement
    recomputed: bool
    entries: int
    segments: int
    proofs: int
    revoked_since: tuple[RevocationEvent, ...]
    unread: tuple[str, ...]

    @property
    def result(self) -> Mapping[str, Any]:
        """The audit's result."""
        found = self.statement.predicate["result"]
        assert isinstance(found, dict), "a checked record has a result"
        return found


def verify(
    path: Path,
    key: PublicKey | None,
    recompute: Recompute,
    *,
    trust_first: bool = False,
    progress: Progress | None = None,
) -> Checked:
    """Check a bundle with nothing but a public key (else the pin of its log on this machine).

    1. The file is a zip of stored members with known names, each there once; the manifest is read.
    2. The events are as many as the checkpoint says and lead to its root: none was changed, added or left
       out. Every change of keys among them was signed by those who could make it.
    3. The trusted key is one of those that sign the heads.
    4. The checkpoint is signed by the key of its size. Where this machine has a pin of the log that is not
       newer, the pin is a prefix: two logs under one name are told apart.
    5. Each proof leads from its event to the same root.
    6. The record has the digest that its event says, is signed by a key that could sign audits then, and
       holds the result and design of the event.
    7. The head the audit was made at is a prefix of the log, and no newer than the record's event.
    8. Every object has the digest in its name, and every segment's pages lead to its entries root.
    9. The result, computed again from the stored entries, has the same bytes. Nothing that an event names
       is missing on the way, and nothing else is read.
    """
    told = progress or _silent
    with bundle.opened(path) as objects:
        manifest = Manifest.parse(objects.bytes_of(bundle.MANIFEST, 64 * 1024))  # 1
        checkpoint = objects.read(publish.CHECKPOINT, limit=MAX_NOTE)
        claimed = foreign_head.claimed(checkpoint)
        logged = _events(objects, claimed.size)
        leaves = [tree.leaf_hash(data) for data in logged]
        if tree.root(leaves) != claimed.root:  # 2
            raise TamperError("the events do not lead to the root", kind="tree", where=path)
        history = trust.history((index, events.decode(data)) for index, data in enumerate(logged))
        foreign_head.vouch(history.heads, key, trust_first=trust_first)  # 3
        head = history.heads.verify(checkpoint)  # 4
        known = pin.load(head.origin)
        if known is not None and known.head.size <= head.size:
            pin.check(known, head, leaves)
        proofs = _proofs(objects, logged, head, checkpoint)  # 5
        told("events", head.size, head.size)
        log = _Log(head, history, leaves, logged, checkpoint)
        record, at = _record(objects, manifest, log)  # 6, 7
        snapshot = _snapshot(objects, log, at)
        needed = set(objects.opened)
        _check_digests(objects)  # 8
        read = [row for row in snapshot.segments if objects.exists(segment_name(row.file))]
        for done, row in enumerate(read, 1):
            _check_pages(objects, row)
            told("segments", done, len(read))
        objects.opened.clear()
        recomputed = _recomputed(snapshot, record, recompute)  # 9
        later = [event for data in logged[at:] if isinstance(event := events.decode(data), RevocationEvent)]
        return Checked(
            head=head,
            record=manifest.record,
            event=manifest.event,
            at=at,
            statement=record,
            recomputed=recomputed,
            entries=sum(row.rows for row in read),
            segments=len(read),
            proofs=proofs,
            revoked_since=tuple(later),
            unread=tuple(name for name in objects.unread() if name not in needed),
        )


@dataclass(frozen=True)
class _Log:
    """A log whose head was verified."""

    head: TreeHead
    trust: TrustHistory
    leaves: Sequence[bytes]
    logged: Sequence[bytes]
    checkpoint: bytes


def _silent(phase: str, done: int, total: int | None) -> None:
    """Progress that nobody watches."""


def _events(objects: Bundled, size: int) -> list[bytes]:
    """The bytes of all events of a log of that size."""
    if not 1 <= size <= MAX_EVENTS:
        raise MalformedError("a log of that size is in no bundle", expected=f"1 to {MAX_EVENTS}", got=size)
    found: list[bytes] = []
    for tile in tiles(size):
        if tile.level is None:
            found += parse_bundle(objects.read(f"log/{tile.path}", limit=MAX_BUNDLE), tile)
    return found


def _proofs(objects: Bundled, logged: Sequence[bytes], head: TreeHead, checkpoint: bytes) -> int:
    count = 0
    for name in sorted(objects.names):
        if (match := bundle.PROOF.fullmatch(name)) is None:
            continue
        proof = TlogProof.parse(objects.bytes_of(name, MAX_PROOF))
        if proof.index != int(match[1]) or proof.index >= head.size or proof.checkpoint != checkpoint:
            raise MalformedError("a proof of another event or head than the bundle's", where=name)
        proof.check(logged[proof.index], head)
        count += 1
    return count


def _record(objects: Bundled, manifest: Manifest, log: _Log) -> tuple[Statement, int]:
    """The checked statement of the audit and the size of the head it was made at."""
    if manifest.event >= log.head.size or manifest.size != log.head.size:
        raise MalformedError("the manifest does not fit the log", where=bundle.MANIFEST)
    audit = events.decode(log.logged[manifest.event])
    if not isinstance(audit, AuditEvent) or audit.record != manifest.record:
        raise MalformedError("the manifest's event is not that of its record", where=bundle.MANIFEST)
    name = record_name(audit.record)
    data = objects.read(name, limit=envelope.MAX_ENVELOPE)
    if sha256_digest(data) != audit.record:
        raise TamperError("the record is not the one that was logged", kind="record", where=name)
    stated = statement.parse(checked_payload(data, audit, log.trust.before(manifest.event).auditors))
    at = head_size(stated)
    root = stated.subjects[0].digest.get("sha256")
    if not 1 <= at <= manifest.event or tree.root(log.leaves[:at]).hex() != root:
        raise TamperError("the audit was made at a head this log never had", kind="record", where=name)
    return stated, at


def _snapshot(objects: Bundled, log: _Log, at: int) -> Snapshot:
    """The ledger as the audit saw it."""
    head = TreeHead(log.head.origin, at, tree.root(log.leaves[:at]))
    note = log.checkpoint if at == log.head.size else objects.read(publish.head_name(at), limit=MAX_NOTE)
    if log.trust.heads.verify(note) != head:
        raise TamperError(
            "the head the audit was made at is another", kind="tree", where=f"head of size {at}"
        )
    row = HeadRow(at, "sha256:" + head.root.hex(), note)
    checked = CheckedHead(row, head, log.trust.heads.at(at), log.leaves[:at], None, log.trust)
    return view(checked, enumerate(log.logged[:at]), objects, has_newer_head=at < log.head.size)


def _recomputed(snapshot: Snapshot, stated: Statement, recompute: Recompute) -> bool:
    result = recompute(snapshot, stated)
    if result is not None and result != canonical(stated.predicate.get("result")):
        raise TamperError("computing the audit again gives another result", kind="record")
    return result is not None


def _check_digests(objects: Bundled) -> None:
    for member in sorted(objects.names):
        name = member.removeprefix(bundle.OBJECTS)
        wanted = digest_in(name)
        if wanted is None:
            continue
        with objects.open(name) as file:
            found = stream_digest(file, wanted.partition(":")[0])
        if found != wanted:
            raise TamperError(
                "an object changed since it was written",
                kind="data",
                expected=wanted,
                got=found,
                where=member,
            )


def _check_pages(objects: Bundled, row: Any) -> None:
    """Every page of a segment leads to its entries root; the file's own digest was checked by reading it."""
    leaves: list[bytes] = []
    with SegmentReader.whole(objects, row) as reader:
        for start in range(0, row.rows, PAGE_ROWS * 512):
            part = reader.read(start, min(start + PAGE_ROWS * 512, row.rows))
            leaves += page_leaves(part, reader.schema)
    if entries_root(leaves) != row.root:
        raise TamperError("the pages do not lead to the entries root", kind="data", where=reader.name)
