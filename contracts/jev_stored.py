"""Stored predictions judged as files were: entries in segment order back to pairs, and the same models asked.

A stretch of entries is judged by whole pairs; what only all pairs together can show (a pair twice, a
scenario a query lacks, a positive that is no target) is kept small and judged at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contracts.channel import ChannelBook
from contracts.digest import unpack
from contracts.errors import MalformedError
from contracts.findings import Findings
from contracts.jev_counts import PAIR, arm_counts, codes, ids, lacking, repeats
from contracts.jev_faults import PairFaults
from contracts.jev_models import ArmName, MassKind, PairSet, StoredEntry
from contracts.jev_rows import Predictions, failing, judge_rows
from contracts.jev_source import ARMS, NAMES, SourcePredictions
from contracts.labels import Labels, absent_codes, in_order, text_labels
from contracts.order import pack, ranks
from contracts.pandera_config import failures

Ints = NDArray[np.int64]
_DIGESTS = ("channel", "evidence_hash", "request_hash")
_NO_LABELS = Labels(absent_codes(0), pa.array([], pa.string()))
_SOUND = {"expands": False, "base": 2} | dict.fromkeys(("lost", "gained", "zeros", "strangers"), 0)
_ALONE = {"repeats": 0, "lacking": 0}


@dataclass(frozen=True)
class Stretch:
    """Consecutive rows of the segment `name`, of which the first is row `start`."""

    name: str
    start: int
    table: pa.Table


@dataclass(frozen=True)
class Located:
    """Keys of pairs (the columns PAIR), each with the segment (an index) and the row it stands in."""

    keys: pa.Table
    segment: NDArray[np.int32]
    row: Ints


@dataclass(frozen=True)
class StoredPairs:
    """The pairs of a stretch, and their targets: `label` belongs to the pair at `pair`."""

    pairs: Located
    pair: NDArray[np.int32]
    label: pa.ChunkedArray


def located(parts: Sequence[Stretch], order: Mapping[str, int]) -> Located:
    """The pair keys of all rows of parts; `order` numbers the segments by name."""
    sizes = [part.table.num_rows for part in parts]
    segment = np.repeat(np.array([order[part.name] for part in parts], np.int32), sizes)
    starts = np.repeat(np.array([part.start for part in parts]) - np.cumsum([0, *sizes[:-1]]), sizes)
    keys = pa.concat_tables([part.table.select(list(PAIR)) for part in parts])
    return Located(keys, segment, starts + np.arange(sum(sizes)))


def judge_stretch(
    parts: Sequence[Stretch], book: ChannelBook, order: Mapping[str, int]
) -> tuple[StoredPairs, Findings]:
    """Whole pairs of consecutive entries, judged by themselves."""
    table = pa.concat_tables([part.table for part in parts])
    every = located(parts, order)
    rows = _as_rows(table, every, list(order))
    _, findings = judge_rows(rows, book)
    faults = PairFaults(rows, findings)
    same = ids([table], PAIR)
    new = np.append(True, same[1:] != same[:-1])
    firsts, pair = np.flatnonzero(new), np.cumsum(new) - 1
    _judge_entries(table, pair, rows, faults)
    pairs = _as_pairs(rows, firsts, pair)
    _judge_set(PairFaults(pairs, findings), _ALONE | dict(arm_counts(pairs)), len(firsts))
    targets = np.unique(pair * (len(rows.cell_label.values) + 1) + rows.cell_label.codes)
    its_pair, label = np.divmod(targets, len(rows.cell_label.values) + 1)
    labels = Labels(label.astype(np.int32), rows.cell_label.values).array
    keys = Located(every.keys.take(pa.array(firsts)), every.segment[firsts], every.row[firsts])
    return StoredPairs(keys, its_pair.astype(np.int32), pa.chunked_array([labels])), findings


def judge_together(
    names: Sequence[str],
    stretches: Sequence[StoredPairs],
    positives: Sequence[Located],
    labels: Sequence[pa.ChunkedArray],
) -> Findings:
    """All pairs of a ledger and its scorer-only labels (a label for each row of `positives`)."""
    findings = Findings()
    if not stretches and not positives:
        return findings
    pairs = [each.pairs.keys for each in stretches]
    count = sum(map(len, pairs))
    if count:
        faults = PairFaults(_keyed(names, [each.pairs for each in stretches]), findings)
        missing, _ = lacking(pairs)
        _judge_set(faults, _SOUND | {"repeats": repeats(pairs), "lacking": missing}, count)
    if positives:
        strange = _strangers(stretches, positives, labels)
        _judge_set(
            PairFaults(_keyed(names, positives), findings),
            _SOUND | _ALONE | {"strangers": strange},
            len(strange),
        )
    return findings


def _strangers(
    stretches: Sequence[StoredPairs], positives: Sequence[Located], labels: Sequence[pa.ChunkedArray]
) -> Ints:
    """1 for a positive label whose pair has no such target, 0 for every other."""
    keys = [*(each.pairs.keys for each in stretches), *(each.keys for each in positives)]
    pairs = ids(keys, PAIR)
    own = sum(len(each.keys) for each in positives)
    cut = len(pairs) - own
    starts = np.cumsum([0, *(len(each.pairs.keys) for each in stretches)])
    at = [each.pair + start for each, start in zip(stretches, starts, strict=False)]
    targets = pairs[np.concatenate(at)] if at else pairs[:0]
    tables = [pa.table({"label": each}) for each in (*(each.label for each in stretches), *labels)]
    label, limit = codes(tables, "label")
    target, _ = pack([(targets, cut + own), (label[: len(targets)], limit)])
    positive, _ = pack([(pairs[cut:], cut + own), (label[len(targets) :], limit)])
    return (~np.isin(positive, target)).astype(np.int64)


def _judge_set(faults: PairFaults, counts: Mapping[str, object], height: int) -> None:
    frame = pl.DataFrame(
        {name: counts[name] if isinstance(counts[name], np.ndarray) else np.full(height, counts[name])
         for name in PairSet.to_schema().columns}
    )  # fmt: skip
    for failure in failures(PairSet, frame):
        faults.each(failure.check, "scenario", failure.rows)


def _judge_entries(table: pa.Table, pair: Ints, rows: Predictions, faults: PairFaults) -> None:
    """What a file of pairs cannot say, since one line speaks for all entries of its pair."""
    every = np.arange(table.num_rows)
    for name, model in (("arm", ArmName), ("mass_kind", MassKind)):
        labels = _labels(table, name)
        faults.labels(name, labels, every, failing(model, labels))
    arm = pair * 2 + rows.cell_arm
    differs = _unlike_first(codes([table], "evidence_hash")[0], pair)
    for name in ("label_mass", "mass_kind"):
        differs |= _unlike_first(codes([table], name)[0], arm)
    position = pc.fill_null(table.column("label_position"), -1).to_numpy().astype(np.int64)
    frame = pl.DataFrame(
        {
            "probability": pl.Series(rows.probability, nan_to_null=False),
            "label_position": pl.from_arrow(table.column("label_position").cast(pa.int64())),
            "has_mass": table.column("label_mass").is_valid().to_numpy(),
            "has_kind": table.column("mass_kind").is_valid().to_numpy(),
            "differs": differs,
            "misplaced": _misplaced(pair, rows.cell_label.codes.astype(np.int64), position),
        }
    )
    for failure in failures(StoredEntry, frame):
        faults.each(failure.check, failure.column or "label_position", failure.rows)


def _unlike_first(values: NDArray[np.integer], group: Ints) -> NDArray[np.bool_]:
    """Which rows have another value than the first row of their group."""
    _, first, number = np.unique(group, return_index=True, return_inverse=True)
    unlike: NDArray[np.bool_] = values != values[first[number]]
    return unlike


def _misplaced(pair: Ints, label: Ints, position: Ints) -> NDArray[np.bool_]:
    """Which rows have not the place their label has elsewhere in the pair, or one that another label has."""
    absent = position < 0
    if absent.all():
        return np.zeros(len(pair), np.bool_)
    by_label, _ = pack([(pair, len(pair)), (label, int(label.max()) + 1)])
    by_place, _ = pack([(pair, len(pair)), (position + 1, int(position.max()) + 2)])
    taken = _unlike_first(label, by_place) & ~absent
    return taken | _unlike_first(position, by_label) | _unlike_first(absent.astype(np.int8), pair)


def _as_rows(table: pa.Table, every: Located, names: Sequence[str]) -> Predictions:
    """Each entry as a pair of its own, so that what is found is found in its row."""
    count = table.num_rows
    arm = pc.equal(table.column("arm"), ARMS[1]).to_numpy()
    mass, absent = table.column("label_mass").to_numpy(), table.column("label_mass").is_null().to_numpy()
    return replace(
        _keyed(names, [every]),
        text={name: _labels(table, name) for name in NAMES},
        mass={name: pa.array(mass, mask=absent | (arm != bool(number))) for number, name in enumerate(ARMS)},
        cell_pair=np.arange(count),
        cell_arm=arm.astype(np.int8),
        cell_label=_labels(table, "label"),
        probability=table.column("probability").to_numpy(),
        request_hash=_labels(table, "request_hash"),
    )


def _as_pairs(rows: Predictions, firsts: Ints, pair: Ints) -> Predictions:
    """The pairs of entries that were pairs of their own."""
    return replace(
        rows,
        file=rows.file[firsts],
        line=rows.line[firsts],
        year=rows.year[firsts],
        text={name: Labels(labels.codes[firsts], labels.values) for name, labels in rows.text.items()},
        cell_pair=pair,
    )


def _keyed(names: Sequence[str], parts: Sequence[Located]) -> Predictions:
    """Pairs by their keys alone."""
    table = pa.concat_tables([part.keys for part in parts])
    row = np.concatenate([part.row for part in parts])
    nothing = pa.array([], pa.float64())
    return Predictions(
        files=tuple(SourcePredictions.named(name) for name in names),
        file=np.concatenate([part.segment for part in parts]),
        line=row + 1,
        year=table.column("year").to_numpy().astype(np.int64),
        text={name: _labels(table, name) for name in PAIR if name != "year"},
        mass=dict.fromkeys(ARMS, nothing),
        mass_kind=dict.fromkeys(ARMS, _NO_LABELS),
        cell_pair=np.empty(0, np.int64),
        cell_arm=np.empty(0, np.int8),
        cell_label=_NO_LABELS,
        probability=np.empty(0),
        request_hash=_NO_LABELS,
        label_position=pa.array([], pa.int16()),
        positive_pair=np.empty(0, np.int64),
        positive_label=_NO_LABELS,
    )


def _labels(table: pa.Table, name: str) -> Labels:
    """A column as labels, digests in their text form."""
    if name not in _DIGESTS:
        return in_order(text_labels(table.column(name).chunks))
    labels = ranks(table.column(name))
    return Labels(labels.codes, pa.array([_text(value) for value in labels.values.to_pylist()], pa.string()))


def _text(packed: bytes) -> str:
    try:
        return unpack(packed)
    except MalformedError:
        return packed.hex()  # no digest, as the model will say
