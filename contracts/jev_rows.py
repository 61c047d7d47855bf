"""The row level of the predictions contract: files as they came to pairs and probabilities, or findings.

Text is judged once per distinct label by the same models as scores, numbers row by row. Predictions are
always strict: any finding refuses the whole call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandera.polars as pp
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contracts.channel import ChannelBook
from contracts.digest import pack
from contracts.errors import UsageError
from contracts.findings import Findings
from contracts.jev_faults import PairFaults
from contracts.jev_models import InterventionName, ModeName, PairRow, Probability
from contracts.jev_source import ARMS, NAMES, SourcePredictions
from contracts.labels import Labels, in_order, text_labels
from contracts.pandera_config import failures
from contracts.row_models import DigestText, Label

_MODELS: Mapping[str, type[pp.DataFrameModel]] = {
    "query_id": Label,
    "scenario": Label,
    "variant": Label,
    "acquisition_id": Label,
    "intervention": InterventionName,
    "mode": ModeName,
    "evidence_hash": DigestText,
}
FILE_DIGITS = 12  # of the source digest, in the acquisition of a file that names none
ABSENT_YEAR = -(2**63)
Ints = NDArray[np.int64]
Places = NDArray[np.int32]  # of rows of a call, held as long as it is judged and written


@dataclass(frozen=True)
class Predictions:
    """The pairs of all files of one call behind each other; text as codes into sorted labels.

    `text` has query_id, scenario, intervention, mode, variant, channel (fingerprint text), acquisition_id
    and evidence_hash, one code a pair. `cells` are (pair, arm, label, probability, request hash, label
    position, mass row) arrays; `positives` pairs a pair with a positive label.
    """

    files: tuple[SourcePredictions, ...]
    file: NDArray[np.int32]
    line: Ints
    year: Ints
    text: Mapping[str, Labels]
    mass: Mapping[str, pa.Array]
    mass_kind: Mapping[str, Labels]
    cell_pair: Places | Ints
    cell_arm: NDArray[np.int8]
    cell_label: Labels
    probability: NDArray[np.float64]
    request_hash: Labels
    label_position: pa.Array
    positive_pair: Ints
    positive_label: Labels

    def __len__(self) -> int:
        return len(self.line)


def _stacked(tables: Sequence[pa.Table], name: str) -> Labels:
    return in_order(text_labels(chunk for table in tables for chunk in table.column(name).chunks))


def _numbers(tables: Sequence[pa.Table], name: str) -> pa.Array:
    return pa.chunked_array([chunk for t in tables for chunk in t.column(name).chunks]).combine_chunks()


def _offset(parts: Sequence[pa.Table], pairs: Sequence[pa.Table]) -> Ints:
    """Positions of pairs within a file as positions within the call."""
    starts = np.cumsum([0, *(table.num_rows for table in pairs)])
    columns = [p.column("pair").to_numpy() + start for p, start in zip(parts, starts, strict=False)]
    return np.concatenate(columns) if columns else np.empty(0, np.int64)


def _shared_labels(first: Labels, second: Labels) -> tuple[Labels, Labels]:
    """Two label columns with one set of labels between them."""
    both = in_order(text_labels([first.array, second.array]))
    cut = len(first.codes)
    return Labels(both.codes[:cut], both.values), Labels(both.codes[cut:], both.values)


def _filled(labels: Labels, value: str | None, where: NDArray[np.bool_]) -> Labels:
    """The labels with `value` in the marked rows."""
    if value is None or not where.any():
        return labels
    codes = np.where(where, np.int32(len(labels.values)), labels.codes)
    return in_order(text_labels([Labels(codes, pa.concat_arrays([labels.values, pa.array([value])])).array]))


def gather(
    files: Sequence[SourcePredictions], *, channel: str | None = None, acquisition: str | None = None
) -> Predictions:
    """The files of one call as one; a default stands for a column that a file does not have at all.

    A file that names neither channel nor acquisition, where no default is given either, gets the
    acquisition `file:<first digits of its BLAKE3>` and no channel.
    """
    pairs, cells, positives = ([getattr(f, part) for f in files] for part in ("pairs", "cells", "positives"))
    file = np.repeat(np.arange(len(files), dtype=np.int32), [t.num_rows for t in pairs])
    text = {name: _stacked(pairs, name) for name in NAMES}
    for index, table in enumerate(pairs):
        here = file == index
        bare = {
            name: table.column(name).null_count == table.num_rows for name in ("channel", "acquisition_id")
        }
        own = f"file:{files[index].digest.removeprefix('blake3:')[:FILE_DIGITS]}"
        fallback = own if all(bare.values()) and channel is None else None
        if bare["channel"]:
            text["channel"] = _filled(text["channel"], channel, here)
        if bare["acquisition_id"]:
            text["acquisition_id"] = _filled(text["acquisition_id"], acquisition or fallback, here)
    labels, positive = _shared_labels(_stacked(cells, "label"), _stacked(positives, "label"))
    return Predictions(
        files=tuple(each.without_rows() for each in files),
        file=file,
        line=_numbers(pairs, "line").to_numpy(),
        year=pc.fill_null(_numbers(pairs, "year"), ABSENT_YEAR).to_numpy(),
        text=text,
        mass={arm: _numbers(pairs, f"{arm}_label_mass") for arm in ARMS},
        mass_kind={arm: _stacked(pairs, f"{arm}_mass_kind") for arm in ARMS},
        cell_pair=_offset(cells, pairs).astype(np.int32),
        cell_arm=_numbers(cells, "arm").to_numpy(),
        cell_label=labels,
        probability=_numbers(cells, "probability").to_numpy(zero_copy_only=False),
        request_hash=_stacked(cells, "request_hash"),
        label_position=_numbers(cells, "label_position"),
        positive_pair=_offset(positives, pairs),
        positive_label=positive,
    )


def judge_rows(predictions: Predictions, book: ChannelBook) -> tuple[Predictions, Findings]:
    """Every value judged; the channel column comes back as fingerprints."""
    findings = Findings()
    faults = PairFaults(predictions, findings)
    faults.unread()
    every = np.arange(len(predictions))
    for name, model in _MODELS.items():
        faults.labels(name, predictions.text[name], every, failing(model, predictions.text[name]))
    faults.labels(
        "label", predictions.cell_label, predictions.cell_pair, failing(Label, predictions.cell_label)
    )
    hashes = predictions.request_hash
    faults.labels("request_hash", hashes, predictions.cell_pair, failing(DigestText, hashes))
    resolved = _resolve(predictions, book, faults)
    _numbers_of_pairs(predictions, faults)
    for failure in failures(
        Probability, pl.DataFrame({"probability": pl.Series(predictions.probability, nan_to_null=False)})
    ):
        # A value that was no number is NaN here and was found already.
        rows = failure.rows[~np.isnan(predictions.probability[failure.rows])]
        faults.each(
            failure.check, "probability", predictions.cell_pair[rows], predictions.probability[rows].tolist()
        )
    return resolved, findings


def failing(model: type[pp.DataFrameModel], labels: Labels) -> Mapping[str, Ints]:
    """The labels (by index) that break each check of a model."""
    if not len(labels.values):
        return {}
    frame = pl.DataFrame({"value": pl.from_arrow(labels.values)})
    return {failure.check: failure.rows for failure in failures(model, frame)}


def _resolve(predictions: Predictions, book: ChannelBook, faults: PairFaults) -> Predictions:
    """Channel references as fingerprints; one that does not resolve is a finding with the command to run."""
    names = predictions.text["channel"]
    found: list[str] = []
    for index, name in enumerate(names.values.to_pylist()):
        try:
            found.append(book.resolve(name).fingerprint)
        except UsageError as error:
            found.append(name)
            faults.told(error.code, "channel", names, np.array([index]), str(error))
    fingerprints = in_order(text_labels([Labels(names.codes, pa.array(found, pa.string())).array]))
    return Predictions(**{**vars(predictions), "text": {**predictions.text, "channel": fingerprints}})


def _numbers_of_pairs(predictions: Predictions, faults: PairFaults) -> None:
    acquisitions = predictions.text["acquisition_id"]
    anonymous = np.array([value.startswith("file:") for value in acquisitions.values.to_pylist()] + [False])
    frame = pl.DataFrame(
        {
            "year": pl.Series(predictions.year).replace(ABSENT_YEAR, None),
            **{
                name: predictions.text[name].codes
                for name in ("query_id", "scenario", "channel", "acquisition_id")
            },
            # A named acquisition was made through some channel; only a file that names neither goes without.
            "channel_due": ~anonymous[acquisitions.codes],
            **{f"{arm}_label_mass": pl.from_arrow(predictions.mass[arm]) for arm in ARMS},
        }
    )
    for failure in failures(PairRow, frame):
        column = failure.column or "channel"
        got = None if column not in frame.columns else frame[column].gather(failure.rows).to_list()
        faults.each(failure.check, column, failure.rows, got if failure.check.endswith("range") else None)


def packed(labels: Labels) -> pa.DictionaryArray:
    """A column of digest texts as dictionary of their 33-byte form."""
    values = pa.array([pack(value) for value in labels.values.to_pylist()], pa.binary(33))
    return pa.DictionaryArray.from_arrays(labels.array.indices, values)
