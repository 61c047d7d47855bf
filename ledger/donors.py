"""Views that were shown from another trajectory, checked against what their donors were shown themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from contracts.digest import WIDTH
from contracts.labels import ABSENT, Labels, distinct
from ledger.coded import AnyCodes, Codes, numbers, places
from ledger.scope import DONOR

Mask = npt.NDArray[np.bool_]
SCHEMA = pa.schema(
    {
        "trajectory_id": pa.string(),
        "step": pa.int32(),
        "endpoint": pa.int8(),
        "channel": pa.int8(),
        "view_hash": pa.binary(WIDTH),
    }
)
# A step fits int32, a channel number int8; what is left of an int64 holds 2^24 donors of one range.
_STEP_BITS, _CHANNEL_BITS = 31, 7


@dataclass(frozen=True)
class DonorViews:
    """The own views of possible donors: each distinct (trajectory, step, endpoint, channel, view) once.

    `endpoint` is 0 before and 1 after, `channel` the number of the channel in the scope.
    """

    table: pa.Table


NO_DONORS = DonorViews(SCHEMA.empty_table())


@dataclass(frozen=True)
class Receivers:
    """The entries whose views may come from donors, one value a row; `view` is never ABSENT here."""

    trajectory: Labels
    step: Codes
    endpoint: Codes
    channel: Codes
    view_source: Labels
    view: Labels


def wrong_donor(rows: Receivers, donors: DonorViews) -> Mask:
    """The rows whose donor is their own transition, or was itself shown another view than they carry.

    Rows under other view sources are never wrong, nor are those whose donor's own entry is not in the
    ledger: there is nothing to hold it against.
    """
    named = pc.extract_regex(rows.view_source.values, DONOR.pattern)
    wrong = np.zeros(len(rows.step), bool)
    is_donor = named.is_valid().to_numpy(zero_copy_only=False)
    at = np.flatnonzero(is_donor[rows.view_source.codes])
    if not len(at):
        return wrong
    trajectories = _labels(named.field("trajectory"))
    source, step = rows.view_source.codes[at], rows.step[at]
    fixed = _fixed_steps(named.field("step"))[source]
    donor, donor_step = trajectories.codes[source], np.where(fixed == ABSENT, step, fixed)
    itself = places(rows.trajectory.values, trajectories.values)[rows.trajectory.codes[at]]
    wrong[at] = (donor == itself) & (donor_step == step)

    given = donors.table
    gave_key = _key(
        places(given["trajectory_id"], trajectories.values),
        numbers(given["step"]),
        numbers(given["endpoint"]),
        numbers(given["channel"]),
    )
    known = gave_key >= 0
    if known.any():
        keys, place = np.unique(gave_key[known], return_inverse=True)
        views = places(given["view_hash"], rows.view.values)[known]
        one, several = np.empty(len(keys), np.int64), np.zeros(len(keys), bool)
        one[place] = views
        several[place[views != one[place]]] = True
        asked = _key(donor, donor_step, rows.endpoint[at], rows.channel[at])
        found = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        wrong[at] |= (keys[found] == asked) & (several[found] | (one[found] != rows.view.codes[at]))
    return wrong


def _labels(texts: pa.Array) -> Labels:
    encoded = texts.dictionary_encode()
    return distinct(Labels(numbers(encoded.indices).astype(np.int32), encoded.dictionary))


def _fixed_steps(steps: pa.Array) -> Codes:
    """The step each view source names, ABSENT where it leaves it to the receiver."""
    return numbers(pc.cast(pc.if_else(pc.equal(steps, ""), None, steps), pa.int64()))


def _key(trajectory: AnyCodes, step: Codes, endpoint: Codes, channel: Codes) -> Codes:
    """One integer for a donor's endpoint in a channel; negative where the trajectory is ABSENT."""
    return ((trajectory.astype(np.int64) << _STEP_BITS | step) << 1 | endpoint) << _CHANNEL_BITS | channel
