"""Audit records: signed, written as an envelope, logged as an event, and never twice.

A record is logged again only when something relevant changed: another design, another result, or other
segments behind the same result. Otherwise the record that is there is returned and named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contracts.canonical import canonical
from contracts.digest import sha256_digest
from contracts.errors import MalformedError, TamperError, UnknownKeyError, UsageError
from ledger import envelope, heads, lock, log
from ledger import statement as statements
from ledger.event_types import AuditEvent
from ledger.home import Home
from ledger.index import Index
from ledger.index_rows import RecordRow
from ledger.keys import SigningKey
from ledger.log import Transaction
from ledger.object_names import record_name
from ledger.objects import Objects
from ledger.statement import Statement, Subject
from ledger.trust import Role

SHORTEST = 8  # hex digits that name a record
REVOCABLE = ("audit", "record")


@dataclass(frozen=True)
class Logged:
    """Where an audit stands in the log: digest of its envelope, leaf index, and the envelope's bytes.

    `existed` when an earlier call had logged it; `warnings` are about the commit.
    """

    record: str
    event: int
    envelope: bytes
    existed: bool
    warnings: tuple[str, ...] = ()


def log_record(
    home: Home,
    key: SigningKey,
    statement: Statement,
    *,
    auditors: Sequence[SigningKey] = (),
    wait: float = lock.WAIT,
) -> Logged:
    """Sign a statement and log it, or find the record that says the same already.

    `key` signs the head, and the statement too where it may; so do those of `auditors` that may.
    UnknownKeyError when these are fewer than the policy wants.
    """
    named = _event_parts(statement)
    with Index.open(home) as index:
        found = _existing(index, home.objects, statement, named)
        role = heads.history(index).newest.auditors
    if found is not None:
        return found
    signers = _signers(role, [key, *auditors])
    data = envelope.sign(statement.to_bytes(), statements.PAYLOAD_TYPE, signers).to_bytes()
    record = sha256_digest(data)
    home.objects.put(record_name(record), data)
    earlier: list[Logged] = []

    def build(transaction: Transaction) -> list[AuditEvent]:
        # another process may have logged the same while this one was signing
        existing = _existing(transaction.index, transaction.objects, statement, named)
        if existing is not None:
            earlier.append(existing)
            return []
        return [AuditEvent(named.kind, record, named.result, named.design)]

    commit = log.commit(home, key, build, wait=wait)
    if earlier:
        return earlier[0]
    return Logged(record, commit.first_index, data, False, commit.warnings)


def logged_records(home: Home, kind: str, *, at: int) -> list[tuple[str, Statement]]:
    """The unrevoked audits of one kind among the first `at` events, as (record, statement), oldest first."""
    with Index.open(home) as index:
        revoked = {r.target_id for r in index.revocations(at) if r.target_kind in REVOCABLE}
        rows = [r for r in index.records(at) if r.kind == kind and r.record not in revoked]
        return [
            (row.record, statements.parse(envelope.parse(_read(home.objects, row)).payload)) for row in rows
        ]


def _signers(role: Role, keys: Sequence[SigningKey]) -> list[SigningKey]:
    """The keys that may sign audits, each once."""
    may = {public.raw for public in role.public}
    found = {key.public.raw: key for key in keys if key.public.raw in may}
    if len(found) < role.threshold:
        raise UnknownKeyError(
            "the policy wants other keys to sign audits",
            expected=f"{role.threshold} of {', '.join(key.name for key in role.keys)}", got=len(found),
            next_step="name their private keys in LEDGER_AUDITOR_KEY, or run with --no-record",
        )  # fmt: skip
    return list(found.values())


def logged_record(home: Home, text: str, *, at: int) -> Statement:
    """The statement of the audit among the first `at` events whose record id begins as `text` does."""
    with Index.open(home) as index:
        digits = text.removeprefix("sha256:")
        found = [r for r in index.records(at) if r.record.removeprefix("sha256:").startswith(digits)]
        if len(found) != 1 or len(digits) < SHORTEST:
            raise UsageError(
                "no audit record has this id" if not found else "several audit records have such an id",
                code="unknown-record" if not found else "ambiguous-record",
                expected=f"a record id, at least {SHORTEST} hex digits",
                got=ascii(text[:80])[1:-1],
                next_step="see `ledger log`",
            )
        return statements.parse(envelope.parse(_read(home.objects, found[0])).payload)


@dataclass(frozen=True)
class _Parts:
    """What an audit event says of its statement."""

    kind: str
    result: str
    design: str


def _event_parts(statement: Statement) -> _Parts:
    kind, result = statement.predicate.get("audit"), statement.predicate.get("result")
    if not isinstance(kind, str) or not isinstance(result, Mapping) or "design" not in result:
        raise MalformedError("not the statement of an audit", expected="audit, result and result.design")
    return _Parts(kind, sha256_digest(canonical(result)), sha256_digest(canonical(result["design"])))


def _existing(index: Index, objects: Objects, statement: Statement, named: _Parts) -> Logged | None:
    """The newest unrevoked record of the same result over the same segments."""
    revoked = {r.target_id for r in index.revocations() if r.target_kind in REVOCABLE}
    for row in reversed(index.records()):
        same = (row.kind, row.result, row.design) == (named.kind, named.result, named.design)
        if not same or row.record in revoked:
            continue
        data = _read(objects, row)
        earlier = statements.parse(envelope.parse(data).payload)
        if _segments(earlier) == _segments(statement):
            return Logged(row.record, row.event, data, existed=True)
    return None


def _read(objects: Objects, row: RecordRow) -> bytes:
    name = record_name(row.record)
    if not objects.exists(name):
        raise TamperError(
            "a logged audit record is gone", kind="record", where=name, next_step="run `ledger verify`"
        )
    return objects.read_checked(name, limit=envelope.MAX_ENVELOPE)


def _segments(statement: Statement) -> tuple[Subject, ...]:
    """The subjects behind the head: what the audit read, whatever was logged besides."""
    return statement.subjects[1:]
