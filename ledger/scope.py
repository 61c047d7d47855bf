"""What an audit asks the ledger for: which channels, under which view, filtered how, at which level.

Values only. `ledger.snapshot` offers them to the audits beside the verified view they select from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from contracts.channel import Channel
from contracts.errors import UsageError

OWN = "own"
ANY_DONOR = "donor"
# A last number after a slash is a step. Anchored because RE2 reads the pattern too.
DONOR = re.compile(r"^donor:(?P<trajectory>.+?)(?:/(?P<step>0|[1-9][0-9]{0,9}))?$", re.ASCII)
# The columns `where` may filter by; values are compared as text.
WHERE = ("trajectory_id", "step", "step_kind", "target", "target_type", "success")


class Level(StrEnum):
    """How well the inputs of an entry are known, weakest first."""

    DECLARED = "declared"
    BOUND = "bound"
    ATTESTED = "attested"

    @property
    def rank(self) -> int:
        """The place in the order of strength, 0 for the weakest."""
        return list(Level).index(self)


@dataclass(frozen=True)
class Arm:
    """One side of a comparison: a channel and whose view the evaluator saw.

    `view_source` is `own`, `before`, `after`, `donor:<trajectory>[/<step>]`, or `donor` for any donor.
    """

    channel: Channel
    view_source: str = OWN

    def takes(self, view_source: str) -> bool:
        """Whether entries of the channel under `view_source` belong to this arm."""
        if self.view_source == ANY_DONOR:
            return view_source.startswith("donor:")
        return view_source == self.view_source

    def overlaps(self, other: Arm) -> bool:
        """Whether an entry could belong to both arms, so that comparing them would compare it with itself."""
        return self.channel.fingerprint == other.channel.fingerprint and (
            self.takes(other.view_source)
            or other.takes(self.view_source)
            or self.view_source == other.view_source
        )


@dataclass(frozen=True)
class Standing:
    """What the log says of acquisitions and channels beside their entries.

    `revoked` are acquisition ids, `revoked_channels` fingerprints, `attested` (fingerprint, acquisition id)
    whose acquisition and model checkpoint somebody trusted vouches for.
    """

    revoked: frozenset[str] = frozenset()
    revoked_channels: frozenset[str] = frozenset()
    attested: frozenset[tuple[str, str]] = frozenset()


NOTHING_SAID = Standing()


@dataclass(frozen=True)
class Scope:
    """The entries a question is about, in the order in which the parts are applied.

    kind, channel fingerprint and view source (`arms`), `where` (column and accepted values as text:
    values of one column are alternatives, columns must all hold), `acquisitions` (fingerprint of the
    channel it restricts, None for every channel, and the acquisition id). `require` is the level an
    entry must reach.
    """

    kind: str
    arms: tuple[Arm, ...]
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    acquisitions: tuple[tuple[str | None, str], ...] = ()
    require: Level = Level.BOUND

    def __post_init__(self) -> None:
        for index, arm in enumerate(self.arms):
            if any(arm.overlaps(other) for other in self.arms[:index]):
                raise UsageError(
                    f"channel {arm.channel.name} under view source {arm.view_source} is compared with itself",
                    code="same-arm",
                    expected="channels or view sources that differ",
                )
        for column, _ in self.where:
            if column not in WHERE:
                raise UsageError(
                    "not a column to filter by",
                    code="unknown-column",
                    expected=f"one of {', '.join(WHERE)}",
                    got=column,
                    where="--where",
                )

    def named(self, arm: Arm) -> frozenset[str] | None:
        """The acquisition ids the scope names for an arm, None where it leaves all of them in."""
        named = frozenset(
            acquisition
            for fingerprint, acquisition in self.acquisitions
            if fingerprint in (None, arm.channel.fingerprint)
        )
        return named or None
