"""A score file on its way in: raw columns by declared type, before anything is judged.

`INCOMING` says which columns a score file may have and what they hold; whoever decodes a file delivers
one `SourceTable` of them. A value that is not what its column's type allows (a JSON string where a number
belongs, `abc` in a numeric CSV field) is null in the table and listed in `unread`, so one bad value is a
finding with its row and not the end of the reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contracts.schema import TRANSPORT

# Key of the Arrow field or schema metadata that names the algorithm (blake3 or sha256) of binary(32) digests.
ALGORITHM = b"ledger.digest"
# Text columns that may stand for a digest column: the reader digests their UTF-8 bytes and keeps only that.
STAND_INS: Mapping[str, str] = MappingProxyType(
    {
        "state": "state_hash",
        "candidates": "candidates_hash",
        "request": "request_hash",
        "view": "view_hash",
    }
)
ValueType = Literal["text", "integer", "number", "boolean", "digest", "stand-in"]
_VALUE_TYPES: Mapping[str, ValueType] = {
    "text": "text",
    "int16": "integer",
    "int32": "integer",
    "float64": "number",
    "bool": "boolean",
    "digest": "digest",
}


@dataclass(frozen=True)
class IncomingColumn:
    """One column a score file may have."""

    name: str
    type: ValueType
    required: bool = False


def _incoming() -> tuple[IncomingColumn, ...]:
    """The entry's columns as files spell them: the channel by reference, the view source optional."""
    columns = [
        IncomingColumn(
            column.name,
            "text" if column.name == "channel" else _VALUE_TYPES[column.type],
            required=not column.nullable and column.name != "view_source",
        )
        for column in TRANSPORT.columns
    ]
    stand_ins = [IncomingColumn(name, "stand-in") for name in STAND_INS]
    return (*columns, IncomingColumn("status", "text"), *stand_ins)


INCOMING: Mapping[str, IncomingColumn] = MappingProxyType({column.name: column for column in _incoming()})


@dataclass(frozen=True)
class Unread:
    """The values of one column that are not of its type, as the file gave them.

    `rows` are 0-based positions in the table, ascending, where the table holds null; `values` are their
    texts, cut short. `code` is that of the findings they become.
    """

    column: str
    code: str
    rows: NDArray[np.int64]
    values: pa.Array


@dataclass(frozen=True)
class SourceTable:
    """One decoded file: `table` holds its known columns in file order, `ignored` names the others.

    `digest` is the BLAKE3 of the file's bytes. Stand-in columns already hold digests (dictionary of
    binary(33)). `row_numbers` are the 1-based numbers people know the rows by (line numbers of JSON Lines),
    None where row i of the table is row i + 1 of the file.
    """

    name: str
    digest: str
    table: pa.Table
    kind: str = "transport"
    unread: tuple[Unread, ...] = ()
    ignored: tuple[str, ...] = ()
    row_numbers: NDArray[np.int64] | None = None
