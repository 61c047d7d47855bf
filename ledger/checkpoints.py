"""The model checkpoints a log knows of: those somebody attested, and those a channel names by digest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from contracts.digest import is_digest
from contracts.errors import LedgerError
from ledger import attestations
from ledger.attestations import MODEL, Attestation
from ledger.index import Index
from ledger.index_rows import AttestationRow, ChannelRow
from ledger.object_names import attestation_name
from ledger.objects import Objects


@dataclass(frozen=True)
class CheckpointFound:
    """A checkpoint by the digest of all of it, else the one a channel names.

    `digests` are of it and of its files, `rows` attest it (none where a channel alone names it), `channels`
    name it by any of the digests, and `event` is the first that did either.
    """

    digest: str
    digests: frozenset[str]
    rows: tuple[AttestationRow, ...]
    channels: tuple[ChannelRow, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What its attestations call it."""
        return tuple(dict.fromkeys(row.subject for row in self.rows))

    @property
    def event(self) -> int:
        """The first event that told of it."""
        return min([row.event for row in self.rows] + [row.event for row in self.channels])


def known(index: Index, objects: Objects, at: int) -> Iterator[CheckpointFound]:
    """Every checkpoint among the first `at` events, attested ones first.

    Read for look-ups: whose signatures the attestations bear is checked where one is shown. One whose object
    is damaged is passed over here, so that it stands in the way of no other.
    """
    said: dict[str, list[tuple[AttestationRow, Attestation]]] = {}
    for row in index.attestations(at):
        if row.kind == MODEL:
            with suppress(LedgerError):
                data = objects.read_checked(
                    attestation_name(row.statement), limit=attestations.MAX_ATTESTATION
                )
                read = attestations.receive(data).said
                said.setdefault(whole(read), []).append((row, read))
    named = [row for row in index.channel_rows(at) if row.channel.checkpoint is not None]
    attested: set[str] = set()
    for digest, items in said.items():
        digests = frozenset(d for _, read in items for d in read.digests) | {digest}
        attested |= digests
        channels = tuple(row for row in named if row.channel.checkpoint in digests)
        yield CheckpointFound(digest, digests, tuple(row for row, _ in items), channels)
    for other in dict.fromkeys(row.channel.checkpoint for row in named):
        if other is not None and other not in attested:
            channels = tuple(row for row in named if row.channel.checkpoint == other)
            yield CheckpointFound(other, frozenset({other}), (), channels)


def whole(said: Attestation) -> str:
    """The digest that names all of an attested checkpoint: its own, else the first of its files."""
    digest = said.statement.predicate.get("digest")
    return digest if isinstance(digest, str) and is_digest(digest) else sorted(said.digests)[0]
