"""What the log knows of an attestation or a model checkpoint, verified under the roles of its time."""

from __future__ import annotations

from dataclasses import dataclass

from contracts.errors import TamperError, VerificationError
from ledger import attestations, envelope
from ledger.attestations import Attestation
from ledger.checkpoints import CheckpointFound
from ledger.event_types import ATTESTATION, AttestationEvent
from ledger.index_rows import AttestationRow
from ledger.keys import PublicKey
from ledger.node import Node, present
from ledger.object_names import attestation_name
from ledger.reading import Reading

_OF_WEIGHTS = ("bytes", "files", "tensors", "dtypes")


@dataclass(frozen=True)
class Attested:
    """An attestation whose signatures were verified: what it says, and the names of its signers."""

    row: AttestationRow
    said: Attestation
    signed_by: tuple[str, ...]


def read_attestation(reading: Reading, row: AttestationRow) -> Attested:
    """A logged attestation; TamperError or a signature's error when it is not what was logged."""
    event = reading.confirm(row.event)
    if not isinstance(event, AttestationEvent):
        raise TamperError("an attestation of another event", kind="catalog", where=f"event {row.event}")
    trust = reading.head.trust.before(row.event)
    said = attestations.stored(reading.objects, event, trust)
    data = reading.objects.read_checked(attestation_name(row.statement), limit=attestations.MAX_ATTESTATION)
    signed = attestations.receive(data).envelope
    keys = attestations.signers(trust, row.kind).keys
    return Attested(row, said, tuple(key.name for key in keys if _signed(signed, PublicKey(key.public))))


def _signed(signed: envelope.Envelope, key: PublicKey) -> bool:
    try:
        envelope.verify(signed, [key])
    except VerificationError:
        return False
    return True


def attestation_node(reading: Reading, row: AttestationRow, *, whole: bool = False) -> Node:
    """An attestation; `whole` adds its predicate and the digests of its files."""
    found = read_attestation(reading, row)
    facts = present(
        event=row.event,
        time=reading.event_row(row.event).time,
        of=row.kind,
        subject=row.subject,
        statement=row.statement,
        signed_by=list(found.signed_by),
        files=found.said.count,
        accepts=None if found.said.signature is None else found.said.signature.bundle,
        revoked=reading.revocation(row.statement, ATTESTATION),
        predicate=dict(found.said.statement.predicate) if whole else None,
        digests=found.said.by_name if whole else None,
    )
    return Node("attestation", row.statement, facts)


def checkpoint_node(reading: Reading, found: CheckpointFound, *, whole: bool = False) -> Node:
    """A model checkpoint by what its first standing attestation says; `whole` adds the digests of its files.

    `attested` counts the attestations nobody revoked; a channel may name a checkpoint that has none.
    """
    read = [read_attestation(reading, row) for row in found.rows]
    standing = [one for one in read if reading.revocation(one.row.statement, ATTESTATION) is None]
    first = next(iter(standing or read), None)
    predicate = {} if first is None else first.said.statement.predicate
    facts = present(
        name=found.names[0] if found.names else None,
        digest=found.digest,
        attested=len(standing),
        channels=[row.channel.reference for row in found.channels],
        **{name: predicate.get(name) for name in _OF_WEIGHTS},
        digests=first.said.by_name if whole and first else None,
    )
    return Node("checkpoint", found.digest, facts)
