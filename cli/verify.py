"""`ledger verify`: whether everything stored is what was signed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import render, state
from cli.means import means
from cli.words import EngineOption, JsonOption, PublicKeyOption, TrustFirstOption, WorkersOption
from contracts.errors import UsageError
from ledger.problems import folded

if TYPE_CHECKING:
    from contracts.errors import VerificationError
    from ledger.engines import Means
    from ledger.keys import PublicKey
    from ledger.verify import Recompute, Report

FIRST = 10  # places told
CONSEQUENCES = 2  # further findings told of one place


def register(app: typer.Typer) -> None:
    """Add `verify`."""
    app.command(epilog="Example: ledger verify --full; ledger verify audit.bundle --key KEY.pem")(verify)


def verify(
    file: Annotated[
        Path | None,
        typer.Argument(help="A bundle or tlog-proof to check without any ledger (default: the home)."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Decode every entry, judge it again, recompute every audit.")
    ] = False,
    key: PublicKeyOption = None,
    trust_first: TrustFirstOption = False,
    workers: WorkersOption = None,
    engine: EngineOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the head's signature, the log, and every stored byte; name the first thing that is wrong."""
    from ledger.verify import verify as check

    public = state.public_key(key)
    if file is not None:
        from cli.bundles import verify_file

        _refuse_engine("a file is checked by one process", workers, engine, "leave it out")
        verify_file(file, public, trust_first=trust_first, as_json=as_json)
        return
    home = state.find_home()
    state.long_work(home)
    if not full:
        _refuse_engine(
            "the quick form reads bytes in one process", workers, engine, "add --full, or leave it out"
        )
    with render.progress() as progress, means(engine if full else "inline", workers, progress) as given:
        recompute = _recompute(public, given, trust_first=trust_first) if full else None
        report = check(
            home,
            key=public,
            trust_first=trust_first,
            full=full,
            recompute=recompute,
            progress=progress,
            engine=given.engine,
        )
    error = report.error()
    if as_json:
        _emit(report, error)
        if error is not None:
            raise typer.Exit(error.exit_code)
        return
    _tell(report)
    if error is not None:
        render.say(f"ledger: not verified: {_count(report)}, exit {error.exit_code}", stderr=True)
        raise typer.Exit(error.exit_code)


def _refuse_engine(why: str, workers: int | None, engine: str | None, step: str) -> None:
    """UsageError where an engine is asked for that has nothing to do."""
    if (workers, engine) != (None, None):
        raise UsageError(why, where="--engine" if workers is None else "--workers", next_step=step)


def _recompute(key: PublicKey | None, given: Means, *, trust_first: bool) -> Recompute:
    """How an audit's result is computed again at its own head; imported only where it is asked for."""
    home = state.find_home()

    def run(payload: bytes) -> bytes | None:
        from audits.recompute import recompute
        from ledger.snapshot import open_snapshot
        from ledger.statement import parse

        statement = parse(payload)
        size = int(statement.subjects[0].name.rpartition("@")[2])
        snapshot = open_snapshot(home, at=size, key=key, trust_first=trust_first, means=given)
        return recompute(snapshot, statement)

    return run


def _emit(report: Report, error: VerificationError | None) -> None:
    render.emit_json(
        {
            "ok": report.ok,
            "origin": report.origin,
            "full": report.full,
            "head": None
            if report.head is None
            else {"size": report.head.size, "root": f"sha256:{report.head.root.hex()}"},
            "pin": report.pin,
            "checked": report.counts,
            "problems": report.total,
            "findings": [
                {"kind": p.kind, "where": p.where, "entry": p.entry, "message": p.message}
                for p in report.findings
            ],
            "notices": list(report.notices),
            "error": None if error is None else error.as_dict(),
        }
    )


def _count(report: Report) -> str:
    """How many places are hit; every finding stands above or, past a bound, in the JSON."""
    places = len(folded(report.findings))
    found = render.plural(places, "problem")
    return found if report.total == places else f"{found} in {render.plural(report.total, 'finding')}"


def _tell(report: Report) -> None:
    checked = ", ".join(f"{count:,} {name}" for name, count in report.counts.items() if count)
    if report.head is not None:
        root = render.short("sha256:" + report.head.root.hex())
        render.say(f"head      size {report.head.size:,}, {root}, pin {report.pin}")
    render.tell(f"checked   {checked}")
    for notice in report.notices:
        render.tell(f"note: {notice}", stderr=True)
    places = folded(report.findings)
    for first, others in places[:FIRST]:
        render.tell(f"PROBLEM   {first}")
        for other in others[:CONSEQUENCES]:
            render.say(*render.wrapped(f"also {other.entry or 'there'}: {other.message}", "  "))
        if len(others) > CONSEQUENCES:
            render.say(f"  and {len(others) - CONSEQUENCES:,} more there: ledger verify --json")
    if len(places) > FIRST:
        render.say(f"          and {len(places) - FIRST:,} more places: ledger verify --json")
    if report.ok:
        how = (
            "every entry decoded and judged, every audit recomputed"
            if report.full
            else "every byte is what was signed"
        )
        render.say(f"verified  {how}")
