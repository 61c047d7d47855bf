"""Where the interaction lies when one corner was never scored and its mean margin lies in a declared range.

The known corners come from the transitions complete in all three. Their sides are incomplete, so the
contract refused them: their scored readings are used for this one statement, under the same provenance
rules, and never enter an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from audits.cells import Axes
from audits.faces import Faces, assemble_range, common_layouts, join
from audits.flow import ENDPOINTS
from audits.statistics import sensitivity, vectors
from audits.statistics.sensitivity import CORNER_SIGNS, Corner
from ledger.snapshot import Readings, Selection, TrajectoryRange

ROLES = ("ref", "alt")
SHOWN = ("state_hash", "request_hash", "view_hash")  # digests of what belongs to one endpoint


@dataclass(frozen=True)
class CornerInterval:
    """The interval of Ω, over n transitions of some trajectories; `interval` is None for none of them."""

    interval: tuple[float, float] | None
    transitions: int
    trajectories: int


def corner_interval(
    selection: Selection, missing: tuple[int, int], declared: tuple[float, float]
) -> CornerInterval:
    """The interval for a corner (arm, endpoint) of a pair whose mean margin lies in `declared`."""
    faces = _three_corners(selection, missing)
    found = CornerInterval(None, len(faces), len(faces.trajectories))
    if not len(faces):
        return found
    known: dict[Corner, Fraction] = {}
    for corner in CORNER_SIGNS:
        arm, endpoint = _place(corner)
        mean = vectors.corner(faces.margins[arm], endpoint).mean
        assert mean is not None, "there is at least one transition"
        known[corner] = mean
    (wanted,) = (corner for corner in CORNER_SIGNS if _place(corner) == missing)
    del known[wanted]
    low, high = (Fraction(end) for end in declared)
    ends = sensitivity.missing_corner(known, wanted, low, high)
    return CornerInterval((float(ends[0]), float(ends[1])), found.transitions, found.trajectories)


def _place(corner: Corner) -> tuple[int, int]:
    """A corner as (arm, endpoint), counted from 0."""
    return ROLES.index(corner[0]), ENDPOINTS.index(corner[1])


def _three_corners(selection: Selection, missing: tuple[int, int]) -> Faces:
    """The transitions complete in the other corners; the margins of the missing one mean nothing."""
    arms = selection.scope.arms
    axes = Axes(arms, tuple(selection.acquisitions[arm] for arm in arms), common_layouts(arms))
    parts = [assemble_range(_stood_in(part, missing), axes) for part in selection.ranges_with_refused()]
    return join(parts, axes, selection)


def _stood_in(part: TrajectoryRange, missing: tuple[int, int]) -> TrajectoryRange:
    """A range in which the other endpoint of the same arm stands in for the missing corner.

    Completeness is then judged by the one machinery there is: a stand-in is complete where its twin is.
    """
    arm, endpoint = missing
    entries = part.entries
    of_arm = np.asarray(entries["arm"].to_numpy()) == arm
    at = np.asarray(pc.equal(entries["endpoint"].cast(pa.string()), ENDPOINTS[endpoint]).to_numpy(), bool)
    twin = entries.filter(pa.array(of_arm & ~at))
    named = pa.array([ENDPOINTS[endpoint]] * twin.num_rows, pa.string()).dictionary_encode()
    # what was shown at the other endpoint is not what would have been shown here
    unknown = {name: pa.nulls(twin.num_rows, twin[name].type) for name in SHOWN}
    for name, values in {"endpoint": named.cast(twin["endpoint"].type), **unknown}.items():
        column = entries.schema.get_field_index(name)
        twin = twin.set_column(column, entries.schema.field(column), values)
    merged = pa.concat_tables([entries.filter(pa.array(~(of_arm & at))), twin]).unify_dictionaries()
    order = merged.append_column("name", merged["trajectory_id"].cast(pa.binary()))
    places = pc.sort_indices(order, sort_keys=[("name", "ascending"), ("step", "ascending")])
    return TrajectoryRange(Readings.of(merged.take(places)), part.out, part.rule)
