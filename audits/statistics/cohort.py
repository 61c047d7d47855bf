"""The rows and clusters behind an audit's numbers, and the one set of draws they all share.

A `Cohort` draws its clusters once per replicate and evaluates any number of statistics on the same draws,
so that every contrast is paired. The point estimate is the same formula with every cluster drawn once.
Source: STATISTICS rules 4 to 8.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from audits.statistics import draws, exact, intervals, tallies
from audits.statistics.estimate import Estimate, Reason

T = TypeVar("T")
Progress = Callable[[int, int], None]


class Batch:
    """A run of replicates: how often each cluster was `drawn`, whole numbers of any type, [b, C]."""

    def __init__(self, drawn: npt.NDArray[np.integer], sizes: npt.NDArray[np.int64]) -> None:
        self.drawn = drawn
        self._sizes = sizes
        self._memo: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        """b, the number of replicates."""
        return len(self.drawn)

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """How often each cluster was drawn: int64[b, C]."""
        return self.drawn.astype(np.int64, copy=False)

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """How many rows each replicate holds: int64[b]."""
        if exact.bound(self._sizes) << draws.CLUSTER_BITS < exact.EXACT_FLOAT:
            sizes = self._sizes.astype(np.float64)[:, None]
            return exact.product(self.drawn, sizes)[:, 0].astype(np.int64)
        return self.counts @ self._sizes

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` returns, made once per batch; statistics that share a table share its products."""
        if key not in self._memo:
            self._memo[key] = make()
        result: T = self._memo[key]
        return result


class Statistic(Protocol):
    """A number computed from the drawn rows of a cohort; most need to say only how."""

    @property
    def signed(self) -> bool:
        """Whether its sign means something; a rate has no verdict."""
        return True

    @property
    def undefined(self) -> Reason:
        """Why its value is absent where it is undefined."""
        return Reason.EMPTY_COHORT

    @property
    def withheld(self) -> Reason | None:
        """Why no verdict is given although there is an interval, if so."""
        return None

    def columns(self) -> Sequence[exact.Integers]:
        """Row vectors whose sums over the drawn rows it needs: Integers[n] each."""
        return ()

    def values(self, batch: Batch, sums: Sequence[exact.Integers]) -> exact.Replicates:
        """Its value in each replicate of the batch, from the sums of its columns: Integers[b] each."""

    def standard_error(self, cohort: Cohort) -> float | None:
        """The cluster-robust standard error of a mean; None where the statistic is no mean."""
        del cohort
        return None


