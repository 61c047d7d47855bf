"""Rows of refused sides as bytes: what the digest of a side is taken over.

A record is every column of REFUSED in order: a validity byte where nullable, then the BLAKE3 of a text,
the 33 bytes of a digest, or the little-endian value; zeros where null. Records have one width, so equal
bytes mean equal rows. Where a row came from is no part of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from blake3 import blake3
from numpy.typing import NDArray

from contracts.labels import joined
from contracts.order import Ints, ranks
from contracts.schema import REFUSED, Column

Bytes = NDArray[np.uint8]
_WIDTHS = {"text": 32, "digest": 33}
_NUMBERS = {"int16": "<i2", "int32": "<i4", "float64": "<f8", "bool": "u1"}
_CHUNK = 65_536  # rows encoded at a time


class Records:
    """The records of a table; texts are digested once per distinct value."""

    def __init__(self, table: pa.Table) -> None:
        self._parts: list[tuple[Bytes, NDArray[np.int32] | None]] = []
        for column in REFUSED.columns:
            values = table.column(column.name)
            if column.nullable:
                self._parts.append((_bytes(pc.is_valid(values), "u1"), None))
            self._parts.append(_encoded(values, column))
        self.width = sum(lookup.shape[1] for lookup, _ in self._parts)

    def take(self, rows: Ints) -> Bytes:
        """The records of some rows, one per row of the matrix."""
        parts = [lookup[rows if codes is None else codes[rows]] for lookup, codes in self._parts]
        return np.concatenate(parts, axis=1)

    def digests(self, side: Ints, sides: int) -> list[str]:
        """The digest of each of `sides` sides: the BLAKE3 of its records in the order of the table.

        `side` is the number of each row's side, and every side has a row.
        """
        order = np.argsort(side, kind="stable")
        starts = np.cumsum(np.bincount(side, minlength=sides)) - np.bincount(side, minlength=sides)
        digests: list[str] = []
        hasher = blake3()
        for first, data in self._chunks(order):
            inside = starts[np.searchsorted(starts, first) : np.searchsorted(starts, first + _CHUNK)] - first
            done = 0
            for start in (inside * self.width).tolist():
                hasher.update(data[done:start])
                if first + start:
                    digests.append("blake3:" + hasher.hexdigest())
                    hasher = blake3()
                done = start
            hasher.update(data[done:])
        if sides:
            digests.append("blake3:" + hasher.hexdigest())
        return digests

    def _chunks(self, rows: Ints) -> Iterator[tuple[int, memoryview]]:
        for first in range(0, len(rows), _CHUNK):
            yield first, self.take(rows[first : first + _CHUNK]).reshape(-1).data


def _encoded(values: pa.ChunkedArray, column: Column) -> tuple[Bytes, NDArray[np.int32] | None]:
    if column.type in _NUMBERS:
        return _bytes(values, _NUMBERS[column.type]), None
    ranked, width = ranks(values), _WIDTHS[column.type]
    labels = joined([(ranked.codes, ranked.values)], ranked.values.type)  # used values only
    if column.type == "text":
        flat = b"".join(blake3(value.encode()).digest() for value in labels.values.to_pylist())
    else:
        flat = bytes(labels.values.buffers()[1])[labels.values.offset * width :][: len(labels.values) * width]
    # An absent value is code -1: the row of zeros at the end.
    return np.frombuffer(flat + bytes(width), dtype=np.uint8).reshape(-1, width), labels.codes


def _bytes(values: pa.ChunkedArray, kind: str) -> Bytes:
    zero = pa.scalar(False) if pa.types.is_boolean(values.type) else pa.scalar(0, values.type)
    plain = pc.fill_null(values, zero).to_numpy().astype(kind, copy=False)
    return np.ascontiguousarray(plain).view(np.uint8).reshape(len(plain), -1)
