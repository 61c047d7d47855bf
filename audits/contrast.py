"""A control: the gains of any two channels, or of one channel under two views, on the same transitions.

Own view against a donor's, another order, another authority: the arithmetic is that of the transport
audit, with a view source for each arm and the donor map in the record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from audits.arms import parse_arm
from audits.design import RESAMPLES, SEED, Design, Weights, scope_of
from audits.equivalence import band_options
from audits.transport import PRIMARY, TransportResult, run
from audits.transport_estimates import Progress
from audits.transport_tables import ROLES
from ledger.snapshot import Arm, Level, Snapshot

AUDIT = "contrast"


def contrast(
    snapshot: Snapshot,
    ref: str | Arm,
    alt: str | Arm,
    *,
    where: Mapping[str, Sequence[str]] | None = None,
    acquisitions: Sequence[tuple[str | None, str]] = (),
    require: Level = Level.BOUND,
    weights: Weights = "cohort",
    target_types: Sequence[str] | None = None,
    band: float | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    progress: Progress | None = None,
) -> TransportResult:
    """Contrast `alt` with `ref` at the snapshot's head; both as arms or as `CHANNEL[:SOURCE]`.

    The interaction is the gain of `alt` minus that of `ref`. `band` is an equivalence band of it.
    """
    named = {"--ref": ref, "--alt": alt}
    arms = [a if isinstance(a, Arm) else parse_arm(a, snapshot, option) for option, a in named.items()]
    design = Design(
        audit=AUDIT,
        roles=ROLES,
        scope=scope_of(arms, where=where, acquisitions=acquisitions, require=require),
        primary=PRIMARY,
        resamples=resamples,
        seed=seed,
        quoted=weights,
        target_types=None if target_types is None else tuple(sorted(target_types)),
        options=band_options(band),
    )
    return run(snapshot, design, progress=progress)
