"""What `ledger status`, `acquisition list` and `log` show, read from the catalog.

Of entries only those are read that may have completed a refused side.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import LedgerError, TamperError, VerificationError
from ledger import catalog_file, clock, events, heads, pin, publish
from ledger.event_types import (
    AcquisitionEvent,
    AttestationEvent,
    AuditEvent,
    ChannelEvent,
    Event,
    KeyChangeEvent,
    KeyEvent,
    ObjectRef,
    PlanEvent,
    PolicyEvent,
    RefusalEvent,
    RevocationEvent,
    SegmentEvent,
)
from ledger.home import Home
from ledger.index import Index
from ledger.index_rows import EventRow, RecordRow, RevocationRow
from ledger.keys import PublicKey, key_id

_HEX = 12
_ACTIONS = {"add": "added", "rotate": "rotated to", "retire": "retired"}


@dataclass(frozen=True)
class Status:
    """A ledger at a glance.

    `pinned` and `published` are the sizes of the pin and the checkpoint, None where there is none.
    `fault` is why the head does not verify, None when it does. `refused_sides` counts every refusal,
    `open_sides` the different sides that came whole in no later call (None where that cannot be told because
    entries are damaged). `time` is that of the newest event, `last_audit` with the time it was logged.
    """

    home: Path
    origin: str
    key_id: str
    size: int
    root: str
    time: str
    pinned: int | None
    published: int | None
    fault: VerificationError | None
    entries: int
    segments: int
    channels: int
    acquisitions: int
    revoked: int
    refused_sides: int
    open_sides: int | None
    refused_rows: int
    audits: int
    last_audit: tuple[RecordRow, str] | None
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class AcquisitionSummary:
    """An acquisition: its channels by name, its entries and refused sides, whether and why it is revoked."""

    id: str
    kind: str
    event: int
    time: str
    channels: tuple[str, ...]
    entries: int
    refused_sides: int
    revocation: RevocationRow | None


@dataclass(frozen=True)
class LogLine:
    """One event in one line."""

    index: int
    type: str
    time: str
    summary: str


def status(home: Home) -> Status:
    """The state of a home; a head that does not verify is reported in it, not raised."""
    with Index.open(home) as index:
        row = index.head()
        fault, pinned, published = _trust(home, index)
        segments, refusals, records = index.segments(), index.refusals(), index.records()
        newest = _event(index, row.size - 1)
        last = None
        if records:
            last = (records[-1], _event(index, records[-1].event).time)
        warnings = []
        if newest.time > clock.now():
            warnings.append(f"the newest event is from the future: {newest.time}; check the clock")
        if published is not None and published < row.size:
            warnings.append(f"published up to {published} of {row.size} events; run `ledger repair`")
        if pinned is None and fault is None:
            warnings.append(
                "no pin on this machine: run `ledger verify --key KEY.pem` with the owner's public key; "
                "only for a first look: `ledger verify --trust-first`"
            )
        return Status(
            home=home.path,
            origin=home.origin,
            key_id=key_id(PublicKey(heads.history(index).heads.newest.public)),
            size=row.size,
            root=row.root,
            time=newest.time,
            pinned=pinned,
            published=published,
            fault=fault,
            entries=sum(segment.rows for segment in segments),
            segments=len(segments),
            channels=len({row.channel.fingerprint for row in index.channel_rows()}),
            acquisitions=len(index.acquisitions()),
            revoked=len({r.target_id for r in index.revocations() if r.target_kind == "acquisition"}),
            refused_sides=sum(refusal.sides for refusal in refusals),
            open_sides=_open_sides(index, home),
            refused_rows=sum(refusal.rows for refusal in refusals),
            audits=len(records),
            last_audit=last,
            warnings=tuple(warnings),
        )


def _event(index: Index, place: int) -> EventRow:
    """One event of the log; TamperError where the catalog has lost it."""
    found = next(index.events(place, place + 1), None)
    if found is None:
        raise TamperError(
            "an event is missing", kind="catalog", where=f"event {place}", next_step=catalog_file.REBUILD
        )
    return found


def _open_sides(index: Index, home: Home) -> int | None:
    from ledger.open_sides import open_sides  # reading entries takes Arrow, which nothing else here needs

    try:
        return open_sides(index, home.objects)
    except LedgerError:  # `verify` tells what is damaged; here it only leaves one number unknown
        return None


def acquisitions(home: Home, at: int | None = None) -> tuple[AcquisitionSummary, ...]:
    """Every acquisition in the order of its first sight."""
    with heads.opened(home) as index:
        names: dict[str, str] = {}
        for channel in index.channels(at).channels:
            names.setdefault(channel.fingerprint, channel.reference)
        entries: Counter[tuple[str, str]] = Counter()
        used: dict[tuple[str, str], dict[str, None]] = {}
        for segment in index.segments(at):
            for part in segment.scope:
                key = (part.acquisition, segment.kind)
                entries[key] += part.rows
                name = names.get(part.channel or "", "undeclared")
                used.setdefault(key, {})[name] = None
        refused: Counter[str] = Counter()
        for fingerprint, acquisition, sides in index.refused_counts(at):
            refused[acquisition] += sides
            used.setdefault((acquisition, "transport"), {})[names.get(fingerprint, "undeclared")] = None
        revoked = {
            row.target_id: row for row in reversed(index.revocations(at)) if row.target_kind == "acquisition"
        }
        times = index.times(AcquisitionEvent.type)
        return tuple(
            AcquisitionSummary(
                id=row.id,
                kind=row.kind,
                event=row.event,
                time=times[row.event],
                channels=tuple(used.get((row.id, row.kind), ())),
                entries=entries[row.id, row.kind],
                refused_sides=refused[row.id] if row.kind == "transport" else 0,
                revocation=revoked.get(row.id),
            )
            for row in index.acquisitions(at)
        )


def log_lines(home: Home, start: int = 0, stop: int | None = None) -> Iterator[LogLine]:
    """The events from `start` up to, not including, `stop`, each in one line."""
    with heads.opened(home) as index:
        for row in index.events(max(start, 0), None if stop is None else min(stop, index.size)):
            yield LogLine(row.index, row.type, row.time, summary(events.decode(row.data)))


def log_objects(home: Home, start: int = 0, stop: int | None = None) -> Iterator[dict[str, object]]:
    """The same events as JSON objects, each with its index."""
    with heads.opened(home) as index:
        for row in index.events(max(start, 0), None if stop is None else min(stop, index.size)):
            yield {"index": row.index, **json.loads(row.data)}


def summary(event: Event) -> str:
    """What an event says in a few words, an id first: a narrow screen cuts lines at their end."""
    match event:
        case KeyEvent():
            text = f"key for {event.role}: {event.vkey.rpartition('+')[0]}"
        case KeyChangeEvent():
            text = f"key for {event.role}: {_ACTIONS[event.action]} {event.vkey.rpartition('+')[0]}"
        case PolicyEvent():
            roles = ", ".join(f"{role.threshold} of {len(role.keys)} {role.role}" for role in event.roles)
            text = f"policy: {roles}"
        case AttestationEvent():
            text = f"statement {_short(event.statement)}, {event.kind} {event.subject} attested"
        case ChannelEvent():
            text = f"{_short(event.fingerprint)} {event.name}@{event.version}"
        case AcquisitionEvent():
            text = f"acquisition {event.id} ({event.kind})"
        case SegmentEvent():
            text = f"root {_short(event.root)}, {event.rows:,} {event.kind} entries of {_sources(event)}"
        case RefusalEvent():
            text = f"{event.sides:,} sides ({event.rows:,} rows) of {_sources(event)} refused"
        case RevocationEvent():
            text = f"{event.target_kind} {event.target_id} revoked: {event.reason}"
        case AuditEvent():
            text = f"record {_short(event.record)}, {event.kind}"
        case PlanEvent():
            text = f"{_short(event.digest)} plan {event.id}"
    return text


def _sources(event: SegmentEvent | RefusalEvent) -> str:
    if isinstance(event.sources, ObjectRef):
        return "many files"
    names = [source.name for source in event.sources]
    return names[0] if len(names) == 1 else f"{len(names)} files"


def _trust(home: Home, index: Index) -> tuple[VerificationError | None, int | None, int | None]:
    """Why the head is not to be trusted, and the sizes of pin and checkpoint."""
    pinned = published = None
    try:
        known = pin.load(home.origin)
        pinned = known.head.size if known else None
        checked = heads.check(home, index, trust_first=known is None)
        found = publish.check(home.objects, checked)
        published = found.size if found else 0
    except VerificationError as error:
        return error, pinned, published
    return None, pinned, published


def _short(digest: str) -> str:
    algorithm, _, value = digest.partition(":")
    return f"{algorithm}:{value[:_HEX]}" if value else digest
