"""What the options of `ledger audit jev` mean: a scope of predictions, and two channels to compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cli import audit_options
from contracts.errors import UsageError
from ledger.snapshot import UNDECLARED, Level, PredictionScope, Snapshot

if TYPE_CHECKING:
    from cli.audit_run import Options


def scope(
    given: Options,
    snapshot: Snapshot,
    channels: Sequence[str] | None,
    interventions: Sequence[str] | None,
    modes: Sequence[str] | None,
    scenarios: Sequence[str] | None,
    precision: tuple[str, str] | None,
) -> PredictionScope:
    """The scope as it was asked for, in an order of its own; `precision` narrows it to its two channels."""
    wanted = _values(channels)
    if wanted is not None:
        wanted = tuple(None if name is None else snapshot.book.resolve(name).fingerprint for name in wanted)
    if precision is not None:
        if wanted is not None:
            raise UsageError(
                "--precision names its channels itself", where="--channel", next_step="leave --channel out"
            )
        wanted = precision
    named = [channel for fp in wanted or () if fp and (channel := snapshot.book.by_fingerprint(fp))]
    acquisitions = audit_options.acquisitions(
        given.acquisition or [], named or snapshot.book.channels, snapshot
    )
    return PredictionScope(
        channels=None if wanted is None else _ordered(wanted),
        interventions=_ordered(_values(interventions)),
        modes=_ordered(_values(modes)),
        scenarios=None if scenarios is None else tuple(sorted(set(scenarios), key=str.encode)),
        acquisitions=tuple(sorted(set(acquisitions), key=lambda pair: (pair[0] or "", pair[1]))),
        require=Level(given.require),
    )


def precision(text: str | None, snapshot: Snapshot) -> tuple[str, str] | None:
    """`A:B` as two fingerprints; a fingerprint has a colon of its own, so what resolves decides."""
    if text is None:
        return None
    places = [place for place, letter in enumerate(text) if letter == ":"]
    halves = [(text[:place], text[place + 1 :]) for place in places]
    likely = [pair for pair in halves if all(pair) and not any(half == "blake3" for half in pair)]
    if not likely:
        raise UsageError("not two channels", expected="A:B", got=text[:80], where="--precision")
    first, second = next((pair for pair in likely if all(_known(name, snapshot) for name in pair)), likely[0])
    return snapshot.book.resolve(first).fingerprint, snapshot.book.resolve(second).fingerprint


def listed(text: str | None, option: str) -> tuple[str, ...] | None:
    """A comma-separated list in its order."""
    names = audit_options.names(text, option)
    return None if names is None else tuple(names)


def _known(name: str, snapshot: Snapshot) -> bool:
    try:
        snapshot.book.resolve(name)
    except UsageError:
        return False
    return True


def _values(texts: Sequence[str] | None) -> tuple[str | None, ...] | None:
    """Values of a part, `undeclared` as null; None where the option was not given."""
    return tuple(None if text == UNDECLARED else text for text in texts) if texts else None


def _ordered(values: tuple[str | None, ...] | None) -> tuple[str | None, ...] | None:
    if values is None:
        return None
    return tuple(sorted(set(values), key=lambda value: (value is not None, (value or "").encode())))
