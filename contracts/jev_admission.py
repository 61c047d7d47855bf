"""The set level of the predictions contract: whole groups of pairs, or findings.

A group is (channel, acquisition, intervention, mode, variant). In it each (year, query, scenario) occurs
once, every query has every scenario, and both arms of a pair have the labels their intervention allows.
What the ledger already holds of the same group counts as part of it: identical pairs are dropped and
counted, the same pair with other content is a conflict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contracts.findings import Finding, Findings
from contracts.jev_faults import PairFaults
from contracts.jev_models import PairSet
from contracts.jev_rows import Predictions, packed
from contracts.jev_source import ARMS
from contracts.labels import Labels
from contracts.order import dense, pack, ranks
from contracts.pandera_config import failures
from contracts.schema import JEV, JEV_POSITIVES, SegmentSchema

Ints = NDArray[np.int64]
GROUP = ("channel", "acquisition_id", "intervention", "mode", "variant")
PAIR = ("query_id", "year", "scenario", *GROUP)
EXPANDS = "candidates"
SOURCE = (pa.field("source_file", pa.int32()), pa.field("source_row", pa.int64()))


@dataclass(frozen=True)
class JevAdmission:
    """What a call of predictions may add: entries (schema JEV) and scorer-only positives (JEV_POSITIVES),

    each with `source_file` and `source_row` (the line). `skipped` counts entries the ledger already has.
    Both tables are empty where there are findings.
    """

    entries: pa.Table
    positives: pa.Table
    skipped: int
    findings: Findings


def judge_pairs(
    predictions: Predictions,
    findings: Findings,
    *,
    existing: pa.Table | None = None,
    existing_positives: pa.Table | None = None,
) -> JevAdmission:
    """Judge the pairs as groups; `findings` are those of the row level and are added to.

    `existing` are the ledger's entries of the same channels and acquisitions, `existing_positives` their
    scorer-only labels.
    """
    nothing = JevAdmission(_empty(JEV), _empty(JEV_POSITIVES), 0, findings)
    if findings.total:
        return nothing
    entries, positives = _entries(predictions), _positives(predictions)
    known = _known(predictions, entries, positives, existing, existing_positives, findings)
    summary = _summary(predictions, existing)
    faults = PairFaults(predictions, findings)
    for failure in failures(PairSet, summary):
        faults.each(failure.check, "scenario", failure.rows)
    if findings.total:
        return nothing
    fresh = np.flatnonzero(~known[predictions.cell_pair])
    fresh_positives = np.flatnonzero(~known[predictions.positive_pair])
    return JevAdmission(
        entries.take(pa.array(fresh)),
        positives.take(pa.array(fresh_positives)),
        len(entries) - len(fresh),
        findings,
    )


def _empty(schema: SegmentSchema) -> pa.Table:
    return pa.schema([*schema.arrow, *SOURCE]).empty_table()


def _pair_columns(predictions: Predictions, pairs: Ints) -> dict[str, pa.Array]:
    """The key columns of some pairs, and where they came from."""

    def text(name: str) -> pa.Array:
        labels = predictions.text[name]
        return Labels(labels.codes[pairs], labels.values).array

    fingerprint = predictions.text["channel"]
    columns = {name: text(name) for name in PAIR if name not in {"year", "channel"}}
    return {
        **columns,
        "year": pa.array(predictions.year[pairs].astype(np.int32)),
        "channel": packed(Labels(fingerprint.codes[pairs], fingerprint.values)),
        "source_file": pa.array(predictions.file[pairs]),
        "source_row": pa.array(predictions.line[pairs]),
    }


def _entries(predictions: Predictions) -> pa.Table:
    """Every probability as an entry, in file order, text coded."""
    pairs, arm = predictions.cell_pair, predictions.cell_arm
    evidence = predictions.text["evidence_hash"]
    after = arm == 1
    mass = [predictions.mass[name].take(pa.array(pairs)) for name in ARMS]
    kinds = [predictions.mass_kind[name] for name in ARMS]
    kind = [Labels(each.codes[pairs], each.values).array.cast(pa.string()) for each in kinds]
    columns = {
        **_pair_columns(predictions, pairs),
        "label": predictions.cell_label.array,
        "arm": pa.DictionaryArray.from_arrays(pa.array(arm.astype(np.int32)), pa.array(ARMS)),
        "probability": pa.array(predictions.probability),
        "label_position": predictions.label_position,
        "request_hash": packed(predictions.request_hash),
        "evidence_hash": packed(Labels(evidence.codes[pairs], evidence.values)),
        "label_mass": pc.if_else(pa.array(after), mass[1], mass[0]),
        "mass_kind": pc.if_else(pa.array(after), kind[1], kind[0]),
    }
    return pa.table({name: columns[name] for name in (*JEV.names, "source_file", "source_row")})


def _positives(predictions: Predictions) -> pa.Table:
    columns = {
        **_pair_columns(predictions, predictions.positive_pair),
        "label": predictions.positive_label.array,
    }
    return pa.table({name: columns[name] for name in (*JEV_POSITIVES.names, "source_file", "source_row")})


def _codes(tables: Sequence[pa.Table], name: str) -> tuple[Ints, int]:
    """One column of several tables as ranks from 1, 0 for null; and their exclusive limit."""
    chunks = [_comparable(table.column(name)) for table in tables]
    labels = ranks(pa.chunked_array([chunk for column in chunks for chunk in column.chunks], chunks[0].type))
    return labels.codes.astype(np.int64) + 1, len(labels.values) + 1


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column whose values compare by their bytes: digests as binary, numbers as their bits."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    plain = column.cast(kind) if pa.types.is_dictionary(column.type) else column
    if pa.types.is_float64(kind):
        array = plain.combine_chunks()
        bits = array.fill_null(0.0).to_numpy(zero_copy_only=False).view(np.int64)
        return pa.chunked_array(
            [pa.array(bits, mask=~array.is_valid().to_numpy(zero_copy_only=False)).cast(pa.string())]
        )
    if pa.types.is_integer(kind):
        return plain.cast(pa.string())
    return plain.cast(pa.binary()) if pa.types.is_fixed_size_binary(kind) else plain.cast(pa.string())


def _ids(tables: Sequence[pa.Table], names: Sequence[str]) -> Ints:
    """A number per row that two rows share iff they agree in all named columns."""
    packed_ids, limit = pack([_codes(tables, name) for name in names])
    return dense(packed_ids, limit)[0]


def _known(
    predictions: Predictions,
    entries: pa.Table,
    positives: pa.Table,
    existing: pa.Table | None,
    existing_positives: pa.Table | None,
    findings: Findings,
) -> NDArray[np.bool_]:
    """Which pairs the ledger already has; one it has with other content becomes a conflict."""
    known = np.zeros(len(predictions), np.bool_)
    if existing is None or not len(existing):
        return known
    stored = existing_positives if existing_positives is not None else _empty(JEV_POSITIVES)
    new = pa.concat_tables([_whole(entries), _whole(positives)])
    old = pa.concat_tables([_whole(existing), _whole(stored)])
    pairs = _ids([new, old], PAIR)
    rows = _ids([new, old], JEV.names)
    cut = len(new)
    mine = np.concatenate([predictions.cell_pair, predictions.positive_pair])
    held = np.isin(pairs[:cut], pairs[cut:])
    same = np.isin(rows[:cut], rows[cut:])
    count_new = np.bincount(pairs[:cut], minlength=int(pairs.max()) + 1)
    count_old = np.bincount(pairs[cut:], minlength=int(pairs.max()) + 1)
    known[mine[held]] = True
    differs = np.zeros(len(predictions), np.bool_)
    differs[mine[held & (~same | (count_new != count_old)[pairs[:cut]])]] = True
    repeated = _repeats(predictions) > 0
    for pair in np.flatnonzero(differs & ~repeated):
        file, line = predictions.files[int(predictions.file[pair])].name, int(predictions.line[pair])
        query = predictions.text["query_id"].values[int(predictions.text["query_id"].codes[pair])].as_py()
        findings.add(
            Finding(
                "conflict",
                "file",
                f"{file} line {line}: pair of query {query!r} is in the ledger with other content; "
                "entries are immutable, a correction is a new acquisition",
                file=file,
                rows=(line,),
            )
        )
    return known


def _whole(table: pa.Table) -> pa.Table:
    """A table of entries or positives with all entry columns, absent ones null, text and digests plain."""
    columns = []
    for item in JEV.arrow:
        if item.name not in table.column_names:
            columns.append(pa.nulls(len(table), item.type))
            continue
        column = table.column(item.name)
        columns.append(column.cast(item.type) if column.type != item.type else column)
    return pa.table(columns, names=JEV.names)


def _repeats(predictions: Predictions) -> Ints:
    """How many further lines of the call are about the same pair."""
    every = np.arange(len(predictions))
    ids = _ids([pa.table(_pair_columns(predictions, every))], PAIR)
    return (np.bincount(ids)[ids] - 1).astype(np.int64)


def _summary(predictions: Predictions, existing: pa.Table | None) -> pl.DataFrame:
    """One row a pair, of counts, for the model PairSet."""
    count, cells = len(predictions), predictions.cell_pair
    before, after = predictions.cell_arm == 0, predictions.cell_arm == 1
    label = cells * (len(predictions.cell_label.values) + 1) + predictions.cell_label.codes
    lost = np.bincount(cells[before], weights=~np.isin(label[before], label[after]), minlength=count)
    gained = np.bincount(cells[after], weights=~np.isin(label[after], label[before]), minlength=count)
    positive = predictions.positive_pair * (len(predictions.cell_label.values) + 1)
    strange = ~np.isin(positive + predictions.positive_label.codes, label)
    base = np.isin(label, label[before])
    zero = base & (predictions.probability == 0.0)
    zeros = [np.bincount(cells[zero & arm], minlength=count) for arm in (before, after)]
    interventions = predictions.text["intervention"]
    expanding = np.append([value == EXPANDS for value in interventions.values.to_pylist()], False)
    return pl.DataFrame(
        {
            "repeats": _repeats(predictions),
            "expands": expanding[interventions.codes],
            "base": np.bincount(cells[before], minlength=count),
            "lost": lost.astype(np.int64),
            "gained": gained.astype(np.int64),
            "strangers": np.bincount(predictions.positive_pair, weights=strange, minlength=count).astype(
                np.int64
            ),
            "zeros": np.maximum(*zeros),
            "lacking": _lacking(predictions, existing),
        },
        schema=dict.fromkeys(("repeats", "base", "lost", "gained", "strangers", "zeros", "lacking"), pl.Int64)
        | {"expands": pl.Boolean},
    ).select(list(PairSet.to_schema().columns))


def _lacking(predictions: Predictions, existing: pa.Table | None) -> Ints:
    """How many scenarios of its group each pair's query lacks, the ledger's pairs counted in."""
    every = np.arange(len(predictions))
    tables = [pa.table(_pair_columns(predictions, every)).select(list(PAIR))]
    if existing is not None and len(existing):
        tables.append(existing.select(list(PAIR)))
    groups, queries = _ids(tables, GROUP), _ids(tables, (*GROUP, "year", "query_id"))
    scenarios, _ = _codes(tables, "scenario")
    wanted = _distinct_per(groups, scenarios)[groups]
    found = _distinct_per(queries, scenarios)[queries]
    lacking: Ints = wanted - found
    mine, stored = lacking[: len(predictions)], lacking[len(predictions) :]
    # A scenario that only this call has leaves the ledger's own queries incomplete.
    behind = np.zeros(int(groups.max(initial=-1)) + 1, np.int64)
    np.maximum.at(behind, groups[len(predictions) :], stored)
    return np.maximum(mine, behind[groups[: len(predictions)]])


def _distinct_per(groups: Ints, values: Ints) -> Ints:
    """How many distinct values each group has."""
    pairs = np.unique(groups * (int(values.max(initial=0)) + 1) + values)
    return np.bincount(pairs // (int(values.max(initial=0)) + 1), minlength=int(groups.max(initial=-1)) + 1)
