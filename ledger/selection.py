"""The entries of a scope, verified and judged, a range of trajectories at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from ledger.attested import NOBODY, Vouched
from ledger.donor_views import collect
from ledger.engines import HERE, Means, beside
from ledger.index_rows import SegmentRow
from ledger.inventory import Inventory, take
from ledger.matching import Matcher
from ledger.objects import Objects
from ledger.provenance import ProvenanceCount, ScopeFacts, apply_rules
from ledger.range_tasks import RangeKernel, RangeTask, TrajectoryRange, itself, judged_range
from ledger.readings import Readings
from ledger.refusals import RefusedRow
from ledger.refused_readings import RefusedReadings
from ledger.scope import Arm, Scope, Standing

Value = TypeVar("Value")


@dataclass
class Selection:
    """What a scope selects. `acquisitions` are by arm, ascending, without the revoked ones.

    `provenance` is final once `map` or `ranges` is exhausted; going through them again starts it anew.
    `used_segments` are those with an entry in scope, in the order of the log.
    """

    scope: Scope
    acquisitions: Mapping[Arm, tuple[str, ...]]
    used_segments: tuple[SegmentRow, ...]
    provenance: ProvenanceCount
    _objects: Objects
    _inventory: Inventory
    _facts: ScopeFacts
    _readings: RefusedReadings
    _means: Means

    def map(self, work: Callable[[TrajectoryRange], Value]) -> Iterator[Value]:
        """What `work` makes of every range of trajectories, ascending by UTF-8 bytes; verified as it is read.

        The engine decides how ranges are cut and where `work` is done: it is pure and can be pickled.
        """
        return self._map(work, Means(beside(self._means.engine), self._means.progress))

    def ranges(self) -> Iterator[TrajectoryRange]:
        """The ranges themselves, one at a time in this process."""
        return self._map(itself, HERE)

    def _map(self, work: Callable[[TrajectoryRange], Value], means: Means) -> Iterator[Value]:
        self.provenance = ProvenanceCount(
            refused_sides_revoked=sum(
                side.acquisition_id in self._facts.standing.revoked for side in self._inventory.refused
            )
        )
        whole = RangeTask.of(self._inventory)
        kernel = RangeKernel(self._objects, self._facts, work)
        for done in means.engine.map(kernel, whole.split(means.engine.pieces(whole.entries))):
            self.provenance.merge(done.count)
            means.progress("entries", self.provenance.entries_in, whole.entries)
            yield done.value
        pa.default_memory_pool().release_unused()  # what ranges took, before whatever is computed of them

    def ranges_with_refused(self) -> Iterator[TrajectoryRange]:
        """The same ranges with the scored readings of refused sides as if they were entries.

        For what is asked of incomplete sides by name; the rules hold for them too, and `provenance` counts
        none of this.
        """
        matcher = Matcher(self.scope)
        for readings, sides in RangeTask.of(self._inventory).ranges(self._objects, matcher):
            others = self._readings.of(sides, matcher).coded()
            merged = Readings.concat([readings, others]).coded().by_transition()
            yield judged_range(merged, apply_rules(merged.table, self._facts), ())


def select(
    scope: Scope,
    objects: Objects,
    segments: Sequence[SegmentRow],
    refused: Iterable[RefusedRow],
    revoked: frozenset[str],
    readings: RefusedReadings,
    *,
    revoked_channels: frozenset[str] = frozenset(),
    vouched: Vouched = NOBODY,
    means: Means = HERE,
) -> Selection:
    """The selection of a scope from segments and refused sides in the order of the log."""
    channels = {arm.channel.fingerprint for arm in scope.arms}
    segments = [s for s in segments if s.kind == scope.kind and not channels.isdisjoint(s.channels)]
    inventory = take(objects, segments, refused, scope, beside(means.engine))
    asked = set().union(*inventory.acquisitions)
    acquired = vouched.acquisitions(objects, segments, asked)
    attested = {
        (a.channel.fingerprint, name) for a in scope.arms if vouched.channel(a.channel) for name in acquired
    }
    donors = collect(objects, segments, scope, inventory.view_sources, revoked)
    return Selection(
        scope=scope,
        acquisitions={
            arm: tuple(sorted(names - revoked))
            for arm, names in zip(scope.arms, inventory.acquisitions, strict=True)
        },
        used_segments=tuple(run.segment for run in inventory.runs),
        provenance=ProvenanceCount(),
        _objects=objects,
        _inventory=inventory,
        _facts=ScopeFacts(scope, Standing(revoked, revoked_channels, frozenset(attested)), donors),
        _readings=readings,
        _means=means,
    )
