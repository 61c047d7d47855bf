"""The list of refused sides of one refusal: how it is written into an object and read back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from contracts.errors import MalformedError
from ledger.events import list_bytes
from ledger.fields import Fields

_OPTIONAL = ("step_kind", "target", "target_type", "success")


@dataclass(frozen=True, slots=True)
class Fault:
    """One faulty cell: `kind` is absent, duplicated, unknown or failed:<status>."""

    endpoint: str
    layout: int
    candidate: str
    kind: str


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A side that a contract refused, by the leaf index of the refusal and its place in that list.

    `faults` are the first of each endpoint; the four counts are over all its cells.
    """

    event: int
    ordinal: int
    trajectory_id: str
    step: int
    view_source: str
    channel: str
    acquisition_id: str
    reason: str
    faults: tuple[Fault, ...]
    rows: int
    absent: int
    duplicated: int
    failed: int
    unknown: int
    digest: str
    step_kind: str | None
    target: str | None
    target_type: str | None
    success: bool | None

    @property
    def key(self) -> tuple[str, int, str, str, str]:
        """Which side it is."""
        return self.trajectory_id, self.step, self.view_source, self.channel, self.acquisition_id


class SideLike(Protocol):
    """A refused side that a contract names (`contracts.refusals.RefusedSide`)."""

    def as_object(self) -> dict[str, object]:
        """The side as one JSON object; absent parts are left out."""


def encode_index(sides: Iterable[SideLike]) -> bytes:
    """The canonical bytes of a list of refused sides, in the order given."""
    return list_bytes([side.as_object() for side in sides])


def encode_faults(faults: Iterable[Fault]) -> list[dict[str, object]]:
    """Faulty cells as JSON objects."""
    return [
        {"endpoint": f.endpoint, "layout": f.layout, "candidate": f.candidate, "kind": f.kind} for f in faults
    ]


def decode_index(data: bytes, event: int) -> tuple[RefusedRow, ...]:
    """The sides of a list whose digest was checked; MalformedError when it is not such a list."""
    try:
        items = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedError("list of refused sides is not json") from error
    if not isinstance(items, list):
        raise MalformedError("list of refused sides is not a list")
    return tuple(_row(item, event, ordinal) for ordinal, item in enumerate(items))


def decode_faults(value: object) -> tuple[Fault, ...]:
    """The faulty cells of a list of JSON objects."""
    if not isinstance(value, list):
        raise MalformedError("faults of a refused side are not a list")
    return tuple(_fault(item) for item in value)


def _fault(item: object) -> Fault:
    fields = Fields.of(item, "faulty cell")
    fault = Fault(
        fields.text("endpoint"), fields.whole("layout"), fields.text("candidate"), fields.text("kind")
    )
    fields.close()
    return fault


def _row(item: object, event: int, ordinal: int) -> RefusedRow:
    fields = Fields.of(item, "refused side")
    fields.left = dict.fromkeys(_OPTIONAL) | fields.left
    row = RefusedRow(
        event=event,
        ordinal=ordinal,
        trajectory_id=fields.text("trajectory_id"),
        step=fields.whole("step"),
        view_source=fields.text("view_source"),
        channel=fields.digest("channel", "blake3"),
        acquisition_id=fields.text("acquisition_id"),
        reason=fields.text("reason"),
        faults=decode_faults(fields.take("faults")),
        rows=fields.whole("rows"),
        absent=fields.whole("absent"),
        duplicated=fields.whole("duplicated"),
        failed=fields.whole("failed"),
        unknown=fields.whole("unknown"),
        digest=fields.digest("digest", "blake3"),
        step_kind=fields.optional_text("step_kind"),
        target=fields.optional_text("target"),
        target_type=fields.optional_text("target_type"),
        success=fields.optional_truth("success"),
    )
    fields.close()
    return row
