"""Tables written in every format of score files, and files of given bytes read or refused."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from contracts.errors import LedgerError
from contracts.source_table import SourceTable
from ledger.sources import read_sources


def read(path: Path, data: bytes | str) -> SourceTable:
    """The bytes as a file of that name, read."""
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    (source,) = read_sources([path])
    return source


def refused(path: Path, data: bytes | str) -> LedgerError:
    with pytest.raises(LedgerError) as error:
        read(path, data)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    return error.value


def written(write: Callable[[pa.Table, io.BytesIO], object], raw: pa.Table) -> bytes:
    sink = io.BytesIO()
    write(raw, sink)
    return sink.getvalue()


def ipc(maker: Callable[..., Any], rows: int) -> Callable[[pa.Table, io.BytesIO], None]:
    def write(raw: pa.Table, sink: io.BytesIO) -> None:
        with maker(sink, raw.schema) as writer:
            writer.write_table(raw, max_chunksize=rows)

    return write


def as_csv(raw: pa.Table, sink: io.BytesIO) -> None:
    """As polars writes it: null as nothing, a text with commas or quotes in quotes."""
    pl.DataFrame(raw).write_csv(sink)


def as_json_lines(raw: pa.Table, sink: io.BytesIO) -> None:
    for each in raw.to_pylist():
        sink.write(json.dumps({k: v for k, v in each.items() if v is not None}).encode() + b"\n")


FORMATS: dict[str, tuple[str, Callable[[pa.Table, io.BytesIO], object]]] = {
    "parquet": ("a.parquet", pq.write_table),
    "parquet in groups": ("a.parquet", lambda raw, sink: pq.write_table(raw, sink, row_group_size=2)),
    "parquet plain": ("a.parquet", lambda raw, sink: pq.write_table(raw, sink, use_dictionary=False)),
    "parquet by polars": ("a.parquet", lambda raw, sink: pl.DataFrame(raw).write_parquet(sink)),
    "arrow file": ("a.arrow", ipc(pa.ipc.new_file, 2)),
    "arrow stream": ("a.arrows", ipc(pa.ipc.new_stream, 3)),
    "arrow by polars": ("a.ipc", lambda raw, sink: pl.DataFrame(raw).write_ipc(sink)),
    "feather": ("a.feather", lambda raw, sink: pa.feather.write_feather(raw, sink, compression="zstd")),
    "csv": ("a.csv", as_csv),
    "json lines": ("a.jsonl", as_json_lines),
    "named nothing": ("a", as_json_lines),
    "parquet named csv": ("a.csv", pq.write_table),
    "parquet named json lines": ("a.jsonl", pq.write_table),
    "json lines named csv": ("a.csv", as_json_lines),
}  # fmt: skip


CSV = "energy,step\n0.5,1\n"
