"""Whether every audit record is signed, is the one that was logged, and comes out the same again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from contracts.canonical import canonical
from contracts.digest import sha256_digest
from contracts.errors import LedgerError, TamperError
from ledger import attestations, envelope, statement, witness
from ledger.event_types import AuditEvent
from ledger.index import Index
from ledger.object_names import attestation_name, record_name, signature_name
from ledger.objects import Objects, Store
from ledger.problems import Problems
from ledger.revoked_since import REPRODUCES, revoked_since, told
from ledger.tree import prefix_roots
from ledger.trust import WITNESS, Role, TrustHistory
from ledger.verify_catalog import Named
from ledger.verify_log import MAX_NOTE, OBJECTS


def check_records(
    found: Problems, objects: Objects, named: Named, whole: Collection[str], trust: TrustHistory
) -> list[tuple[int, AuditEvent]]:
    """The envelope of every audit whose file is `whole`; returns the audits that are as they were logged."""
    good: list[tuple[int, AuditEvent]] = []
    for index, audit in named.audits:
        name = record_name(audit.record)
        if name in whole:
            with found.guard("record", f"{OBJECTS}/{name}", f"event {index}"):
                signers = trust.before(index).auditors
                checked_payload(objects.read(name, limit=envelope.MAX_ENVELOPE), audit, signers)
                good.append((index, audit))
    return good


def check_attestations(
    found: Problems, objects: Objects, named: Named, whole: Collection[str], trust: TrustHistory
) -> None:
    """The envelope of every attestation whose file is `whole`: by whom it is signed, and what it is about.

    So is the model signature that one accepts, where its file is whole too.
    """
    for index, event in named.attestations:
        name = attestation_name(event.statement)
        if name in whole:
            with found.guard("record", f"{OBJECTS}/{name}", f"event {index}"):
                data = objects.read(name, limit=attestations.MAX_ATTESTATION)
                said = attestations.checked(data, event, trust.before(index))
                if said.signature is not None and signature_name(said.signature.bundle) in whole:
                    attestations.check_signature(objects, said, said.signature)


def check_witnesses(
    found: Problems, objects: Store, trust: TrustHistory, leaves: Sequence[bytes], sizes: Sequence[int]
) -> None:
    """Every cosigned head: by the log's key, of its tree, by known witnesses; too few of them is a notice."""
    newest = 0
    for name in objects.list(witness.FOLDER):
        size = int(name.rpartition("/")[2])
        where = f"{OBJECTS}/{name}"
        if size not in sizes:
            _other_head(found, objects, name, trust, leaves)
            continue
        with found.guard("signature", where):
            head = trust.heads.verify(objects.read(name, limit=MAX_NOTE))
            if prefix_roots(leaves, [size]) != [head.root]:
                found.add("tree", where, "a head of another history was cosigned")
            elif witness.judge(objects, trust, size).enough:
                newest = max(newest, size)
    role = trust.newest.role(WITNESS)
    if role.keys and newest < max(sizes, default=0):
        found.notices.append(
            f"the head of size {max(sizes)} is not cosigned by {role.threshold} of the {len(role.keys)} "
            f"witnesses; the newest that is has size {newest}"
        )


def _other_head(
    found: Problems, objects: Objects, name: str, trust: TrustHistory, leaves: Sequence[bytes]
) -> None:
    """A cosigned head the catalog does not know: it was forgotten there, or belongs to another history."""
    where = f"{OBJECTS}/{name}"
    with found.guard("signature", where):
        head = trust.heads.verify(objects.read(name, limit=MAX_NOTE))
        if head.size > len(leaves):
            message = f"a head of {head.size} events was cosigned and the catalog holds {len(leaves)}"
            found.add("rolled-back-head", where, message)
        elif prefix_roots(leaves, [head.size]) != [head.root]:
            found.add("tree", where, "a head of another history was cosigned")
        else:
            found.add("catalog", found.catalog, "a cosigned head is missing", f"head of size {head.size}")


def standings(
    objects: Objects, index: Index, size: int, audits: Sequence[tuple[int, AuditEvent]]
) -> list[str]:
    """A line for every audit with something revoked after it that it rested on."""
    if not index.revocations(size):
        return []
    lines = []
    for _, audit in audits:
        data = objects.read_checked(record_name(audit.record), limit=envelope.MAX_ENVELOPE)
        later = revoked_since(statement.parse(envelope.parse(data).payload), index, size)
        if later:
            lines.append(f"audit {audit.record[:23]} {REPRODUCES}: {'; '.join(map(told, later))}")
    return lines


def recompute_records(
    found: Problems,
    objects: Objects,
    audits: Sequence[tuple[int, AuditEvent]],
    recompute: Callable[[bytes], bytes | None],
    progress: Callable[[int], None],
) -> int:
    """Every checked audit once more from the entries; returns how many could be computed again."""
    computed = 0
    for done, (index, audit) in enumerate(audits, 1):
        name = record_name(audit.record)
        where, entry = f"{OBJECTS}/{name}", f"event {index}"
        try:
            payload = envelope.parse(objects.read_checked(name, limit=envelope.MAX_ENVELOPE)).payload
            result = recompute(payload)
        except LedgerError as error:
            damaged = f"{OBJECTS}/{error.where}"
            if damaged in {problem.where for problem in found.listed}:
                found.notices.append(f"{where} was not computed again: {damaged} is damaged")
            else:
                found.add_error(error, "record", where, entry)
        else:
            if result is None:
                found.notices.append(f"{where} ({audit.kind}) cannot be computed again by this version")
            else:
                computed += 1
                stated = statement.parse(payload).predicate.get("result")
                if result != canonical(stated):
                    found.add("record", where, "computing the audit again gives another result", entry)
        progress(done)
    return computed


def checked_payload(data: bytes, audit: AuditEvent, signers: Role) -> bytes:
    """The payload of an audit's envelope; raises when it is not signed or is not what the event says."""
    received = envelope.parse(data)
    payload = envelope.verify(received, signers.public, signers.threshold)
    if received.payload_type != statement.PAYLOAD_TYPE:
        raise TamperError(
            "record of another type",
            kind="record",
            expected=statement.PAYLOAD_TYPE,
            got=received.payload_type[:80],
        )
    stated = statement.parse(payload)
    result = stated.predicate.get("result")
    design = result.get("design") if isinstance(result, dict) else None
    for part, value, wanted in (("result", result, audit.result), ("design", design, audit.design)):
        got = sha256_digest(canonical(value))
        if got != wanted:
            raise TamperError(
                f"the record holds another {part} than was logged", kind="record", expected=wanted, got=got
            )
    return payload
