"""The set level of the predictions contract: whole groups of pairs, or findings.

In a group each (year, query, scenario) occurs once, every query has every scenario, and both arms of a pair
have the labels their intervention allows. What the ledger already holds of the same group counts as part of
it: identical pairs are dropped and counted, the same pair with other content is a conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contracts.findings import Finding, Findings
from contracts.jev_counts import PAIR, arm_counts, ids, lacking, repeats
from contracts.jev_faults import PairFaults
from contracts.jev_models import PairSet
from contracts.jev_rows import Places, Predictions, packed
from contracts.jev_source import ARMS
from contracts.labels import Labels
from contracts.order import pack
from contracts.pandera_config import Failure, failures
from contracts.schema import JEV, JEV_POSITIVES, SegmentSchema

Ints = NDArray[np.int64]
# What the models count, as the words for what was found: {0} with the pair itself counted, {1} without.
_GOT = {
    "pair-duplicate": ("repeats", "it {0} times"),
    "label-lost": ("lost", "{1} missing"),
    "label-gained": ("gained", "{1} too many"),
    "positive-no-target": ("strangers", "{1} other"),
    "scenario-missing": ("lacking", "{1} missing"),
}
SOURCE = (pa.field("source_file", pa.int32()), pa.field("source_row", pa.int64()))


@dataclass(frozen=True, eq=False)
class Sorted:
    """Rows in the order of their keys, made into a table only as far as one is asked for.

    `places` are where they stand in the call.
    """

    places: Places
    make: Callable[[Places], pa.Table]

    def __len__(self) -> int:
        return len(self.places)

    def table(self, start: int = 0, stop: int | None = None) -> pa.Table:
        """Rows [start, stop) with `source_file` and `source_row` (the line), text and digests coded."""
        return self.make(self.places[start:stop])


@dataclass(frozen=True)
class JevAdmission:
    """What a call of predictions may add: entries (schema JEV) and scorer-only positives (JEV_POSITIVES).

    `skipped` counts entries the ledger already has. There are no rows where there are findings.
    """

    entry_rows: Sorted
    positive_rows: Sorted
    skipped: int
    findings: Findings

    @property
    def entries(self) -> pa.Table:
        """All entries at once."""
        return self.entry_rows.table()

    @property
    def positives(self) -> pa.Table:
        """All scorer-only positives at once."""
        return self.positive_rows.table()


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
    nothing = JevAdmission(_nothing(JEV), _nothing(JEV_POSITIVES), 0, findings)
    if findings.total:
        return nothing
    stored = existing if existing is not None and len(existing) else None
    summary = _summary(predictions, stored)
    known = np.zeros(len(predictions), np.bool_)
    if stored is not None:
        positives = existing_positives if existing_positives is not None else _empty(JEV_POSITIVES)
        known = _known(predictions, summary["repeats"].to_numpy() > 0, stored, positives, findings)
    faults = PairFaults(predictions, findings)
    for failure in failures(PairSet, summary):
        faults.each(failure.check, "scenario", failure.rows, _got(failure, summary))
    del summary
    if findings.total:
        return nothing
    digests = _digests(predictions)
    rows = _entries_in_order(predictions, _fresh(predictions.cell_pair, known))
    entries = Sorted(rows.astype(np.int32), partial(_entries, predictions, digests))
    rows = _positives_in_order(predictions, _fresh(predictions.positive_pair, known))
    positives = Sorted(rows.astype(np.int32), partial(_positives, predictions, digests["channel"]))
    return JevAdmission(entries, positives, len(predictions.cell_pair) - len(entries), findings)


def _got(failure: Failure, summary: pl.DataFrame) -> list[str] | None:
    """How far each failing pair is from what was wanted, in words."""
    if failure.check not in _GOT:
        return None
    counted, words = _GOT[failure.check]
    return [words.format(count + 1, count) for count in summary[counted].gather(failure.rows).to_list()]


def _empty(schema: SegmentSchema) -> pa.Table:
    return pa.schema([*schema.arrow, *SOURCE]).empty_table()


def _nothing(schema: SegmentSchema) -> Sorted:
    return Sorted(np.empty(0, np.int32), lambda _: _empty(schema))


def _digests(predictions: Predictions) -> dict[str, Labels]:
    """The digests of pairs and of their requests in their 33-byte form, each made once."""
    found = {name: predictions.text[name] for name in ("channel", "evidence_hash")}
    found["request_hash"] = predictions.request_hash
    return {name: _packed(labels) for name, labels in found.items()}


def _packed(labels: Labels) -> Labels:
    return Labels(labels.codes, packed(labels).dictionary)


def _fresh(pairs: Ints | Places, known: NDArray[np.bool_]) -> Ints:
    """The rows of pairs the ledger does not have."""
    return np.flatnonzero(~known[pairs]) if known.any() else np.arange(len(pairs))


def _entries_in_order(predictions: Predictions, rows: Ints) -> Ints:
    """Some probabilities in the order of their keys."""
    label = predictions.cell_label
    pairs = _pair_ranks(predictions)[predictions.cell_pair[rows]]
    # The arms sort by their names, so after comes first.
    arms = (1 - predictions.cell_arm[rows], len(ARMS))
    return _sorted(rows, (pairs, len(predictions)), (label.codes[rows], len(label.values)), arms)


def _positives_in_order(predictions: Predictions, rows: Ints) -> Ints:
    """Some scorer-only labels in the order of their keys."""
    label = predictions.positive_label
    pairs = _pair_ranks(predictions)[predictions.positive_pair[rows]]
    return _sorted(rows, (pairs, len(predictions)), (label.codes[rows], len(label.values)))


def _sorted(rows: Ints, *parts: tuple[NDArray[np.integer], int]) -> Ints:
    key = pack(parts)[0]
    return rows if np.all(key[1:] > key[:-1]) else rows[np.argsort(key)]


def _pair_ranks(predictions: Predictions) -> Ints:
    """Where each pair stands in the order of their keys, an absent part first; equal keys share a rank."""
    years = np.unique(predictions.year)
    parts: list[tuple[NDArray[np.integer], int]] = []
    for name in JEV_POSITIVES.key[:-1]:
        if name == "year":
            parts.append((np.searchsorted(years, predictions.year), len(years) + 1))
        else:
            labels = predictions.text[name]
            parts.append((labels.codes + np.int32(1), len(labels.values) + 1))
    return np.unique(pack(parts)[0], return_inverse=True)[1]


def _pair_columns(predictions: Predictions, channel: Labels, pairs: Ints | Places) -> dict[str, pa.Array]:
    """The key columns of some pairs, and where they came from."""

    def text(name: str) -> pa.Array:
        labels = predictions.text[name]
        return Labels(labels.codes[pairs], labels.values).array

    columns = {name: text(name) for name in PAIR if name not in {"year", "channel"}}
    return {
        **columns,
        "year": pa.array(predictions.year.astype(np.int32)[pairs]),
        "channel": channel.at(pairs),
        "source_file": pa.array(predictions.file[pairs]),
        "source_row": pa.array(predictions.line[pairs]),
    }


def _entries(predictions: Predictions, digests: Mapping[str, Labels], rows: Ints | Places) -> pa.Table:
    """Some probabilities as entries, text coded."""
    pairs, arm = predictions.cell_pair[rows], predictions.cell_arm[rows]
    after = pa.array(arm == 1)
    mass = [_taken(predictions.mass[name], pairs) for name in ARMS]
    kind = [_taken(predictions.mass_kind[name].array.cast(pa.string()), pairs) for name in ARMS]
    columns = {
        **_pair_columns(predictions, digests["channel"], pairs),
        "label": predictions.cell_label.at(rows),
        "arm": pa.DictionaryArray.from_arrays(pa.array(arm.astype(np.int32)), pa.array(ARMS)),
        "probability": pa.array(predictions.probability[rows]),
        "label_position": _taken(predictions.label_position, rows),
        "request_hash": digests["request_hash"].at(rows),
        "evidence_hash": digests["evidence_hash"].at(pairs),
        "label_mass": pc.if_else(after, mass[1], mass[0]),
        "mass_kind": pc.if_else(after, kind[1], kind[0]),
    }
    return pa.table({name: columns[name] for name in (*JEV.names, "source_file", "source_row")})


def _taken(values: pa.Array, rows: Ints | Places) -> pa.Array:
    """Some of the values; where there are none, in no time to speak of."""
    return (
        pa.nulls(len(rows), values.type) if values.null_count == len(values) else values.take(pa.array(rows))
    )


def _positives(predictions: Predictions, channel: Labels, rows: Ints | Places) -> pa.Table:
    """Some scorer-only labels as entries of their own."""
    columns = {
        **_pair_columns(predictions, channel, predictions.positive_pair[rows]),
        "label": predictions.positive_label.at(rows),
    }
    return pa.table({name: columns[name] for name in (*JEV_POSITIVES.names, "source_file", "source_row")})


def _known(
    predictions: Predictions,
    repeated: NDArray[np.bool_],
    existing: pa.Table,
    existing_positives: pa.Table,
    findings: Findings,
) -> NDArray[np.bool_]:
    """Which pairs the ledger already has; one it has with other content becomes a conflict.

    One that the call repeats is told of as such and not as a conflict.
    """
    cells, labels = np.arange(len(predictions.cell_pair)), np.arange(len(predictions.positive_pair))
    digests = _digests(predictions)
    positives = _positives(predictions, digests["channel"], labels)
    new = [_entries(predictions, digests, cells), _whole(positives)]
    mine = np.concatenate([predictions.cell_pair, predictions.positive_pair])
    tables = [*new, existing, _whole(existing_positives)]
    pairs = ids(tables, PAIR)
    rows = ids(tables, JEV.names)
    cut = len(mine)
    held = np.isin(pairs[:cut], pairs[cut:])
    same = np.isin(rows[:cut], rows[cut:])
    count_new = np.bincount(pairs[:cut], minlength=int(pairs.max()) + 1)
    count_old = np.bincount(pairs[cut:], minlength=int(pairs.max()) + 1)
    known = np.zeros(len(predictions), np.bool_)
    known[mine[held]] = True
    differs = np.zeros(len(predictions), np.bool_)
    differs[mine[held & (~same | (count_new != count_old)[pairs[:cut]])]] = True
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


def _whole(positives: pa.Table) -> pa.Table:
    """Scorer-only labels beside entries: what they do not have is absent."""
    for item in JEV.arrow:
        if item.name not in positives.column_names:
            positives = positives.append_column(item, pa.nulls(len(positives), item.type))
    return positives


def _summary(predictions: Predictions, existing: pa.Table | None) -> pl.DataFrame:
    """One row a pair, of counts, for the model PairSet; the pairs of the ledger count in."""
    channel = _packed(predictions.text["channel"])
    mine = pa.table(_pair_columns(predictions, channel, np.arange(len(predictions)))).select(list(PAIR))
    tables = [mine] if existing is None else [mine, existing.select(list(PAIR))]
    missing, groups = lacking(tables)
    if existing is not None:
        # A scenario that only this call has leaves the ledger's own queries incomplete.
        behind = np.zeros(int(groups.max(initial=-1)) + 1, np.int64)
        np.maximum.at(behind, groups[len(mine) :], missing[len(mine) :])
        missing = np.maximum(missing[: len(mine)], behind[groups[: len(mine)]])
    counts = {**arm_counts(predictions), "repeats": repeats([mine]), "lacking": missing}
    return pl.DataFrame({name: counts[name] for name in PairSet.to_schema().columns})
