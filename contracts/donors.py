"""Whose view a `donor:` side was shown: never its own, and the one the donor itself has.

`donor:<trajectory>` means the donor's transition at the side's own step, `donor:<trajectory>/<step>` that
at another. A donor's own rows are looked for among the rows judged and the entries at hand only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.labels import ABSENT, Labels, Mask
from contracts.order import Ints, bound
from contracts.row_models import DONOR
from contracts.sides import Rows, Sides

OWN = "own"
_DONOR = re.compile(DONOR, re.DOTALL)
_NONE = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Donors:
    """The donor of every side: rank of its trajectory (ABSENT for no donor or an unknown one) and step.

    `named` says that the side has a donor at all, `itself` that the donor is the side's own transition.
    """

    named: Mask
    itself: Mask
    trajectory: Ints
    step: Ints


def donors(rows: Rows, sides: Sides) -> Donors:
    """Read the donors out of the sides' view sources."""
    keys = rows.keys
    values = keys.view_source.values.to_pylist()
    parsed = [_DONOR.fullmatch(value) for value in values]
    named = np.array([match is not None for match in parsed], dtype=np.bool_)
    names = pa.array([match["trajectory"] if match else None for match in parsed], pa.string())
    found = pc.index_in(names, value_set=keys.trajectory.values, skip_nulls=True)
    trajectory = pc.fill_null(found, ABSENT).to_numpy(zero_copy_only=False).astype(np.int64)
    own = [match is None or match["step"] is None for match in parsed]
    step = np.array([int(match["step"] or 0) if match else 0 for match in parsed], dtype=np.int64)
    code = keys.view_source.codes[sides.first]
    at_step = np.where(np.array(own, dtype=np.bool_)[code], keys.step[sides.first], step[code])
    itself = (trajectory[code] == keys.trajectory.codes[sides.first]) & (at_step == keys.step[sides.first])
    return Donors(named[code], itself & named[code], trajectory[code], at_step)


def strange_views(rows: Rows, sides: Sides, given: Donors, view: Labels) -> Mask:
    """Sides whose view digest differs from the one their donor was itself shown in the same channel.

    `view` is the view digest in canonical order. Where the donor has no own row at hand, or several
    digests at one endpoint, or either digest is absent, nothing is said.
    """
    keys = rows.keys
    strange = np.zeros(len(sides), dtype=np.bool_)
    asking = np.flatnonzero(given.named & sides.judged & (given.trajectory != ABSENT))
    own = pc.index(keys.view_source.values, OWN).as_py()
    if not len(asking) or own < 0:
        return strange
    width, steps = bound(keys.channel), int(max(keys.step.max(), given.step.max())) + 1
    first = keys.starts[:-1]
    transitions = keys.trajectory.codes[first].astype(np.int64) * steps + keys.step[first]
    wanted = given.trajectory[asking] * steps + given.step[asking]
    place = np.minimum(np.searchsorted(transitions, wanted), len(transitions) - 1)
    here = transitions[place] == wanted
    asking, place = asking[here], place[here]
    spoken = (rows.fresh | rows.held) & (view.codes != ABSENT)
    needed = np.zeros(keys.transitions, dtype=np.bool_)
    needed[place] = True
    at = np.flatnonzero(spoken & (keys.view_source.codes == own) & needed[keys.transition])
    after = keys.after
    shown, low, high = _extremes(
        (keys.transition[at].astype(np.int64) * width + keys.channel.codes[at]) * 2 + after[at],
        view.codes[at],
    )
    of_asking = np.zeros(len(sides), dtype=np.bool_)
    of_asking[asking] = True
    at = np.flatnonzero(spoken & rows.fresh & of_asking[sides.side])
    ours, our_low, our_high = _extremes(sides.side[at] * 2 + after[at], view.codes[at])
    donor = np.zeros(len(sides), dtype=np.int64)
    donor[asking] = place
    side = ours // 2
    asked = (donor[side] * width + keys.channel.codes[sides.first[side]]) * 2 + ours % 2
    at_shown = np.minimum(np.searchsorted(shown, asked), max(len(shown) - 1, 0))
    if len(shown):
        constant = (shown[at_shown] == asked) & (low[at_shown] == high[at_shown])
        differs = (our_low != low[at_shown]) | (our_high != low[at_shown])
        strange[side[constant & differs]] = True
    return strange


def _extremes(groups: Ints, codes: np.ndarray[tuple[int], np.dtype[np.int32]]) -> tuple[Ints, Ints, Ints]:
    """The distinct groups, ascending, and the smallest and greatest code in each."""
    found, number = np.unique(groups, return_inverse=True)
    low = np.full(len(found), _NONE, dtype=np.int64)
    high = np.full(len(found), ABSENT, dtype=np.int64)
    np.minimum.at(low, number, codes)
    np.maximum.at(high, number, codes)
    return found, low, high
