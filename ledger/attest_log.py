"""Logging an attestation of its own: signed elsewhere or here, matched with what the ledger has of it."""

from __future__ import annotations

from dataclasses import dataclass

from contracts.digest import sha256_digest
from contracts.errors import ContractError, UsageError
from contracts.findings import shown
from ledger import attestations, lock, log
from ledger.attestations import Received
from ledger.event_types import AttestationEvent
from ledger.home import Home
from ledger.ingest_extras import stored
from ledger.keys import SigningKey
from ledger.log import Commit, Transaction


@dataclass(frozen=True)
class LoggedAttestation:
    """The event of an attestation and its digest; not `new` when it was logged before."""

    statement: str
    event: int
    new: bool
    commit: Commit


def log_attestation(
    home: Home, key: SigningKey, received: Received, *, wait: float = lock.WAIT
) -> LoggedAttestation:
    """Appends an attestation by keys that have its role; `key` signs the head.

    UnknownKeyError or SignatureError for its signatures. Of an acquisition the ledger must have entries from
    an attested file; ContractError where it has not.
    """
    digest = sha256_digest(received.data)
    earlier: list[int] = []

    def build(transaction: Transaction) -> list[AttestationEvent]:
        received.check(transaction.trust)
        for row in transaction.index.attestations():
            if row.statement == digest:
                earlier.append(row.event)
                return []
        if received.said.kind == attestations.ACQUISITION:
            _known(transaction, received)
        return [stored(home, received)]

    commit = log.commit(home, key, build, wait=wait)
    if earlier:
        return LoggedAttestation(digest, earlier[0], False, commit)
    return LoggedAttestation(digest, commit.first_index, True, commit)


def _known(transaction: Transaction, received: Received) -> None:
    said = received.said
    segments = transaction.index.segments(acquisitions=[said.subject])
    if not segments:
        raise UsageError(
            f"the ledger has no acquisition {shown(said.subject)}", code="unknown-acquisition",
            next_step="ingest its files first, or together: ledger ingest FILES --attestation FILE",
        )  # fmt: skip
    sources = {source.digest for segment in segments for source in segment.sources}
    if sources.isdisjoint(said.digests):
        raise ContractError(
            "no entry of the acquisition came from an attested file", code="attestation-mismatch",
            where=f"attestation of {shown(said.subject)}", got=sorted(sources)[0],
        )  # fmt: skip
