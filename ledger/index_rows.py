"""What readers get from the catalog: one frozen value per row, digests in text form.

`event` is the leaf index of the event that made the row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.canonical import parse
from contracts.channel import Channel
from contracts.errors import MalformedError
from ledger.derive import MAX_SPEC
from ledger.event_types import ScopeRows, Source
from ledger.events import plain_text, source
from ledger.refusals import RefusedRow, decode_faults


@dataclass(frozen=True, slots=True)
class HeadRow:
    """A signed head of the log: its root in text form, and the note as it was signed."""

    size: int
    root: str
    note: bytes


@dataclass(frozen=True, slots=True)
class EventRow:
    """One leaf of the log."""

    index: int
    type: str
    time: str
    data: bytes
    leaf: bytes


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """A registered channel and the event that registered it."""

    event: int
    channel: Channel


@dataclass(frozen=True, slots=True)
class AcquisitionRow:
    """An acquisition, the kind of its entries, and the one it corrects."""

    event: int
    id: str
    kind: str
    supersedes: str | None = None


@dataclass(frozen=True, slots=True)
class AttestationRow:
    """A signed statement about a subject, by the digest of its envelope."""

    event: int
    kind: str
    subject: str
    statement: str


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """A segment: digests of its files, the root over its entries, and what it covers.

    `first` and `last` are the (trajectory, step) of its first and last row; trajectories between them,
    by UTF-8 bytes, may be in it, others are not.
    """

    event: int
    kind: str
    schema: str
    contract: str
    file: str
    size: int
    root: str
    rows: int
    leaves: str
    rows_file: str
    sources: tuple[Source, ...]
    channels: tuple[str, ...]
    acquisitions: tuple[str, ...]
    scope: tuple[ScopeRows, ...]
    first: tuple[str, int]
    last: tuple[str, int]
    trajectories: int


@dataclass(frozen=True, slots=True)
class RefusalRow:
    """The rows of refused sides, stored like a segment, and the digest of the list of those sides."""

    event: int
    schema: str
    file: str
    size: int
    root: str
    rows: int
    leaves: str
    rows_file: str
    sides: int
    side_index: str
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A signed audit: digests of its envelope, of its result and of its design."""

    event: int
    kind: str
    record: str
    result: str
    design: str


@dataclass(frozen=True, slots=True)
class RevocationRow:
    """Something later audits leave out, when and why."""

    event: int
    target_kind: str
    target_id: str
    reason: str
    time: str


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A design declared under a name: the digest of the plan, and the plan itself."""

    event: int
    id: str
    digest: str
    plan: Mapping[str, Any]


def read_plan(event: int, name: str, digest: str, text: str) -> PlanRow:
    """A plan from its columns."""
    plan = parse(text.encode(), whole_floats=True)
    if not isinstance(plan, dict):
        raise MalformedError("a plan is not an object", where=f"plan {name}")
    return PlanRow(event, name, digest, plan)


def read_segment(row: Sequence[Any], scope: tuple[ScopeRows, ...]) -> SegmentRow:
    """A segment from its columns in the order of the table."""
    (
        event, kind, schema, contract, file, size, root, rows, leaves, rows_file, sources, channels,
        acquisitions, first_trajectory, first_step, last_trajectory, last_step, trajectories,
    ) = row  # fmt: skip
    return SegmentRow(
        event, kind, schema, contract, file, size, root, rows, leaves, rows_file,
        sources=read_sources(sources),
        channels=tuple(plain_text(item) for item in _list(channels)),
        acquisitions=tuple(plain_text(item) for item in _list(acquisitions)),
        scope=scope,
        first=(first_trajectory, first_step),
        last=(last_trajectory, last_step),
        trajectories=trajectories,
    )  # fmt: skip


def read_refusal(row: Sequence[Any]) -> RefusalRow:
    """A refusal from its columns in the order of the table."""
    event, schema, file, size, root, rows, leaves, rows_file, sides, side_index, sources = row
    return RefusalRow(
        event, schema, file, size, root, rows, leaves, rows_file, sides, side_index, read_sources(sources)
    )


def read_refused(row: Sequence[Any]) -> RefusedRow:
    """A refused side from its columns in the order of the table."""
    (
        event, ordinal, trajectory_id, step, view_source, channel, acquisition_id, reason, faults, rows,
        absent, duplicated, failed, unknown, digest, step_kind, target, target_type, success,
    ) = row  # fmt: skip
    return RefusedRow(
        event, ordinal, trajectory_id, step, view_source, channel, acquisition_id, reason,
        decode_faults(faults), rows, absent, duplicated, failed, unknown, digest, step_kind, target,
        target_type, None if success is None else bool(success),
    )  # fmt: skip


def read_sources(text: str) -> tuple[Source, ...]:
    """Source files from their JSON text."""
    return tuple(source(item) for item in _list(text))


def read_spec(text: str, name: str) -> Mapping[str, Mapping[str, object]]:
    """A channel's specification from its JSON text: a table of tables."""
    spec = parse(text.encode(), limit=MAX_SPEC, whole_floats=True)
    if not isinstance(spec, dict) or not all(isinstance(table, dict) for table in spec.values()):
        raise MalformedError("channel specification is not a table of tables", where=f"channel {name}")
    return spec


def _list(text: str) -> list[object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedError("a list in the catalog is not json") from error
    if not isinstance(value, list):
        raise MalformedError("a list in the catalog is another value", got=type(value).__name__)
    return value
