"""What was asked, in full: everything a number of an audit depends on beside the entries themselves.

A design names its formulas, completeness rule, units, weights, draws and grid by ids that change when
the arithmetic does, so a stored record says whether this program can compute it again. Channels stand
in it by fingerprint: a name is an alias and may move.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

from contracts.channel import ChannelBook
from contracts.errors import MalformedError, UsageError
from ledger.snapshot import Arm, Level, Scope

T = TypeVar("T")
Weights = Literal["cohort", "equal-target"]

RESAMPLES = 10_000
SEED = 20260928
MIN_RESAMPLES, MAX_RESAMPLES = 100, 1_000_000
MAX_SEED = 2**53 - 1  # what JSON carries exactly

# What every transport-family audit shares; an id changes whenever a digit could.
METHOD: Mapping[str, Any] = {
    "formula": {
        "margin": "target-minus-logsumexp-of-competitors-v1",
        "gain": "mean-over-layouts-and-acquisitions-of-after-minus-before-v1",
    },
    "completeness": "joint-all-cells-all-acquisitions-v1",
    "unit": "transition",
    "cluster": "trajectory",
    "aggregation": {"layout": "mean-of-margins", "acquisition": "mean-of-margins"},
    "multiplicity": "one-primary-others-secondary-unadjusted",
    "trim": "floor(n/10)-from-each-end",
    "grid": {"step": "2^-40", "rounding": "half-to-even", "zero": "zero-on-the-grid"},
    "interval": {
        "ci95": "percentile-type7",
        "ci95_t": "cr1-t",
        "draws": "philox-cluster-v1",
        "stream": 0,
    },
}
_INTERACTION = {"interaction": "gain-alt-minus-gain-ref-v1"}
# The formulas that a kind of audit has beside those of METHOD.
FORMULAS: Mapping[str, Mapping[str, str]] = {
    "transport": _INTERACTION,
    "contrast": _INTERACTION,
    "bridge": {**_INTERACTION, "vertices": "joint-cohort-one-set-of-draws-v1"},
    "face": {"split": "shapley-of-endpoint-and-view-v1"},
    "cube": {
        "contrast": "later-minus-earlier-level-of-first-factor-v1",
        "change": "contrast-at-last-minus-at-first-level-of-second-factor-v1",
        "contrast_difference": "later-minus-earlier-adjacent-contrast-v1",
    },
    "repeatability": {
        "within_sd": "sqrt-of-mean-variance-over-acquisitions-v1",
        "icc1": "shrout-fleiss-case-1-v1",
        "sign_agreement": "share-of-one-strict-sign-in-all-acquisitions-v1",
    },
}


def method(audit: str) -> Mapping[str, Any]:
    """By which arithmetic this program computes an audit of a kind."""
    own = FORMULAS.get(audit)
    return METHOD if own is None else {**METHOD, "formula": {**METHOD["formula"], **own}}


def scope_of(
    arms: Sequence[Arm],
    *,
    where: Mapping[str, Sequence[str]] | None = None,
    acquisitions: Sequence[tuple[str | None, str]] = (),
    require: Level = Level.BOUND,
) -> Scope:
    """The transport entries of some arms, narrowed; spelled one way however it was asked for.

    `where` keeps transitions by column, `acquisitions` restricts a channel (by fingerprint; None: every
    channel) to those named.
    """
    return Scope(
        kind="transport",
        arms=tuple(arms),
        where=tuple(sorted((column, tuple(sorted(set(v)))) for column, v in (where or {}).items())),
        acquisitions=tuple(sorted(set(acquisitions), key=lambda pair: (pair[0] or "", pair[1]))),
        require=require,
    )


@dataclass(frozen=True)
class Design:
    """The design of one audit; `roles` names the arms of `scope` in their order.

    `quoted` chooses the weighting the verdict sentence quotes, no number. `target_types` are the types
    of the equal-target weights, None for those observed. `missing_corner_range` bounds, in margin
    units, the mean margin of a corner without scores. `options` are JSON values that only this kind of
    audit has; its own module says what they mean.
    """

    audit: str
    roles: tuple[str, ...]
    scope: Scope
    primary: str
    resamples: int = RESAMPLES
    seed: int = SEED
    quoted: Weights = "cohort"
    target_types: tuple[str, ...] | None = None
    missing_corner_range: tuple[float, float] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.roles) != len(self.scope.arms):
            raise AssertionError("one role per arm")
        require_draws(self.resamples, self.seed)
        if self.quoted not in get_args(Weights):
            raise UsageError(
                "unknown weights", expected=" or ".join(get_args(Weights)), got=self.quoted, where="--weights"
            )
        if self.target_types is not None and len(set(self.target_types)) != len(self.target_types):
            raise UsageError("a target type is named twice", where="--target-types")
        bounds = self.missing_corner_range
        if bounds is not None and not -math.inf < bounds[0] <= bounds[1] < math.inf:
            raise UsageError(
                "not a range of margins", expected="LOW,HIGH, finite", where="--missing-corner-range"
            )

    def option(self, name: str, kind: type[T]) -> T:
        """An option that this kind of audit always has; MalformedError where a record's design lacks it."""
        value = self.options.get(name)
        if not isinstance(value, kind):
            raise MalformedError("a design without an option of its audit", expected=name, where="design")
        return value

    def as_json(self) -> dict[str, Any]:
        """The design as it stands in a record; `parse` reads it back."""
        scope, types, bounds = self.scope, self.target_types, self.missing_corner_range
        made = {
            "audit": self.audit,
            "arms": [
                {"role": role, "channel": arm.channel.fingerprint, "view_source": arm.view_source}
                for role, arm in zip(self.roles, scope.arms, strict=True)
            ],
            "scope": {
                "kind": scope.kind,
                "where": [[column, list(values)] for column, values in scope.where],
                "acquisitions": [[channel, name] for channel, name in scope.acquisitions],
                "require": str(scope.require),
            },
            "primary": self.primary,
            "weights": {
                "quoted": self.quoted,
                "target_types": None if types is None else list(types),
            },
            "resamples": self.resamples,
            "seed": self.seed,
            "missing_corner_range": None if bounds is None else list(bounds),
            "method": method(self.audit),
        }
        return made | ({"options": dict(self.options)} if self.options else {})


