"""Why no transition is complete, as the error an audit ends with once its record is written.

The causes are asked in the order in which a person could do something about them: an arm whose entries
are all revoked, an arm without any entries, entries below the level asked for, one acquisition that empties
the cohort on its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from audits.arms import called
from audits.flow import PROVENANCE, AcquisitionFlow, Flow
from contracts.errors import CannotAnswerError
from ledger.provenance import REVOKED
from ledger.snapshot import LEVEL, Arm, Level, ProvenanceCount, Selection


def shortfall(
    flow: Flow, selection: Selection, kept: Sequence[int], broken: Sequence[int]
) -> CannotAnswerError:
    """The error for a flow without a complete transition.

    `kept` and `broken` count the entries of each arm that met every rule, and that did not.
    """
    arms = selection.scope.arms
    provenance = selection.provenance
    gone = [a for a, n in enumerate(kept) if not n and broken[a] and not selection.acquisitions[arms[a]]]
    if gone and provenance.entries_out[REVOKED]:
        return _all_revoked(arms[gone[0]], broken[gone[0]])
    empty = [a for a, n in enumerate(kept) if not n and not broken[a] and not selection.acquisitions[arms[a]]]
    if empty:
        return _no_scores(arms[empty[0]])
    first = flow.excluded[0] if flow.excluded else None
    commonest = first.reason if first else ""
    if provenance.entries_out[LEVEL] and (not all(kept) or commonest == PROVENANCE + LEVEL):
        return _level(provenance, selection.scope.require)
    named = [a for a in flow.by_acquisition if a.alone and len(selection.acquisitions[arms[a.arm]]) > 1]
    if named:
        return _one_acquisition(max(named, key=lambda a: a.alone), selection)
    names = [called(arm) for arm in arms]
    return CannotAnswerError(
        f"none of {flow.transitions:,} transitions is complete",
        code="empty-cohort",
        got=f"{first.count:,} times {first.reason}" if first else None,
        where=first.examples[0].text(names) if first and first.examples else None,
        next_step="complete the scores, or narrow the scope with --where or --acquisition",
    )


def _no_scores(arm: Arm) -> CannotAnswerError:
    return CannotAnswerError(
        f"no scores of channel {called(arm)} in scope",
        code="no-scores",
        next_step="see `ledger acquisition list`, and check --where, --acquisition and --at",
    )


def _all_revoked(arm: Arm, entries: int) -> CannotAnswerError:
    return CannotAnswerError(
        f"every acquisition of channel {called(arm)} in scope is revoked",
        code="all-revoked",
        got=f"{entries:,} entries, none of which may enter",
        next_step="ingest the run again under a new acquisition id, or audit an older head with --at",
    )


def _level(provenance: ProvenanceCount, required: Level) -> CannotAnswerError:
    counts = ", ".join(f"{level} {provenance.levels[level]:,}" for level in Level)
    reached = [level for level in Level if provenance.levels[level] and level.rank < required.rank]
    lacking = ", ".join(f"{column} {count:,}" for column, count in provenance.absent.items() if count)
    return CannotAnswerError(
        f"too few entries reach the level {required}",
        code="level-not-reached",
        expected=f"level {required} or above",
        got=f"entries at {counts}" + (f" (without digests: {lacking})" if lacking else ""),
        next_step=f"use --require {reached[-1]}" if reached else None,
    )


def _one_acquisition(worst: AcquisitionFlow, selection: Selection) -> CannotAnswerError:
    arms = selection.scope.arms
    arm = arms[worst.arm]
    others = [
        f"--acquisition {arm.channel.name}@{name}"
        for name in selection.acquisitions[arm]
        if name != worst.acquisition
    ]
    return CannotAnswerError(
        f"acquisition {worst.acquisition} of channel {called(arm)} alone leaves no transition complete",
        code="acquisition-empties",
        got=f"{worst.lacking:,} transitions without it, {worst.alone:,} of them complete otherwise",
        next_step="leave it out with " + " ".join(others),
    )
