"""The walk every audit takes: snapshot, audit, signature and log, output, exit code.

An audit that cannot answer is signed, logged and printed like any other and ends with exit 5. One that
found nothing in scope has no answer to keep: it ends with exit 5 too, and nothing is signed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cli import render, state
from cli.means import means
from contracts.errors import CannotAnswerError, UsageError

if TYPE_CHECKING:
    from audits.record import AuditResult
    from cli.audit_record import Recorded, Recorder
    from contracts.channel import Channel
    from ledger.engines import Means
    from ledger.snapshot import Snapshot

Report = Callable[[int, int], None]
NOTHING = "nothing is in scope"


@dataclass(frozen=True)
class Options:
    """What was said about scope, draws and output, as the command line has it."""

    acquisition: list[str] | None
    where: list[str] | None
    resamples: int
    seed: int
    require: str
    at: int | None
    no_record: bool
    key: str | None
    trust_first: bool
    output: Path | None
    wait: float
    report: Path | None = None
    plot: bool = False
    workers: int | None = None
    engine: str | None = None

    def terms(self, channels: Sequence[Channel], snapshot: Snapshot) -> dict[str, Any]:
        """The keyword arguments that every function of `audits` takes, for an audit of these channels."""
        from cli import audit_options as options
        from ledger.snapshot import Level

        return {
            "where": options.filters(self.where or []),
            "acquisitions": options.acquisitions(self.acquisition or [], channels, snapshot),
            "require": Level(self.require),
            "resamples": self.resamples,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Voice:
    """How an audit without arms is told: its result in a sentence, and its screen."""

    sentence: Callable[[Mapping[str, Any]], str]
    show: Callable[[AuditResult, Recorded, str, bool], None]


def perform(
    options: Options,
    audit: Callable[[Snapshot, Report], AuditResult],
    *,
    as_json: bool,
    verbose: bool,
    voice: Voice | None = None,
) -> None:
    """Run `audit` on the snapshot that was asked for, then sign, log and print what it concludes."""
    from cli.audit_record import recorder

    _require_drawable(options, as_json=as_json)
    with render.progress() as advance, means(options.engine, options.workers, advance) as given:
        home = state.find_home()
        state.long_work(home)
        writer = recorder(
            home,
            options.key,
            no_record=options.no_record,
            output=options.output,
            wait=options.wait,
        )
        snapshot = writer.snapshot(options.at, trust_first=options.trust_first, means=given)
        found = audit(snapshot, _resampling(given, advance))
    short = nothing_in_scope(found, empty=not snapshot.segments)
    if short is not None:
        found = replace(found, shortfall=short)
        if not as_json:
            raise short
        options = replace(options, report=None)
    recorded = writer.record(found) if short is None else writer.unlogged(found, NOTHING)
    if options.report is not None:
        _write_report(writer, snapshot, recorded, options.report)
    _conclude(found, recorded, as_json=as_json, verbose=verbose, voice=voice, options=options)


def _resampling(given: Means, advance: render.Advance) -> Report:
    """Who hears how far the resamples are: the first time, workers that have read the entries are let go.

    They hold more memory than the resamples take, and an audit that reads again gets new ones.
    """
    rested = False

    def heard(done: int, total: int) -> None:
        nonlocal rested
        if not rested:
            given.engine.close()
            rested = True
        advance("resampling", done, total)

    return heard


def nothing_in_scope(audit: AuditResult, *, empty: bool) -> CannotAnswerError | None:
    """The error of an audit without a transition or pair in scope; `empty` says that the log has no entry."""
    flow, why = audit.result["flow"], audit.shortfall
    what = "transition" if "transitions" in flow else "pair"
    if why is None or flow.get("transitions", flow.get("pairs")):
        return None
    step = "ingest scores first: ledger ingest FILE" if empty else why.next_step
    return CannotAnswerError(f"no {what} is in scope: nothing was signed", code=why.code, next_step=step)


def _conclude(
    audit: AuditResult,
    recorded: Recorded,
    *,
    as_json: bool,
    verbose: bool,
    voice: Voice | None,
    options: Options,
) -> None:
    """Print what was concluded, and end with exit 5 where the entries could not answer."""
    from audits.prespecified import clause
    from audits.sentence import sentence

    said = clause(audit.result)
    said += sentence(audit.result, **audit.names) if voice is None else voice.sentence(audit.result)
    if as_json:
        from cli.audit_flow import warnings

        warned = [] if voice is not None else warnings(audit.result, audit.channels)
        made = recorded.as_json() | {"sentence": said} | ({"warnings": warned} if warned else {})
        if audit.shortfall is not None:
            made["error"] = dict(audit.shortfall.as_dict())
        render.emit_json(made)
        if audit.shortfall is not None:
            raise typer.Exit(audit.shortfall.exit_code)
        return
    if voice is not None:
        voice.show(audit, recorded, said, verbose)
    else:
        from cli import audit_tables

        audit_tables.show(audit, recorded, said, verbose=verbose)
    if options.plot:
        from cli.text_plot import show

        show(audit.result, audit.names if voice is None else {})
    if options.report is not None:
        render.say(f"report in {options.report}")
    if audit.shortfall is not None:
        raise audit.shortfall


def _require_drawable(options: Options, *, as_json: bool) -> None:
    """Before any work: UsageError or StorageError where what should be drawn could not be."""
    if options.plot and as_json:
        raise UsageError(
            "a plot is for people", where="--plot", next_step="leave out --json, or --plot for --report FILE"
        )
    if options.report is not None:
        from cli.report import prepare

        prepare(options.report)


def _write_report(writer: Recorder, snapshot: Snapshot, recorded: Recorded, output: Path) -> None:
    """The same page that `ledger report` writes of the record; where none was signed, one that says so."""
    from cli.report import write
    from cli.report_record import logged, unsigned

    if recorded.logged is None:
        write(unsigned(snapshot, recorded.statement), output)
        return
    public = None if writer.key is None else writer.key.public
    write(logged(writer.home, recorded.logged.record, key=public, trust_first=False), output)