@dataclass(frozen=True, eq=False)
class Cohort:
    """`cluster` int32[n]: each row's cluster, numbered 0 to `clusters` - 1 by the UTF-8 order of their ids.

    Every cluster holds at least one row; rows may come in any order. `workers` threads draw, None for one on
    each processor; no number depends on how many.
    """

    cluster: npt.NDArray[np.int32]
    clusters: int
    seed: int = draws.SEED
    stream: int = 0
    resamples: int = 10_000
    workers: int | None = None

    def __post_init__(self) -> None:
        found = np.bincount(self.cluster, minlength=self.clusters) if len(self.cluster) else np.zeros(0)
        if len(found) != self.clusters or not found.all():
            raise ValueError(f"clusters are numbered 0 to {self.clusters - 1}, each with at least one row")
        if self.resamples < 1:
            raise ValueError(f"at least one resample is needed, got {self.resamples}")

    @property
    def rows(self) -> int:
        """n, the number of rows."""
        return len(self.cluster)

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """How many rows each cluster holds: int64[C]."""
        return np.bincount(self.cluster, minlength=self.clusters).astype(np.int64)

    @cached_property
    def _order(self) -> npt.NDArray[np.int64] | None:
        ordered = bool(np.all(self.cluster[1:] >= self.cluster[:-1]))
        return None if ordered else np.argsort(self.cluster, kind="stable")

    def sums(self, x: exact.Integers) -> exact.Integers:
        """The sum of a row vector over each cluster: Integers[C]."""
        if len(x) != self.rows:
            raise ValueError(f"the cohort has {self.rows} rows, the vector {len(x)}")
        starts = np.cumsum(self.sizes) - self.sizes
        return exact.run_sums(x if self._order is None else x[self._order], starts)

    def once(self) -> Batch:
        """Every cluster drawn once: the cohort itself as a batch of one replicate."""
        return Batch(np.ones((1, self.clusters), dtype=np.int64), self.sizes)

    def batches(self, work: Callable[[Batch], T], size: int | None = None) -> Iterator[T]:
        """What `work` makes of all replicates in order, some at a time; it does not depend on how many.

        Several threads call `work`, each for a batch of its own.
        """
        step = size or draws.batch_size(self.clusters)
        return tallies.of_clusters(
            self.seed, self.stream, self.clusters, self.resamples, step,
            lambda drawn: work(Batch(drawn, self.sizes)), self.workers,
        )  # fmt: skip

    def point(self, statistic: Statistic) -> float | None:
        """The value of the statistic on the cohort; None where it is undefined."""
        if not self.rows:
            return None
        found = _Columns(self, {"": statistic}).values(self.once())[""]
        return float(found.values[0]) if found.defined[0] else None

    def replicates(
        self,
        statistics: Mapping[str, Statistic],
        *,
        batch: int | None = None,
        progress: Progress | None = None,
    ) -> dict[str, exact.Replicates]:
        """The values of all statistics over all replicates, on the same draws: [B] each.

        `progress` is told how many replicates of how many are done.
        """
        parts: dict[str, list[exact.Replicates]] = {name: [] for name in statistics}
        columns, done = _Columns(self, statistics), 0
        step = batch or draws.batch_size(self.clusters)
        for values in self.batches(columns.values, step):
            for name, found in values.items():
                parts[name].append(found)
            done = min(done + step, self.resamples)
            if progress is not None:
                progress(done, self.resamples)
        return {name: exact.concatenate(found) for name, found in parts.items()}

    def evaluate(
        self,
        statistics: Mapping[str, Statistic],
        *,
        bands: Mapping[str, float] | None = None,
        batch: int | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Estimate]:
        """The estimates of all statistics, with intervals from the same draws.

        `bands`: a declared equivalence band d > 0 per name adds the 90 % intervals of that statistic.
        """
        points = {name: self.point(statistic) for name, statistic in statistics.items()}
        open_ones = {
            name: s for name, s in statistics.items() if points[name] is not None and self.clusters > 1
        }
        found = self.replicates(open_ones, batch=batch, progress=progress) if open_ones else {}
        return {
            name: self._estimate(statistic, points[name], found.get(name), (bands or {}).get(name))
            for name, statistic in statistics.items()
        }

    def _estimate(
        self, statistic: Statistic, value: float | None, found: exact.Replicates | None, band: float | None
    ) -> Estimate:
        bare = Estimate(value=value, n=self.rows, clusters=self.clusters)
        if value is None:
            return replace(bare, reason=statistic.undefined if self.rows else Reason.EMPTY_COHORT)
        if found is None:
            return replace(bare, reason=Reason.ONE_CLUSTER)
        left_out = int(np.count_nonzero(~found.defined))
        bare = replace(bare, undefined_replicates=left_out)
        error = statistic.standard_error(self)
        if error is not None:
            bare = replace(bare, ci95_t=intervals.student(value, error, self.clusters, intervals.LEVEL95))
        if left_out > intervals.UNDEFINED_LIMIT * self.resamples:
            return replace(bare, reason=Reason.UNDEFINED_REPLICATES)
        ordered = intervals.ascending(found)
        bare = replace(bare, ci95=intervals.percentile(ordered, intervals.LEVEL95))
        if band is not None:
            bare = replace(bare, ci90=intervals.percentile(ordered, intervals.LEVEL90))
            if error is not None:
                ninety = intervals.student(value, error, self.clusters, intervals.LEVEL90)
                bare = replace(bare, ci90_t=ninety)
        return self._judged(statistic, bare, ordered, band)

    def _judged(
        self, statistic: Statistic, estimate: Estimate, ordered: exact.Float, band: float | None
    ) -> Estimate:
        """The estimate with its verdict, or the reason why there is none."""
        if not statistic.signed or estimate.ci95 is None:
            return estimate
        if self.clusters < intervals.FEWEST_CLUSTERS:
            return replace(estimate, reason=Reason.TOO_FEW_CLUSTERS)
        if statistic.withheld is not None:
            return replace(estimate, reason=statistic.withheld)
        verdict = intervals.verdict(estimate.ci95)
        edges = [(p, 0.0) for p in intervals.tails(intervals.LEVEL95)]
        if band is not None:
            edges += [(p, edge) for p in intervals.tails(intervals.LEVEL90) for edge in (-band, band)]
        return replace(
            estimate,
            verdict=verdict,
            fragile=None if estimate.ci95_t is None else intervals.verdict(estimate.ci95_t) != verdict,
            mc_sensitive=any(intervals.monte_carlo_sensitive(ordered, p, edge) for p, edge in edges),
        )


class _Columns:
    """The cluster sums that a family of statistics needs, each distinct row vector summed once."""

    def __init__(self, cohort: Cohort, statistics: Mapping[str, Statistic]) -> None:
        self._statistics = statistics
        needed = {name: tuple(statistic.columns()) for name, statistic in statistics.items()}
        distinct = {id(x): x for columns in needed.values() for x in columns}
        place = {key: i for i, key in enumerate(distinct)}
        self._places = {name: [place[id(x)] for x in columns] for name, columns in needed.items()}
        self._kept = needed  # keeps the arrays alive, so that no id is reused
        # the sizes are one more column, so that the counts are widened and multiplied once and not twice
        columns = [*(cohort.sums(x) for x in distinct.values()), cohort.sizes]
        self._table = exact.SumTable(columns, cohort.clusters)

    def values(self, batch: Batch) -> dict[str, exact.Replicates]:
        *sums, rows = self._table.weighted(batch.drawn)
        batch.rows = rows.astype(np.int64, copy=False)
        return {
            name: statistic.values(batch, [sums[i] for i in self._places[name]])
            for name, statistic in self._statistics.items()
        }
