"""`ledger audit face`, `cube` and `bridge`: faces with other corners than two channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli import audit_words as words
from cli import completion
from cli.audit_run import Options, Report, perform
from cli.words import (
    AtOption,
    EngineOption,
    JsonOption,
    KeyOption,
    TrustFirstOption,
    WaitOption,
    WorkersOption,
)

if TYPE_CHECKING:
    from audits.record import AuditResult
    from ledger.snapshot import Snapshot


def register(app: typer.Typer) -> None:
    """Add the commands to the group of audits."""
    app.command(epilog="Example: ledger audit face --channel cube/generated-neutral")(face)
    app.command(
        epilog="Example: ledger audit cube --channels 'cube/*' --factors view.kind,presentation.authority "
        "--levels empty,quote,generated --levels neutral,evidence-primary"
    )(cube)
    app.command(epilog="Example: ledger audit bridge --vertex A=quoteA:genA --vertex B=quoteB:genB")(bridge)


def face(
    channel: Annotated[
        str,
        typer.Option(
            help="The channel that was scored under frozen views.", autocompletion=completion.channels
        ),
    ],
    acquisition: words.AcquisitionOption = None,
    where: words.WhereOption = None,
    band: words.BandOption = None,
    resamples: words.ResamplesOption = 10_000,
    seed: words.SeedOption = 20260928,
    require: words.RequireOption = "bound",
    at: AtOption = None,
    no_record: words.NoRecordOption = False,
    key: KeyOption = None,
    trust_first: TrustFirstOption = False,
    output: words.OutputOption = None,
    report: words.ReportOption = None,
    plot: words.PlotOption = False,
    verbose: words.VerboseOption = False,
    as_json: JsonOption = False,
    wait: WaitOption = 5.0,
    workers: WorkersOption = None,
    engine: EngineOption = None,
) -> None:
    """Where a change of score enters: the state, or the view shown. Endpoint x frozen view, Shapley split."""
    given = Options(
        acquisition, where, resamples, seed, require, at, no_record, key, trust_first, output, wait,
        report, plot, workers, engine,
    )  # fmt: skip

    def audit(snapshot: Snapshot, progress: Report) -> AuditResult:
        from audits.face import face as run

        found = snapshot.book.resolve(channel)
        return run(snapshot, found, band=band, progress=progress, **given.terms([found], snapshot)).audit

    perform(given, audit, as_json=as_json, verbose=verbose)


def cube(
    factors: Annotated[str, typer.Option(metavar="PATH,PATH", help="Two paths of a channel specification.")],
    levels: Annotated[
        list[str],
        typer.Option(metavar="A,B,...", help="Levels of a factor in order; once for each factor."),
    ],
    channels: Annotated[
        str, typer.Option(metavar="PATTERN", help="Only channels of such names; several with commas.")
    ] = "*",
    acquisition: words.AcquisitionOption = None,
    where: words.WhereOption = None,
    band: words.BandOption = None,
    resamples: words.ResamplesOption = 10_000,
    seed: words.SeedOption = 20260928,
    require: words.RequireOption = "bound",
    at: AtOption = None,
    no_record: words.NoRecordOption = False,
    key: KeyOption = None,
    trust_first: TrustFirstOption = False,
    output: words.OutputOption = None,
    report: words.ReportOption = None,
    plot: words.PlotOption = False,
    verbose: words.VerboseOption = False,
    as_json: JsonOption = False,
    wait: WaitOption = 5.0,
    workers: WorkersOption = None,
    engine: EngineOption = None,
) -> None:
    """How gains change over two factors of the channel, all else equal. Contrasts, change, equivalence."""
    given = Options(
        acquisition, where, resamples, seed, require, at, no_record, key, trust_first, output, wait,
        report, plot, workers, engine,
    )  # fmt: skip

    def audit(snapshot: Snapshot, progress: Report) -> AuditResult:
        from audits.cube import cube as run
        from audits.cube_cells import Factors, find_cells
        from cli import audit_options as options

        crossed = Factors.of(
            options.names(factors, "--factors") or [],
            [options.names(text, "--levels") or [] for text in levels],
        )
        patterns = options.names(channels, "--channels") or []
        found = find_cells(snapshot.book, patterns, crossed)
        terms = given.terms(list(found.values()), snapshot)
        return run(snapshot, patterns, factors=crossed, band=band, progress=progress, **terms).audit

    perform(given, audit, as_json=as_json, verbose=verbose)


def bridge(
    vertex: Annotated[
        list[str],
        typer.Option(metavar="NAME=REF:ALT", help="Two channels of one evaluator; NAME= if never scored."),
    ],
    magnitude: Annotated[
        bool,
        typer.Option("--magnitude", help="Compare magnitudes across vertices: refused, with the reason."),
    ] = False,
    acquisition: words.AcquisitionOption = None,
    where: words.WhereOption = None,
    resamples: words.ResamplesOption = 10_000,
    seed: words.SeedOption = 20260928,
    require: words.RequireOption = "bound",
    at: AtOption = None,
    no_record: words.NoRecordOption = False,
    key: KeyOption = None,
    trust_first: TrustFirstOption = False,
    output: words.OutputOption = None,
    report: words.ReportOption = None,
    plot: words.PlotOption = False,
    verbose: words.VerboseOption = False,
    as_json: JsonOption = False,
    wait: WaitOption = 5.0,
    workers: WorkersOption = None,
    engine: EngineOption = None,
) -> None:
    """Does the same contrast hold for every evaluator? Verdicts per vertex and their conjunctions."""
    given = Options(
        acquisition, where, resamples, seed, require, at, no_record, key, trust_first, output, wait,
        report, plot, workers, engine,
    )  # fmt: skip

    def audit(snapshot: Snapshot, progress: Report) -> AuditResult:
        from audits.bridge import bridge as run
        from audits.bridge import refuse_magnitude
        from audits.bridge_vertices import parse_vertices

        if magnitude:
            raise refuse_magnitude()
        vertices = parse_vertices(vertex, snapshot)
        channels = [channel for v in vertices for _, channel in v.sides]
        return run(snapshot, vertices, progress=progress, **given.terms(channels, snapshot)).audit

    perform(given, audit, as_json=as_json, verbose=verbose)
