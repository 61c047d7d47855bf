"""The values of the log's events: plain facts, with no knowledge of how they are written.

A field typed `... | ObjectRef` holds its value, or names the object that does. Digests are in text form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ledger import clock


@dataclass(frozen=True)
class ObjectRef:
    """A value that stands in an object of its own, by that object's digest."""

    digest: str


@dataclass(frozen=True)
class Source:
    """One file an ingest read: its name without folders, the digest of its bytes, its data rows."""

    name: str
    digest: str
    rows: int


@dataclass(frozen=True)
class ScopeRows:
    """How many rows of a segment belong to one channel (None: undeclared) and acquisition."""

    channel: str | None
    acquisition: str
    rows: int


@dataclass(frozen=True)
class KeyEvent:
    """A public key trusted for a role; the event at index 0 names the key that signs the heads."""

    type: ClassVar[str] = "key"
    role: str
    vkey: str
    time: str = field(default_factory=clock.now)


@dataclass(frozen=True)
class EventSignature:
    """A signature over an event without its signatures, by the key with this `key_id`."""

    keyid: str
    sig: bytes


@dataclass(frozen=True)
class KeyChangeEvent:
    """A key `add`ed to a role, put in the place of another (`rotate`), or taken out of a role (`retire`).

    `log` is the origin of the log and `previous` the index of the last event about keys or policy, so that
    the signatures hold at one place only.
    """

    type: ClassVar[str] = "key"
    action: str
    role: str
    vkey: str
    replaces: str | None
    log: str
    previous: int
    signatures: tuple[EventSignature, ...] = ()
    time: str = field(default_factory=clock.now)


@dataclass(frozen=True)
class RolePolicy:
    """The keys of a role as verifier keys, and how many of them have to sign."""

    role: str
    keys: tuple[str, ...]
    threshold: int


@dataclass(frozen=True)
class PolicyEvent:
    """All roles from here on; a role that is not named has no keys. `log`, `previous` as for a key."""

    type: ClassVar[str] = "policy"
    roles: tuple[RolePolicy, ...]
    log: str
    previous: int
    signatures: tuple[EventSignature, ...] = ()
    time: str = field(default_factory=clock.now)


@dataclass(frozen=True)
class AttestationEvent:
    """A signed statement about a `subject`: an acquisition, a model checkpoint, or a hosted stack.

    `statement` is the digest of its envelope file, `signature` that of the model signature it accepts.
    """

    type: ClassVar[str] = "attestation"
    kind: str
    subject: str
    statement: str
    time: str = field(default_factory=clock.now)
    signature: str | None = None


@dataclass(frozen=True)
class ChannelEvent:
    """A specification registered under a name and a version; `spec` has no name in it."""

    type: ClassVar[str] = "channel"
    name: str
    version: int
    fingerprint: str
    spec: Mapping[str, object] | ObjectRef
    time: str = field(default_factory=clock.now)


@dataclass(frozen=True)
class AcquisitionEvent:
    """An acquisition seen for the first time, the kind of entries it brings, and the one it corrects."""

    type: ClassVar[str] = "acquisition"
    id: str
    kind: str
    supersedes: str | None = None
    time: str = field(default_factory=clock.now)


@dataclass(frozen=True)
class SegmentEvent:
    """One segment: digests of its three files, the root over its entries, and what it covers.

    `first` and `last` are the (trajectory, step) of its first and last row.
    """

    type: ClassVar[str] = "segment"
    kind: str
    schema: str
    contract: str
    file: str
    size: int
    root: str
    rows: int
    leaves: str
    rows_file: str
    sources: tuple[Source, ...] | ObjectRef
    channels: tuple[str, ...] | ObjectRef
    acquisitions: tuple[str, ...] | ObjectRef
    scope: tuple[ScopeRows, ...] | ObjectRef
    first: tuple[str, int]
    last: tuple[str, int]
    trajectories: int
    time: str = field(default_factory=clock.now)


@dataclass(frozen=True)
class RefusalEvent:
    """Sides a contract refused: their rows, stored like a segment, and the list of them (`index`)."""

    type: ClassVar[str] = "refusal"
    schema: str
    file: str
    size: int
    root: str
    rows: int
    leaves: str
    rows_file: str
    sides: int
    index: str
    sources: tuple[Source, ...] | ObjectRef
    time: str = field(default_factory=clock.now)


# What a revocation may be about: the id of an acquisition, a channel's fingerprint, an attestation's digest.
ACQUISITION, CHANNEL, ATTESTATION = REVOCABLE = ("acquisition", "channel", "attestation")


@dataclass(frozen=True)
class RevocationEvent:
    """Something later audits leave out, and why."""

    type: ClassVar[str] = "revocation"
    target_kind: str
    target_id: str
    reason: str
    time: str = field(default_factory=clock.now)


@dataclass(frozen=True)
class AuditEvent:
    """A signed audit: digests of its envelope file, of its result and of its design."""

    type: ClassVar[str] = "audit"
    kind: str
    record: str
    result: str
    design: str
    time: str = field(default_factory=clock.now)


@dataclass(frozen=True)
class PlanEvent:
    """An audit's design declared under a name; `digest` is the SHA-256 of the plan's canonical JSON."""

    type: ClassVar[str] = "plan"
    id: str
    digest: str
    plan: Mapping[str, object]
    time: str = field(default_factory=clock.now)


Event = (
    KeyEvent | KeyChangeEvent | PolicyEvent | AttestationEvent | ChannelEvent | AcquisitionEvent
    | SegmentEvent | RefusalEvent | RevocationEvent | AuditEvent | PlanEvent
)  # fmt: skip
