"""How gains change over two factors of a channel's specification, every other part held fixed.

A cell is one channel. On the transitions complete in all cells: the gain of each cell, the contrasts of the
first factor (later minus earlier level) within each level of the second, the change of a contrast between
the second factor's last and first level, and differences of adjacent contrasts. Reversing the levels of a
factor negates what is read along it. Source: STATISTICS transport row 17.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from audits import limits
from audits.cube_cells import Factors, check, find_cells, name_of
from audits.design import RESAMPLES, SEED, Design, scope_of
from audits.equivalence import band_of, band_options, equivalence
from audits.faces import Faces, assemble
from audits.record import audit_result
from audits.results import Audited
from audits.statistics import vectors
from audits.statistics import verdicts as joined
from audits.statistics.cohort import Cohort, Progress
from audits.statistics.estimate import Estimate, Reason
from audits.statistics.moments import Mean
from audits.statistics.vectors import Vector
from contracts.canonical import canonical
from contracts.errors import MalformedError
from ledger.snapshot import Arm, Level, Snapshot

AUDIT = "cube"
FACTORS, LEVELS = "factors", "levels"
CHANGE = "change."


def cube(
    snapshot: Snapshot,
    channels: str | Sequence[str],
    *,
    factors: Factors,
    where: Mapping[str, Sequence[str]] | None = None,
    acquisitions: Sequence[tuple[str | None, str]] = (),
    require: Level = Level.BOUND,
    band: float | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    progress: Progress | None = None,
) -> Audited:
    """Audit the channels that match a name pattern over two factors at the snapshot's head.

    `Factors.of(paths, levels)` makes the factors. `band` is an equivalence band
    of the change of the last contrast. The vectors of the result are everything estimated, by id.
    """
    patterns = [channels] if isinstance(channels, str) else channels
    named = find_cells(snapshot.book, patterns, factors)
    arms = [Arm(named[cell]) for cell in factors.cells]
    first = factors.levels[0]
    design = Design(
        audit=AUDIT,
        roles=tuple(name_of(cell) for cell in factors.cells),
        scope=scope_of(arms, where=where, acquisitions=acquisitions, require=require),
        primary=f"{CHANGE}{first[-1]}-{first[-2]}",
        resamples=resamples,
        seed=seed,
        options={FACTORS: list(factors.paths), LEVELS: [list(named) for named in factors.levels]}
        | band_options(band),
    )
    return run(snapshot, design, progress=progress)


def run(snapshot: Snapshot, design: Design, *, progress: Progress | None = None) -> Audited:
    """Run a design, new or read back from a record; its channels are held to its factors again."""
    factors = _factors(design)
    selection = snapshot.select(design.scope)
    faces = assemble(selection, same_view=_same_view(design.scope.arms))
    cohort = Cohort(faces.cluster, len(faces.trajectories), seed=design.seed, resamples=design.resamples)
    found = dict.fromkeys(_ids(factors), Estimate(None, 0, 0, reason=Reason.EMPTY_COHORT))
    band = band_of(design)
    values: dict[str, Vector] = {}
    if cohort.rows:
        values = combinations_of(faces, factors)
        means = {name: Mean(vector) for name, vector in values.items()}
        bands = {} if band is None else {name: band for name in means if name.startswith(CHANGE)}
        found = cohort.evaluate(means, bands=bands, progress=progress)
    audit = audit_result(
        snapshot,
        design,
        selection,
        faces,
        estimates=found,
        tables=_tables(design, factors, found, band),
        verdicts=_verdicts(factors, found) | equivalence(found, design),
        said=limits.of_cohort(cohort.clusters),
    )
    return Audited(audit, faces, values)


def combinations_of(faces: Faces, factors: Factors) -> dict[str, Vector]:
    """Every linear combination of the cells' gains that is estimated, by its id."""
    gain = {cell: vectors.gain(margins) for cell, margins in zip(factors.cells, faces.margins, strict=True)}
    first, second = factors.levels
    made = {f"gain.{name_of(cell)}": vector for cell, vector in gain.items()}
    contrast = {
        (later, earlier, level): vectors.combine((1, gain[later, level]), (-1, gain[earlier, level]))
        for earlier, later in combinations(first, 2)
        for level in second
    }
    made |= {f"contrast.{a}-{b}/{level}": vector for (a, b, level), vector in contrast.items()}
    made |= {
        f"{CHANGE}{later}-{earlier}": vectors.combine(
            (1, contrast[later, earlier, second[-1]]), (-1, contrast[later, earlier, second[0]])
        )
        for earlier, later in combinations(first, 2)
    }
    return made | {
        f"contrast_difference.{a}-{b}.minus.{b}-{c}/{level}": vectors.combine(
            (1, contrast[a, b, level]), (-1, contrast[b, c, level])
        )
        for c, b, a in zip(first, first[1:], first[2:], strict=False)
        for level in second
    }


