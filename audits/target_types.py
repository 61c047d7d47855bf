"""Which target type each transition has, and which types the equal-target weights give a weight.

A type is the optional column `target_type`, else the label of the target. Declared types stand as they
were declared, transitions of any other type then weigh nothing; otherwise all observed types weigh alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from audits.faces import Faces
from audits.statistics.cohort import Cohort
from audits.statistics.estimate import Reason
from audits.statistics.moments import MOST_TYPES, TypeMean, Types, type_counts
from audits.statistics.vectors import Vector


@dataclass(frozen=True)
class TargetTypes:
    """The weighted types of a cohort; `types` is None where there are too many to weigh.

    `column` is what gave the types. `types.names` are the weighted ones, with one nameless type behind
    them for transitions of no declared type, of which there are `unweighted`.
    """

    column: str
    declared: bool
    observed: int
    names: tuple[str, ...]
    types: Types | None
    unweighted: int

    def mean(self, vector: Vector) -> TypeMean | None:
        """The mean over the weighted types of the mean within each."""
        if self.types is None:
            return None
        weights = [1] * len(self.names) + [0] * (len(self.types.names) - len(self.names))
        return TypeMean(vector, self.types, weights)

    def table(self, cohort: Cohort) -> Mapping[str, Any]:
        """The transitions and clusters behind each weighted type, as a record holds them."""
        head = {"column": self.column, "declared": self.declared, "observed": self.observed}
        if self.types is None:
            return head | {"types": None, "unweighted": None, "reason": Reason.TOO_MANY_TYPES.value}
        counts = type_counts(cohort, self.types)[: len(self.names)]
        rows = [
            {"type": c.name, "transitions": c.transitions, "clusters": c.clusters, "few": c.few}
            for c in counts
        ]
        return head | {"types": rows, "unweighted": self.unweighted}


def target_types(faces: Faces, declared: tuple[str, ...] | None) -> TargetTypes:
    """The types of the complete transitions, weighed as declared or else as observed."""
    labels = faces.target if faces.target_type is None else faces.target_type
    column = "target" if faces.target_type is None else "target_type"
    seen = np.unique(labels.codes).tolist()
    names = tuple(labels.names[code] for code in seen) if declared is None else declared
    if len(names) > MOST_TYPES:
        return TargetTypes(column, declared is not None, len(seen), names, None, 0)
    place = {name: code for code, name in enumerate(names)}
    codes = np.array([place.get(name, len(names)) for name in labels.names], np.int32)[labels.codes]
    unweighted = int(np.count_nonzero(codes == len(names)))
    return TargetTypes(
        column=column,
        declared=declared is not None,
        observed=len(seen),
        names=names,
        types=Types(codes, (*names, "") if unweighted else names),
        unweighted=unweighted,
    )
