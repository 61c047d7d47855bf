"""What an audit says about one number: the estimate, its intervals, its verdict, or why there is none.

Source: STATISTICS rules 2, 6 and 7, and the shape of a record.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Interval = tuple[float, float]


class Verdict(StrEnum):
    """The sign an interval supports."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    UNRESOLVED = "unresolved"


class Reason(StrEnum):
    """Why a value, an interval or a verdict is absent."""

    EMPTY_COHORT = "empty_cohort"
    ONE_CLUSTER = "one_cluster"
    TOO_FEW_CLUSTERS = "too_few_clusters"
    UNDEFINED_REPLICATES = "undefined_replicates"
    EMPTY_TYPE = "empty_type"
    TOO_MANY_TYPES = "too_many_types"
    ONE_CLASS = "one_class"
    FEW_OF_A_CLASS = "few_of_a_class"
    ONE_ACQUISITION = "one_acquisition"
    ZERO_DENOMINATOR = "zero_denominator"
    ZERO_EVENTS = "zero_events"


@dataclass(frozen=True)
class Estimate:
    """One number of an audit; what is absent is None, and `reason` says why.

    `n` rows and `clusters` it rests on; `undefined_replicates` were left out of the interval.
    `ci95`, `ci90`: percentile; `ci95_t`, `ci90_t`: value ± t(C-1) CR1, for means; `ci95_wilson`: JEV rates.
    `fragile`: the second interval gives another verdict. `mc_sensitive`: another seed might.
    """

    value: float | None
    n: int
    clusters: int
    ci95: Interval | None = None
    ci90: Interval | None = None
    ci95_t: Interval | None = None
    ci90_t: Interval | None = None
    ci95_wilson: Interval | None = None
    zero_event_upper95: float | None = None
    verdict: Verdict | None = None
    fragile: bool | None = None
    mc_sensitive: bool | None = None
    undefined_replicates: int = 0
    reason: Reason | None = None

    def as_dict(self) -> dict[str, Any]:
        """The estimate as the record holds it: `ci95` is always there, other absent parts are left out."""
        parts: dict[str, Any] = {
            "value": self.value,
            "ci95": _pair(self.ci95),
            "n": self.n,
            "clusters": self.clusters,
            "undefined_replicates": self.undefined_replicates,
        }
        optional = {
            "ci90": _pair(self.ci90),
            "ci95_t": _pair(self.ci95_t),
            "ci90_t": _pair(self.ci90_t),
            "ci95_wilson": _pair(self.ci95_wilson),
            "zero_event_upper95": self.zero_event_upper95,
            "verdict": None if self.verdict is None else self.verdict.value,
            "fragile": self.fragile,
            "mc_sensitive": self.mc_sensitive,
            "reason": None if self.reason is None else self.reason.value,
        }
        return parts | {name: part for name, part in optional.items() if part is not None}


def _pair(interval: Interval | None) -> list[float] | None:
    return None if interval is None else list(interval)
