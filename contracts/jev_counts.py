"""Pairs of predictions counted: what the models of pairs and of groups of pairs ask about.

A group is (channel, acquisition, intervention, mode, variant), a pair a (year, query, scenario) of it.
Columns are compared by codes and never as text, so that millions of rows cost integers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contracts.jev_rows import Predictions
from contracts.order import column, dense, labelled, pack

Ints = NDArray[np.int64]
GROUP = ("channel", "acquisition_id", "intervention", "mode", "variant")
PAIR = ("query_id", "year", "scenario", *GROUP)
EXPANDS = "candidates"


def ids(tables: Sequence[pa.Table], names: Sequence[str]) -> Ints:
    """A number per row that two rows share iff they agree in all named columns."""
    packed, limit = pack([codes(tables, name) for name in names])
    return dense(packed, limit)[0]


def codes(tables: Sequence[pa.Table], name: str) -> tuple[NDArray[np.integer], int]:
    """One column of several tables as numbers from 1, 0 for null, in no order; and their exclusive limit."""
    values = column(tables, name)
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        return _number_codes(values)
    labels = labelled(values)
    return labels.codes + np.int32(1), len(labels.values) + 1


def _number_codes(values: pa.ChunkedArray) -> tuple[NDArray[np.integer], int]:
    """Numbers that differ in a bit differ: 0.0 is not -0.0 here."""
    if values.null_count == len(values):
        return np.zeros(len(values), np.int32), 1
    array = pc.fill_null(values, pa.scalar(0).cast(values.type)).to_numpy()
    bits = array.view(np.int64) if array.dtype == np.float64 else array
    distinct, found = np.unique(bits, return_inverse=True)
    present = values.is_valid().to_numpy()
    return (found.astype(np.int32) + np.int32(1)) * present, len(distinct) + 1


def arm_counts(predictions: Predictions) -> Mapping[str, NDArray[np.generic]]:
    """What PairSet knows of a pair by itself: `expands`, `base`, `lost`, `gained`, `strangers`, `zeros`."""
    count, cells = len(predictions), predictions.cell_pair
    width = len(predictions.cell_label.values) + 1
    label = cells.astype(np.int64) * width + predictions.cell_label.codes
    after = predictions.cell_arm == 1
    old, new = np.flatnonzero(~after), np.flatnonzero(after)
    kept = _among(label[old], label[new])
    base = _among(label[new], label[old])
    zero = predictions.probability == 0.0
    zeros = [
        np.bincount(cells[rows], minlength=count)
        for rows in (old[zero[old]], new[base & zero[new]])
    ]  # fmt: skip
    positive = predictions.positive_pair * width + predictions.positive_label.codes
    strange = predictions.positive_pair[~_among(positive, label)]
    interventions = predictions.text["intervention"]
    expanding = np.array([value == EXPANDS for value in interventions.values.to_pylist()] + [False])
    return {
        "expands": expanding[interventions.codes],
        "base": np.bincount(cells[old], minlength=count),
        "lost": np.bincount(cells[old[~kept]], minlength=count),
        "gained": np.bincount(cells[new[~base]], minlength=count),
        "strangers": np.bincount(strange, minlength=count),
        "zeros": np.maximum(*zeros),
    }


def _among(values: Ints, known: Ints) -> NDArray[np.bool_]:
    """Which values are known, without a sort where both come in one order, as most files have their arms."""
    if np.array_equal(values, known):
        return np.ones(len(values), np.bool_)
    return np.isin(values, known)


def repeats(pairs: Sequence[pa.Table]) -> Ints:
    """For each row of tables of pairs, how many others are about the same pair."""
    found = ids(pairs, PAIR)
    return (np.bincount(found)[found] - 1).astype(np.int64)


def lacking(pairs: Sequence[pa.Table]) -> tuple[Ints, Ints]:
    """For each row of tables of pairs, how many scenarios of its group its query lacks; and its group."""
    groups, queries = ids(pairs, GROUP), ids(pairs, (*GROUP, "year", "query_id"))
    scenarios = codes(pairs, "scenario")[0]
    wanted = _distinct_per(groups, scenarios)[groups]
    return wanted - _distinct_per(queries, scenarios)[queries], groups


def _distinct_per(groups: Ints, values: NDArray[np.integer]) -> Ints:
    """How many distinct values each group has."""
    width = int(values.max(initial=0)) + 1
    pairs = np.unique(groups * width + values)
    return np.bincount(pairs // width, minlength=int(groups.max(initial=-1)) + 1)
