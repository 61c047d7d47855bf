"""The list of refused sides of one refusal: how it is written into an object and read back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from contracts.digest import is_digest
from contracts.errors import MalformedError
from ledger.events import list_bytes

_SIDE: dict[str, type] = {
    "trajectory_id": str, "step": int, "view_source": str, "channel": str, "acquisition_id": str,
    "reason": str, "faults": list, "rows": int, "absent": int, "duplicated": int, "failed": int,
    "unknown": int, "digest": str,
}  # fmt: skip
_OPTIONAL: dict[str, type] = {"step_kind": str, "target": str, "target_type": str, "success": bool}
_ABSENT = dict.fromkeys(_OPTIONAL)
_FAULT: dict[str, type] = {"endpoint": str, "layout": int, "candidate": str, "kind": str}
_DECODER = json.JSONDecoder()


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


def read_index(data: bytes) -> Iterator[dict[str, Any]]:
    """The sides in a list whose digest was checked, as JSON objects of the right shape, one at a time.

    A list can be long: only one of its objects exists at any moment. MalformedError when it is no such list.
    """
    try:
        text = data.decode()
        if not (text.startswith("[") and text.endswith("]")):
            raise MalformedError("list of refused sides is not a list")
        at, last = 0, len(text) - 1
        while at < last > 1:
            item, at = _DECODER.raw_decode(text, at + 1)
            yield _shaped(item)
            if at != last and text[at] != ",":
                raise MalformedError("list of refused sides is not json")
    except (ValueError, RecursionError) as error:
        raise MalformedError("list of refused sides is not json") from error


def decode_index(data: bytes, event: int) -> tuple[RefusedRow, ...]:
    """The sides in a list whose digest was checked, as values."""
    return tuple(
        RefusedRow(event=event, ordinal=ordinal, **item | {"faults": decode_faults(faults_text(item))})
        for ordinal, item in enumerate(read_index(data))
    )


def faults_text(item: Mapping[str, Any]) -> str:
    """The faulty cells of a side as canonical JSON text."""
    return list_bytes(item["faults"]).decode()


@lru_cache(maxsize=1 << 16)
def decode_faults(text: str) -> tuple[Fault, ...]:
    """The faulty cells in JSON text; many sides share theirs."""
    try:
        items = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedError("faults of a refused side are not json") from error
    if not isinstance(items, list):
        raise MalformedError("faults of a refused side are not a list")
    return tuple(Fault(**_shaped_fault(item)) for item in items)


def _shaped(item: object) -> dict[str, Any]:
    """The same object with absent parts as null, if every part of it is of the right kind."""
    if not isinstance(item, dict) or not _SIDE.keys() <= item.keys() <= _SIDE.keys() | _OPTIONAL.keys():
        raise MalformedError("not a refused side", expected=", ".join(_SIDE))
    for name, kind in _SIDE.items():
        value: Any = item[name]
        # type() and not isinstance(): True is no number here.
        if type(value) is not kind or value == "" or (kind is int and item[name] < 0):
            raise MalformedError(f"`{name}` of a refused side is not right", expected=kind.__name__)
    if not (is_digest(item["channel"]) and is_digest(item["digest"])):
        raise MalformedError("a refused side without digests")
    for fault in item["faults"]:
        _shaped_fault(fault)
    shaped = _ABSENT | item
    for name, kind in _OPTIONAL.items():
        if shaped[name] is not None and type(shaped[name]) is not kind:
            raise MalformedError(f"`{name}` of a refused side is not right", expected=kind.__name__)
    return shaped


def _shaped_fault(item: object) -> dict[str, Any]:
    if not isinstance(item, dict) or item.keys() != _FAULT.keys():
        raise MalformedError("not a faulty cell", expected=", ".join(_FAULT))
    for name, kind in _FAULT.items():
        if type(item[name]) is not kind:
            raise MalformedError(f"`{name}` of a faulty cell is not right", expected=kind.__name__)
    return item
