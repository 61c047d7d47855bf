"""Canonical rows of small made-up transitions: what tests of the set level start from."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from contracts.channel import Channel, ChannelBook, fingerprint
from contracts.digest import blake3_digest, pack
from contracts.findings import Findings
from contracts.rows import IN_FLIGHT, RowResult
from contracts.schema import TRANSPORT

Row = dict[str, Any]
LETTERS = ("A", "B", "C")


def channel(name: str, layouts: int = 2, labels: Sequence[str] | None = None) -> Channel:
    """A channel under a name; without `labels` it takes any number of candidates."""
    readout: dict[str, Any] = {"kind": "joint-label"}
    if labels is not None:
        readout["labels"] = list(labels)
    spec = {
        "prompt": {"text": name},
        "readout": readout,
        "stack": {"model": "m"},
        "view": {"kind": "none"},
        "presentation": {"layouts": layouts},
    }
    return Channel(name, 1, spec, fingerprint(spec))


DIRECT, GENERATED = channel("direct"), channel("generated")
LABELLED, MANY = channel("labelled", labels=LETTERS), channel("many", layouts=40)
BOOK = ChannelBook((DIRECT, GENERATED, LABELLED, MANY))


def digest(text: str) -> bytes:
    """The packed digest of some text."""
    return pack(blake3_digest(text.encode()))


def side(
    trajectory: str = "t0",
    step: int = 0,
    *,
    of: Channel = DIRECT,
    acquisition: str = "run-1",
    view_source: str = "own",
    candidates: Iterable[str] = LETTERS,
    **more: Any,
) -> list[Row]:
    """The rows of one whole side; its energies tell its cells apart."""
    names = tuple(candidates)
    return [
        {
            "trajectory_id": trajectory,
            "step": step,
            "endpoint": endpoint,
            "view_source": view_source,
            "channel": pack(of.fingerprint),
            "layout": layout,
            "acquisition_id": acquisition,
            "candidate": candidate,
            "energy": place + layout / 8 + number / 1024,
            "target": names[0],
            "state_hash": digest(f"{trajectory} {step} {endpoint}"),
            "candidates_hash": digest(" ".join(names)),
            "status": "ok",
            **more,
        }
        for place, endpoint in enumerate(("before", "after"))
        for layout in range(of.layouts or 0)
        for number, candidate in enumerate(names)
    ]


def face(trajectory: str = "t0", step: int = 0, **more: Any) -> list[Row]:
    """The rows of two whole sides, one for each of two channels."""
    return side(trajectory, step, **more) + side(trajectory, step, of=GENERATED, **more)


def result(rows: Sequence[Mapping[str, Any]], shuffled: int | None = None) -> RowResult:
    """Rows as the row level hands them on, in their order or in another; row numbers are theirs."""
    numbered = [{"source_file": 0, "source_row": i, **row} for i, row in enumerate(rows, 1)]
    if shuffled is not None:
        random.Random(shuffled).shuffle(numbered)
    columns = []
    for name in IN_FLIGHT.names:
        kind = IN_FLIGHT.field(name).type
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        values = pa.array([row.get(name) for row in numbered], plain)
        columns.append(values.dictionary_encode() if pa.types.is_dictionary(kind) else values)
    return RowResult(pa.table(columns, schema=IN_FLIGHT), Findings(), len(rows), (), {}, {}, {})


def entries(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as entries the ledger has."""
    values = [{name: row.get(name) for name in TRANSPORT.names} for row in rows]
    return pa.Table.from_pylist(values, schema=TRANSPORT.arrow)


def pick(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    """The rows with some values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def drop(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    """All other rows."""
    return [row for row in rows if not all(row[name] == value for name, value in wanted.items())]
