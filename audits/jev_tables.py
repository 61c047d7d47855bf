"""The tables of a request-independence audit: counts, label mass by arm, order of labels, the series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from audits.jev_estimates import PRIMARY, Judged
from audits.jev_series import Ints, order_source
from audits.statistics import label_mass
from audits.statistics.label_mass import MassKind
from contracts.jev_source import ARMS
from ledger.snapshot import Predictions

BOUND, GIVEN = "lower_bound", "given"


def tables(
    judged: Sequence[Judged], found: Predictions, label_order: Sequence[str] | None, *, several: bool
) -> dict[str, Any]:
    """Every table by its id. With several series in scope label masses are by series, never pooled."""
    made: dict[str, Any] = {
        "counts": {each.prefix: _counts(each) for each in judged},
        "label_order": order_source([each.part for each in judged], label_order),
    }
    by_series: dict[str, list[Judged]] = {}
    for each in judged:
        by_series.setdefault(each.series.label, []).append(each)
    masses = {label: _masses(parts, found) for label, parts in by_series.items()}
    if masses:
        made["label_mass"] = masses if several else next(iter(masses.values()))
        made["label_mass_by_year"] = {each.prefix: _masses([each], found) for each in judged}
    if several:
        made["series"] = {
            label: {
                "channel": parts[0].series.channel,
                "intervention": parts[0].series.intervention,
                "mode": parts[0].series.mode,
                "years": [each.part.year for each in parts],
            }
            for label, parts in by_series.items()
        }
    return made


def _counts(each: Judged) -> dict[str, Any]:
    """What a reader asks first: how many, and how often actions changed although no answer flipped."""
    flips = each.answers.outcomes[next(name for name in PRIMARY if name in each.vectors)]
    return {
        "queries": len(each.queries),
        "scenarios": list(each.part.scenarios),
        "pairs": len(each.part.pairs.query),
        "units": int(flips.units.sum()),
        **each.answers.counts,
        "actions_changed_without_flip": each.answers.actions_changed_without_flip,
    }


def _masses(parts: Sequence[Judged], found: Predictions) -> dict[str, Any]:
    """The label masses of both arms, one a pair."""
    made = {}
    for arm in ARMS:
        columns = [_of_pairs(each, arm) for each in parts]
        mass = np.concatenate([mass for mass, _ in columns])
        kind = np.concatenate([kind for _, kind in columns])
        made[arm] = asdict(label_mass.table(mass, _kinds(kind, found)))
    return made


def _of_pairs(each: Judged, arm: str) -> tuple[npt.NDArray[np.float64], Ints]:
    """Mass and kind of one arm of every pair, read off its first target that has the arm."""
    pairs, targets = each.part.pairs, each.part.targets
    rows = np.flatnonzero(pairs.base)
    first = rows[np.diff(pairs.row[rows], prepend=-1) != 0]
    return getattr(targets, f"mass_{arm}")[first], getattr(targets, f"kind_{arm}")[first]


def _kinds(kind: Ints, found: Predictions) -> list[MassKind] | None:
    """What each mass is, None where all are exact: a mass given as a number counts as it was claimed."""
    bound = found.kinds.index(BOUND) if BOUND in found.kinds else None
    if bound is None or not (kind == bound).any():
        return None
    return [MassKind.LOWER_BOUND if code == bound else MassKind.EXACT for code in kind.tolist()]


def claimed(found: Predictions) -> bool:
    """Whether any label mass is a bare number of the file."""
    if GIVEN not in found.kinds:
        return False
    code = found.kinds.index(GIVEN)
    return bool((found.targets.kind_before == code).any() or (found.targets.kind_after == code).any())
