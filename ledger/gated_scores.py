"""The entries behind an audit's complete transitions, each with its id, fingerprint and the record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ledger.query import Query, scores
from ledger.reading import Reading
from ledger.scope import Arm

AUDIT = "audit"
_STEP_BITS = 31


def gated_scores(
    reading: Reading,
    arm: Arm,
    acquisitions: Sequence[str],
    transitions: Sequence[tuple[str, int]],
    record: str,
) -> Iterator[pa.Table]:
    """The entries of an arm in some transitions, in the order of the log and then of the key.

    Columns as `query.scores` gives them, and `audit`, the record that vouches for them. `reading` is at the
    head of the audit, so that nothing that came later is among them.
    """
    names = pa.array(sorted({name for name, _ in transitions}), pa.string())
    place = {name: index for index, name in enumerate(names.to_pylist())}
    wanted = np.array(sorted(place[name] << _STEP_BITS | step for name, step in transitions), np.int64)
    query = Query(channels=(arm.channel.fingerprint,), acquisitions=tuple(acquisitions))
    for table in scores(reading, query):
        named = pc.index_in(table["trajectory_id"].cast(pa.string()), value_set=names).fill_null(-1)
        key = np.asarray(named.to_numpy(), np.int64) << _STEP_BITS | np.asarray(
            table["step"].to_numpy(), np.int64
        )
        sources = table["view_source"].cast(pa.string()).to_pylist()
        taken = {source: arm.takes(source) for source in set(sources)}
        keep = np.isin(key, wanted) & np.array([taken[source] for source in sources], bool)
        found = table.filter(pa.array(keep))
        if found.num_rows:
            yield found.append_column(
                AUDIT, pa.array([record] * found.num_rows, pa.string()).dictionary_encode()
            )
