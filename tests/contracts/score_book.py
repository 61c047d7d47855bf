"""Two registered channels, and rows of files as tables: what the tests of the row level start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from contracts.channel import Channel, ChannelBook, fingerprint
from contracts.labels import encode
from contracts.rows import RowResult, canonicalise
from contracts.source_table import INCOMING, STAND_INS, SourceTable
from contracts.text_digests import digest_texts
from tests.ledger.score_files import Row

DIGEST = "blake3:" + "ab" * 32
TYPES: Mapping[str, pa.DataType] = {
    "text": pa.string(),
    "digest": pa.string(),
    "stand-in": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}


def channel(name: str, *, view: str = "none", version: int = 1, **parts: Mapping[str, object]) -> Channel:
    """A channel with two layouts."""
    spec: dict[str, Mapping[str, object]] = {
        "prompt": {"text": f"score it {version}"},
        "readout": {"kind": "logits"},
        "stack": {"model": "m"},
        "view": {"kind": view},
        "presentation": {"layouts": 2},
        **parts,
    }
    return Channel(name, version, spec, fingerprint(spec))


DIRECT = channel("direct")
GENERATED = channel("generated", view="generated")
SINGLE = channel("single", readout={"kind": "logits", "dtype": "float32"})
BOOK = ChannelBook((DIRECT, GENERATED, SINGLE))


def row(**changed: Any) -> Row:
    """One good row, some of its values changed; the value ... takes a column away."""
    good: Row = {
        "trajectory_id": "t1",
        "step": 0,
        "endpoint": "before",
        "channel": "direct",
        "layout": 0,
        "acquisition_id": "run-1",
        "candidate": "A",
        "energy": 0.5,
        "target": "A",
        "state_hash": DIGEST,
        "candidates_hash": DIGEST,
        "request_hash": DIGEST,
    }
    return {name: value for name, value in {**good, **changed}.items() if value is not ...}


def table(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table of plain columns, typed as a good file types them."""
    names = dict.fromkeys(name for each in rows for name in each)
    return pa.table(
        {name: pa.array([each.get(name) for each in rows], TYPES[INCOMING[name].type]) for name in names}
    )


def with_column(
    raw: pa.Table, name: str, values: pa.Array | pa.ChunkedArray, metadata: Mapping[str, str] | None = None
) -> pa.Table:
    """The table with other values in one column, or one column more."""
    field = pa.field(name, values.type, metadata=metadata)
    if name not in raw.column_names:
        return raw.append_column(field, values)
    return raw.set_column(raw.column_names.index(name), field, values)


def source(raw: pa.Table, name: str = "a.parquet") -> SourceTable:
    """A table as a decoded file, its stand-in texts digested as a reader does it."""
    for text in STAND_INS.keys() & set(raw.column_names):
        digested = pa.chunked_array([digest_texts(encode(chunk)) for chunk in raw.column(text).chunks])
        raw = raw.set_column(raw.column_names.index(text), text, digested)
    return SourceTable(name, DIGEST, raw)


def judged(*rows: Row, book: ChannelBook = BOOK) -> RowResult:
    """Some rows as one file, canonicalised."""
    return canonicalise([source(table(rows))], book)
