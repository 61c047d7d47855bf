"""Digest columns of a call's rows: from text, binary or the texts they are of, to packed labels."""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from contracts.digest import CODES, NAMES, WIDTH, unpack
from contracts.findings import Findings
from contracts.labels import ABSENT, Labels, Mask, distinct
from contracts.pandera_config import Failure, failures
from contracts.raw_rows import PACKED, THREADS, RawRows, packed_array
from contracts.row_faults import RowFaults
from contracts.row_models import DigestText
from contracts.source_table import STAND_INS

_TEXT_WIDTH = 71  # both algorithm names have six letters
_STAND_IN_OF = {name: text for text, name in STAND_INS.items()}


def packed_digests(rows: RawRows, findings: Findings) -> dict[str, tuple[Labels, Mask]]:
    """Every digest column as packed labels, each once, and the rows where it could not be read.

    A text that stands for a digest fills it; where both are given they must agree.
    """
    # What configures the rules is one for the process, so texts are judged one column after the other.
    malformed = [_malformed(column.text) for column in rows.digests.values()]

    def packed(name: str, wrong: Sequence[Failure]) -> tuple[tuple[Labels, Mask], Findings]:
        found = Findings()
        return _digest_labels(name, rows, RowFaults(rows, found), wrong), found

    with ThreadPoolExecutor(THREADS) as pool:
        columns = list(pool.map(packed, rows.digests, malformed))
    for _, found in columns:
        findings.merge(found)
    return {name: column for name, (column, _) in zip(rows.digests, columns, strict=True)}


def _malformed(labels: Labels) -> tuple[Failure, ...]:
    if not len(labels.values):
        return ()
    return failures(DigestText, pl.DataFrame({"value": pl.from_arrow(labels.values)}))


def _digest_labels(
    name: str, rows: RawRows, faults: RowFaults, malformed: Sequence[Failure]
) -> tuple[Labels, Mask]:
    column = rows.digests[name]
    bad = rows.unread_in(name).copy()
    given = _overlaid(
        _from_text(name, column.text, malformed, faults, bad),
        _from_binary(name, column.packed, faults, bad),
    )
    stand_in = _STAND_IN_OF.get(name)
    if stand_in is None or not len(rows.stand_ins[stand_in].values):
        return distinct(given), bad
    return _with_stand_in(name, given, rows.stand_ins[stand_in], faults), bad


def _from_text(
    name: str, labels: Labels, malformed: Sequence[Failure], faults: RowFaults, bad: Mask
) -> Labels:
    """Text digests packed, malformed ones reported and absent."""
    wrong = np.zeros(len(labels.values), np.bool_)
    for failure in malformed:
        wrong[failure.rows] = True
        faults.labels(failure.check, name, labels, failure.rows)
    if not wrong.any():
        return Labels(labels.codes, _packed(labels.values))
    bad |= labels.rows_of(wrong)
    good = np.flatnonzero(~wrong)
    lookup = np.full(len(wrong) + 1, ABSENT, np.int32)
    lookup[good] = np.arange(len(good), dtype=np.int32)
    return Labels(lookup[labels.codes], _packed(labels.values.take(pa.array(good))))


def _packed(texts: pa.Array) -> pa.Array:
    """Well-formed text digests as packed ones, all at once."""
    if not len(texts):
        return pa.array([], PACKED)
    _, offsets, data = texts.buffers()
    first = int(np.frombuffer(offsets, np.int32)[texts.offset])
    characters = np.frombuffer(data, np.uint8)[first : first + len(texts) * _TEXT_WIDTH]
    characters = characters.reshape(-1, _TEXT_WIDTH)
    packed = np.empty((len(texts), WIDTH), np.uint8)
    packed[:, 0] = np.where(characters[:, 0] == ord("b"), CODES["blake3"], CODES["sha256"])
    raw = unhexlify(characters[:, _TEXT_WIDTH - 64 :].tobytes())
    packed[:, 1:] = np.frombuffer(raw, np.uint8).reshape(-1, WIDTH - 1)
    return packed_array(packed)


def _from_binary(name: str, labels: Labels, faults: RowFaults, bad: Mask) -> Labels:
    """Packed digests as they came; one of an unknown algorithm is reported and absent."""
    codes = _bytes(labels.values)[:, 0]
    wrong = ~np.isin(codes, list(NAMES))
    if not wrong.any():
        return labels
    texts = pa.array([value.hex() for value in labels.values.to_pylist()], pa.string())
    faults.labels("bad-digest", name, Labels(labels.codes, texts), np.flatnonzero(wrong))
    carried = labels.rows_of(wrong)
    bad |= carried
    return Labels(np.where(carried, np.int32(ABSENT), labels.codes), labels.values)


def _bytes(values: pa.Array) -> NDArray[np.uint8]:
    if not len(values):
        return np.empty((0, WIDTH), np.uint8)
    table = np.frombuffer(values.buffers()[1], np.uint8)[values.offset * WIDTH :]
    return table[: len(values) * WIDTH].reshape(-1, WIDTH)


def _overlaid(first: Labels, second: Labels) -> Labels:
    """The first column where it has a label, else the second."""
    if not len(second.values):
        return first
    if not len(first.values):
        return second
    shifted = np.where(second.present, second.codes + np.int32(len(first.values)), np.int32(ABSENT))
    values = pa.concat_arrays([first.values, second.values])
    return Labels(np.where(first.present, first.codes, shifted), values)


def _with_stand_in(name: str, given: Labels, stand_in: Labels, faults: RowFaults) -> Labels:
    count = len(given.codes)
    values = pa.concat_arrays([given.values, stand_in.values])
    shifted = np.where(stand_in.present, stand_in.codes + np.int32(len(given.values)), np.int32(ABSENT))
    both = distinct(Labels(np.concatenate([given.codes, shifted]), values))
    theirs, ours = both.codes[:count], both.codes[count:]
    differing = np.flatnonzero((theirs != ABSENT) & (ours != ABSENT) & (theirs != ours))
    if len(differing):
        used, places = np.unique(theirs[differing], return_inverse=True)
        texts = pa.array([unpack(value) for value in both.values.take(pa.array(used)).to_pylist()])
        got = pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), texts)
        faults.each("digest-disagrees", name, differing, got)
    return Labels(np.where(theirs != ABSENT, theirs, ours), both.values)
