"""One bootstrap as a process of its own: ours, or the same question put to somebody else's library.

    statistics_case.py small|means|order PEER REPEATS [FILE]

`small`: 1,004 rows in 100 clusters, 10,000 resamples, by `ledger`, `scipy` or `arch`, so many times over.
`means`: 10M rows in 1M clusters, 2,000 resamples, by `numpy` alone or `numba`. `order`: median and trimmed
mean of 1M rows in 100,000 clusters, 2,000 resamples. FILE keeps the interval, and must already hold the same
one where it exists.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from audits.statistics import compiled
from audits.statistics.cohort import Cohort
from audits.statistics.estimate import Estimate
from audits.statistics.moments import Mean
from audits.statistics.order import Median, Ordered, Trimmed
from audits.statistics.vectors import Vector

SEED = 20260928
GRID = 1 << 40


def rows(count: int, clusters: int, resamples: int) -> tuple[Cohort, Vector]:
    """Gains on the grid in clusters of uneven size, the same in every process."""
    draw = np.random.default_rng(SEED)
    sizes = 1 + np.bincount(draw.integers(0, clusters, count - clusters), minlength=clusters)
    cluster = np.repeat(np.arange(clusters, dtype=np.int32), sizes)
    gains = (draw.standard_normal(count) * GRID).astype(np.int64)
    return Cohort(cluster, clusters, resamples=resamples), Vector(gains, GRID)


def small(peer: str) -> Callable[[], object]:
    """An interval of the mean from cluster sums, 10,000 times resampled."""
    cohort, vector = rows(1_004, 100, 10_000)
    if peer == "ledger":
        return lambda: cohort.evaluate({"mean": Mean(vector)})
    sums, sizes = cohort.sums(vector.numerators) / GRID, cohort.sizes.astype(np.float64)
    if peer == "scipy":
        from scipy import stats

        return lambda: stats.bootstrap(
            (sums, sizes),
            lambda x, n, axis: x.sum(axis=axis) / n.sum(axis=axis),
            paired=True,
            vectorized=True,
            n_resamples=10_000,
            method="percentile",
            rng=SEED,
        )
    from arch.bootstrap import IIDBootstrap

    def by_arch() -> object:
        bootstrap = IIDBootstrap(sums, sizes, seed=SEED)
        return bootstrap.conf_int(lambda x, n: x.sum() / n.sum(), reps=10_000, method="percentile")

    return by_arch


def means(peer: str) -> Estimate:
    """The mean of ten million rows; numpy alone is made to stay alone."""
    if peer == "numpy":
        compiled.WORTHWHILE = 1 << 63  # type: ignore[misc]
    elif compiled.kernels() is None:
        sys.exit("numba does not draw here")
    cohort, vector = rows(10_000_000, 1_000_000, 2_000)
    return cohort.evaluate({"mean": Mean(vector)})["mean"]


def order() -> dict[str, Estimate]:
    """Both robust locations of a million rows, on one set of draws."""
    cohort, vector = rows(1_000_000, 100_000, 2_000)
    ordered = Ordered(cohort, vector)
    return cohort.evaluate({"median": Median(ordered), "trimmed10": Trimmed(ordered)})


def main(question: str, peer: str, repeats: int, kept: Path | None) -> None:
    """Exit code 1 where an interval is not the one kept."""
    if question == "small":
        ask = small(peer)
        for _ in range(repeats):
            ask()
        return
    found: Any = means(peer) if question == "means" else order()
    if kept is None:
        return
    if kept.exists() and kept.read_text() != repr(found):
        sys.exit(f"{peer}: not the numbers of the run before\n{kept.read_text()}\n{found!r}")
    kept.write_text(repr(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]) if len(sys.argv) > 4 else None)
