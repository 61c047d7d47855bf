"""The rows behind a stored record, read again from the entries: what its figures are drawn from.

A record holds estimates, not the transitions they summarise. Read again, those must give the counts and
means that the record states; TamperError where they do not, since then one of the two is not what it says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from audits import design, jev_design
from audits.faces import assemble
from audits.jev_estimates import PRIMARY, Judged, intervention, judge
from audits.jev_series import series_of, years_of
from audits.statistics import flips, jev_outcomes
from audits.transport_estimates import Pair
from audits.transport_tables import ROLES
from contracts.errors import TamperError
from ledger.snapshot import Snapshot

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
PAIRED = ("gain.ref", "gain.alt", "interaction")


@dataclass(frozen=True, eq=False)
class PairPoints:
    """G of both arms and Ω of every complete transition, each rounded once to float64[n]."""

    ref: Floats
    alt: Floats
    interaction: Floats
    opposed: Mask  # strictly opposite signs, exactly


@dataclass(frozen=True)
class Scene:
    """One scenario of a series and year: flips among its units, changed actions among its pairs."""

    scenario: str
    flips: int
    units: int
    changed: int
    pairs: int


@dataclass(frozen=True, eq=False)
class SeriesPoints:
    """Every unit of a series and year before and after: a target's p, or the share q of two base labels."""

    prefix: str
    before: Floats
    after: Floats
    flipped: Mask
    tied: Mask
    shares: bool
    scenes: tuple[Scene, ...]


def is_pair(result: Mapping[str, Any]) -> bool:
    """Whether a record compares a reference with an alternative, transition by transition."""
    arms = result["design"].get("arms", ())
    return tuple(arm["role"] for arm in arms) == ROLES and all(name in result["estimates"] for name in PAIRED)


def pair_points(snapshot: Snapshot, result: Mapping[str, Any]) -> PairPoints | None:
    """The transitions of a ref/alt record; None where its method is not one this program computes by.

    `snapshot` is the ledger at the head of the record.
    """
    asked = design.parse(result["design"], snapshot.book)
    if asked is None:
        return None
    pair = Pair(assemble(snapshot.select(asked.scope)))
    opposed = np.asarray(flips.strict(pair.ref, pair.alt))
    found: dict[str, object] = {"complete": len(pair.faces)}
    stated: dict[str, object] = {"complete": result["flow"]["complete"]}
    for name, vector in pair.weighted.items():
        mean = vector.mean
        found[name] = None if mean is None else float(mean)
        stated[name] = result["estimates"][name]["value"]
    counted = result["tables"].get("flips")
    if counted is not None:
        found["flips"], stated["flips"] = dict(flips.table(pair.ref, pair.alt).as_dict()), dict(counted)
    _require_same(found, stated)
    return PairPoints(pair.ref.floats(), pair.alt.floats(), pair.interaction.floats(), opposed)


def prediction_points(snapshot: Snapshot, result: Mapping[str, Any]) -> tuple[SeriesPoints, ...] | None:
    """The units of a record of before/after predictions, by series and year; None as for `pair_points`."""
    asked = jev_design.parse(result["design"], snapshot.book)
    if asked is None:
        return None
    found = snapshot.predictions(asked.scope)
    series = [each for each in series_of(found.groups, snapshot.book) if each.groups]
    several = len(series_of(found.groups, snapshot.book)) > 1
    made = []
    for each in series:
        for part in years_of(found, each, asked.label_order):
            prefix = f"{part.year}/{each.label}" if several else str(part.year)
            judged = judge(each, part, prefix, asked.threshold)
            counts = result["tables"].get("counts", {}).get(prefix, {})
            wanted = {name: counts.get(name) for name in judged.answers.counts}
            _require_same(judged.answers.counts, wanted)
            made.append(_series(judged, found.scenarios))
    return tuple(made)


def _series(judged: Judged, names: Sequence[str]) -> SeriesPoints:
    pairs = judged.part.pairs
    shares = intervention(judged.series) == "candidates"
    if shares:
        compared = jev_outcomes.by_preference(pairs)
        before, after = jev_outcomes.preferences(pairs)
    else:
        compared = jev_outcomes.by_target(pairs)
        before, after = pairs.before[pairs.base], pairs.after[pairs.base]
    outcomes = judged.answers.outcomes
    flipped = outcomes[next(name for name in PRIMARY if name in outcomes)]
    changed = outcomes["action_change"].events
    scenes = []
    for code in np.unique(pairs.scenario).tolist():
        here = pairs.scenario == code
        scenes.append(
            Scene(
                names[code],
                int(flipped.events[here].sum()),
                int(flipped.units[here].sum()),
                int(changed[here].sum()),
                int(np.count_nonzero(here)),
            )
        )
    return SeriesPoints(
        judged.prefix, before, after, compared.flips, np.asarray(compared.ties), shares, tuple(scenes)
    )


def _require_same(found: Mapping[str, object], stated: Mapping[str, object]) -> None:
    for name, value in found.items():
        if stated.get(name) != value:
            raise TamperError(
                "the entries give another result than the record states", kind="record", where=name,
                expected=str(stated.get(name))[:120], got=str(value)[:120],
                next_step="run `ledger verify --full`",
            )  # fmt: skip
