"""The part of `audit transport` that a query for means is compared with, as a process of its own.

Snapshot, assembly, gains, Ω and layouts with their 10,000-resample intervals, by the code and the engine of
the command; no median, trimmed mean, flips, success or tables. Prints the mean Ω.

    audit_means.py REF ALT     with the home of the environment
"""

from __future__ import annotations

import sys
from contextlib import closing

from audits.design import RESAMPLES, SEED, scope_of
from audits.faces import assemble
from audits.statistics.cohort import Cohort
from audits.statistics.moments import Mean
from audits.transport_estimates import Pair
from ledger import home
from ledger.engines import Means, engine
from ledger.snapshot import Arm, open_snapshot


def main(ref: str, alt: str) -> None:
    """Every interval on one set of draws, as in the audit."""
    with closing(engine(None, None)) as chosen:
        snapshot = open_snapshot(home.find(None), means=Means(chosen))
        arms = [Arm(snapshot.book.resolve(name)) for name in (ref, alt)]
        faces = assemble(snapshot.select(scope_of(arms)))
    pair = Pair(faces)
    cohort = Cohort(faces.cluster, len(faces.trajectories), seed=SEED, resamples=RESAMPLES)
    wanted = {**pair.weighted, **{f"layout {place}": vector for place, vector in enumerate(pair.layouts)}}
    found = cohort.evaluate({name: Mean(vector) for name, vector in wanted.items()})
    print(repr(found["interaction"].value))


if __name__ == "__main__":
    main(*sys.argv[1:])
