"""What an audit can say when a corner of its face was never scored: its name, and a range if one is declared.

Ω = F(alt, after) - F(alt, before) - F(ref, after) + F(ref, before); without one of the four it has no
value, and repeats of the others do not help.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from audits.arms import called
from audits.design import Design
from audits.faces import Faces
from audits.flow import ENDPOINTS
from audits.missing_corner import CornerInterval, corner_interval
from audits.statistics.estimate import Reason
from contracts.errors import CannotAnswerError, UsageError
from ledger.snapshot import Selection

# Causes that leave a corner empty because nobody scored it, rather than because of how it was scored.
UNSCORED = ("empty-cohort", "no-scores")
SEVERAL_MISSING = "several_corners_missing"


@dataclass(frozen=True)
class Identification:
    """The corners without scores, as (role, endpoint), of what then has no value.

    `corners` names them for people. `declared` is the range of the missing margin, `found` the interval
    that follows where one corner is missing.
    """

    what: str
    missing: tuple[tuple[str, str], ...]
    corners: tuple[str, ...]
    declared: tuple[float, float] | None = None
    found: CornerInterval | None = None

    def as_json(self) -> dict[str, Any]:
        """As it stands in a record."""
        made: dict[str, Any] = {"status": "not_identified", "missing": [list(c) for c in self.missing]}
        if self.declared is None:
            return made
        made["range"] = list(self.declared)
        if self.found is None:
            return made | {"interval": None, "reason": SEVERAL_MISSING}
        made |= {"transitions": self.found.transitions, "trajectories": self.found.trajectories}
        if self.found.interval is None:
            return made | {"interval": None, "reason": Reason.EMPTY_COHORT.value}
        return made | {"interval": list(self.found.interval)}

    def error(self, cause: CannotAnswerError) -> CannotAnswerError:
        """The error to end with; the next step is the one of the underlying cause."""
        return CannotAnswerError(
            f"{self.what} is not identified: no complete scores of the corner {' and '.join(self.corners)}",
            code="not_identified",
            next_step=cause.next_step,
        )


def identification(
    design: Design, faces: Faces, selection: Selection, what: str = "the interaction"
) -> Identification | None:
    """The corners that leave `what` without a value; None when it has one, or for other causes."""
    cause = faces.flow.shortfall
    missing = [
        (arm, endpoint)
        for arm, counts in enumerate(faces.flow.corners)
        for endpoint, count in enumerate(counts)
        if count == 0
    ]
    if cause is None or cause.code not in UNSCORED or not missing:
        if design.missing_corner_range is not None:
            raise UsageError(
                "a range was declared for a missing corner, but no corner is missing",
                where="--missing-corner-range",
                next_step="leave the option out",
            )
        return None
    declared, found = design.missing_corner_range, None
    if declared is not None and len(missing) == 1:
        found = corner_interval(selection, missing[0], declared)
    return Identification(
        what,
        tuple((design.roles[arm], ENDPOINTS[endpoint]) for arm, endpoint in missing),
        tuple(f"({called(design.scope.arms[arm])}, {ENDPOINTS[endpoint]})" for arm, endpoint in missing),
        declared,
        found,
    )
