"""Score files into raw tables: staged, told apart, decoded by declared type, nothing judged.

Text stays dictionary-encoded from the decoder on, and a text that stands for a digest is digested batch
by batch, so memory follows the rows and not the length of the requests. A file that is not there, damaged
or cut off is a StorageError; one that reads and is refused for what it holds is a ContractError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet as pq

from contracts.errors import ContractError, StorageError, UsageError
from contracts.findings import shown
from contracts.kinds import decide
from contracts.labels import is_text
from contracts.source_table import INCOMING, SourceTable
from contracts.threads import for_columns
from ledger.source_csv import csv_names, read_csv
from ledger.source_format import Format, detect
from ledger.source_json import json_names, read_json_lines
from ledger.source_values import Decoded, arriving, refuse_repeated
from ledger.staging import Staged, stage

Read = TypeVar("Read")
# What damaged files make the decoders raise, besides their own errors.
_DAMAGE = (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError)


def read_sources(
    paths: Sequence[str | Path], kind: str | None = None, staging: Path | None = None
) -> tuple[SourceTable, ...]:
    """Each path as a table of its known columns, in the order given.

    `kind` is transport, by default told from the column names. `staging` is where large inputs wait.
    ContractError for a file that is refused as a whole, StorageError for one that cannot be read.
    """
    return tuple(read_source(stage(path, staging), kind) for path in paths)


def kind_of(staged: Staged, kind: str | None = None) -> str:
    """The kind of an input, told from its column names unless it is given; nothing is decoded.

    ContractError where a column name occurs twice.
    """
    names = column_names(staged)
    refuse_repeated(names, staged.name)
    return decide(names, kind, staged.name)


def column_names(staged: Staged) -> Sequence[str]:
    """The column names of an input; of JSON Lines the keys of the first object."""
    form = detect(staged)
    return guarded(form, staged, lambda: _NAMES[form](staged))


def read_source(staged: Staged, kind: str | None = None) -> SourceTable:
    """A staged file of scores as a table; UsageError where it holds predictions."""
    if kind_of(staged, kind) != "transport":
        raise UsageError(
            "predictions are not read here",
            code="kind-unsupported",
            expected="a file of scores (kind transport)",
            where=staged.name,
        )
    form = detect(staged)
    decoded = guarded(form, staged, lambda: _DECODERS[form](staged))
    if not decoded.table.num_rows:
        raise no_rows(staged)
    return source_table(staged, decoded)


def source_table(staged: Staged, decoded: Decoded) -> SourceTable:
    """What was decoded of an input, under its name and digest."""
    return SourceTable(
        name=staged.name,
        digest=staged.digest,
        table=decoded.table,
        unread=decoded.unread,
        ignored=tuple(shown(name) for name in decoded.names if name not in INCOMING),
        row_numbers=decoded.row_numbers,
    )


def no_rows(staged: Staged) -> ContractError:
    """A file that has columns and nothing in them."""
    return ContractError(
        "the file has columns but no rows",
        code="no-rows",
        expected="one row for each score",
        where=staged.name,
    )


def guarded(form: Format, staged: Staged, read: Callable[[], Read]) -> Read:
    """What `read` gives; StorageError where the bytes are damaged."""
    try:
        return read()
    except _DAMAGE as error:
        raise StorageError(
            f"damaged {form}: it does not decode",
            code="unreadable",
            where=staged.name,
            next_step="copy or write it again",
        ) from error


def _bytes(staged: Staged) -> pa.BufferReader:
    return pa.BufferReader(staged.data)


def _parquet(staged: Staged) -> Decoded:
    schema, file = parquet_file(staged)
    known = known_columns(schema)
    groups = (file.read_row_group(group, columns=known) for group in range(file.num_row_groups))
    return assembled(schema, (batch for group in groups for batch in group.to_batches()), staged.name)


def parquet_file(staged: Staged) -> tuple[pa.Schema, pq.ParquetFile]:
    """The columns of a Parquet file as it declares them, and the file opened so that text stays coded."""
    file = pq.ParquetFile(_bytes(staged))
    schema = file.schema_arrow
    coded = [name for name in known_columns(schema) if is_text(schema.field(name).type)]
    opened = pq.ParquetFile(
        _bytes(staged), metadata=file.metadata, read_dictionary=coded, page_checksum_verification=True
    )
    return schema, opened


def _arrow_file(staged: Staged) -> Decoded:
    with pa.ipc.open_file(_bytes(staged)) as reader:
        batches = (reader.get_batch(index) for index in range(reader.num_record_batches))
        return assembled(reader.schema, batches, staged.name)


def _arrow_stream(staged: Staged) -> Decoded:
    with pa.ipc.open_stream(_bytes(staged)) as reader:
        return assembled(reader.schema, reader, staged.name)


def known_columns(schema: pa.Schema) -> list[str]:
    """The columns of a file that a score file may have."""
    return [name for name in schema.names if name in INCOMING]


def assembled(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], where: str, first_row: int = 0
) -> Decoded:
    """The known columns of consecutive batches, text coded; field and file metadata kept."""
    known = known_columns(schema)
    chunks: dict[str, list[pa.Array]] = {name: [] for name in known}
    row = first_row
    for batch in batches:
        given = {name: batch.column(name) for name in known}
        list(for_columns().map(require_valid, given.values(), given, repeat(row), repeat(where)))
        arrived = arriving(given)
        for name, array in arrived.items():
            chunks[name].append(array)
        row += batch.num_rows
    if row == first_row:
        return Decoded(pa.table({}), tuple(schema.names))
    fields = [schema.field(name).with_type(chunks[name][0].type) for name in known]
    columns = [pa.chunked_array(chunks[name]) for name in known]
    table = pa.table(columns, schema=pa.schema(fields, metadata=schema.metadata))
    return Decoded(table, tuple(schema.names))


def require_valid(array: pa.Array, name: str, first_row: int, where: str) -> None:
    """StorageError where a column holds text that is not UTF-8; ArrowInvalid where its buffers disagree.

    Neither Parquet nor Arrow IPC is checked for either when it is read.
    """
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        found = re.search(r"UTF-?8 sequence at string index (\d+)", str(error))
        if found is None:
            raise
        row = int(found[1])
        if pa.types.is_dictionary(array.type):  # then it is a label, -1 where no row of the batch uses it
            row = pc.index(array.indices, pa.scalar(row, array.indices.type)).as_py()
        raise StorageError(
            f"column {name} holds text that is not UTF-8",
            code="unreadable",
            where=where if row < 0 else f"{where}, row {first_row + row + 1}",
            next_step="write it again",
        ) from error


_NAMES: Mapping[Format, Callable[[Staged], Sequence[str]]] = {
    Format.PARQUET: lambda staged: list(pq.ParquetFile(_bytes(staged)).schema_arrow.names),
    Format.ARROW_FILE: lambda staged: list(pa.ipc.open_file(_bytes(staged)).schema.names),
    Format.ARROW_STREAM: lambda staged: list(pa.ipc.open_stream(_bytes(staged)).schema.names),
    Format.CSV: csv_names,
    Format.JSON_LINES: json_names,
}
_DECODERS: Mapping[Format, Callable[[Staged], Decoded]] = {
    Format.PARQUET: _parquet,
    Format.ARROW_FILE: _arrow_file,
    Format.ARROW_STREAM: _arrow_stream,
    Format.CSV: read_csv,
    Format.JSON_LINES: read_json_lines,
}
