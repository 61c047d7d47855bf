"""Which predictions came in scope, which groups a rule kept out, and why an audit of them cannot answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from audits import limits
from audits.jev_series import Series, acquisition_of, called
from contracts.channel import ChannelBook
from contracts.errors import CannotAnswerError
from contracts.findings import shown
from ledger.snapshot import (
    LEVEL,
    PREDICTION_RULES,
    UNDECLARED,
    GroupCount,
    Level,
    Predictions,
    PredictionScope,
)

EXAMPLES = 3


def flow(found: Predictions, book: ChannelBook) -> dict[str, Any]:
    """Pairs, queries and groups in scope, what was left out and why, and the groups by series."""
    counts = found.groups
    kept = [count for count in counts if count.rule is None]
    targets = found.targets
    new = np.ones(len(targets), bool)
    new[1:] = (np.diff(targets.query) != 0) | (np.diff(targets.year) != 0)
    queries = np.unique(targets.year[new].astype(np.int64) * len(found.queries) + targets.query[new])
    out = [rule for rule in PREDICTION_RULES if any(count.rule == rule for count in counts)]
    return {
        "pairs": sum(count.pairs for count in counts),
        "complete": sum(count.pairs for count in kept),
        "queries": len(queries),
        "groups": len(counts),
        "excluded": [_excluded(rule, [c for c in counts if c.rule == rule], book) for rule in out],
        "by_group": _by_group(counts, book),
    }


def _excluded(rule: str, counts: Sequence[GroupCount], book: ChannelBook) -> dict[str, Any]:
    return {
        "reason": rule,
        "groups": len(counts),
        "pairs": sum(count.pairs for count in counts),
        "examples": sorted({_name(count, book) for count in counts}, key=str.encode)[:EXAMPLES],
    }


def _name(count: GroupCount, book: ChannelBook) -> str:
    group = count.group
    parts = (group.intervention or UNDECLARED, group.mode or UNDECLARED, called(group.channel, book))
    acquisition = acquisition_of(count)
    return "/".join(parts) + (f"@{acquisition}" if acquisition else "")


def _by_group(counts: Sequence[GroupCount], book: ChannelBook) -> list[dict[str, Any]]:
    """One row for what shares everything but its variant, by name and then by what keeps it out."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for count in counts:
        group, level = count.group, None if count.level is None else str(count.level)
        key = (_name(count, book), count.rule or "", level or "")
        row = rows.setdefault(
            key,
            {
                "channel": group.channel,
                "acquisition": acquisition_of(count),
                "intervention": group.intervention,
                "mode": group.mode,
                "variants": 0,
                "pairs": 0,
                "entries": 0,
                "level": level,
                "rule": count.rule,
            },
        )
        row["variants"] += 1
        row["pairs"] += count.pairs
        row["entries"] += count.entries
    return [rows[key] for key in sorted(rows, key=lambda key: [part.encode() for part in key])]


def provenance(scope: PredictionScope, counts: Sequence[GroupCount], book: ChannelBook) -> dict[str, Any]:
    """Which entries entered and which rule kept the others out, whole groups at a time."""
    claims = [limits.GOLD_ISOLATION]
    channels = [book.by_fingerprint(c.group.channel) for c in counts if c.group.channel is not None]
    if any(channel is not None and channel.hosted for channel in channels):
        claims.append(limits.HOSTED_WEIGHTS)
    if scope.require is Level.DECLARED:
        claims.append(limits.UNDIGESTED)
    if scope.require is not Level.ATTESTED:
        claims.append(limits.UNATTESTED)
    by_rule = {rule: [c for c in counts if c.rule == rule] for rule in PREDICTION_RULES}
    return {
        "level": scope.require.value,
        "entries_in": sum(count.entries for count in counts),
        "entries_kept": sum(count.entries for count in counts if count.rule is None),
        "entries_out": {rule: sum(c.entries for c in found) for rule, found in by_rule.items()},
        "groups_out": {rule: len(found) for rule, found in by_rule.items()},
        "entries_by_level": _levels(counts),
        "entries_without_digest": {
            "channel": sum(c.entries for c in counts if c.group.channel is None),
            "request_hash": sum(c.without_digest for c in counts),
        },
        "non_claims": limits.as_json(claims),
    }


def _levels(counts: Sequence[GroupCount]) -> dict[str, int]:
    """Entries by the level of their group; a group that breaks another rule has none."""
    return {level.value: sum(c.entries for c in counts if c.level is level) for level in Level}


def shortfall(found: Predictions, series: Sequence[Series], book: ChannelBook) -> CannotAnswerError | None:
    """Why nothing can be computed, if so: nothing in scope or admitted, or acquisitions to choose from."""
    if not found.groups:
        return CannotAnswerError(
            "no predictions in scope",
            code="no-predictions",
            next_step="see `ledger acquisition list`, and check --channel, --intervention, --mode and --at",
        )
    several = [each for each in series if len(each.acquisitions) > 1]
    if several:
        return _several(several[0])
    if len(found.targets):
        return None
    return _level(found, _levels(found.groups)) or _kept_out(found.groups, book)


def _several(series: Series) -> CannotAnswerError:
    names = [shown(name) for name in series.acquisitions]
    more = f" and {len(names) - EXAMPLES} more" if len(names) > EXAMPLES else ""
    return CannotAnswerError(
        "several acquisitions of one series cannot be pooled",
        code="several-acquisitions",
        expected="one acquisition",
        got=", ".join(names[:EXAMPLES]) + more,
        where=series.label,
        next_step=f"choose one with --acquisition {names[-1]}",
    )


def _level(found: Predictions, levels: Mapping[str, int]) -> CannotAnswerError | None:
    required = found.scope.require
    reached = [level for level in Level if levels[level.value] and level.rank < required.rank]
    if not reached or not any(count.rule == LEVEL for count in found.groups):
        return None
    without = {
        "channel": sum(c.entries for c in found.groups if c.group.channel is None),
        "request_hash": sum(c.without_digest for c in found.groups),
    }
    lacking = ", ".join(f"{name} {count:,}" for name, count in without.items() if count)
    return CannotAnswerError(
        f"no predictions reach the level {required}",
        code="level-not-reached",
        expected=f"level {required} or above",
        got="entries at "
        + ", ".join(f"{level} {levels[level.value]:,}" for level in Level)
        + (f" (without {lacking})" if lacking else ""),
        next_step=f"use --require {reached[-1]}",
    )


def _kept_out(counts: Sequence[GroupCount], book: ChannelBook) -> CannotAnswerError:
    worst = max(counts, key=lambda count: count.pairs)
    return CannotAnswerError(
        "every group of predictions breaks a rule of provenance",
        code="empty-cohort",
        expected="one that meets all",
        got=f"{worst.rule} in {_name(worst, book)}",
        next_step="collect it anew as another acquisition",
    )
