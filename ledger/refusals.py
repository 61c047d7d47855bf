"""The list of refused sides of one refusal: how it is written into an object and read back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from contracts.errors import MalformedError
from ledger.events import list_bytes
from ledger.fields import Fields

KEYS = (
    "trajectory_id", "step", "view_source", "channel", "acquisition_id", "reason", "rows", "digest",
    "step_kind", "target", "target_type", "success",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fault:
    """One faulty cell: `kind` is absent, duplicated, unknown or failed:<status>."""

    endpoint: str
    layout: int
    candidate: str
    kind: str


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A side that a contract refused, by the leaf index of the refusal and its place in that list."""

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
    digest: str
    step_kind: str | None
    target: str | None
    target_type: str | None
    success: bool | None

    @property
    def key(self) -> tuple[str, int, str, str, str]:
        """Which side it is."""
        return self.trajectory_id, self.step, self.view_source, self.channel, self.acquisition_id


class FaultLike(Protocol):
    """What a contract says about one faulty cell."""

    @property
    def endpoint(self) -> str: ...
    @property
    def layout(self) -> int: ...
    @property
    def candidate(self) -> str: ...
    @property
    def kind(self) -> str: ...


class SideLike(Protocol):
    """What a contract says about one refused side."""

    @property
    def trajectory_id(self) -> str: ...
    @property
    def step(self) -> int: ...
    @property
    def view_source(self) -> str: ...
    @property
    def channel(self) -> str: ...
    @property
    def acquisition_id(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def faults(self) -> Sequence[FaultLike]: ...
    @property
    def rows(self) -> int: ...
    @property
    def digest(self) -> str: ...
    @property
    def step_kind(self) -> str | None: ...
    @property
    def target(self) -> str | None: ...
    @property
    def target_type(self) -> str | None: ...
    @property
    def success(self) -> bool | None: ...


def encode_index(sides: Iterable[SideLike]) -> bytes:
    """The canonical bytes of a list of refused sides, in the order given."""
    return list_bytes(
        [{key: getattr(side, key) for key in KEYS} | {"faults": encode_faults(side.faults)} for side in sides]
    )


def encode_faults(faults: Iterable[FaultLike]) -> list[list[object]]:
    """Faulty cells as JSON lists of four."""
    return [[fault.endpoint, fault.layout, fault.candidate, fault.kind] for fault in faults]


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
    """The faulty cells of JSON lists of four."""
    if not isinstance(value, list):
        raise MalformedError("faults of a refused side are not a list")
    return tuple(_fault(item) for item in value)


def _fault(value: object) -> Fault:
    match value:
        case [str(endpoint), int(layout), str(candidate), str(kind)]:
            return Fault(endpoint, layout, candidate, kind)
    raise MalformedError("faulty cell is not right", expected="[endpoint, layout, candidate, kind]")


def _row(item: object, event: int, ordinal: int) -> RefusedRow:
    fields = Fields.of(item, "refused side")
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
        digest=fields.digest("digest", "blake3"),
        step_kind=fields.optional_text("step_kind"),
        target=fields.optional_text("target"),
        target_type=fields.optional_text("target_type"),
        success=_truth(fields.take("success")),
    )
    fields.close()
    return row


def _truth(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise MalformedError("`success` of a refused side is not right", expected="true, false or null")
