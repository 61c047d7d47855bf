"""What an audit of predictions asks the ledger for, and which rule keeps a group of pairs out.

Values and rules only. A value missing from a group would be skipped by every statistic over it, so the unit
that a rule keeps out is the whole group: (channel, acquisition, intervention, mode, variant).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ledger.provenance import CHANNEL_KNOWN, CHANNEL_REVOKED, LEVEL, REVOKED, SEGMENT_INTACT
from ledger.scope import Level, Standing

UNDECLARED = "undeclared"
REQUEST_BOUND = "request-bound"
UNCHANGED = "request-changed"
# In the order in which a group that breaks several is counted: under the first.
RULES = (SEGMENT_INTACT, CHANNEL_KNOWN, REVOKED, CHANNEL_REVOKED, REQUEST_BOUND, UNCHANGED, LEVEL)
# Asked alone, a target has a request without the questions that joined, so it may stay as it was.
ALONE = "independent"
JOINS_OUTSIDE = "questions"

Part = tuple[str | None, ...] | None
Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PredictionScope:
    """The predictions a question is about; None leaves a part open, null among its values is `undeclared`.

    `channels` are fingerprints. `acquisitions` are (fingerprint of the channel it restricts or None, id),
    `require` the level a group must reach.
    """

    channels: Part = None
    interventions: Part = None
    modes: Part = None
    scenarios: tuple[str, ...] | None = None
    acquisitions: tuple[tuple[str | None, str], ...] = ()
    require: Level = Level.BOUND

    def holds(
        self, channel: str | None, acquisition: str, intervention: str | None, mode: str | None
    ) -> bool:
        """Whether a group with these parts is in scope."""
        wanted = ((self.channels, channel), (self.interventions, intervention), (self.modes, mode))
        if any(values is not None and value not in values for values, value in wanted):
            return False
        named = {name for fingerprint, name in self.acquisitions if fingerprint in (None, channel)}
        return not named or acquisition in named


@dataclass(frozen=True)
class Group:
    """One group of pairs: what was asked of whom, when, and in which variant. `channel` is a fingerprint."""

    channel: str | None
    acquisition: str
    intervention: str | None
    mode: str | None
    variant: str | None


@dataclass(frozen=True)
class GroupCount:
    """A group in scope: how much it holds and the rule that keeps it out, None where none does.

    `half_bound` counts targets with a request digest in one arm only, `unchanged` those whose request is the
    same in both arms, `without_digest` entries without one.
    """

    group: Group
    entries: int
    pairs: int
    without_digest: int
    half_bound: int
    unchanged: int
    level: Level | None
    rule: str | None


def judged(group: Group, counts: Mapping[str, int], standing: Standing, require: Level) -> GroupCount:
    """The first rule a group breaks, and the level it has where it breaks none but that."""
    alone = group.mode == ALONE and group.intervention == JOINS_OUTSIDE
    rule: str | None = None
    if group.acquisition in standing.revoked:
        rule = REVOKED
    elif group.channel in standing.revoked_channels:
        rule = CHANNEL_REVOKED
    elif counts["half_bound"]:
        rule = REQUEST_BOUND
    elif counts["unchanged"] and not alone:
        rule = UNCHANGED
    level: Level | None = None
    if rule is None:
        declared = group.channel is None or counts["without_digest"] > 0
        attested = (group.channel, group.acquisition) in standing.attested
        level = Level.DECLARED if declared else Level.ATTESTED if attested else Level.BOUND
        if level.rank < require.rank:
            rule = LEVEL
    return GroupCount(group=group, level=level, rule=rule, **counts)
