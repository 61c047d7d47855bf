"""Small tables of entries for tests: deterministic, every column type used, nulls where they may be."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa

from contracts.schema import TRANSPORT, SegmentSchema

CODED = pa.dictionary(pa.int32(), pa.string())


def digest(*parts: object) -> bytes:
    return b"\x1e" + hashlib.sha256(repr(parts).encode()).digest()


def entries(trajectories: int = 3, steps: int = 2, *, channels: int = 2, layouts: int = 2) -> pa.Table:
    """Complete sides of every transition, in no particular order, with all optional columns used."""
    rows = []
    for t in range(trajectories):
        for step in range(steps):
            for endpoint in ("before", "after"):
                for channel in range(channels):
                    for layout in range(layouts):
                        for candidate in ("A", "Ä", "NONE"):
                            rows.append(_row((t, step, endpoint), channel, layout, candidate))
    table = pa.Table.from_pylist(rows, schema=TRANSPORT.arrow)
    order = np.random.default_rng(20260928).permutation(len(rows))
    return in_flight(table.take(pa.array(order)))


def _row(at: tuple[int, int, str], channel: int, layout: int, candidate: str) -> dict[str, object]:
    t, step, endpoint = at
    number = int.from_bytes(digest(at, channel, layout, candidate)[1:4], "little")
    return {
        "trajectory_id": f"traj{t:03d}",
        "step": step,
        "endpoint": endpoint,
        "view_source": "own",
        "channel": digest("channel", channel),
        "layout": layout,
        "acquisition_id": "main-1",
        "candidate": candidate,
        "energy": number / 2**20 - 8.0,
        "target": "A",
        "state_hash": digest("state", at),
        "candidates_hash": digest("candidates", t, step),
        "request_hash": digest("request", at, channel, layout),
        "view_hash": digest("view", at) if channel else None,
        "target_type": None if step % 2 else "tool call",
        "position": None if layout == 0 else layout,
        "step_kind": "retrieval" if step else None,
        "success": None if t == 1 else t % 2 == 0,
        "label_mass": None if candidate == "A" else 0.25,
        "response_hash": digest("response", number) if endpoint == "after" else None,
    }


def in_flight(table: pa.Table) -> pa.Table:
    """The table with the columns that say where each row stood: two files, taken in turn."""
    files = np.arange(table.num_rows, dtype=np.int32) % 2
    rows = np.arange(table.num_rows, dtype=np.int64) // 2 + 1
    return table.append_column("source_file", pa.array(files)).append_column("source_row", pa.array(rows))


def coded(table: pa.Table, schema: SegmentSchema = TRANSPORT) -> pa.Table:
    """The same rows with text and digests dictionary-encoded."""
    for index, column in enumerate(schema.columns):
        if column.type in ("text", "digest"):
            array = table.column(index).combine_chunks().dictionary_encode()
            table = table.set_column(index, column.name, array)
    return table
