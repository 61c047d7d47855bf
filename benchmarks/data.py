"""Synthetic score files of any size, the same bytes of rows every time: what the benchmarks run on.

64 entries a transition (2 endpoints, 2 channels, 4 layouts, 4 candidates), 20 transitions a trajectory, so
a million entries have 781 trajectories. Digests are text as collectors write them. Nothing here was scored
by an evaluator.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

STEPS, ENDPOINTS, CHANNELS, LAYOUTS, CANDIDATES = 20, 2, 2, 4, 4
PER_TRANSITION = ENDPOINTS * CHANNELS * LAYOUTS * CANDIDATES
PER_TRAJECTORY = STEPS * PER_TRANSITION
SEED = 20260928
BLOCK = 1 << 20  # rows written at once, and pyarrow's default for a row group
Numbers = npt.NDArray[Any]
LABELS = ("A", "B", "C", "D")
SPEC = """name = "{name}"

[prompt]
text = "Score each candidate. (benchmark)"

[readout]
kind = "joint-label"
labels = ["A", "B", "C", "D"]

[stack]
provider = "benchmark"
model = "none"

[view]
kind = "{view}"

[presentation]
layouts = 4
"""
Order = Literal["requests", "rows", "sorted"]


def channel_specs(folder: Path) -> list[Path]:
    """Writes the two channels the files name."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, view in (("direct", "none"), ("generated", "generated")):
        paths.append(folder / f"{name}.toml")
        paths[-1].write_text(SPEC.format(name=name, view=view))
    return paths


