"""Taking something out of later audits: nothing is deleted, and the log says what, when and why.

An acquisition or a channel takes its entries with it; an attestation takes away what it vouched for.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from contracts.errors import UsageError
from contracts.findings import shown
from ledger import lock, log
from ledger.event_types import ACQUISITION, ATTESTATION, CHANNEL, RevocationEvent
from ledger.home import Home
from ledger.index import Index
from ledger.keys import SigningKey
from ledger.log import Commit, Transaction

MAX_REASON = 2000
MIN_HEX = 8
LISTS = {ACQUISITION: "acquisition list", CHANNEL: "channel list", ATTESTATION: "attest list"}


@dataclass(frozen=True)
class Revoked:
    """The event that revoked a target; not `new` when an earlier call had done it.

    `target` is the id of an acquisition, the fingerprint of a channel, or the digest of an attestation.
    """

    event: int
    reason: str
    new: bool
    commit: Commit
    target: str


def revoke(
    home: Home, key: SigningKey, kind: str, named: str, reason: str, *, wait: float = lock.WAIT
) -> Revoked:
    """Revokes a target for every audit at a later head; UsageError for one the ledger does not know."""
    if not reason.strip() or len(reason) > MAX_REASON:
        raise UsageError(
            "a revocation needs a reason",
            code="reason",
            where="--reason",
            expected=f"1 to {MAX_REASON} letters",
        )
    earlier: list[tuple[int, str]] = []
    found: list[str] = []

    def build(transaction: Transaction) -> list[RevocationEvent]:
        meant = target(transaction.index, kind, named)
        found.append(meant)
        for row in transaction.index.revocations():
            if (row.target_kind, row.target_id) == (kind, meant):
                earlier.append((row.event, row.reason))
                return []
        return [RevocationEvent(kind, meant, reason)]

    commit = log.commit(home, key, build, wait=wait)
    if earlier:
        event, first_reason = earlier[0]
        return Revoked(event, first_reason, False, commit, found[0])
    return Revoked(commit.first_index, reason, True, commit, found[0])


def revoke_acquisition(
    home: Home, key: SigningKey, acquisition: str, reason: str, *, wait: float = lock.WAIT
) -> Revoked:
    """Revokes an acquisition."""
    return revoke(home, key, ACQUISITION, acquisition, reason, wait=wait)


def target(index: Index, kind: str, named: str) -> str:
    """What a text names among the acquisitions, channels or attestations of a ledger."""
    return _TARGETS[kind](index, named)


def _acquisition(index: Index, named: str) -> str:
    known = [row.id for row in index.acquisitions()]
    if named in known:
        return named
    close = difflib.get_close_matches(named, known, n=3)
    raise _unknown(ACQUISITION, named, f"one of {', '.join(close)}" if close else None)


def _channel(index: Index, named: str) -> str:
    return index.channels().resolve(named).fingerprint


def _attestation(index: Index, named: str) -> str:
    digits = named.removeprefix("sha256:")
    rows = index.attestations()
    found = {row.statement for row in rows if row.statement.removeprefix("sha256:").startswith(digits)}
    if len(found) == 1 and len(digits) >= MIN_HEX:
        return found.pop()
    raise _unknown(ATTESTATION, named, f"the digest of one, at least {MIN_HEX} hex digits")


def _unknown(kind: str, named: str, expected: str | None) -> UsageError:
    return UsageError(
        f"no such {kind}", code=f"unknown-{kind}", got=shown(named), expected=expected,
        next_step=f"see `ledger {LISTS[kind]}`",
    )  # fmt: skip


_TARGETS: Mapping[str, Callable[[Index, str], str]] = {
    ACQUISITION: _acquisition,
    CHANNEL: _channel,
    ATTESTATION: _attestation,
}