def _ids(factors: Factors) -> list[str]:
    first, second = factors.levels
    pairs = [f"{later}-{earlier}" for earlier, later in combinations(first, 2)]
    triples = zip(first, first[1:], first[2:], strict=False)
    return [
        *(f"gain.{name_of(cell)}" for cell in factors.cells),
        *(f"contrast.{pair}/{level}" for pair in pairs for level in second),
        *(f"{CHANGE}{pair}" for pair in pairs),
        *(f"contrast_difference.{a}-{b}.minus.{b}-{c}/{x}" for c, b, a in triples for x in second),
    ]


def _factors(design: Design) -> Factors:
    """The factors of a design; its arms have to be their cells in order, and differ in nothing else."""
    levels = design.option(LEVELS, list)
    if not all(isinstance(named, list) for named in levels):
        raise MalformedError("not the levels of a cube", where="design")
    factors = Factors.of(design.option(FACTORS, list), levels)
    channels = [arm.channel for arm in design.scope.arms]
    if tuple(factors.cell(channel) for channel in channels) != factors.cells:
        raise MalformedError("the arms of the design are not the cells of its factors", where="design")
    check(channels, factors)
    return factors


def _same_view(arms: Sequence[Arm]) -> list[int | None]:
    """Channels with the same view have to be shown the same view: a number for each such specification."""
    views = [canonical(arm.channel.spec["view"]) if arm.channel.needs_view else None for arm in arms]
    return [None if view is None or views.count(view) < 2 else views.index(view) for view in views]


def _tables(
    design: Design, factors: Factors, found: Mapping[str, Estimate], band: float | None
) -> dict[str, Any]:
    """Which channel is which cell, and the equivalence of every change where a band is declared."""
    made: dict[str, Any] = {
        "cells": [
            {"cell": name_of(cell), "levels": list(cell), "channel": arm.channel.fingerprint}
            for cell, arm in zip(factors.cells, design.scope.arms, strict=True)
        ]
    }
    if band is None:
        return made
    stated = {
        name: joined.equivalence(estimate, band)
        for name, estimate in found.items()
        if name.startswith(CHANGE)
    }
    return made | {
        "equivalence_of_changes": {
            name: None if s is None else {"established": s.established, "smallest_band": s.smallest_band}
            for name, s in stated.items()
        }
    }


def _verdicts(factors: Factors, found: Mapping[str, Estimate]) -> dict[str, Any]:
    """Whether each contrast has one sign at all levels of the second factor, as points and as intervals."""
    first, second = factors.levels
    made = {}
    for earlier, later in combinations(first, 2):
        each = [found[f"contrast.{later}-{earlier}/{level}"] for level in second]
        agreed = joined.agreement(each)
        judged = all(estimate.verdict is not None for estimate in each)
        made[f"{later}-{earlier}"] = {
            "points_agree": None if each[0].value is None else agreed.points_agree,
            "intervals_agree": agreed.intervals_agree if judged else None,
        }
    return {"contrasts": made}