def require_draws(resamples: int, seed: int) -> None:
    """UsageError for draws that no audit makes."""
    if not MIN_RESAMPLES <= resamples <= MAX_RESAMPLES:
        raise UsageError(
            "number of resamples out of range",
            expected=f"{MIN_RESAMPLES} to {MAX_RESAMPLES}",
            got=resamples,
            where="--resamples",
        )
    if not 0 <= seed <= MAX_SEED:
        raise UsageError("seed out of range", expected="0 to 2^53 - 1", got=seed, where="--seed")


def parse(value: object, book: ChannelBook) -> Design | None:
    """The design in a record; None when its method is not the one this program computes by.

    MalformedError when it is no design at all.
    """
    if not isinstance(value, Mapping):
        raise MalformedError("not a design of an audit", where="design")
    if value.get("method") != method(str(value.get("audit"))):
        return None
    try:
        design = _build(value, book)
        same = design.as_json() == value
    except (KeyError, TypeError, ValueError, UsageError) as error:
        raise MalformedError("not a design of an audit", where="design") from error
    if not same:
        raise MalformedError("a design with parts that mean nothing here", where="design")
    return design


def _build(value: Mapping[str, Any], book: ChannelBook) -> Design:
    scope, weights, bounds = value["scope"], value["weights"], value["missing_corner_range"]
    types = weights["target_types"]
    return Design(
        audit=value["audit"],
        roles=tuple(arm["role"] for arm in value["arms"]),
        scope=Scope(
            kind=scope["kind"],
            arms=tuple(_arm(arm["channel"], arm["view_source"], book) for arm in value["arms"]),
            where=tuple((column, tuple(values)) for column, values in scope["where"]),
            acquisitions=tuple((channel, name) for channel, name in scope["acquisitions"]),
            require=Level(scope["require"]),
        ),
        primary=value["primary"],
        resamples=value["resamples"],
        seed=value["seed"],
        quoted=weights["quoted"],
        target_types=None if types is None else tuple(types),
        missing_corner_range=None if bounds is None else _pair(bounds),
        options=value.get("options", {}),
    )


def _arm(fingerprint: str, view_source: str, book: ChannelBook) -> Arm:
    channel = book.by_fingerprint(fingerprint)
    if channel is None:
        raise MalformedError("the design names a channel this ledger does not have", got=fingerprint[:80])
    return Arm(channel, view_source)


def _pair(bounds: Sequence[float]) -> tuple[float, float]:
    low, high = bounds
    return low, high
