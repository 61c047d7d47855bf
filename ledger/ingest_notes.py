"""What a person should hear when scores were taken in: what audits will leave out, and what to do next.

The entries are whole and recorded either way; nothing here refuses anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from operator import itemgetter

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
Told = tuple[dict[str, tuple[int, str]], set[Pair]]  # see Forecast.told
Span = tuple[bytes, bytes]  # trajectories, the first and the last
_MAX_ARMS = 127  # an arm number is an int8
_PAIRED = 200  # channels of which each is held against each other


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

    @property
    def told(self) -> Told:
        """For each broken rule how many entries and the first of them, and the pairs that meet."""
        return self._out, self.meeting

    def join(self, told: Told) -> None:
        """Takes over what another forecast tells of entries behind these."""
        broken, meeting = told
        for rule, (count, where) in broken.items():
            before, first = self._out.get(rule, (0, where))
            self._out[rule] = (before + count, first)
        self.meeting |= meeting

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
    best = _best(_that_meet(ready, meeting), new) or _best(_that_may_meet(ready, segments, new), new)
    if best is None:
        return None
    first, second = (c.name if len(book.versions(c.name)) == 1 else c.reference for c in best)
    return f"ledger audit transport --ref {first} --alt {second}"


def _best(pairs: Iterable[tuple[Channel, Channel]], new: Brought) -> tuple[Channel, Channel] | None:
    """The first of the pairs with most channels in the call; looks no further than a pair that has both."""
    found, most = None, -1
    for pair in pairs:
        many = sum(channel.fingerprint in new for channel in pair)
        if many > most:
            found, most = pair, many
        if most == 2:
            break
    return found


def _that_meet(ready: Sequence[Channel], meeting: Collection[Pair]) -> Iterator[tuple[Channel, Channel]]:
    """The pairs that can be compared and are known to meet, in the order of the channels."""
    place = {channel.fingerprint: at for at, channel in enumerate(ready)}
    known = (sorted(place[name] for name in pair if name in place) for pair in meeting)
    for first, second in sorted((at[0], at[1]) for at in known if len(at) > 1):
        if ready[first].layouts == ready[second].layouts:
            yield ready[first], ready[second]


def _that_may_meet(
    ready: Sequence[Channel], segments: Collection[SegmentRow], new: Brought
) -> Iterator[tuple[Channel, Channel]]:
    """The pairs that can be compared and overlap in the trajectories of their segments, first to last.

    Of very many channels only the first are paired, those of the call before others.
    """
    spans = _spans(segments)
    there = [channel for channel in ready if channel.fingerprint in spans]
    there.sort(key=lambda channel: channel.fingerprint not in new)
    chosen = {channel.fingerprint for channel in there[:_PAIRED]}
    for first, second in combinations([channel for channel in ready if channel.fingerprint in chosen], 2):
        if first.layouts == second.layouts and _overlap(spans[first.fingerprint], spans[second.fingerprint]):
            yield first, second


def _spans(segments: Collection[SegmentRow]) -> dict[str, list[Span]]:
    """For each channel the trajectories of its segments as ranges that ascend and are apart."""
    spans: dict[str, list[Span]] = {}
    ranges = [(segment.first[0].encode(), segment.last[0].encode(), segment) for segment in segments]
    for first, last, segment in sorted(ranges, key=itemgetter(0)):
        for channel in {part.channel for part in segment.scope if part.channel is not None}:
            mine = spans.setdefault(channel, [])
            if mine and first <= mine[-1][1]:
                mine[-1] = (mine[-1][0], max(mine[-1][1], last))
            else:
                mine.append((first, last))
    return spans


def _overlap(left: Sequence[Span], right: Sequence[Span]) -> bool:
    """Whether a range of one side has something in common with one of the other."""
    a = b = 0
    while a < len(left) and b < len(right):
        if left[a][1] < right[b][0]:
            a += 1
        elif right[b][1] < left[a][0]:
            b += 1
        else:
            return True
    return False


def _once(channels: Iterable[Channel]) -> list[Channel]:
    """Each specification under its first name."""
    return list({channel.fingerprint: channel for channel in reversed(list(channels))}.values())[::-1]
