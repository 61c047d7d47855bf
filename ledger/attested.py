"""Which acquisitions and model checkpoints somebody trusted vouches for, at one head of the log."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from contracts.channel import Channel
from contracts.schema import JEV, JEV_POSITIVES
from ledger import attestations
from ledger.coded import coded
from ledger.event_types import AttestationEvent
from ledger.index_rows import SegmentRow
from ledger.objects import Objects
from ledger.segment_reader import SegmentReader
from ledger.trust import TrustHistory

PREDICTIONS = (JEV.kind, JEV_POSITIVES.kind)


@dataclass(frozen=True)
class Vouched:
    """`sources` are the attested source files of each acquisition, `weights` the digests of checkpoints."""

    sources: Mapping[str, frozenset[str]] = field(default_factory=dict)
    weights: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        logged: Iterable[tuple[int, AttestationEvent]],
        revoked: Collection[str],
        trust: TrustHistory,
        objects: Objects,
    ) -> Vouched:
        """What attestations vouch for that are not revoked; each is verified under the roles of its time."""
        sources: dict[str, frozenset[str]] = {}
        weights: set[str] = set()
        for index, event in logged:
            if event.statement in revoked or event.kind == attestations.STACK:
                continue
            said = attestations.stored(objects, event, trust.before(index))
            if event.kind == attestations.ACQUISITION:
                sources[said.subject] = sources.get(said.subject, frozenset()) | said.digests
            else:
                weights |= said.digests
        return cls(sources, frozenset(weights))

    def acquisitions(
        self, objects: Objects, segments: Sequence[SegmentRow], asked: Collection[str]
    ) -> frozenset[str]:
        """Those of some acquisitions all of whose entries in these segments came from attested files."""
        return frozenset(
            name
            for name in self.sources.keys() & set(asked)
            if all(_covered(objects, s, name, self.sources[name]) for s in segments if name in s.acquisitions)
        )

    def channel(self, channel: Channel | None) -> bool:
        """Whether the checkpoint a channel names is attested; true where it names none."""
        if channel is None:
            return False
        named = channel.spec["stack"].get("checkpoint")
        return named is None or channel.checkpoint in self.weights


NOBODY = Vouched()


def _covered(objects: Objects, segment: SegmentRow, acquisition: str, files: frozenset[str]) -> bool:
    """Whether every entry of an acquisition in a segment came from one of the files."""
    known = np.array([source.digest in files for source in segment.sources], bool)
    if known.all() or not known.any():
        return bool(known.all())
    with SegmentReader.whole(objects, segment) as reader:
        named = coded(reader.read(0, segment.rows, ("acquisition_id",))["acquisition_id"])
        wanted = np.array([value == acquisition for value in named.values.to_pylist()], bool)
        used = np.unique(reader.source_rows().files[wanted[named.codes]])
    return bool(known[used].all())
