"""What an id on the command line means: an entry, a segment, a record, an event, a channel, a checkpoint …

    <hex>:<row>          an entry: at least 16 hex digits of its entries root, and the row below it
    sha256:<hex> <hex>   a record, an attestation, or a segment's entries root, at least 8 digits
    blake3:<hex>         a channel's fingerprint, a segment's or a refusal's file, at least 8 digits
    either               a model checkpoint, by any digest of it or of one of its files
    blake3:<hex>#<row>   a row of a source file, whose digest alone means the file
    <number>             an event of the log
    anything else        a channel (NAME or NAME@VERSION), an acquisition, a plan, an attested checkpoint or
                         hosted model by its name

A text that means several things is refused with the spellings that mean one: `event:17`, `channel:NAME`,
`acquisition:ID`, `plan:NAME`, `segment:<hex>`, `record:<hex>`, `refusal:<hex>`, `source:<hex>`,
`attestation:<hex>`, `checkpoint:<hex>`, or more digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from contracts.channel import parse_reference
from contracts.errors import UsageError
from contracts.findings import shown
from ledger import checkpoints
from ledger.attestations import STACK
from ledger.checkpoints import CheckpointFound
from ledger.entry_id import SHORT, entry_id
from ledger.entry_id import parse as parse_entry
from ledger.index import Index
from ledger.index_rows import (
    AcquisitionRow,
    AttestationRow,
    ChannelRow,
    PlanRow,
    RecordRow,
    RefusalRow,
    SegmentRow,
)
from ledger.objects import Objects

MIN_HEX = 8
HEX = re.compile(rf"(?:(sha256|blake3):)?([0-9a-f]{{{MIN_HEX},64}})", re.ASCII)
NUMBER = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)
_LISTED = 5


@dataclass(frozen=True)
class EntryFound:
    """One entry: the segment it stands in and its row there."""

    segment: SegmentRow
    row: int

    @property
    def event(self) -> int:
        """The event of its segment."""
        return self.segment.event


@dataclass(frozen=True)
class EventFound:
    """An event that is looked at as such."""

    event: int


@dataclass(frozen=True)
class SourceFound:
    """A file that some ingest read, or one of its rows (`row` from 1, None: the whole file)."""

    digest: str
    name: str
    event: int
    row: int | None = None


Found = (
    EntryFound | EventFound | SourceFound | SegmentRow | RefusalRow | RecordRow | ChannelRow | AcquisitionRow
    | PlanRow | AttestationRow | CheckpointFound
)  # fmt: skip


def spelling(found: Found) -> str:
    """The text that means this and nothing else."""
    match found:
        case EntryFound():
            text = f"{found.segment.root.removeprefix('sha256:')}:{found.row}"
        case EventFound():
            text = f"event:{found.event}"
        case SegmentRow():
            text = f"segment:{found.root.removeprefix('sha256:')}"
        case RefusalRow():
            text = f"refusal:{found.file.removeprefix('blake3:')}"
        case RecordRow():
            text = f"record:{found.record.removeprefix('sha256:')}"
        case ChannelRow():
            text = f"channel:{found.channel.reference}"
        case AcquisitionRow():
            text = f"acquisition:{found.id}"
        case PlanRow():
            text = f"plan:{found.id}"
        case AttestationRow():
            text = f"attestation:{found.statement.removeprefix('sha256:')}"
        case CheckpointFound():
            text = f"checkpoint:{found.digest}"
        case SourceFound():
            row = "" if found.row is None else f"#{found.row}"
            text = f"source:{found.digest.removeprefix('blake3:')}{row}"
    return text


def identify(index: Index, text: str, at: int, objects: Objects | None = None) -> Found:
    """The one thing a text means at the head of size `at`; UsageError `unknown-id` or `ambiguous-id`.

    Checkpoints are known only with `objects`, where their attestations stand.
    """
    if (reference := parse_entry(text)) is not None:
        segments = index.segments_by_root(reference.prefix, at)
        entries = [EntryFound(segment, reference.row) for segment in segments if reference.row < segment.rows]
        if segments and not entries:
            raise UsageError(
                "no such row", code="unknown-id", where=entry_id(segments[0].root, reference.row),
                expected=f"a row below {max(segment.rows for segment in segments)}",
            )  # fmt: skip
        return _only(text, list(entries))
    lookups = dict(_LOOKUPS)
    if objects is not None:
        lookups["checkpoint"] = lambda index, text, at: _checkpoint(index, objects, text, at)
    prefix, colon, rest = text.partition(":")
    if colon and prefix in lookups:
        return _only(text, list(lookups[prefix](index, rest, at)))
    return _only(text, [found for look in lookups.values() for found in look(index, text, at)])


def _only(text: str, found: list[Found]) -> Found:
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(
            f"nothing in this ledger is called {shown(text)}", code="unknown-id",
            expected=f"an entry ({SHORT} hex digits, a colon, a row), a record or segment ({MIN_HEX} hex), "
            "the number of an event, a channel, an acquisition, a plan or a checkpoint",
            next_step="see `ledger log`, and `list` of `ledger channel`, `acquisition`, `plan` and `attest`",
        )  # fmt: skip
    listed = ", ".join(shown(spelling(item), 100) for item in found[:_LISTED])
    more = f", … ({len(found)} in all)" if len(found) > _LISTED else ""
    raise UsageError(
        f"{shown(text)} means several things", code="ambiguous-id", expected=f"one of {listed}{more}"
    )


def _by_digest(text: str, algorithm: str) -> Callable[[str], bool]:
    """Whether a digest in text form begins as asked; never when the text is no such digest."""
    match = HEX.fullmatch(text)
    if match is None or match[1] not in (None, algorithm):
        return lambda digest: False
    wanted = f"{algorithm}:{match[2]}"
    return lambda digest: digest.startswith(wanted)


def _event(index: Index, text: str, at: int) -> Iterator[Found]:
    if NUMBER.fullmatch(text) and int(text) < at:
        yield EventFound(int(text))


def _segment(index: Index, text: str, at: int) -> Iterator[Found]:
    root, file = _by_digest(text, "sha256"), _by_digest(text, "blake3")
    yield from (row for row in index.segments(at) if root(row.root) or file(row.file))


def _refusal(index: Index, text: str, at: int) -> Iterator[Found]:
    root, file = _by_digest(text, "sha256"), _by_digest(text, "blake3")
    for row in index.refusals(at):
        if root(row.root) or file(row.file) or file(row.side_index):
            yield row


def _record(index: Index, text: str, at: int) -> Iterator[Found]:
    record = _by_digest(text, "sha256")
    yield from (row for row in index.records(at) if record(row.record))


def _channel(index: Index, text: str, at: int) -> Iterator[Found]:
    fingerprint = _by_digest(text, "blake3")
    try:
        reference = parse_reference(text)
    except UsageError:
        reference = None
    seen = set()
    for row in index.channel_rows(at):
        named = reference is not None and reference.name == row.channel.name
        if named and reference is not None and reference.version in (None, row.channel.version):
            yield row
        elif fingerprint(row.channel.fingerprint) and row.channel.fingerprint not in seen:
            yield row  # several names may share a fingerprint: the first stands for all
        seen.add(row.channel.fingerprint)


def _acquisition(index: Index, text: str, at: int) -> Iterator[Found]:
    yield from (row for row in index.acquisitions(at) if row.id == text)


def _plan(index: Index, text: str, at: int) -> Iterator[Found]:
    digest = _by_digest(text, "sha256")
    yield from (row for row in index.plans(at) if row.id == text or digest(row.digest))


def _source(index: Index, text: str, at: int) -> Iterator[Found]:
    """The files that segments and refusals name; a file that several calls read is one."""
    text, mark, row = text.partition("#")
    if mark and not NUMBER.fullmatch(row):
        return
    digest, seen = _by_digest(text, "blake3"), set()
    holders: list[SegmentRow | RefusalRow] = [*index.segments(at), *index.refusals(at)]
    for holder in sorted(holders, key=lambda row: row.event):
        for source in holder.sources:
            if source.digest not in seen and digest(source.digest):
                seen.add(source.digest)
                yield SourceFound(source.digest, source.name, holder.event, int(row) if mark else None)


def _attestation(index: Index, text: str, at: int) -> Iterator[Found]:
    """By its digest; a claim about a hosted model by the name it gives too."""
    digest = _by_digest(text, "sha256")
    for row in index.attestations(at):
        if digest(row.statement) or (row.kind, row.subject) == (STACK, text):
            yield row


def _checkpoint(index: Index, objects: Objects, text: str, at: int) -> Iterator[Found]:
    """By the name it was attested under, or any digest of it."""
    sha256, blake3 = _by_digest(text, "sha256"), _by_digest(text, "blake3")
    if any(row.subject == text for row in index.attestations(at)) or HEX.fullmatch(text):
        for found in checkpoints.known(index, objects, at):
            if text in found.names or any(sha256(d) or blake3(d) for d in found.digests):
                yield found


_LOOKUPS: dict[str, Callable[[Index, str, int], Iterator[Found]]] = {
    "event": _event,
    "segment": _segment,
    "refusal": _refusal,
    "record": _record,
    "channel": _channel,
    "acquisition": _acquisition,
    "plan": _plan,
    "source": _source,
    "attestation": _attestation,
}
