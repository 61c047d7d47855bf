"""A verified, read-only view of a ledger at one signed head: the only thing an audit can receive.

Everything a snapshot says follows from the events of the log. The catalog delivers their bytes; its other
tables are conveniences that nothing here reads.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from contracts.channel import Channel, ChannelBook
from contracts.errors import TamperError, UsageError
from ledger import events, heads
from ledger import trust as trusts
from ledger.attested import PREDICTIONS, Vouched
from ledger.derive import rows as derive
from ledger.engines import HERE, Means
from ledger.event_types import (
    ACQUISITION,
    ATTESTATION,
    CHANNEL,
    REVOCABLE,
    AcquisitionEvent,
    AttestationEvent,
    ChannelEvent,
    Event,
    KeyChangeEvent,
    KeyEvent,
    PlanEvent,
    PolicyEvent,
    RefusalEvent,
    RevocationEvent,
    SegmentEvent,
)
from ledger.events import scope_rows
from ledger.heads import CheckedHead
from ledger.home import Home
from ledger.index import Index
from ledger.index_rows import PlanRow, SegmentRow, read_segment, read_spec
from ledger.jev_scope import RULES as PREDICTION_RULES
from ledger.jev_scope import UNDECLARED, GroupCount, PredictionScope
from ledger.jev_selection import Predictions, Targets
from ledger.jev_selection import select as select_predictions
from ledger.keys import PublicKey
from ledger.object_names import refusal_index_name
from ledger.objects import Objects
from ledger.provenance import LEVEL, REVOKED, RULES, ProvenanceCount
from ledger.range_tasks import TrajectoryRange
from ledger.readings import Readings
from ledger.refusals import RefusedRow, decode_index
from ledger.refused_readings import RefusedReadings
from ledger.scope import ANY_DONOR, OWN, WHERE, Arm, Level, Scope, Standing
from ledger.selection import Selection, select
from ledger.tree import leaf_hash

__all__ = [
    "ANY_DONOR",
    "LEVEL",
    "OWN",
    "PREDICTION_RULES",
    "REVOKED",
    "RULES",
    "UNDECLARED",
    "WHERE",
    "Arm",
    "GroupCount",
    "Level",
    "PlanRow",
    "PredictionScope",
    "Predictions",
    "ProvenanceCount",
    "Readings",
    "RefusedRow",
    "Scope",
    "SegmentRow",
    "Selection",
    "Snapshot",
    "Targets",
    "TrajectoryRange",
    "open_snapshot",
    "view",
]

_LISTED = 8
_READ = frozenset(
    kind.type
    for kind in (
        ChannelEvent, SegmentEvent, AcquisitionEvent, RefusalEvent, RevocationEvent, KeyEvent, PolicyEvent,
        PlanEvent, AttestationEvent,
    )
)  # fmt: skip
_SEGMENT = (
    "event", "kind", "schema_id", "contract", "file", "size", "root", "rows", "leaves", "rows_file",
    "sources", "channels", "acquisitions", "first_trajectory", "first_step", "last_trajectory", "last_step",
    "trajectories",
)  # fmt: skip


@dataclass(frozen=True)
class Snapshot:
    """A ledger at one head; made by `open_snapshot` alone, since only it has a `CheckedHead` to give.

    `book` and `segments` are in the order of the log. `acquisitions` gives each id its kind. `revoked` are
    the acquisitions, `revoked_channels` the fingerprints revoked up to this head, `vouched` what trusted keys
    attest. `has_newer_head` is true for a view of the past.
    """

    checked: CheckedHead
    book: ChannelBook
    segments: tuple[SegmentRow, ...]
    acquisitions: Mapping[str, str]
    revoked: frozenset[str]
    revoked_channels: frozenset[str]
    vouched: Vouched
    plans: tuple[PlanRow, ...]
    has_newer_head: bool
    _objects: Objects
    _refusals: tuple[tuple[int, RefusalEvent], ...]
    _means: Means

    @property
    def origin(self) -> str:
        """The name of the log."""
        return self.checked.head.origin

    @property
    def size(self) -> int:
        """How many events the log had."""
        return self.checked.head.size

    @property
    def root(self) -> str:
        """The root of the log in text form."""
        return self.checked.row.root

    @property
    def note(self) -> bytes:
        """The signed head."""
        return self.checked.row.note

    def select(self, scope: Scope) -> Selection:
        """The entries of a scope; UsageError for an acquisition that the ledger does not know.

        What is read on the way is verified: TamperError names the first file that is not as committed.
        """
        for arm in scope.arms:
            if self.book.by_fingerprint(arm.channel.fingerprint) is None:
                raise AssertionError("an arm of a channel from another ledger")
        self._require(scope.acquisitions)
        refused = (
            side
            for index, event in self._refusals
            for side in decode_index(self._objects.read_checked(refusal_index_name(event.index)), index)
        )
        readings = RefusedReadings(self._objects, dict(self._refusals))
        return select(
            scope, self._objects, self.segments, refused, self.revoked, readings,
            revoked_channels=self.revoked_channels, vouched=self.vouched, means=self._means,
        )  # fmt: skip

    def predictions(self, scope: PredictionScope) -> Predictions:
        """The predictions of a scope, verified as they are read; errors as for `select`."""
        self._require(scope.acquisitions)
        return select_predictions(scope, self._objects, self.segments, self._standing_of_predictions)

    def _standing_of_predictions(self, acquisitions: Collection[str]) -> Standing:
        held = [segment for segment in self.segments if segment.kind in PREDICTIONS]
        acquired = self.vouched.acquisitions(self._objects, held, acquisitions)
        channels = [c.fingerprint for c in self.book.channels if self.vouched.channel(c)]
        attested = frozenset((fingerprint, name) for fingerprint in channels for name in acquired)
        return Standing(self.revoked, self.revoked_channels, attested)

    def _require(self, acquisitions: Sequence[tuple[str | None, str]]) -> None:
        for _, acquisition in acquisitions:
            if acquisition not in self.acquisitions:
                raise self._unknown(acquisition)

    def _unknown(self, acquisition: str) -> UsageError:
        known = list(self.acquisitions)
        listed = ", ".join(known[:_LISTED]) + (", …" if len(known) > _LISTED else "")
        return UsageError(
            f"unknown acquisition {ascii(acquisition[:80])[1:-1]}",
            code="unknown-acquisition",
            expected=f"one of {listed}" if known else "an acquisition, the ledger has none yet",
            next_step="see `ledger acquisition list`",
        )


def open_snapshot(
    home: Home,
    *,
    at: int | None = None,
    key: PublicKey | None = None,
    trust_first: bool = False,
    means: Means = HERE,
) -> Snapshot:
    """The ledger at its newest head, or at the head of size `at`, after these steps have all passed.

    1. The head is signed by the key that the pin, `key`, or (when `trust_first`) event 0 names; the pin is
       no newer than the log and a prefix of it; the stored leaf hashes lead to the signed root
       (`ledger.heads.check` lists these steps one by one).
    2. Every event's bytes hash to its leaf.
    3. Every channel's specification has the fingerprint of its event.
    4. Segments, acquisitions, refusals, revocations, keys and policy are read out of the events; none of the
       changes of keys and policy escaped step 1.
    Segment files and lists of refused sides are verified when a selection reads them, by the engine of
    `means`.
    """
    with Index.open(home) as index:
        checked = heads.check(home, index, key=key, trust_first=trust_first, at=at)  # step 1
        rows = ((row.index, row.data) for row in index.events(0, checked.head.size))
        newer = index.size > checked.head.size
        return view(checked, rows, home.objects, has_newer_head=newer, means=means)


def view(
    checked: CheckedHead,
    rows: Iterable[tuple[int, bytes]],
    objects: Objects,
    *,
    has_newer_head: bool,
    means: Means = HERE,
) -> Snapshot:
    """The ledger at a checked head from its events (index and bytes), wherever they and the objects lie.

    These are steps 2 to 4 of `open_snapshot`.
    """
    found = _Contents()
    for index, data in rows:
        if leaf_hash(data) != checked.leaves[index]:  # step 2
            raise TamperError("event changed since it was signed", kind="catalog", where=f"event {index}")
        found.add(index, data, objects)
    told = trusts.history(found.trust)
    if told.states != tuple(state for state in checked.trust.states if state.changed < checked.head.size):
        raise TamperError("the catalog hides a change of keys or policy", kind="catalog")
    return Snapshot(
        checked=checked,
        book=ChannelBook(tuple(found.channels)),
        segments=tuple(found.segments),
        acquisitions=found.acquisitions,
        revoked=frozenset(found.revoked[ACQUISITION]),
        revoked_channels=frozenset(found.revoked[CHANNEL]),
        vouched=Vouched.of(found.attestations, found.revoked[ATTESTATION], told, objects),
        plans=tuple(found.plans),
        has_newer_head=has_newer_head,
        _objects=objects,
        _refusals=tuple(found.refusals),
        _means=means,
    )


@dataclass
class _Contents:
    """What the events say, as far as an audit needs it."""

    channels: list[Channel] = field(default_factory=list)
    segments: list[SegmentRow] = field(default_factory=list)
    acquisitions: dict[str, str] = field(default_factory=dict)
    revoked: dict[str, set[str]] = field(default_factory=lambda: {kind: set() for kind in REVOCABLE})
    attestations: list[tuple[int, AttestationEvent]] = field(default_factory=list)
    plans: list[PlanRow] = field(default_factory=list)
    refusals: list[tuple[int, RefusalEvent]] = field(default_factory=list)
    trust: list[tuple[int, Event]] = field(default_factory=list)

    def add(self, index: int, data: bytes, objects: Objects) -> None:
        """Take in one verified event; most types say nothing about entries and are passed over."""
        if json.loads(data)["type"] not in _READ:
            return
        event = events.decode(data)
        if isinstance(event, ChannelEvent):
            (row,) = derive(index, event, objects)["channel"]  # step 3
            spec = read_spec(str(row["spec"]), event.name)
            self.channels.append(Channel(event.name, event.version, spec, event.fingerprint))
        elif isinstance(event, SegmentEvent):
            made = derive(index, event, objects)
            scope = tuple(
                scope_rows([part["channel"], part["acquisition"], part["rows"]])
                for part in made["segment_scope"]
            )
            (row,) = made["segment"]
            self.segments.append(read_segment([row[name] for name in _SEGMENT], scope))
        elif isinstance(event, AcquisitionEvent):
            self.acquisitions.setdefault(event.id, event.kind)
        elif isinstance(event, RefusalEvent):
            self.refusals.append((index, event))
        elif isinstance(event, PlanEvent):
            self.plans.append(PlanRow(index, event.id, event.digest, event.plan))
        elif isinstance(event, KeyEvent | KeyChangeEvent | PolicyEvent):
            self.trust.append((index, event))
        elif isinstance(event, AttestationEvent):
            self.attestations.append((index, event))
        elif isinstance(event, RevocationEvent) and event.target_kind in REVOCABLE:
            self.revoked[event.target_kind].add(event.target_id)
