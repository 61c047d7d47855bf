"""Score files as collectors write them, and a home with their two channels: what ingest tests start from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ledger import channels
from tests.ledger.homes import Place, new_place
from tests.postgres import Cluster

SPEC = """name = "{name}"
[prompt]
text = "score it"
[readout]
kind = "joint-label"
labels = ["A", "B", "C"]
[stack]
model = "m"
[view]
kind = "{view}"
[presentation]
layouts = 2
"""
Row = dict[str, Any]


def place_with_channels(folder: Path, cluster: Cluster | None = None) -> Place:
    """A new home where `direct` and `generated` are registered."""
    place = new_place(folder, cluster)
    files = []
    for name, view in (("direct", "none"), ("generated", "generated")):
        files.append(folder / f"{name}.toml")
        files[-1].write_text(SPEC.format(name=name, view=view))
    channels.add(place.home, place.key, files)
    return place


def digest(*parts: object) -> str:
    return "sha256:" + hashlib.sha256(repr(parts).encode()).hexdigest()


def rows(
    trajectories: Sequence[int] = range(4),
    steps: int = 2,
    *,
    names: Sequence[str] = ("direct", "generated"),
    acquisition: str = "main-1",
) -> list[Row]:
    """Every row of whole sides: 12 a side, at level bound."""
    made = []
    for t in trajectories:
        for step in range(steps):
            for endpoint in ("before", "after"):
                for channel in names:
                    for layout in range(2):
                        made += [
                            _row((t, step), endpoint, channel, layout, candidate, acquisition)
                            for candidate in "ABC"
                        ]
    return made


def _row(
    at: tuple[int, int], endpoint: str, channel: str, layout: int, candidate: str, acquisition: str
) -> Row:
    request = digest("request", at, endpoint, channel, layout, acquisition)
    return {
        "trajectory_id": f"traj{at[0]:03d}",
        "step": at[1],
        "step_kind": "retrieval" if at[1] else "reason",
        "endpoint": endpoint,
        "channel": channel,
        "layout": layout,
        "acquisition_id": acquisition,
        "candidate": candidate,
        "energy": int(digest(request, candidate)[7:13], 16) / 2**22 - 2.0,
        "target": "A",
        "success": at[0] % 2 == 0,
        "state_hash": digest("state", at, endpoint),
        "candidates_hash": digest("candidates", at),
        "request_hash": request,
        "view_hash": digest("view", at, endpoint) if channel == "generated" else None,
    }


def write(path: Path, made: Sequence[Row]) -> Path:
    """The rows as a Parquet file."""
    schema = pa.schema(
        [
            (name, {int: pa.int64(), float: pa.float64(), bool: pa.bool_()}.get(type(value), pa.string()))
            for name, value in made[0].items()
        ]
    )
    pq.write_table(pa.Table.from_pylist(list(made), schema=schema), path)
    return path


def without(made: Sequence[Row], **key: object) -> list[Row]:
    """The rows but those that have all these values."""
    return [row for row in made if any(row[name] != value for name, value in key.items())]
