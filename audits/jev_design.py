"""What a request-independence audit was asked, in full: scope, cuts, order of labels, draws, method ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from audits.design import SEED, require_draws
from audits.statistics.jev import RESAMPLES as JEV_RESAMPLES
from audits.statistics.jev import THRESHOLD
from contracts.channel import ChannelBook
from contracts.errors import MalformedError, UsageError
from contracts.jev_request import Mode
from contracts.jev_state import Intervention
from ledger.snapshot import UNDECLARED, Level, PredictionScope

AUDIT: Final = "jev"
RESAMPLES: Final = JEV_RESAMPLES
# An id changes whenever a digit of what it names could.
METHOD: Mapping[str, Any] = {
    "formula": {
        "strict_flip": "sides-of-one-half-strictly-opposite-v1",
        "preference_flip": "sides-of-one-half-of-pairwise-share-of-base-labels-v1",
        "action": "highest-strictly-above-threshold-ties-by-label-order-v1",
        "accuracy": "after-minus-before-v1",
    },
    "completeness": "every-scenario-of-every-query-v1",
    "unit": "query",
    "cluster": "query-within-year",
    "weights": "mean-of-targets-then-variants-then-scenarios-then-queries",
    "aggregation": {"acquisition": "one-per-group"},
    "multiplicity": "one-primary-others-secondary-unadjusted",
    "zero": "exactly-one-half-of-the-stored-float64",
    "interval": {
        "ci95": "percentile-type7",
        "ci95_t": "cr1-t",
        "ci95_wilson": "wilson-effective-size-v1",
        "zero_event_upper95": "exact-binomial-of-queries",
        "draws": "philox-cluster-v1",
        "stream": "year",
    },
}


@dataclass(frozen=True)
class JevDesign:
    """The design of one audit. `label_order` breaks ties of actions in place of any order in the file;

    `precision` are the fingerprints of two channels whose flips are compared pair by pair.
    """

    scope: PredictionScope
    threshold: float = THRESHOLD
    label_order: tuple[str, ...] | None = None
    precision: tuple[str, str] | None = None
    resamples: int = RESAMPLES
    seed: int = SEED

    def __post_init__(self) -> None:
        require_draws(self.resamples, self.seed)
        if not 0 <= self.threshold <= 1:
            raise UsageError(
                "threshold out of range", expected="0 to 1", got=self.threshold, where="--threshold"
            )
        _require(self.scope.interventions, tuple(item.value for item in Intervention), "--intervention")
        _require(self.scope.modes, tuple(item.value for item in Mode), "--mode")
        if self.label_order is not None and len(set(self.label_order)) != len(self.label_order):
            raise UsageError("a label is named twice", where="--label-order")
        if self.precision is not None and self.precision[0] == self.precision[1]:
            raise UsageError(
                "a channel is compared with itself", expected="two channels, A:B",
                got=f"{self.precision[0][:19]}… twice", where="--precision",
                next_step="see which there are with: ledger channel list",
            )  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """The design as it stands in a record; `parse` reads it back."""
        scope = self.scope
        return {
            "audit": AUDIT,
            "scope": {
                "kind": "jev",
                "channels": _listed(scope.channels),
                "interventions": _listed(scope.interventions),
                "modes": _listed(scope.modes),
                "scenarios": _listed(scope.scenarios),
                "acquisitions": [[channel, name] for channel, name in scope.acquisitions],
                "require": str(scope.require),
            },
            "primary": "strict_flip, or preference_flip where candidates were added",
            "threshold": self.threshold,
            "label_order": _listed(self.label_order),
            "precision": _listed(self.precision),
            "resamples": self.resamples,
            "seed": self.seed,
            "method": METHOD,
        }


def _require(values: tuple[str | None, ...] | None, known: tuple[str, ...], option: str) -> None:
    for value in values or ():
        if value is not None and value not in known:
            expected = " or ".join((*known, UNDECLARED))
            raise UsageError("unknown value", expected=expected, got=value[:80], where=option)


def parse(value: object, book: ChannelBook) -> JevDesign | None:
    """The design in a record; None when its method is not the one this program computes by.

    MalformedError when it is no design at all, or names a channel the ledger does not have.
    """
    if not isinstance(value, Mapping):
        raise MalformedError("not a design of an audit", where="design")
    if value.get("method") != METHOD:
        return None
    try:
        design = _build(value)
        same = design.as_json() == value
    except (KeyError, TypeError, ValueError, UsageError) as error:
        raise MalformedError("not a design of an audit", where="design") from error
    named = [*(design.scope.channels or ()), *(design.precision or ())]
    if not same or any(name is not None and book.by_fingerprint(name) is None for name in named):
        raise MalformedError("a design with parts that mean nothing here", where="design")
    return design


def _build(value: Mapping[str, Any]) -> JevDesign:
    scope, precision = value["scope"], value["precision"]
    return JevDesign(
        scope=PredictionScope(
            channels=_tuple(scope["channels"]),
            interventions=_tuple(scope["interventions"]),
            modes=_tuple(scope["modes"]),
            scenarios=_tuple(scope["scenarios"]),
            acquisitions=tuple((channel, name) for channel, name in scope["acquisitions"]),
            require=Level(scope["require"]),
        ),
        threshold=value["threshold"],
        label_order=_tuple(value["label_order"]),
        precision=None if precision is None else (precision[0], precision[1]),
        resamples=value["resamples"],
        seed=value["seed"],
    )


def _listed(values: tuple[Any, ...] | None) -> list[Any] | None:
    return None if values is None else list(values)


def _tuple(values: list[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)
