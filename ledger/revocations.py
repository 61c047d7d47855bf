"""Taking an acquisition out of later audits: nothing is deleted, and the log says when and why."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from contracts.errors import UsageError
from ledger import lock, log
from ledger.event_types import RevocationEvent
from ledger.home import Home
from ledger.keys import SigningKey
from ledger.log import Commit, Transaction

ACQUISITION = "acquisition"
MAX_REASON = 2000


@dataclass(frozen=True)
class Revoked:
    """The event that revoked an acquisition; not `new` when an earlier call had done it."""

    event: int
    reason: str
    new: bool
    commit: Commit


def revoke_acquisition(
    home: Home, key: SigningKey, acquisition: str, reason: str, *, wait: float = lock.WAIT
) -> Revoked:
    """Revokes an acquisition for every audit at a later head; UsageError for one the ledger does not know."""
    if not reason.strip() or len(reason) > MAX_REASON:
        raise UsageError(
            "a revocation needs a reason",
            code="reason",
            where="--reason",
            expected=f"1 to {MAX_REASON} letters",
        )
    earlier: list[tuple[int, str]] = []

    def build(transaction: Transaction) -> list[RevocationEvent]:
        known = [row.id for row in transaction.index.acquisitions()]
        if acquisition not in known:
            close = difflib.get_close_matches(acquisition, known, n=3)
            raise UsageError(
                "no such acquisition", code="unknown-acquisition", got=ascii(acquisition[:80]),
                expected=f"one of {', '.join(close)}" if close else None,
                next_step="see `ledger acquisition list`",
            )  # fmt: skip
        for row in transaction.index.revocations():
            if (row.target_kind, row.target_id) == (ACQUISITION, acquisition):
                earlier.append((row.event, row.reason))
                return []
        return [RevocationEvent(ACQUISITION, acquisition, reason)]

    commit = log.commit(home, key, build, wait=wait)
    if earlier:
        event, first_reason = earlier[0]
        return Revoked(event, first_reason, False, commit)
    return Revoked(commit.first_index, reason, True, commit)
