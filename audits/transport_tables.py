"""The tables of a ref/alt audit: counts and diagnostics beside the estimates, as plain JSON values.

What is undefined is null and has its reason under `reasons` in the same table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from audits.resolution import no_resolution, resolution
from audits.statistics import clusters, flips, sensitivity, vectors
from audits.statistics.cohort import Cohort
from audits.statistics.estimate import Estimate, Reason
from audits.statistics.repeatability import repeatability
from audits.target_types import TargetTypes
from audits.transport_estimates import Pair

Table = dict[str, Any]
NO_EXCLUDED = "no_excluded"
NOT_OPPOSED = "means_do_not_oppose"
NOT_AGREED = "means_do_not_agree"
ROLES = ("ref", "alt")


def tables(
    pair: Pair,
    cohort: Cohort,
    types: TargetTypes,
    estimates: Mapping[str, Estimate],
    *,
    band: float | None = None,
) -> dict[str, Table | list[Table]]:
    """Every table that a non-empty cohort has; `estimates` and `band` give the planning figures."""
    return {
        "flips": dict(flips.table(pair.ref, pair.alt).as_dict()),
        "sign_table": _sign_table(pair),
        "flips_by_quartile": [asdict(row) for row in flips.by_quartile(pair.ref, pair.alt)],
        "interaction_signs": asdict(flips.signs(pair.interaction)),
        "leave_one_trajectory_out": _leave_one_out(pair, cohort),
        "targets": dict(types.table(cohort)),
        "sensitivity": _sensitivity(pair),
        "diagnostics": resolution(
            cohort,
            pair.interaction,
            estimates["interaction"],
            pair.faces.trajectories,
            of="interaction",
            band=band,
        ),
    }


def empty_tables() -> dict[str, Table]:
    """The tables of a cohort without a transition: counts are 0, everything else is undefined."""
    none = Reason.EMPTY_COHORT.value
    counts = ("pos_to_neg", "neg_to_pos", "both_pos", "both_neg", "zero_involved")
    return {
        "flips": dict.fromkeys(counts, 0),
        "interaction_signs": {"negative": 0, "zero": 0, "positive": 0},
        "leave_one_trajectory_out": _undefined(none, "min", "min_without", "max", "max_without", "sign_kept"),
        "sensitivity": _undefined(
            none, "pooled_sign_threshold", "recalibration_ratio", "tipping_mean_of_excluded"
        ),
        "diagnostics": no_resolution("interaction", Reason.EMPTY_COHORT),
    }


def repeats(pair: Pair, cohort: Cohort) -> dict[str, Table]:
    """How steady each arm with several acquisitions is, beside the flips that its noise makes too.

    `pairwise_sign_disagreement` is the share of strictly opposite signs between two acquisitions, the
    mean over all pairs of them: what `flip_share` would be between a channel and itself.
    """
    found = {}
    for role, margins in zip(ROLES, pair.faces.margins, strict=True):
        gains = vectors.acquisition_gains(margins)
        if len(gains) < 2:
            continue
        numbers = repeatability(cohort, gains)
        pairs = [int(np.count_nonzero(flips.strict(a, b))) for a, b in combinations(gains, 2)]
        found[role] = {
            "acquisitions": numbers.acquisitions,
            "within_sd": numbers.within_sd.as_dict(),
            "icc1": numbers.icc1.as_dict(),
            "sign_agreement": numbers.sign_agreement.as_dict(),
            "pairwise_sign_disagreement": float(Fraction(sum(pairs), len(pairs) * cohort.rows)),
        }
    return found


def _sign_table(pair: Pair) -> Table:
    cells = flips.table(pair.ref, pair.alt).cells
    return {
        "order": ["negative", "zero", "positive"],
        "ref_by_alt": [list(row) for row in cells],
    }


def _leave_one_out(pair: Pair, cohort: Cohort) -> Table:
    found = clusters.leave_one_out(cohort, pair.interaction)
    if found is None:
        names = ("min", "min_without", "max", "max_without", "sign_kept")
        return _undefined(Reason.ONE_CLUSTER.value, *names)
    ids = pair.faces.trajectories
    return asdict(found) | {"min_without": ids[found.min_without], "max_without": ids[found.max_without]}


def _sensitivity(pair: Pair) -> Table:
    """Where signs turn: pooling, recalibration, the transitions that were left out."""
    flow = pair.faces.flow
    excluded = flow.transitions - flow.complete
    ref, alt = pair.ref.mean, pair.alt.mean
    assert ref is not None
    assert alt is not None
    tipping = {
        name: _float(sensitivity.tipping_mean(vector.total, excluded))
        for name, vector in pair.weighted.items()
    }
    found: Table = {
        "pooled_sign_threshold": _float(sensitivity.pooled_sign_threshold(ref, alt)),
        "recalibration_ratio": _float(sensitivity.recalibration_ratio(ref, alt)),
        "tipping_mean_of_excluded": tipping if excluded else None,
    }
    why = dict(zip(found, (NOT_OPPOSED, NOT_AGREED, NO_EXCLUDED), strict=True))
    return _with_reasons(found, why)


def _undefined(why: str, *names: str) -> Table:
    return _with_reasons(dict.fromkeys(names), dict.fromkeys(names, why))


def _with_reasons(found: Table, why: Mapping[str, str]) -> Table:
    """A table with the reason of every null in it."""
    reasons = {name: why[name] for name, value in found.items() if value is None}
    return found | ({"reasons": reasons} if reasons else {})


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
