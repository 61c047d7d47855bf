"""The provenance rules: which entries may enter an audit, and why the others may not.

Every rule has a code that stands in the record. `segment-intact` and `channel-known` hold before an
entry is in memory at all (a segment that fails its digest stops the audit, a channel whose fingerprint
does not recompute is in no scope); they are listed because a reader of a record asks for them. The
others are judged here on whole columns: group ids and value codes are integers, and a group breaks a
rule when two different values of it meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contracts.labels import Labels
from ledger.coded import AnyCodes, Codes, coded, numbers, pair
from ledger.donors import NO_DONORS, DonorViews, Receivers, wrong_donor
from ledger.scope import DONOR, NOTHING_SAID, Level, Scope, Standing

SEGMENT_INTACT = "segment-intact"
CHANNEL_KNOWN = "channel-known"
REVOKED = "acquisition-revoked"
CHANNEL_REVOKED = "channel-revoked"
STATE = "state-frozen"
CANDIDATES = "candidates-frozen"
VIEW = "view-bound"
REQUEST = "request-bound"
ROTATED = "request-rotated"
LEVEL = "level"
# In the order in which an entry that breaks several is counted: under the first. What was revoked is set
# aside before anything is compared, so that it cannot condemn the others.
RULES = (
    SEGMENT_INTACT, CHANNEL_KNOWN, REVOKED, CHANNEL_REVOKED, STATE, CANDIDATES, VIEW, REQUEST, ROTATED, LEVEL,
)  # fmt: skip
CODE = {rule: code for code, rule in enumerate(RULES)}
MEETS_ALL = -1
NO_LEVEL = -1
REQUIRED_DIGESTS = ("state_hash", "candidates_hash", "request_hash", "view_hash")
FROZEN_VIEWS = ("before", "after")

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ScopeFacts:
    """What the rules need to know beside the entries."""

    scope: Scope
    standing: Standing = NOTHING_SAID
    donors: DonorViews = NO_DONORS


@dataclass(frozen=True)
class Judgement:
    """What the rules say of each reading of a table, row by row.

    `rule` is the index into RULES of the first rule broken, MEETS_ALL where none is; `level` the rank
    of the level reached, NO_LEVEL where a rule other than `level` is broken. `transition` numbers the
    transitions of the table from 0. `absent` has the readings that lack each required digest, of those with
    a level.
    """

    rule: npt.NDArray[np.int8]
    level: npt.NDArray[np.int8]
    transition: Codes
    absent: Mapping[str, Mask]

    @property
    def kept(self) -> Mask:
        """The entries that may enter."""
        kept: Mask = self.rule == MEETS_ALL
        return kept


@dataclass
class ProvenanceCount:
    """How many entries came in scope and which rule kept how many out; grows range by range.

    `entries_out` and `transitions_out` are by rule code, with 0 for the rules nothing broke: the entries
    counted under it, and the transitions with at least one of them. `levels` counts the entries that
    broke no other rule by the level they reach, `absent` those that lack a required digest by column.
    `refused_sides_revoked` counts refused sides of revoked acquisitions.
    """

    entries_in: int = 0
    entries_out: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RULES, 0))
    transitions_out: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RULES, 0))
    levels: dict[Level, int] = field(default_factory=lambda: dict.fromkeys(Level, 0))
    absent: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REQUIRED_DIGESTS, 0))
    refused_sides_revoked: int = 0

    @property
    def entries_kept(self) -> int:
        """The entries that entered."""
        return self.entries_in - sum(self.entries_out.values())

    def add(self, judged: Judgement, entries: Codes) -> None:
        """Count one table; `entries` of each of its readings. A transition must not be spread over two."""
        self.entries_in += int(entries.sum())
        for rule in np.unique(judged.rule[judged.rule != MEETS_ALL]).tolist():
            out = judged.rule == rule
            self.entries_out[RULES[rule]] += int(entries[out].sum())
            self.transitions_out[RULES[rule]] += len(np.unique(judged.transition[out]))
        for level in Level:
            self.levels[level] += int(entries[judged.level == level.rank].sum())
        for column, mask in judged.absent.items():
            self.absent[column] += int(entries[mask].sum())

    def merge(self, other: ProvenanceCount) -> None:
        """Add what was counted elsewhere of other transitions."""
        self.entries_in += other.entries_in
        self.refused_sides_revoked += other.refused_sides_revoked
        for mine, its in (
            (self.entries_out, other.entries_out),
            (self.transitions_out, other.transitions_out),
            (self.absent, other.absent),
        ):
            for name, count in its.items():
                mine[name] += count
        for level, count in other.levels.items():
            self.levels[level] += count


def apply_rules(entries: pa.Table, facts: ScopeFacts) -> Judgement:
    """Judge every reading of a table that holds whole transitions, sorted by (trajectory_id, step).

    `entries` has the canonical columns and `arm`, the index into `scope.arms`; what only one candidate has
    is not looked at.
    """
    columns = _columns(entries, facts)
    rule = np.full(entries.num_rows, MEETS_ALL, np.int8)
    for code, broken in _broken(columns, facts):
        if broken.any():
            rule[broken & (rule == MEETS_ALL)] = CODE[code]
    level = np.full(entries.num_rows, Level.BOUND.rank, np.int8)
    level[columns.attested] = Level.ATTESTED.rank
    level[columns.declared] = Level.DECLARED.rank
    level[rule != MEETS_ALL] = NO_LEVEL
    rule[(rule == MEETS_ALL) & (level < facts.scope.require.rank)] = CODE[LEVEL]
    levelled = level != NO_LEVEL
    absent = {column: mask & levelled for column, mask in columns.absent.items()}
    return Judgement(rule, level, columns.transition, absent)


@dataclass(frozen=True)
class _Columns:
    """The columns the rules read, as codes, one value an entry.

    `channel` numbers the channels of the scope: arms that differ in view source only share one.
    `revoked` are the entries of revoked acquisitions, `void` those of revoked channels. `viewed` is true
    where the channel needs a view, `attested` where acquisition and channel are.
    """

    transition: Codes
    step: Codes
    endpoint: Codes
    channel: Codes
    layout: Codes
    acquisition: AnyCodes
    trajectory: Labels
    view_source: Labels
    digests: Mapping[str, Labels]
    revoked: Mask
    void: Mask
    viewed: Mask
    attested: Mask

    @cached_property
    def live(self) -> Mask:
        """What was not revoked."""
        return ~(self.revoked | self.void)

    @cached_property
    def present(self) -> Mapping[str, Mask]:
        """Where each required digest is there."""
        return {column: labels.present for column, labels in self.digests.items()}

    @cached_property
    def absent(self) -> Mapping[str, Mask]:
        """Where each required digest is not there; a view's is required where the channel shows one."""
        absent = {column: ~present for column, present in self.present.items()}
        return {**absent, "view_hash": absent["view_hash"] & self.viewed}

    @property
    def declared(self) -> Mask:
        """Where any required digest is not there."""
        declared = np.zeros(len(self.step), bool)
        for absent in self.absent.values():
            declared |= absent
        return declared


