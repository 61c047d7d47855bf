"""What may come beside the files of an ingest: collectors' attestations, and what the call corrects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contracts.digest import sha256_digest
from contracts.errors import ContractError, UsageError
from contracts.findings import shown
from ledger import attestations, heads
from ledger.attestations import DigestRoot, Received
from ledger.event_types import AcquisitionEvent, AttestationEvent, Event
from ledger.home import Home
from ledger.index import Index
from ledger.keys import PublicKey
from ledger.object_names import attestation_name, signature_name

if TYPE_CHECKING:
    from ledger.ingest import Call


@dataclass(frozen=True)
class Brought:
    """What a call brings of one acquisition: its files by digest, and the roots an attestation states."""

    files: frozenset[str]
    requests: DigestRoot | None
    responses: DigestRoot | None


@dataclass(frozen=True)
class Extras:
    """Attestations to match and log, and the acquisition that those of the call supersede."""

    attested: tuple[Received, ...] = ()
    supersedes: str | None = None

    def __bool__(self) -> bool:
        return bool(self.attested) or self.supersedes is not None

    def check(self, home: Home, call: Call, key: PublicKey | None) -> None:
        """Returns when every attestation is by trusted collectors and speaks about the rows of the call.

        UnknownKeyError or SignatureError for a signature, ContractError for a statement about other rows,
        UsageError where nobody has the role, or for a superseded acquisition that there is not. Nothing was
        written then.
        """
        with Index.open(home) as index:
            trust = heads.check(home, index, key=key, trust_first=key is None).trust.newest
            known = [row.id for row in index.acquisitions()]
        if self.supersedes is not None and self.supersedes not in known:
            raise UsageError(
                f"no acquisition {shown(self.supersedes)} to supersede", code="unknown-acquisition",
                next_step="see `ledger acquisition list`",
            )  # fmt: skip
        for received in self.attested:
            attestations.require_signers(trust, received.said.kind)
            received.check(trust)
            _match(received, call)

    def events(self, home: Home, made: Sequence[Event], index: Index) -> tuple[Event, ...]:
        """The events of a call with what goes beside them; the envelopes are stored."""
        named = tuple(
            replace(event, supersedes=self.supersedes) if isinstance(event, AcquisitionEvent) else event
            for event in made
        )
        if self.supersedes is not None and not any(isinstance(e, AcquisitionEvent) for e in made):
            raise UsageError(
                "nothing here is new that could supersede", code="supersedes-nothing",
                expected="rows of an acquisition the ledger does not have yet",
                next_step="a correction is a new acquisition: give it an id of its own",
            )  # fmt: skip
        logged = {row.statement for row in index.attestations()}
        return (*named, *(e for r in self.attested if (e := stored(home, r)).statement not in logged))


def stored(home: Home, received: Received) -> AttestationEvent:
    """The event of an attestation whose envelope is durable, and the model signature it accepts."""
    digest = sha256_digest(received.data)
    signature = received.said.signature
    if signature is not None:
        if received.bundle is None:
            raise UsageError(
                "the attestation accepts a model signature, which has to come with it", code="signature",
                expected=signature.bundle, next_step="give its file with --signature",
            )  # fmt: skip
        home.objects.put(signature_name(signature.bundle), received.bundle)
    home.objects.put(attestation_name(digest), received.data)
    bundle = None if signature is None else signature.bundle
    return AttestationEvent(received.said.kind, received.said.subject, digest, signature=bundle)


def _match(received: Received, call: Call) -> None:
    said = received.said
    if said.kind != attestations.ACQUISITION:
        raise ContractError(
            "not the attestation of an acquisition", code="attestation-mismatch",
            expected=attestations.ACQUISITION, got=said.kind,
        )  # fmt: skip
    found = call.brought(said.subject)
    where = f"attestation of {shown(said.subject)}"
    if not found.files:
        raise ContractError(
            "the files have no row of the attested acquisition", code="attestation-mismatch", where=where
        )
    if foreign := sorted(found.files - said.digests):
        raise ContractError(
            "a file with rows of the acquisition is not among the attested ones", code="attestation-mismatch",
            where=where, got=foreign[0], next_step="ingest the very bytes the collector signed",
        )  # fmt: skip
    for name in ("requests", "responses"):
        stated, got = getattr(said, name), getattr(found, name)
        if stated != got:
            raise ContractError(
                f"the {name} are not the attested ones", code="attestation-mismatch", where=where,
                expected=_told(stated), got=_told(got),
            )  # fmt: skip


def _told(root: DigestRoot | None) -> str:
    return "none" if root is None else f"{root.count} with root {root.root[:23]}"
