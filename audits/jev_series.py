"""Predictions as series: the pairs of one channel, intervention and mode, year by year.

A series is what numbers are given for. Its acquisitions are not pooled, its variants are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from audits.statistics.jev_outcomes import Pairs
from contracts.channel import ChannelBook
from contracts.errors import UsageError
from contracts.findings import shown
from contracts.order import dense
from ledger.snapshot import UNDECLARED, GroupCount, Predictions, Targets

Ints = npt.NDArray[np.int64]
ANONYMOUS = "file:"  # acquisitions of files that name neither channel nor acquisition
IN_FILE, BY_BYTES, BY_OPTION = "label_order of the file", "utf-8 bytes", "--label-order"


@dataclass(frozen=True)
class Series:
    """What was added, how it was asked, of which channel (fingerprint); None where undeclared.

    `label` is `intervention/mode/channel`, with the channel by its first name and any version but the first.
    """

    channel: str | None
    intervention: str | None
    mode: str | None
    label: str
    groups: tuple[int, ...]
    acquisitions: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class YearPairs:
    """The pairs of one series and year. `queries` are the selection's codes of its queries, ascending.

    `label` are the selection's codes of the labels, `rows` the targets they came from.
    """

    year: int
    queries: Ints
    pairs: Pairs
    label: Ints
    targets: Targets
    scenarios: tuple[str, ...]


def called(channel: str | None, book: ChannelBook) -> str:
    """A channel by the name it was first registered under; stable, whatever is registered later."""
    if channel is None:
        return UNDECLARED
    found = book.by_fingerprint(channel)
    assert found is not None, "entries are admitted under registered channels only"
    return found.name if found.version == 1 else found.reference


def acquisition_of(count: GroupCount) -> str | None:
    """The acquisition as a result may name it: one that merely stands for a file's bytes is not named.

    The same pairs in another order of lines are the same predictions and have to give the same result.
    """
    group = count.group
    return None if group.channel is None and group.acquisition.startswith(ANONYMOUS) else group.acquisition


def series_of(groups: Sequence[GroupCount], book: ChannelBook) -> tuple[Series, ...]:
    """All series in scope by the bytes of their labels; `groups` of each are those that are admitted."""
    found: dict[tuple[str | None, str | None, str | None], list[int]] = {}
    for index, count in enumerate(groups):
        group = count.group
        found.setdefault((group.channel, group.intervention, group.mode), []).append(index)
    made = []
    for (channel, intervention, mode), members in found.items():
        admitted = [index for index in members if groups[index].rule is None]
        label = "/".join((intervention or UNDECLARED, mode or UNDECLARED, called(channel, book)))
        names = sorted({groups[index].group.acquisition for index in admitted}, key=str.encode)
        made.append(Series(channel, intervention, mode, label, tuple(admitted), tuple(names)))
    return tuple(sorted(made, key=lambda series: series.label.encode()))


def years_of(found: Predictions, series: Series, label_order: Sequence[str] | None) -> Iterator[YearPairs]:
    """The pairs of a series, by year ascending; UsageError where `label_order` lacks one of its labels."""
    targets = found.targets
    mine = targets
    if len(series.groups) < len(found.groups):
        mine = targets.take(np.flatnonzero(np.isin(targets.group, series.groups)))
    places = None if label_order is None else _places(found, mine, label_order)
    names = [count.group.variant or "" for count in found.groups]
    variants = np.unique(names, return_inverse=True)[1].reshape(-1)
    for year in np.unique(mine.year).tolist():
        here = mine.year == year
        yield _year(found, mine if here.all() else mine.take(here), year, variants, places)


def _year(found: Predictions, targets: Targets, year: int, variants: Ints, places: Ints | None) -> YearPairs:
    first = np.flatnonzero(np.diff(targets.pair, prepend=-1) != 0)
    query, queries = dense(targets.query[first].astype(np.int64), len(found.queries))
    base = ~np.isnan(targets.before)
    within = np.arange(len(targets)) - np.repeat(first, np.diff(np.append(first, len(targets))))
    order = np.where(targets.position >= 0, targets.position, within)
    pairs = Pairs(
        query=query,
        scenario=targets.scenario[first],
        variant=variants[targets.group[first]],
        start=np.append(first, len(targets)),
        before=np.where(base, targets.before, 0.0),
        after=targets.after,
        positive=targets.positive,
        order=order if places is None else places[targets.label],
        base=base,
    )
    scenarios = tuple(found.scenarios[code] for code in np.unique(pairs.scenario).tolist())
    return YearPairs(year, queries, pairs, targets.label.astype(np.int64), targets, scenarios)


def _places(found: Predictions, targets: Targets, label_order: Sequence[str]) -> Ints:
    """The place of every label in the order given."""
    places = np.full(len(found.labels), -1, np.int64)
    wanted = {label: place for place, label in enumerate(label_order)}
    for code in np.unique(targets.label).tolist():
        label = found.labels[code].as_py()
        if label not in wanted:
            raise UsageError(
                "the order lacks a label of the predictions",
                code="label-not-ordered",
                expected="every label that occurs",
                got=shown(label),
                where="--label-order",
            )
        places[code] = wanted[label]
    return places


def order_source(parts: Sequence[YearPairs], label_order: Sequence[str] | None) -> dict[str, int]:
    """Where the order of labels came from, with how many pairs each source ordered."""
    counts = {BY_OPTION: 0, IN_FILE: 0, BY_BYTES: 0}
    for part in parts:
        first = part.pairs.start[:-1]
        if label_order is not None:
            counts[BY_OPTION] += len(first)
            continue
        given = int(np.count_nonzero(part.targets.position[first] >= 0))
        counts[IN_FILE] += given
        counts[BY_BYTES] += len(first) - given
    return {source: count for source, count in counts.items() if count}
