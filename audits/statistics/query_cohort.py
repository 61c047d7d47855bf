"""Means over very many clusters, drawn by class: clusters alike in every sum need not be told apart.

A year of a large study has hundreds of thousands of queries, but their values are small fractions and take
few combinations. How often a replicate draws each combination is all that a mean needs to know, so a draw
costs a look-up and a count, and no replicate is ever held cluster by cluster. Numbers are those of `Cohort`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from audits.statistics import exact, tallies
from audits.statistics.cohort import Batch, Cohort, Progress
from audits.statistics.moments import Mean

FEWEST: Final = 4096  # clusters; with fewer, counting each of them is fast enough
MOST_CLASSES: Final = 1 << 12
_TURN: Final = 20  # replicates a thread makes before it reports

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class QueryCohort(Cohort):
    """A cohort whose statistics are all means."""

    def replicates(
        self,
        statistics: Mapping[str, Any],
        *,
        batch: int | None = None,
        progress: Progress | None = None,
    ) -> dict[str, exact.Replicates]:
        """The values of all means over all replicates, on the same draws: [B] each."""
        if self.clusters < FEWEST or not all(isinstance(each, Mean) for each in statistics.values()):
            return super().replicates(statistics, batch=batch, progress=progress)
        distinct = {id(each.vector.numerators): each.vector.numerators for each in statistics.values()}
        sums = [self.sums(x) for x in distinct.values()]
        classes, first = _classes([self.sizes, *sums])
        if len(first) > MOST_CLASSES:
            return super().replicates(statistics, batch=batch, progress=progress)
        table = exact.SumTable([*(x[first] for x in sums), self.sizes[first]], self.clusters)
        place = {key: index for index, key in enumerate(distinct)}
        parts: dict[str, list[exact.Replicates]] = {name: [] for name in statistics}
        done = 0
        made = tallies.of_classes(
            classes, len(first), self.seed, self.stream, self.resamples, batch or _TURN, self.workers
        )
        for counts in made:
            drawn = Batch(counts, self.sizes[first])
            *found, drawn.rows = table.weighted(counts)
            for name, each in statistics.items():
                parts[name].append(each.values(drawn, [found[place[id(each.vector.numerators)]]]))
            done += len(counts)
            if progress is not None:
                progress(done, self.resamples)
        return {name: exact.concatenate(found) for name, found in parts.items()}


def _classes(columns: list[exact.Integers]) -> tuple[npt.NDArray[np.uint16], Ints]:
    """The class of each cluster, alike in every column, and the first cluster of each class."""
    number = np.zeros(len(columns[0]), dtype=np.int64)
    first = np.zeros(1, dtype=np.int64)
    for column in columns:
        value, values = _numbered(column)
        number, many = _numbered(number * values + value)
        if many > MOST_CLASSES:
            return number.astype(np.uint16), np.arange(many)
    _, first = np.unique(number, return_index=True)
    return number.astype(np.uint16), first


def _numbered(x: exact.Integers) -> tuple[Ints, int]:
    """The distinct values numbered upwards: the number of each element, and how many there are."""
    low = int(x.min())
    reach = int(x.max()) - low + 1
    if reach > len(x):
        values, number = np.unique(x, return_inverse=True)
        return number.reshape(-1), len(values)
    shifted = (x - low).astype(np.int64)
    present = np.zeros(reach, dtype=np.bool_)
    present[shifted] = True
    numbers = np.cumsum(present) - 1
    return numbers[shifted], int(numbers[-1]) + 1
