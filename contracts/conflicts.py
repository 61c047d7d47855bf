"""Rows that stand in the ledger already: the same content is skipped, other content is a conflict.

Content is compared bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from contracts.content import bits
from contracts.labels import Mask
from contracts.order import Ints, Keys
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
        for both in bits([ours, theirs], name):
            first[(both[: len(matched)] != both[len(matched) :]) & (first < 0)] = number
    other = first >= 0
    return Known(
        skipped=matched[~other],
        conflicts=matched[other],
        against=leader[matched][other],
        differs=tuple(CONTENT[number] for number in first[other].tolist()),
    )
