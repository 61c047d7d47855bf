"""The vectors of a ref/alt pair and every estimate made of them, all on one set of draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from audits.faces import Faces
from audits.statistics import flips, vectors
from audits.statistics.cohort import Cohort, Statistic
from audits.statistics.estimate import Estimate, Reason
from audits.statistics.moments import Mean, share
from audits.statistics.order import Median, Ordered, Trimmed
from audits.statistics.vectors import Diagonal, Vector
from audits.target_types import TargetTypes

Progress = Callable[[int, int], None]
EQUAL_TARGET = "@equal-target"


@dataclass(frozen=True)
class Pair:
    """G of both arms and Ω per transition, exact; margins int64[n, 2, L, A] per arm."""

    faces: Faces

    @cached_property
    def parts(self) -> Diagonal:
        """The diagonal and its three parts; the reference gain and Ω are two of them."""
        return vectors.diagonal(*self.faces.margins)

    @property
    def ref(self) -> Vector:
        """G of the reference channel."""
        return self.parts.reference_gain

    @cached_property
    def alt(self) -> Vector:
        """G of the alternative channel."""
        return vectors.gain(self.faces.margins[1])

    @property
    def interaction(self) -> Vector:
        """Ω = G_alt - G_ref."""
        return self.parts.interaction

    @cached_property
    def layouts(self) -> tuple[Vector, ...]:
        """Ω of each layout alone."""
        own, other = (vectors.layout_gains(margins) for margins in self.faces.margins)
        return tuple(vectors.interaction(a, b) for a, b in zip(own, other, strict=True))

    @property
    def vectors(self) -> Mapping[str, Vector]:
        """Everything per transition, under the ids of the estimates."""
        layouts = {f"interaction.layout.{place}": v for place, v in enumerate(self.layouts)}
        parts = {"diagonal": self.parts.diagonal, "baseline_shift": self.parts.baseline_shift}
        return {**self.weighted, **layouts, **parts}

    @property
    def weighted(self) -> Mapping[str, Vector]:
        """What is reported under other weights of the target types too."""
        return {"gain.ref": self.ref, "gain.alt": self.alt, "interaction": self.interaction}


def estimates(
    pair: Pair,
    cohort: Cohort,
    types: TargetTypes,
    progress: Progress | None = None,
    *,
    band: float | None = None,
) -> dict[str, Estimate]:
    """Every estimate of the pair but AUC, by its id; an equivalence `band` is that of the interaction."""
    if not cohort.rows:
        return dict.fromkeys(_ids(pair.faces.layouts), Estimate(None, 0, 0, reason=Reason.EMPTY_COHORT))
    statistics = _means(pair)
    ordered = Ordered(cohort, pair.interaction)
    statistics["interaction.median"] = Median(ordered)
    statistics["interaction.trimmed10"] = Trimmed(ordered)
    weighted = {name + EQUAL_TARGET: types.mean(vector) for name, vector in pair.weighted.items()}
    statistics |= {name: mean for name, mean in weighted.items() if mean is not None}
    bands = {} if band is None else {"interaction": band}
    found = cohort.evaluate(statistics, bands=bands, progress=progress)
    uncomputed = Estimate(None, cohort.rows, cohort.clusters, reason=Reason.TOO_MANY_TYPES)
    return found | {name: uncomputed for name, mean in weighted.items() if mean is None}


def _means(pair: Pair) -> dict[str, Statistic]:
    named: dict[str, Statistic] = {name: Mean(vector) for name, vector in pair.weighted.items()}
    named |= {f"interaction.layout.{place}": Mean(v) for place, v in enumerate(pair.layouts)}
    return named | {
        "interaction.negative_share": share(pair.interaction.signs < 0),
        "flip_share": flips.flip_share(pair.ref, pair.alt),
        "flip_direction_difference": flips.direction_difference(pair.ref, pair.alt),
        "diagonal": Mean(pair.parts.diagonal),
        "baseline_shift": Mean(pair.parts.baseline_shift),
    }


def _ids(layouts: int) -> list[str]:
    weighted = ["gain.ref", "gain.alt", "interaction"]
    return [
        *weighted,
        *(name + EQUAL_TARGET for name in weighted),
        *(f"interaction.layout.{place}" for place in range(layouts)),
        "interaction.median",
        "interaction.trimmed10",
        "interaction.negative_share",
        "flip_share",
        "flip_direction_difference",
        "diagonal",
        "baseline_shift",
    ]
