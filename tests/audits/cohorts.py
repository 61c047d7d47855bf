"""Small ledgers with known margins: with one competitor at energy 0, F is the target's energy."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ledger import channels
from ledger.home import Home, init, signing_key
from ledger.ingest import ingest
from ledger.keys import SigningKey
from ledger.snapshot import Snapshot, open_snapshot

SPEC = """name = "{name}"
[prompt]
text = "judge {name}"
[readout]
kind = "joint-label"
[stack]
model = "m"
hosted = {hosted}
[view]
kind = "none"
[presentation]
layouts = {layouts}
"""
Row = dict[str, Any]
ENDPOINTS = ("before", "after")


@dataclass(frozen=True)
class Face:
    """The margins of one transition: (before, after) of `direct` and of `generated`."""

    ref: tuple[float, float]
    alt: tuple[float, float]
    target: str = "A"
    extra: Mapping[str, Any] = field(default_factory=dict)


def gains(ref: float, alt: float, **more: Any) -> Face:
    """A transition with these gains and a baseline of its own."""
    return Face((0.25, 0.25 + ref), (-0.5, -0.5 + alt), **more)


@dataclass(frozen=True)
class Ledger:
    """A home with its key, and the folder for files beside it."""

    home: Home
    key: SigningKey
    folder: Path

    def ingest(self, rows: Sequence[Row], name: str = "scores.parquet") -> None:
        """Take in rows as one file."""
        pq.write_table(pa.Table.from_pylist(list(rows)), self.folder / name)
        ingest(self.home, [self.folder / name], key=self.key)

    def snapshot(self, at: int | None = None) -> Snapshot:
        return open_snapshot(self.home, at=at)


def new_ledger(
    folder: Path, *, names: Sequence[str] = ("direct", "generated"), layouts: int = 2, hosted: bool = False
) -> Ledger:
    """A home where the channels are registered."""
    home = init(folder / ".ledger", origin=f"log-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}")
    key = signing_key(home)
    files = []
    for name in names:
        files.append(folder / f"{name}.toml")
        files[-1].write_text(SPEC.format(name=name, layouts=layouts, hosted=str(hosted).lower()))
    channels.add(home, key, files)
    return Ledger(home, key, folder)


def digest(*parts: object) -> str:
    return "sha256:" + hashlib.sha256(repr(parts).encode()).hexdigest()


def rows(
    faces: Mapping[tuple[str, int], Face],
    *,
    layouts: int = 2,
    acquisitions: Mapping[str, Sequence[str]] | None = None,
    shift: Callable[[str, int, str], float] = lambda channel, layout, acquisition: 0.0,
    bound: bool = True,
) -> list[Row]:
    """Every reading of every face; `shift` is added to F(after) by channel, layout and acquisition."""
    made = []
    for (trajectory, step), face in faces.items():
        for channel, margins in (("direct", face.ref), ("generated", face.alt)):
            for acquisition in (acquisitions or {}).get(channel, ("main-1",)):
                for e, endpoint in enumerate(ENDPOINTS):
                    for layout in range(layouts):
                        energy = margins[e] + (shift(channel, layout, acquisition) if e else 0.0)
                        at = (trajectory, step, endpoint)
                        digests = {
                            "state_hash": digest("state", at),
                            "candidates_hash": digest("candidates", trajectory, step),
                            "request_hash": digest("request", at, channel, layout, acquisition),
                        }
                        for candidate in ("A", "B"):
                            made.append(
                                {
                                    "trajectory_id": trajectory, "step": step, "endpoint": endpoint,
                                    "channel": channel, "layout": layout, "acquisition_id": acquisition,
                                    "candidate": candidate, "target": face.target,
                                    "energy": energy if candidate == face.target else 0.0,
                                    **(digests if bound else {}), **face.extra,
                                }
                            )  # fmt: skip
    return made


def noisy(trajectories: int = 12, steps: int = 3, **more: Any) -> dict[tuple[str, int], Face]:
    """Faces with dyadic gains that vary by trajectory and step, some of them 0."""
    return {
        (f"t{t:03d}", s): gains(((t * 7 + s * 3) % 9 - 2) / 8, ((t * 5 + s * 4) % 11 - 8) / 16, **more)
        for t in range(trajectories)
        for s in range(steps)
    }
