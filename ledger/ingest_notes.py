"""What a person should hear when scores were taken in: what audits will leave out, and what to do next.

The entries are whole and recorded either way; nothing here refuses anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.channel import Channel, ChannelBook
from contracts.digest import unpack
from contracts.findings import shown
from contracts.labels import Labels
from contracts.order import dense, labelled, pack, ranks
from contracts.schema import TRANSPORT
from ledger.event_types import ACQUISITION, CHANNEL
from ledger.index_rows import RevocationRow, SegmentRow
from ledger.provenance import CANDIDATES, CODE, REQUEST, ROTATED, STATE, VIEW, ScopeFacts, apply_rules
from ledger.scope import Arm, Scope, Standing

# What a broken rule means, for people who bring the rows.
_MEANINGS: Mapping[str, str] = {
    STATE: "two state digests for one endpoint",
    CANDIDATES: "two candidate digests for one step",
    VIEW: "a view that changes between layouts, or is not its donor's",
    REQUEST: "one request for two states or views",
    ROTATED: "one request for two layouts",
}
Brought = Mapping[str, set[str]]  # acquisition ids by the fingerprint of their channel
Pair = frozenset[str]  # the fingerprints of two channels
_MAX_ARMS = 127  # an arm number is an int8


class Forecast:
    """What audits will leave out of new entries, which come in parts of whole transitions."""

    def __init__(self, book: ChannelBook, revoked: Collection[RevocationRow]) -> None:
        self.book = book
        self.standing = _standing(revoked)
        self._out: dict[str, tuple[int, str]] = {}  # by rule: entries, and where the first of them is
        self.meeting: set[Pair] = (
            set()
        )  # channels of the call and the ledger that have a transition in common

    def add(self, admitted: pa.Table, existing: pa.Table | None) -> None:
        """Looks at new entries, sorted, together with what the ledger has of their transitions."""
        if not admitted.num_rows:
            return
        table = _together(admitted.select(TRANSPORT.names), existing)
        channels = ranks(table.column("channel"))
        known = [self.book.by_fingerprint(unpack(packed)) for packed in channels.values.to_pylist()]
        arms = tuple(Arm(channel) for channel in known if channel is not None)
        if len(arms) != len(known) or len(arms) > _MAX_ARMS:
            return
        self.meeting |= _meeting(table, channels)
        table = table.append_column("arm", pa.array(channels.codes.astype(np.int8)))
        judged = apply_rules(table, ScopeFacts(Scope(TRANSPORT.kind, arms), self.standing))
        for rule in _MEANINGS:
            out = np.flatnonzero(judged.rule == CODE[rule])
            if len(out):
                count, where = self._out.get(rule, (0, _where(table, int(out[0]))))
                self._out[rule] = (count + len(out), where)

    def lines(self) -> tuple[str, ...]:
        """One line for each provenance rule that new entries break together with what the ledger has.

        An audit judges only the entries of its own scope, so one that leaves some channels out may keep more.
        """
        return tuple(
            f"{rule} will keep {count:,} {'entry' if count == 1 else 'entries'} out of audits: "
            f"{_MEANINGS[rule]}, first in {where}; a corrected run needs an acquisition_id "
            "of its own, see --supersedes"
            for rule, (count, where) in sorted(self._out.items(), key=lambda item: CODE[item[0]])
        )


def _meeting(table: pa.Table, channels: Labels) -> set[Pair]:
    """The pairs of channels that have a transition in common, in rows sorted by transition."""
    trajectory, step = ranks(table.column("trajectory_id")).codes, table.column("step").to_numpy()
    new = (trajectory[1:] != trajectory[:-1]) | (step[1:] != step[:-1])
    transition = np.append(0, np.cumsum(new))
    there = np.zeros((int(transition[-1]) + 1, len(channels.values)), dtype=np.float32)
    there[transition, channels.codes] = 1
    names = [unpack(packed) for packed in channels.values.to_pylist()]
    found = np.argwhere(np.triu(there.T @ there, 1) > 0)
    return {frozenset((names[first], names[second])) for first, second in found.tolist()}


def _together(new: pa.Table, existing: pa.Table | None) -> pa.Table:
    """New entries and those of the ledger, sorted by transition."""
    if existing is None:
        return new  # admitted rows are in canonical order
    schema = new.schema
    both = pa.concat_tables([new, _as(existing, schema)]).unify_dictionaries().combine_chunks()
    trajectory = ranks(both.column("trajectory_id")).codes
    order = np.lexsort((both.column("step").to_numpy(), trajectory))
    return both.take(pa.array(order))


def _as(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = []
    for field in schema:
        column = table.column(field.name)
        if pa.types.is_dictionary(field.type) and not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        elif pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(field.type):
            column = pc.cast(column, field.type)
        columns.append(column.cast(field.type))
    return pa.table(columns, schema=schema)


def _where(table: pa.Table, row: int) -> str:
    trajectory = shown(table.column("trajectory_id")[row].as_py())
    return f"{trajectory}/step{table.column('step')[row].as_py():02d}"


def _standing(revoked: Collection[RevocationRow]) -> Standing:
    return Standing(
        frozenset(row.target_id for row in revoked if row.target_kind == ACQUISITION),
        frozenset(row.target_id for row in revoked if row.target_kind == CHANNEL),
    )


def further_acquisitions(
    new: Brought, segments: Iterable[SegmentRow], book: ChannelBook, revoked: Collection[RevocationRow]
) -> tuple[str, ...]:
    """One line for each channel that new entries bring to more than one standing acquisition."""
    standing = _standing(revoked)
    held: dict[str, set[str]] = {}
    for segment in segments:
        for part in segment.scope:
            if part.channel is not None:
                held.setdefault(part.channel, set()).add(part.acquisition)
    grown: dict[str, list[str]] = {}  # the channels by what is the same about them
    for fingerprint, ids in new.items():
        named = (held.get(fingerprint, set()) | ids) - standing.revoked
        if len(named) > 1 and not ids <= held.get(fingerprint, set()):
            channel = book.by_fingerprint(fingerprint)
            grown.setdefault(_listed(named), []).append(channel.name if channel else fingerprint)
    return tuple(
        f"{_listed(names)} {'has' if len(names) == 1 else 'have'} several acquisitions now ({listed}): an "
        "audit will need every acquisition of a channel in scope at each step; see --acquisition"
        for listed, names in grown.items()
    )


def _listed(names: Collection[str]) -> str:
    """The first four of some names, and how many there are."""
    listed = ", ".join(shown(name, 40) for name in sorted(names, key=str.encode)[:4])
    return listed + (f", … ({len(names)})" if len(names) > 4 else "")


def brought(admitted: pa.Table) -> Brought:
    """The acquisitions that new entries have of each channel."""
    if not admitted.num_rows:
        return {}
    channels, names = labelled(admitted.column("channel")), labelled(admitted.column("acquisition_id"))
    width = len(names.values)
    packed, limit = pack([(channels.codes, len(channels.values)), (names.codes, width)])
    found: dict[str, set[str]] = {}
    for code in dense(packed, limit)[1].tolist():
        fingerprint = unpack(channels.values[code // width].as_py())
        found.setdefault(fingerprint, set()).add(names.values[code % width].as_py())
    return found


def next_audit(
    new: Brought, segments: Collection[SegmentRow], book: ChannelBook, meeting: Collection[Pair]
) -> str | None:
    """The audit that two channels with entries can be put to, None where no two are known to fit.

    They have equally many layouts, and a transition in common: as `meeting` says, else as far as the
    trajectories of their segments tell. Two that are both in the call go before others.
    """
    ready = [channel for channel in _once(book.channels) if channel.layouts is not None]
    ready.sort(key=lambda channel: channel.needs_view)  # the one without a view is the usual reference
    fitting = [pair for pair in combinations(ready, 2) if pair[0].layouts == pair[1].layouts]
    pairs = [pair for pair in fitting if frozenset(c.fingerprint for c in pair) in meeting]
    pairs = pairs or [(a, b) for a, b in fitting if _may_meet(a.fingerprint, b.fingerprint, segments)]
    if not pairs:
        return None
    best = max(pairs, key=lambda pair: sum(channel.fingerprint in new for channel in pair))
    first, second = (c.name if len(book.versions(c.name)) == 1 else c.reference for c in best)
    return f"ledger audit transport --ref {first} --alt {second}"


def _may_meet(first: str, second: str, segments: Collection[SegmentRow]) -> bool:
    """Whether segments with two channels overlap in the trajectories from their first to their last."""
    spans = [
        [
            (segment.first[0].encode(), segment.last[0].encode())
            for segment in segments
            if any(part.channel == fingerprint for part in segment.scope)
        ]
        for fingerprint in (first, second)
    ]
    return any(a[0] <= b[1] and b[0] <= a[1] for a in spans[0] for b in spans[1])


def _once(channels: Iterable[Channel]) -> list[Channel]:
    """Each specification under its first name."""
    return list({channel.fingerprint: channel for channel in reversed(list(channels))}.values())[::-1]