def _columns(entries: pa.Table, facts: ScopeFacts) -> _Columns:
    arms = facts.scope.arms
    fingerprints = [arm.channel.fingerprint for arm in arms]
    arm = numbers(entries["arm"])
    trajectory, step = coded(entries["trajectory_id"]), numbers(entries["step"])
    acquisition = coded(entries["acquisition_id"])
    endpoint = coded(entries["endpoint"])
    ids, standing = acquisition.values.to_pylist(), facts.standing
    revoked = np.array([value in standing.revoked for value in ids], bool)
    void = np.array([fp in standing.revoked_channels for fp in fingerprints], bool)
    attested = np.array([[(fp, value) in standing.attested for value in ids] for fp in fingerprints], bool)
    nowhere = np.zeros(entries.num_rows, bool)
    before = np.array([value == "before" for value in endpoint.values.to_pylist()], bool)
    return _Columns(
        transition=transitions(trajectory.codes, step),
        step=step,
        endpoint=np.where(before, 0, 1)[endpoint.codes],
        channel=np.array([fingerprints.index(fp) for fp in fingerprints], np.int64)[arm],
        layout=numbers(entries["layout"]),
        acquisition=acquisition.codes,
        trajectory=trajectory,
        view_source=coded(entries["view_source"]),
        digests={column: coded(entries[column]) for column in REQUIRED_DIGESTS},
        revoked=revoked[acquisition.codes] if revoked.any() else nowhere,
        void=void[arm] if void.any() else nowhere,
        viewed=np.array([a.channel.needs_view for a in arms], bool)[arm],
        attested=attested.reshape(len(arms), len(ids))[arm, acquisition.codes] if attested.any() else nowhere,
    )


