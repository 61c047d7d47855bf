"""Declaring a plan: what an audit will be asked, in the log before the scores are.

A plan is an object of JSON; what it may say is the business of the audits. Here it gets a name, its digest
and a place in the log, and neither can be given to another plan.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contracts.canonical import canonical
from contracts.digest import sha256_digest
from contracts.errors import ContractError, UsageError
from ledger import lock, log
from ledger.event_types import PlanEvent
from ledger.home import Home
from ledger.index_rows import PlanRow
from ledger.keys import SigningKey
from ledger.log import Transaction

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}", re.ASCII)
MAX_PLAN = 48 * 1024
MIN_HEX = 8


@dataclass(frozen=True)
class Declared:
    """Where a plan stands in the log; `existed` when an earlier call had put it there."""

    id: str
    digest: str
    event: int
    existed: bool
    warnings: tuple[str, ...] = ()


def add(
    home: Home, key: SigningKey, name: str, plan: Mapping[str, object], *, wait: float = lock.WAIT
) -> Declared:
    """Log a plan under a name; the same plan under that name again changes nothing.

    ContractError `plan-taken` when the name stands for another plan: one that was declared is never changed.
    """
    if NAME.fullmatch(name) is None:
        raise UsageError("not a plan name", expected="letters, digits and . _ / -", got=ascii(name[:80]))
    data = canonical(dict(plan))
    if len(data) > MAX_PLAN:
        raise ContractError("plan too long", expected=f"at most {MAX_PLAN} bytes", got=len(data))
    digest = sha256_digest(data)
    earlier: list[PlanRow] = []

    def build(transaction: Transaction) -> list[PlanEvent]:
        for row in transaction.index.plans():
            if row.id != name:
                continue
            if row.digest != digest:
                raise ContractError(
                    "another plan has that name, and a plan that was declared is never changed",
                    code="plan-taken", where=f"plan {name}", expected=row.digest[:23], got=digest[:23],
                    next_step="give the new plan a name of its own",
                )  # fmt: skip
            earlier.append(row)
            return []
        return [PlanEvent(name, digest, plan)]

    commit = log.commit(home, key, build, wait=wait)
    event = earlier[0].event if earlier else commit.first_index
    return Declared(name, digest, event, bool(earlier), commit.warnings)


def find(plans: Sequence[PlanRow], text: str) -> PlanRow:
    """The plan that a name, a digest (at least 8 digits) or `plan:NAME` means; UsageError for none."""
    text = text.removeprefix("plan:")
    digits = text.removeprefix("sha256:")
    for row in plans:
        if row.id == text:
            return row
    found = [row for row in plans if len(digits) >= MIN_HEX and row.digest[7:].startswith(digits)]
    if len({row.digest for row in found}) > 1:
        raise UsageError("several plans begin like this", code="ambiguous-id", got=text[:80])
    if found:
        return found[0]
    known = ", ".join(row.id for row in plans[:5])
    raise UsageError(
        "unknown plan", code="unknown-plan", got=ascii(text[:80])[1:-1],
        expected=f"one of {known}" if known else "a plan, the ledger has none yet",
        next_step="see `ledger plan list`",
    )  # fmt: skip
