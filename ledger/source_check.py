"""Whether a file somebody still has is one that entries were read from, and what an entry's row in it says.

The ledger keeps the digest of a source and the number of each row, not the source itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contracts.digest import WIDTH, unpack
from contracts.errors import StorageError, VerificationError
from ledger.node import Node
from ledger.objects import file_digest
from ledger.show import Entry

if TYPE_CHECKING:
    from contracts.source_table import SourceTable


def check_source(path: Path, sources: Mapping[str, str], entry: Entry | None = None) -> Node:
    """A node `file` for a file whose digest is one of `sources` (digest to name); with `entry`, its row.

    VerificationError `not-the-source` when it is another file.
    """
    try:
        digest = file_digest(path, "blake3")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StorageError(f"cannot be read: {reason}", code="unreadable", where=path) from error
    if digest not in sources:
        raise VerificationError(
            "this is not the file it came from", code="not-the-source", where=path, got=digest,
            expected=" or ".join(f"{found} ({name})" for found, name in sorted(sources.items())),
            next_step="a file that was written again has another digest, even with the same rows",
        )  # fmt: skip
    facts: dict[str, object] = {"digest": digest, "recorded_as": sources[digest]}
    if entry is not None:
        from ledger.sources import read_sources  # a lineage without a file needs no reader of files

        (table,) = read_sources([path], entry.segment.kind)
        facts |= {"row": entry.source_row, "values": _values(table, entry.source_row)}
    return Node("file", str(path), facts)


def _values(source: SourceTable, row: int) -> dict[str, object]:
    """The known columns of the row with a number as people count it, absent ones left out."""
    place = row - 1 if source.row_numbers is None else int(np.searchsorted(source.row_numbers, row))
    (values,) = source.table.slice(place, 1).to_pylist()
    return {name: _plain(value) for name, value in values.items() if value is not None}


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return unpack(value) if len(value) == WIDTH else value.hex()
    return value
