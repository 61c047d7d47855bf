"""`--rejects FILE`: every finding of an ingest as a row."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from contracts.errors import StorageError
from contracts.findings import Findings
from contracts.schema import JEV, TRANSPORT


@dataclass(frozen=True)
class Written:
    """The file that holds every finding of a call, and how many rows it has."""

    path: Path
    rows: int


def write_rejects(path: Path | None, findings: Findings, kind: str) -> Written | None:
    """Every finding as a row, in the format that the name's ending says, which was looked at before."""
    if path is None:
        return None
    table = findings.rejects(JEV if kind == "jev" else TRANSPORT)
    plain = [
        pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
        for f in table.schema
    ]
    table = table.cast(pa.schema(plain))
    try:
        if path.suffix == ".parquet":
            pq.write_table(table, path)
        elif path.suffix == ".jsonl":
            with path.open("w", encoding="utf-8") as file:
                for batch in table.to_batches(max_chunksize=10_000):
                    file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())
        else:
            csv.write_csv(table, path)
    except OSError as error:
        raise StorageError(
            "the rejects cannot be written", code="output", where=path, got=error.strerror,
            next_step="what was recorded stays recorded: ledger log",
        ) from error  # fmt: skip
    return Written(path, table.num_rows)
