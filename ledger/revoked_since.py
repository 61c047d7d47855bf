"""What an audit rested on that was revoked after it: it still comes out the same at its head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.attestations import MODEL
from ledger.design_scope import asks, chosen
from ledger.event_types import ACQUISITION, ATTESTATION, CHANNEL
from ledger.index import Index
from ledger.index_rows import RevocationRow
from ledger.scope import Level
from ledger.statement import Statement

REPRODUCES = "reproduces at its head; inputs revoked since"


def revoked_since(stated: Statement, index: Index, size: int) -> tuple[RevocationRow, ...]:
    """The revocations among `size` events, behind an audit's head, that would change what it may read.

    Of a checkpoint's attestation it is not asked whether the audit's channels name that very checkpoint.
    """
    revocations = index.revocations(size)
    size_text = stated.subjects[0].name.rpartition("@")[2]
    at = int(size_text) if size_text.isascii() and size_text.isdigit() else 0
    later = [row for row in revocations if row.event >= at]
    if not later:
        return ()
    digests = {digest for subject in stated.subjects[1:] for digest in subject.digest.values()}
    read = [s for s in index.segments(size) if s.file.removeprefix("blake3:") in digests]
    result: Mapping[str, Any] = stated.predicate.get("result") or {}  # type: ignore[assignment]
    design: Mapping[str, Any] = result.get("design") or {}
    used = {
        (part.channel, part.acquisition)
        for segment in read
        for part in segment.scope
        if asks(design, part.channel) and chosen(design, part.channel, part.acquisition)
    }
    ids, fingerprints = {acquisition for _, acquisition in used}, {channel for channel, _ in used}
    vouched = {row.statement: row for row in index.attestations(size)}

    def vouches(statement: str) -> bool:
        row = vouched.get(statement)
        return row is not None and (row.kind == MODEL or row.subject in ids)

    leveled = (result.get("provenance") or {}).get("level") == Level.ATTESTED
    return tuple(
        row
        for row in later
        if (row.target_kind == ACQUISITION and row.target_id in ids)
        or (row.target_kind == CHANNEL and row.target_id in fingerprints)
        or (row.target_kind == ATTESTATION and leveled and vouches(row.target_id))
    )


def told(row: RevocationRow) -> str:
    """A revocation in a few words."""
    return f"{row.target_kind} {row.target_id} (event {row.event}: {row.reason})"
