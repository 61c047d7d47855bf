"""`ledger audit repeatability` and `ledger audit pool`: one channel against itself, several as one."""

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

ARM = "CHANNEL[:SOURCE]"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: ledger audit repeatability --channel direct")(repeatability)
    app.command(
        epilog="Example: ledger audit pool --channels direct,generated --weights 'direct=2,generated=1'"
    )(pool)


def repeatability(
    channel: Annotated[
        str,
        typer.Option(
            metavar=ARM,
            help="The channel, under its own view or another.",
            autocompletion=completion.channels,
        ),
    ],
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
    """Does a channel repeat itself? Spread and signs over its acquisitions; no evidence of transport."""
    given = Options(
        acquisition, where, resamples, seed, require, at, no_record, key, trust_first, output, wait,
        report, plot, workers, engine,
    )  # fmt: skip

    def audit(snapshot: Snapshot, progress: Report) -> AuditResult:
        from audits.arms import parse_arm
        from audits.repeatability import repeatability as run

        arm = parse_arm(channel, snapshot, "--channel")
        return run(snapshot, arm, progress=progress, **given.terms([arm.channel], snapshot)).audit

    perform(given, audit, as_json=as_json, verbose=verbose)


def pool(
    channels: Annotated[str, typer.Option(metavar="A,B[,C]", help="The channels, each as CHANNEL[:SOURCE].")],
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="A=2,B=1", help="Weights of the channels, brought to a sum of 1 (default: alike)."
        ),
    ] = None,
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
    """Does a pooled score keep the sign of its parts? Gains, their mixture, and where its sign turns."""
    given = Options(
        acquisition, where, resamples, seed, require, at, no_record, key, trust_first, output, wait,
        report, plot, workers, engine,
    )  # fmt: skip

    def audit(snapshot: Snapshot, progress: Report) -> AuditResult:
        from audits.arms import parse_arm
        from audits.pool import pool as run
        from audits.weights import matched, parse_weights
        from cli import audit_options as options

        texts = options.names(channels, "--channels") or []
        arms = [parse_arm(text, snapshot, "--channels") for text in texts]
        shares = None if weights is None else list(matched(parse_weights(weights), texts).values())
        return run(
            snapshot,
            arms,
            weights=shares,
            progress=progress,
            **given.terms([arm.channel for arm in arms], snapshot),
        ).audit

    perform(given, audit, as_json=as_json, verbose=verbose)
