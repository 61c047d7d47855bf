"""Logging an attestation of its own: signed elsewhere or here, matched with what the ledger has of it."""

from __future__ import annotations

from dataclasses import dataclass

from contracts.digest import sha256_digest
from contracts.errors import ContractError, UsageError
from contracts.findings import shown
from ledger import attestations, lock, log
from ledger.attestations import Attestation, Received
from ledger.event_types import ATTESTATION, AttestationEvent
from ledger.home import Home
from ledger.index_rows import AttestationRow
from ledger.ingest_extras import stored
from ledger.keys import PublicKey, SigningKey, key_id
from ledger.log import Commit, Transaction
from ledger.object_names import attestation_name
from ledger.reading import Reading
from ledger.revocations import target


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

    UsageError where no key has the role, UnknownKeyError or SignatureError for its signatures. Of an
    acquisition the ledger must have entries from an attested file; ContractError where it has not.
    """
    digest = sha256_digest(received.data)
    earlier: list[int] = []

    def build(transaction: Transaction) -> list[AttestationEvent]:
        attestations.require_signers(transaction.trust, received.said.kind)
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


def logged(reading: Reading, named: str) -> tuple[AttestationRow, Attestation, list[str]]:
    """An attestation by the start of its digest, verified, with the names of the keys that signed it."""
    statement = target(reading.index, ATTESTATION, named)
    row = next(row for row in reading.index.attestations(reading.size) if row.statement == statement)
    event = reading.confirm(row.event)
    assert isinstance(event, AttestationEvent), "the row of an attestation follows from its event"
    trust = reading.head.trust.before(row.event)
    said = attestations.stored(reading.objects, event, trust)
    data = reading.objects.read_checked(attestation_name(statement), limit=attestations.MAX_ATTESTATION)
    claimed = {signature.keyid for signature in attestations.receive(data).envelope.signatures}
    role = attestations.signers(trust, row.kind)
    return row, said, [key.name for key in role.keys if key_id(PublicKey(key.public)) in claimed]


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
