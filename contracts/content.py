"""The content of rows as integers: two rows are the same bit for bit iff all of them are equal.

So -0.0 is not 0.0, and null equals null and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contracts.order import column, labelled, ranks

Bits = NDArray[np.integer]


def bits(tables: Sequence[pa.Table], name: str, *, in_order: bool = False) -> Iterator[Bits]:
    """One column of several tables, one after another, as one or two arrays of integers.

    Text and digests give codes, -1 where null, numbers their validity and then their bits. `in_order`
    makes the codes sort like the values: null first, then by bytes.
    """
    values = column(tables, name)
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if pa.types.is_string(kind) or pa.types.is_fixed_size_binary(kind):
        yield (ranks if in_order else labelled)(values).codes
        return
    yield pc.is_valid(values).to_numpy().astype(np.int8)
    zero = pa.scalar(False) if pa.types.is_boolean(kind) else pa.scalar(0, kind)
    plain = pc.fill_null(values, zero).to_numpy()
    yield plain.view(np.int64) if pa.types.is_float64(kind) else plain.astype(np.int64)