def trajectories_of(entries: int) -> int:
    """How many whole trajectories about so many entries are."""
    return max(entries // PER_TRAJECTORY, 1)


def whole(entries: int) -> int:
    """How many entries those are."""
    return trajectories_of(entries) * PER_TRAJECTORY


def scores(
    entries: int, *, order: Order = "requests", trajectories: tuple[int, int] | None = None
) -> pa.Table:
    """About `entries` entries (whole trajectories), or those of trajectories [start, stop) of them.

    Rows stand as a collector writes them that has many requests under way: requests in no order, the
    candidates of one together; or shuffled row by row, or in canonical order. A row's values depend on
    which entry it is and on nothing else, so parts of a file add up to it.
    """
    total = trajectories_of(entries)
    first, last = trajectories or (0, total)
    return _rows(_ordered(np.arange(first * PER_TRAJECTORY, last * PER_TRAJECTORY), order), last)


def blocks(entries: int, order: Order, trajectories: tuple[int, int] | None = None) -> Iterator[pa.Table]:
    """The same rows about a million at a time, so that any number of them can be written.

    `requests` and `sorted` go from trajectory to trajectory, a block shuffled in itself. In a block of
    `rows` stands every k-th entry of the whole, k odd and no multiple of 5 so that each candidate, layout,
    channel, endpoint and step comes up, and these are shuffled: every block holds rows of all trajectories.
    """
    first, last = trajectories or (0, trajectories_of(entries))
    if order == "rows":
        low, high = first * PER_TRAJECTORY, last * PER_TRAJECTORY
        count = -(-(high - low) // BLOCK)
        count += 1 - count % 2
        count += 2 * (count % 5 == 0)
        for block in range(count):
            yield _rows(_ordered(np.arange(low + block, high, count), order), last)
        return
    size = BLOCK // PER_TRAJECTORY
    for start in range(first, last, size):
        yield scores(entries, order=order, trajectories=(start, min(start + size, last)))


def _ordered(number: Numbers, order: Order) -> Numbers:
    if order == "sorted":
        return number
    together = CANDIDATES if order == "requests" else 1
    mixed: Numbers = np.random.default_rng(SEED).permutation(number.reshape(-1, together)).ravel()
    return mixed


def _rows(number: Numbers, last: int) -> pa.Table:
    """The rows of entries by their number, all of trajectories below `last`."""
    rest, candidate = np.divmod(number, CANDIDATES)
    rest, layout = np.divmod(rest, LAYOUTS)
    rest, channel = np.divmod(rest, CHANNELS)
    rest, endpoint = np.divmod(rest, ENDPOINTS)
    trajectory, step = np.divmod(rest, STEPS)
    transition, side = rest, rest * ENDPOINTS + endpoint
    request = (side * CHANNELS + channel) * LAYOUTS + layout
    return pa.table(
        {
            "trajectory_id": _named(trajectory, [f"traj{i:06d}" for i in range(last)]),
            "step": pa.array(step.astype(np.int32)),
            "step_kind": _named(step % 3, ["retrieval", "reason", "answer"]),
            "endpoint": _named(endpoint, ["before", "after"]),
            "view_source": _named(np.zeros_like(step), ["own"]),
            "channel": _named(channel, ["direct", "generated"]),
            "layout": pa.array(layout.astype(np.int16)),
            "acquisition_id": _named(np.zeros_like(step), ["main-1"]),
            "candidate": _named(candidate, LABELS),
            "energy": pa.array(_energies(number, transition, endpoint, channel, candidate)),
            "status": _named(np.zeros_like(step), ["ok"]),
            "target": _named(transition % 4, LABELS),
            "success": pa.array(_mixed(trajectory, 1) % 5 < 2),
            "state_hash": _digests(side, 2),
            "candidates_hash": _digests(transition, 3),
            "view_hash": _digests(side, 4, absent=channel == 0),
            "request_hash": _digests(request, 5),
        }
    )


def _mixed(values: Numbers, salt: int) -> Numbers:
    """Numbers well spread over 64 bits (splitmix64), a function of value and salt alone."""
    multiply, scale = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
    with np.errstate(over="ignore"):
        z = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(salt * 1_000_003 + 1)
        z = (z ^ (z >> np.uint64(30))) * multiply
        z = (z ^ (z >> np.uint64(27))) * scale
    mixed: Numbers = z ^ (z >> np.uint64(31))
    return mixed


def _energies(
    number: Numbers,
    transition: Numbers,
    endpoint: Numbers,
    channel: Numbers,
    candidate: Numbers,
) -> Numbers:
    """Noise in single precision, as models give it, with a small gain that turns with the channel."""
    noise = _mixed(number, 6).astype(np.float64) / 2.0**64
    favoured = candidate == transition % 4
    gain = np.where(channel == 0, 0.3, -0.2) * (endpoint == 1) * favoured
    energies: Numbers = (4.0 * noise - 4.0 + gain).astype(np.float32).astype(np.float64)
    return energies


def _named(codes: Numbers, names: Sequence[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names)).cast(pa.string())


def _digests(ids: Numbers, salt: int, absent: Numbers | None = None) -> pa.Array:
    """A digest in text form for each id."""
    distinct, codes = np.unique(ids, return_inverse=True)
    words = np.stack([_mixed(distinct, salt * 10 + word) for word in range(4)], axis=1)
    text = np.ascontiguousarray(words).tobytes().hex()
    names = pa.array([f"blake3:{text[at : at + 64]}" for at in range(0, len(text), 64)])
    codes = pa.array(codes.astype(np.int32), mask=absent)
    return pa.DictionaryArray.from_arrays(codes, names).cast(pa.string())


def write(
    path: Path, entries: int, *, order: Order = "requests", trajectories: tuple[int, int] | None = None
) -> Path:
    """Writes a Parquet file of scores as pyarrow does by default, with zstd, a block in memory at a time."""
    writer = None
    for block in blocks(entries, order, trajectories):
        writer = writer or pq.ParquetWriter(path, block.schema, compression="zstd")
        writer.write_table(block)
    assert writer is not None, "there is at least one trajectory"
    writer.close()
    return path


def main() -> None:
    """`data.py FOLDER --entries N`: scores.parquet and the channels."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--order", choices=get_args(Order), default="requests")
    given = parser.parse_args()
    channel_specs(given.folder / "channels")
    write(given.folder / "scores.parquet", given.entries, order=given.order)


if __name__ == "__main__":
    main()
