"""What an audit covered of one channel: the complete transitions its numbers rest on, with their gains.

Told by laying the faces out again; no draws are made, so it costs a fraction of the audit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from audits import design as designs
from audits.faces import assemble
from contracts.channel import Channel
from contracts.errors import CannotAnswerError
from ledger.snapshot import Arm, Snapshot

UNIT = 2.0**-40  # what a margin counts in


@dataclass(frozen=True)
class Covered:
    """The n complete transitions of an audit as one arm saw them, ascending by (trajectory, step).

    `trajectory` (n texts), `step` int32[n], `target` (n texts), `gain` float64[n]: G of the arm's channel.
    `acquisitions` are those the gains are a mean over.
    """

    arm: Arm
    acquisitions: tuple[str, ...]
    trajectory: tuple[str, ...]
    step: npt.NDArray[np.int32]
    target: tuple[str, ...]
    gain: npt.NDArray[np.float64]


def covered(snapshot: Snapshot, result: Mapping[str, Any], channel: Channel) -> tuple[Covered, ...]:
    """What the audit with this result, made at the snapshot's head, covers of a channel, arm by arm.

    CannotAnswerError `not-covered` when it is about other channels, has no complete transition, or is of a
    kind that has none.
    """
    stated = {name: value for name, value in result["design"].items() if name != "plan"}
    if "arms" not in stated:
        raise _uncovered("the audit is not about scores of transitions", str(stated.get("audit")))
    design = designs.parse(stated, snapshot.book)
    if design is None:
        raise _uncovered("the audit has a method this version does not know", str(stated["audit"]))
    arms = [a for a in design.scope.arms if a.channel.fingerprint == channel.fingerprint]
    if not arms:
        named = ", ".join(dict.fromkeys(arm.channel.reference for arm in design.scope.arms))
        raise _uncovered(f"the audit does not cover channel {channel.reference}", named)
    selection = snapshot.select(design.scope)
    faces = assemble(selection)
    if len(faces) != result["flow"]["complete"] or not len(faces):
        raise _uncovered("the audit has no complete transitions to hand on", str(result["flow"]["complete"]))
    found = []
    for arm in arms:
        margins = faces.margins[design.scope.arms.index(arm)]
        gained = (margins[:, 1] - margins[:, 0]).sum(axis=(1, 2), dtype=object)
        cells = margins.shape[2] * margins.shape[3]
        found.append(
            Covered(
                arm=arm,
                acquisitions=selection.acquisitions[arm],
                trajectory=tuple(faces.trajectories[c] for c in faces.cluster.tolist()),
                step=faces.step,
                target=tuple(faces.target.names[c] for c in faces.target.codes.tolist()),
                gain=np.array([float(total) / cells * UNIT for total in gained], np.float64),
            )
        )
    return tuple(found)


def _uncovered(what: str, got: str) -> CannotAnswerError:
    return CannotAnswerError(
        what, code="not-covered", got=got, next_step="name an audit of that channel with --gate"
    )
