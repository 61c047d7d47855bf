"""Rows that stand in the ledger already: the same content is skipped, other content is a conflict.

Content is compared bit for bit, so -0.0 is not 0.0; null equals null.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.labels import Mask
from contracts.order import Ints, Keys, column, labelled
from contracts.schema import TRANSPORT

CONTENT = tuple(name for name in TRANSPORT.names if name not in TRANSPORT.key)


@dataclass(frozen=True)
class Known:
    """Rows of a call whose key the ledger has, by position in canonical order.

    `skipped` say the same as the entry. `conflicts` say something else; `against` is the position of the
    entry of each and `differs` the first column, in schema order, in which they differ.
    """

    skipped: Ints
    conflicts: Ints
    against: Ints
    differs: tuple[str, ...]


def known(keys: Keys, held: Mask, table: pa.Table, existing: pa.Table) -> Known:
    """Split the rows of `table` whose key `existing` has; `keys` are those of existing, then table."""
    leaders = np.flatnonzero(~keys.repeat)
    leader = leaders[np.cumsum(~keys.repeat) - 1]
    matched = np.flatnonzero(~held & held[leader])
    ours = table.select(CONTENT).take(pa.array(keys.positions(matched) - existing.num_rows))
    theirs = existing.select(CONTENT).take(pa.array(keys.positions(leader[matched])))
    first = np.full(len(matched), -1, dtype=np.int64)
    for number, name in enumerate(CONTENT):
        differs = _differs(ours, theirs, name)
        first[differs & (first < 0)] = number
    other = first >= 0
    return Known(
        skipped=matched[~other],
        conflicts=matched[other],
        against=leader[matched][other],
        differs=tuple(CONTENT[number] for number in first[other].tolist()),
    )


def _differs(ours: pa.Table, theirs: pa.Table, name: str) -> Mask:
    kind = TRANSPORT.arrow.field(name).type
    if pa.types.is_string(kind) or pa.types.is_fixed_size_binary(kind):
        codes = labelled(column([ours, theirs], name)).codes
        text: Mask = codes[: len(ours)] != codes[len(ours) :]
        return text
    differs = np.zeros(len(ours), dtype=np.bool_)
    for a, b in zip(_bits(ours, name, kind), _bits(theirs, name, kind), strict=True):
        differs |= a != b
    return differs


def _bits(
    table: pa.Table, name: str, kind: pa.DataType
) -> Iterator[np.ndarray[tuple[int], np.dtype[np.generic]]]:
    """Validity, then values whose equality is that of their bits; zeros where null."""
    values = table.column(name)
    yield pc.is_valid(values).to_numpy()
    zero = pa.scalar(False) if pa.types.is_boolean(kind) else pa.scalar(0, values.type)
    plain = pc.fill_null(values, zero).to_numpy()
    yield plain.view(np.int64) if pa.types.is_float64(kind) else plain
