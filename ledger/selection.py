"""The entries of a scope, verified and judged, a range of trajectories at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ledger.attested import NOBODY, Vouched
from ledger.coded import places
from ledger.donor_views import collect
from ledger.index_rows import SegmentRow
from ledger.inventory import Inventory, take
from ledger.matching import Matcher
from ledger.objects import Objects
from ledger.provenance import Judgement, ProvenanceCount, ScopeFacts, apply_rules
from ledger.ranges import RANGE_ENTRIES, RangeReader, Trajectories, by_transition, cut
from ledger.refusals import RefusedRow
from ledger.refused_readings import RefusedReadings
from ledger.scope import Arm, Scope, Standing

# What is told of an entry that broke a rule: where it belongs, and no number to compute with.
BROKEN_COLUMNS = ("trajectory_id", "step", "endpoint", "arm", "layout", "acquisition_id", "candidate")


@dataclass(frozen=True)
class TrajectoryRange:
    """Everything in scope of some consecutive trajectories.

    `entries` are those that meet every rule at the required level: canonical columns (text and digests
    coded) and `arm` int8, the index into `scope.arms`, sorted by (trajectory_id, step). `broken` has the
    place of every other entry, in the same order, and `rule` int8, the index into RULES of the first rule
    it breaks. `refused` are the refused sides without entries, those of revoked acquisitions included.
    """

    entries: pa.Table
    broken: pa.Table
    refused: tuple[RefusedRow, ...] = ()


@dataclass
class Selection:
    """What a scope selects. `acquisitions` are by arm, ascending, without the revoked ones.

    `provenance` is final once `ranges` is exhausted; going through `ranges` again starts it anew.
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

    def ranges(self) -> Iterator[TrajectoryRange]:
        """The scope in ranges of trajectories, ascending by UTF-8 bytes; verified as they are read."""
        self.provenance = ProvenanceCount(
            refused_sides_revoked=sum(
                side.acquisition_id in self._facts.standing.revoked for side in self._inventory.refused
            )
        )
        for entries, sides in self._parts():
            judged = apply_rules(entries, self._facts)
            self.provenance.add(judged)
            yield _judged(entries, judged, sides)

    def ranges_with_refused(self) -> Iterator[TrajectoryRange]:
        """The same ranges with the scored readings of refused sides as if they were entries.

        For what is asked of incomplete sides by name; the rules hold for them too, and `provenance` counts
        none of this.
        """
        matcher = Matcher(self.scope)
        for entries, sides in self._parts():
            readings = self._readings.of(sides, matcher)
            merged = by_transition(pa.concat_tables([entries, readings]).unify_dictionaries())
            yield _judged(merged, apply_rules(merged, self._facts), ())

    def _parts(self) -> Iterator[tuple[pa.Table, tuple[RefusedRow, ...]]]:
        """The entries in scope and the refused sides of every range, not judged yet."""
        refused = self._inventory.refused
        named = pa.array([side.trajectory_id for side in refused], pa.string())
        trajectories = Trajectories.of(self._inventory.runs, named)
        place = places(named, trajectories.names)
        order = np.argsort(place, kind="stable")
        reader = RangeReader(self._objects, Matcher(self.scope), trajectories)
        try:
            for low, high in cut(trajectories.entries, RANGE_ENTRIES):
                first, last = np.searchsorted(place[order], [low, high]).tolist()
                sides = tuple(refused[i] for i in order[first:last].tolist())
                yield reader.read(low, high), sides
        finally:
            reader.close()


def _judged(entries: pa.Table, judged: Judgement, refused: tuple[RefusedRow, ...]) -> TrajectoryRange:
    out = entries.select(BROKEN_COLUMNS).append_column("rule", pa.array(judged.rule))
    kept = judged.kept
    if kept.all():
        return TrajectoryRange(entries, out.slice(0, 0), refused)
    return TrajectoryRange(entries.filter(pa.array(kept)), out.filter(pa.array(~kept)), refused)


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
) -> Selection:
    """The selection of a scope from segments and refused sides in the order of the log."""
    channels = {arm.channel.fingerprint for arm in scope.arms}
    segments = [s for s in segments if s.kind == scope.kind and not channels.isdisjoint(s.channels)]
    inventory = take(objects, segments, refused, scope)
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
    )
