"""Conflicts with the ledger as findings: the entry, the column, both values and both sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.conflicts import CONTENT, Known
from contracts.digest import unpack
from contracts.findings import Finding, Findings, KeyValue, shown
from contracts.labels import Labels, text_labels
from contracts.order import Keys
from contracts.ordered import Ordered
from contracts.schema import TRANSPORT
from contracts.side_rejects import Rejects

CONFLICT = "conflict"
SOURCE = "source"
NULL = "null"
ADVICE = "an entry never changes, a correction is a new acquisition"


def report_conflicts(findings: Findings, known: Known, ordered: Ordered, channels: Sequence[str]) -> None:
    """Add every conflict of the rows with the entries; they are findings of the file: one refuses the call.

    `channels` names the channels by their rank.
    """
    assert ordered.existing is not None, "a conflict is with an entry"
    keys, origin = ordered.keys, ordered.origin
    ours = ordered.table.take(ordered.of_call(known.conflicts))
    theirs = ordered.existing.take(pa.array(keys.positions(known.against)))
    rejects = Rejects(keys, origin, channels)
    rows, columns = known.conflicts, known.differs
    for i, (row, column) in enumerate(zip(rows[: findings.limit].tolist(), columns, strict=False)):
        key = _key(keys, row, channels)
        got = _texts(ours.slice(i, 1), column)[0].as_py() or NULL
        wanted = _texts(theirs.slice(i, 1), column)[0].as_py() or NULL
        where = "the ledger"
        if SOURCE in theirs.column_names:
            where += f" ({shown(theirs.column(SOURCE)[i].as_py())})"
        cell = f"{key['endpoint']}, {key['channel']}, layout {key['layout']}, {shown(key['acquisition_id'])}"
        message = (
            f"entry {shown(key['trajectory_id'])}/step{int(keys.step[row]):02d} ({cell}, candidate "
            f"{shown(key['candidate'])}): {column} is {shown(got)} in {shown(origin.name(row))} row "
            f"{int(origin.row[row])} and {shown(wanted)} in {where}; {ADVICE}"
        )
        findings.add(
            Finding(
                CONFLICT,
                "file",
                message,
                column=column,
                key=key,
                file=origin.name(row),
                rows=(int(origin.row[row]),),
                wanted=wanted,
                got=got,
            )
        )
    if rest := len(rows) - findings.by_code[CONFLICT]:
        findings.tally(CONFLICT, "file", rest)
    which = np.array([CONTENT.index(column) for column in columns])
    for number in np.unique(which).tolist():
        here, column = np.flatnonzero(which == number), CONTENT[number]
        got_all = text_labels([_texts(ours.take(pa.array(here)), column)])
        wanted_all = text_labels([_texts(theirs.take(pa.array(here)), column)])
        findings.reject(
            rejects.rows(rows[here], "file", CONFLICT, column=column, wanted=wanted_all, got=got_all)
        )


def _key(keys: Keys, row: int, channels: Sequence[str]) -> Mapping[str, KeyValue]:
    def text(labels: Labels) -> str:
        return str(labels.values[int(labels.codes[row])].as_py())

    return {
        "trajectory_id": text(keys.trajectory),
        "step": int(keys.step[row]),
        "endpoint": text(keys.endpoint),
        "view_source": text(keys.view_source),
        "channel": channels[int(keys.channel.codes[row])],
        "layout": int(keys.layout[row]),
        "acquisition_id": text(keys.acquisition),
        "candidate": text(keys.candidate),
    }


def _texts(table: pa.Table, name: str) -> pa.Array:
    """A content column as text, digests in text form, null where absent."""
    column = table.column(name).combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_fixed_size_binary(TRANSPORT.arrow.field(name).type):
        values = [None if value is None else unpack(value) for value in column.to_pylist()]
        return pa.array(values, pa.string())
    return pc.cast(column, pa.string())
