"""The nodes a lineage is put together from, each checked against the signed head before it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ledger import checkpoints
from ledger.checkpoints import CheckpointFound
from ledger.event_types import ACQUISITION
from ledger.index_rows import ChannelRow, RefusalRow, SegmentRow
from ledger.node import Node, present
from ledger.reading import Reading
from ledger.show import acquisition_node, channel_node, head_node, plan_node, refusal_node, segment_node
from ledger.show_attested import attestation_node, checkpoint_node


def with_children(node: Node, children: Iterable[Node]) -> Node:
    """A node with others below it."""
    return Node(node.kind, node.id, node.facts, tuple(children))


def logged(reading: Reading, event: int) -> Node:
    """An event by its place in the log, and the head that commits to it."""
    row = reading.event_row(event)
    facts = present(
        type=row.type, time=row.time, leaf=event, size=reading.size, path=reading.proof_length(event)
    )
    return Node("event", str(event), facts, (head_node(reading),))


def segment(reading: Reading, row: SegmentRow) -> Node:
    """A segment with what its event says."""
    reading.confirm(row.event)
    return segment_node(reading, row)


def refusal(reading: Reading, row: RefusalRow) -> Node:
    """Refused sides with what their event says."""
    reading.confirm(row.event)
    return refusal_node(reading, row)


def channel(reading: Reading, row: ChannelRow) -> Node:
    """A channel over the checkpoint it names."""
    reading.confirm(row.event)
    return with_children(channel_node(reading, row), weights_of(reading, row))


def channels(reading: Reading, fingerprints: Sequence[str]) -> Iterator[Node]:
    """The channels of some fingerprints, each under the name it was first registered by."""
    first: dict[str, ChannelRow] = {}
    for row in reading.index.channel_rows(reading.size):
        first.setdefault(row.channel.fingerprint, row)
    for fingerprint in dict.fromkeys(fingerprints):
        if fingerprint in first:
            yield channel(reading, first[fingerprint])


def acquisitions(reading: Reading, ids: Sequence[str]) -> Iterator[Node]:
    """Some acquisitions, each over what attests it."""
    for row in reading.index.acquisitions(reading.size):
        if row.id in ids:
            reading.confirm(row.event)
            yield with_children(acquisition_node(reading, row), attestations_of(reading, row.id))


def attestations_of(reading: Reading, acquisition: str) -> Iterator[Node]:
    """The attestations of an acquisition, the revoked ones too."""
    for row in reading.index.attestations(reading.size):
        if (row.kind, row.subject) == (ACQUISITION, acquisition):
            yield attestation_node(reading, row)


def weights_of(reading: Reading, row: ChannelRow) -> Iterator[Node]:
    """The checkpoint a channel names, with what attests it."""
    named = row.channel.checkpoint
    for found in checkpoints.known(reading.index, reading.objects, reading.size) if named else ():
        if named in found.digests:
            yield checkpoint(reading, found)


def checkpoint(reading: Reading, found: CheckpointFound) -> Node:
    """A checkpoint with the attestations of it."""
    return with_children(
        checkpoint_node(reading, found), (attestation_node(reading, row) for row in found.rows)
    )


def plans(reading: Reading, digest: object) -> Iterator[Node]:
    """The plan an audit followed."""
    for row in reading.index.plans(reading.size):
        if row.digest == digest:
            reading.confirm(row.event)
            yield plan_node(reading, row)
            return
