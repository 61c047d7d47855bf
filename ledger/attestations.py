"""Attestations: signed statements by those who were there, about an acquisition, a checkpoint or a stack.

An attestation is an in-toto statement in an envelope. Its subjects are files by BLAKE3 and SHA-256, its
predicate says the rest. Whether a key may sign one is for the roles of the log to say; what it says is a
claim of that key, and no digest makes more of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from contracts.digest import is_digest
from contracts.errors import LedgerError, MalformedError, TamperError, UnknownKeyError, UsageError
from ledger import clock, envelope, oms, statement
from ledger.event_types import AttestationEvent
from ledger.fields import Fields
from ledger.object_names import attestation_name, signature_name
from ledger.objects import Objects
from ledger.oms_kept import KeptSignature
from ledger.statement import Statement, Subject
from ledger.trust import CHECKPOINT, COLLECTOR, Role, Trust

ACQUISITION, MODEL, STACK = "acquisition", "checkpoint", "stack"
TYPES = {
    ACQUISITION: "urn:evaluator-ledger:acquisition:v1",
    MODEL: "urn:evaluator-ledger:checkpoint:v1",
    STACK: "urn:evaluator-ledger:stack:v1",
}
_A = {ACQUISITION: "an acquisition", MODEL: "a checkpoint", STACK: "a hosted model"}
SIGNED_BY = {ACQUISITION: COLLECTOR, MODEL: CHECKPOINT, STACK: COLLECTOR}
MAX_ATTESTATION = envelope.MAX_ENVELOPE


@dataclass(frozen=True)
class DigestRoot:
    """How many different digests there are, and the RFC 6962 root over them, ascending as 33 bytes."""

    count: int
    root: str


@dataclass(frozen=True)
class Attestation:
    """What an attestation says. `subject` is the id of the acquisition, or the name of model or stack.

    `files` are digests in text form by file name, BLAKE3 and SHA-256; `statement` is the whole of it,
    `signature` the model signature that a checkpoint's accepts.
    """

    kind: str
    subject: str
    files: tuple[tuple[str, tuple[str, ...]], ...]
    statement: Statement = field(hash=False)
    signature: KeptSignature | None = None

    @property
    def digests(self) -> frozenset[str]:
        """Every digest of every file."""
        return frozenset(digest for _, digests in self.files for digest in digests)

    @property
    def by_name(self) -> dict[str, list[str]]:
        """Digests by name; the whole of a checkpoint, its signed model and a file may share one."""
        found: dict[str, list[str]] = {}
        for name, digests in self.files:
            found.setdefault(name, []).extend(digests)
        return found

    @property
    def count(self) -> int:
        """How many files it is about; of a checkpoint or stack the first subject is the whole of it."""
        whole = 0 if self.kind == ACQUISITION else 1
        return len(self.files) - whole - (self.signature is not None)

    @property
    def requests(self) -> DigestRoot | None:
        """The requests of an acquisition, None where none were digested."""
        return _root(self.statement.predicate, "requests")

    @property
    def responses(self) -> DigestRoot | None:
        """The responses of an acquisition, None where none were digested."""
        return _root(self.statement.predicate, "responses")


@dataclass(frozen=True)
class Received:
    """The bytes of an attestation as they came, with what they say; whose signatures they bear is open.

    `bundle` are the bytes of the model signature it accepts, which hold what it says of them.
    """

    data: bytes
    envelope: envelope.Envelope
    said: Attestation
    bundle: bytes | None = None

    def check(self, trust: Trust) -> None:
        """Returns when enough keys of the right role signed; UnknownKeyError or SignatureError otherwise."""
        role = signers(trust, self.said.kind)
        try:
            envelope.verify(self.envelope, role.public, role.threshold)
        except UnknownKeyError as error:
            name = SIGNED_BY[self.said.kind]
            names = ", ".join(key.name for key in role.keys) or "nobody yet"
            error.where = f"attestation of {self.said.subject}"
            error.next_step = f"the role {name} has {names}; see `ledger key add {name}`"
            raise


def signers(trust: Trust, kind: str) -> Role:
    """Who may sign attestations of a kind."""
    return trust.role(SIGNED_BY[kind])


def require_signers(trust: Trust, kind: str) -> None:
    """Returns when somebody may sign attestations of a kind; UsageError where nobody was named yet."""
    if not signers(trust, kind).keys:
        role = SIGNED_BY[kind]
        raise UsageError(
            f"no key has the role {role}", code="no-role", where=f"attestation of {_A[kind]}",
            next_step=f"name who signs: ledger key add {role} KEY",
        )  # fmt: skip


def of_acquisition(
    acquisition: str,
    files: tuple[Subject, ...],
    *,
    rows: int,
    requests: DigestRoot | None,
    responses: DigestRoot | None,
    tools: Mapping[str, str],
    window: tuple[str, str] | None,
    gold_isolated: bool | None,
) -> Statement:
    """The statement of a collector about one acquisition."""
    for moment in window or ():
        clock.check(moment)
    if window is not None and window[0] > window[1]:
        raise MalformedError(
            "a window that ends before it begins", expected=f"after {window[0]}", got=window[1]
        )
    predicate = {
        "acquisition": acquisition,
        "rows": rows,
        "requests": None if requests is None else dict(vars(requests)),
        "responses": None if responses is None else dict(vars(responses)),
        "tools": dict(tools),
        "window": None if window is None else {"start": window[0], "end": window[1]},
        "claims": {"gold_isolated": gold_isolated},
    }
    return Statement(files, TYPES[ACQUISITION], predicate)


def receive(data: bytes, where: str | None = None, *, bundle: bytes | None = None) -> Received:
    """The attestation in the bytes of an envelope; MalformedError where they are none.

    `bundle` is the model signature it accepts; VerificationError where it is not that, or does not hold.
    """
    try:
        received = envelope.parse(data)
        said = read(statement.parse(_payload(received)))
        if bundle is not None:
            if said.signature is None:
                raise UsageError("the attestation accepts no model signature", code="signature")
            said.signature.check(said.statement, bundle)
        return Received(data, received, said, bundle)
    except MalformedError as error:
        error.where = error.where or where
        raise


def _payload(received: envelope.Envelope) -> bytes:
    if received.payload_type != statement.PAYLOAD_TYPE:
        raise MalformedError(
            "envelope of another type", expected=statement.PAYLOAD_TYPE, got=received.payload_type[:80]
        )
    return received.payload


def read(stated: Statement) -> Attestation:
    """What a statement says; MalformedError where it is no attestation this version knows."""
    kinds = {name: kind for kind, name in TYPES.items()}
    kind = kinds.get(stated.predicate_type)
    if kind is None:
        raise MalformedError(
            "not an attestation", expected=" | ".join(TYPES.values()), got=ascii(stated.predicate_type[:80])
        )
    subject = Fields.of(dict(stated.predicate), "attestation").text(
        "acquisition" if kind == ACQUISITION else "name"
    )
    files = tuple(
        (s.name, tuple(f"{algorithm}:{value}" for algorithm, value in sorted(s.digest.items())))
        for s in stated.subjects
    )
    signature = KeptSignature.read(stated.predicate) if kind == MODEL else None
    found = Attestation(kind, subject, files, stated, signature)
    if kind == ACQUISITION and not all(
        any(is_digest(d) and d.startswith("blake3:") for d in digests) for _, digests in files
    ):
        raise MalformedError("an attested source file without a blake3 digest")
    _ = found.requests, found.responses  # read once, so that what is held is readable
    return found


def stored(objects: Objects, event: AttestationEvent, trust: Trust) -> Attestation:
    """The attestation of an event as `checked`, from the objects, and the model signature it accepts."""
    name = attestation_name(event.statement)
    said = checked(objects.read_checked(name, limit=MAX_ATTESTATION), event, trust)
    if said.signature is not None:
        check_signature(objects, said, said.signature)
    return said


def check_signature(objects: Objects, said: Attestation, signature: KeptSignature) -> None:
    """Returns when the stored bundle that an attestation accepts holds what it says of it."""
    name = signature_name(signature.bundle)
    try:
        signature.check(said.statement, objects.read_checked(name, limit=oms.MAX_BUNDLE))
    except LedgerError as error:
        error.where = error.where or name
        raise


def checked(data: bytes, event: AttestationEvent, trust: Trust) -> Attestation:
    """The attestation of an event from its envelope's bytes, signed by those who could then.

    The model signature it may accept is another object; `stored` looks at both.
    """
    received = receive(data)
    said = received.said
    if (said.kind, said.subject) != (event.kind, event.subject):
        raise TamperError(
            "the attestation says something else than its event", kind="record",
            expected=f"{event.kind} {event.subject}", got=f"{said.kind} {said.subject}",
        )  # fmt: skip
    bundle = None if said.signature is None else said.signature.bundle
    if bundle != event.signature:
        raise TamperError(
            "the attestation accepts another model signature than its event names", kind="record",
            expected=event.signature or "none", got=bundle or "none",
        )  # fmt: skip
    received.check(trust)
    return said


def _root(predicate: Mapping[str, object], name: str) -> DigestRoot | None:
    value = predicate.get(name)
    if value is None:
        return None
    fields = Fields.of(value, f"attestation `{name}`")
    root = DigestRoot(fields.whole("count"), fields.digest("root", "sha256"))
    fields.close()
    return root