def transitions(trajectory: AnyCodes, step: Codes) -> Codes:
    """The number of each row's transition, from 0, in rows sorted by (trajectory, step)."""
    starts = np.ones(len(step), bool)
    starts[1:] = (trajectory[1:] != trajectory[:-1]) | (step[1:] != step[:-1])
    return np.cumsum(starts) - 1


def _broken(columns: _Columns, facts: ScopeFacts) -> Iterator[tuple[str, Mask]]:
    """Each rule judged here, with the entries that break it."""
    live, digests, present = columns.live, columns.digests, columns.present
    state, view, request = digests["state_hash"], digests["view_hash"], digests["request_hash"]
    viewed = columns.viewed & live
    corner = columns.transition * 2 + columns.endpoint
    source = columns.view_source.codes
    asked = live & present["request_hash"]

    yield REVOKED, columns.revoked
    yield CHANNEL_REVOKED, columns.void
    yield STATE, _split(corner, state.codes, live & present["state_hash"]) & live
    candidates = digests["candidates_hash"].codes
    yield CANDIDATES, _split(columns.transition, candidates, live & present["candidates_hash"]) & live

    # A frozen view is one view shown at both endpoints; any other belongs to its endpoint.
    frozen = np.array([value in FROZEN_VIEWS for value in columns.view_source.values.to_pylist()], bool)
    place = pair(pair(np.where(frozen[source], columns.transition * 2, corner), source), columns.channel)
    seen = viewed & present["view_hash"]
    several = _split(place, view.codes, seen)
    yield VIEW, viewed & (several | _wrong_donor(columns, facts.donors, seen))

    # The same bytes asked about another state or under another view cannot have carried it.
    asking = (columns.transition, columns.channel)
    unbound = _shared(request.codes, state.codes, asking, asked, asked & present["state_hash"])
    shown = asked & viewed
    yield REQUEST, unbound | _shared(request.codes, view.codes, asking, shown, shown & seen)

    orbit = (corner, source, columns.channel, columns.acquisition)
    yield ROTATED, _shared(request.codes, columns.layout, orbit, asked, asked)


def _shared(request: AnyCodes, value: AnyCodes, within: Sequence[AnyCodes], asked: Mask, among: Mask) -> Mask:
    """The rows that asked a request which stands for two values, `within` being the same for both.

    Values are looked at `among` some of the rows that asked.
    """
    shared = asked & _split(request, value, among)
    if not shared.any():  # no request serves two values anywhere, as it should be
        return shared
    at = np.flatnonzero(shared)
    group = pair(request[at], within[0][at])
    for part in within[1:]:
        group = pair(group, part[at])
    shared[at] = _split(group, value[at], among[at])
    return shared


def _split(group: AnyCodes, value: AnyCodes, among: Mask) -> Mask:
    """The rows whose group holds two different values among the rows in question."""
    size = int(group.max(initial=0)) + 1
    first = np.zeros(size + 1, value.dtype)
    members, values = (group, value) if among.all() else (group[among], value[among])
    first[members] = values  # any one value of the group will do: all others are compared with it
    differ = values != first[members]
    if not differ.any():
        return np.zeros(len(group), bool)
    split = np.zeros(size + 1, bool)
    split[members[differ]] = True
    found: Mask = split[group]
    return found


def _wrong_donor(columns: _Columns, donors: DonorViews, among: Mask) -> Mask:
    wrong = np.zeros(len(among), bool)
    named = [DONOR.fullmatch(value) is not None for value in columns.view_source.values.to_pylist()]
    at = np.flatnonzero(among & np.array(named, bool)[columns.view_source.codes]) if any(named) else ()
    if not len(at):
        return wrong

    def part(column: Labels) -> Labels:
        return Labels(column.codes[at], column.values)

    rows = Receivers(
        trajectory=part(columns.trajectory),
        step=columns.step[at],
        endpoint=columns.endpoint[at],
        channel=columns.channel[at],
        view_source=part(columns.view_source),
        view=part(columns.digests["view_hash"]),
    )
    wrong[at] = wrong_donor(rows, donors)
    return wrong
