"""Whether flips outlive a change of numeric precision: the same pairs through two channels, unit by unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from audits.jev_estimates import PRIMARY, Judged, difference_id, intervention
from audits.jev_series import YearPairs
from audits.statistics import jev
from audits.statistics.jev_outcomes import Pairs
from contracts.errors import CannotAnswerError


def diagnosis(judged: Sequence[Judged], channels: tuple[str, str]) -> Mapping[str, Any]:
    """By year, intervention and mode: the flips of each channel, in both, vanishing and appearing.

    `channels` are the fingerprints in the order asked for: a flip vanishes when the first has it and the
    second does not. CannotAnswerError where no year has both on the same pairs.
    """
    made: dict[str, Any] = {}
    by_place: dict[tuple[int, str | None, str | None], dict[str | None, Judged]] = {}
    for each in judged:
        place = (each.part.year, each.series.intervention, each.series.mode)
        by_place.setdefault(place, {})[each.series.channel] = each
    for (year, _, _), found in by_place.items():
        first, second = (found.get(channel) for channel in channels)
        if first is not None and second is not None:
            added, asked, _ = first.series.label.split("/", 2)
            made[f"{year}/{added}/{asked}"] = _compared(first, second)
    if not made:
        raise CannotAnswerError(
            "no year has predictions of both channels under one intervention and mode",
            code="nothing-paired",
            where="--precision",
            next_step="see `ledger acquisition list` for what there is of each channel",
        )
    return made


def _compared(first: Judged, second: Judged) -> dict[str, Any]:
    common = np.intersect1d(first.queries, second.queries, assume_unique=True)
    pairs = [_common(each.part, common) for each in (first, second)]
    try:
        found = jev.vanishing(pairs[0], pairs[1], intervention(first.series))
    except ValueError as error:
        raise CannotAnswerError(
            "the channels answered different pairs of the same queries",
            code="pairs-differ",
            expected="the same scenarios, variants and labels from both",
            where=f"{first.part.year}, {first.series.label} and {second.series.label}",
        ) from error
    names = [name for name in PRIMARY if name in first.vectors]
    ordered = sorted((first, second), key=lambda each: each.series.label.encode())
    return {
        "first": first.series.label,
        "second": second.series.label,
        "queries": len(common),
        "flips": {"first": found.both + found.vanish, "second": found.both + found.appear},
        "both": found.both,
        "vanish": found.vanish,
        "appear": found.appear,
        "difference": [difference_id(ordered[0], ordered[1], name) for name in names],
    }


def _common(part: YearPairs, common: np.ndarray) -> Pairs:
    """The pairs of some queries in the order of (query, scenario, variant), labels by their bytes."""
    pairs = part.pairs
    query = part.queries[pairs.query]
    kept = np.flatnonzero(np.isin(query, common))
    kept = kept[np.lexsort((pairs.variant[kept], pairs.scenario[kept], query[kept]))]
    sizes = np.diff(pairs.start)[kept]
    start = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.repeat(pairs.start[kept] - start[:-1], sizes) + np.arange(int(start[-1]))
    return replace(
        pairs,
        query=np.searchsorted(common, query[kept]),
        scenario=pairs.scenario[kept],
        variant=pairs.variant[kept],
        start=start,
        before=pairs.before[rows],
        after=pairs.after[rows],
        positive=pairs.positive[rows],
        order=part.label[rows],
        base=pairs.base[rows],
    )
