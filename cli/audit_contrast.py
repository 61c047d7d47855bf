"""`ledger audit contrast`: own view against a donor's, another order or authority, any two arms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli import completion
from cli.audit_run import Options, Report, perform
from cli.audit_words import (
    AcquisitionOption,
    BandOption,
    NoRecordOption,
    OutputOption,
    PlotOption,
    ReportOption,
    RequireOption,
    ResamplesOption,
    SeedOption,
    TargetTypesOption,
    VerboseOption,
    WeightsOption,
    WhereOption,
)
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
    """Add the command."""
    app.command(epilog="Example: ledger audit contrast --ref generated:donor --alt generated:own")(contrast)


def contrast(
    ref: Annotated[
        str,
        typer.Option(
            metavar=ARM,
            help="Reference arm; SOURCE is own, before, after or donor.",
            autocompletion=completion.channels,
        ),
    ],
    alt: Annotated[
        str, typer.Option(metavar=ARM, help="The arm compared with it.", autocompletion=completion.channels)
    ],
    acquisition: AcquisitionOption = None,
    where: WhereOption = None,
    weights: WeightsOption = "cohort",
    target_types: TargetTypesOption = None,
    band: BandOption = None,
    resamples: ResamplesOption = 10_000,
    seed: SeedOption = 20260928,
    require: RequireOption = "bound",
    at: AtOption = None,
    no_record: NoRecordOption = False,
    key: KeyOption = None,
    trust_first: TrustFirstOption = False,
    output: OutputOption = None,
    report: ReportOption = None,
    plot: PlotOption = False,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
    wait: WaitOption = 5.0,
    workers: WorkersOption = None,
    engine: EngineOption = None,
) -> None:
    """A control: gain of one arm minus gain of another, such as own view minus a donor's view."""
    given = Options(
        acquisition, where, resamples, seed, require, at, no_record, key, trust_first, output, wait,
        report, plot, workers, engine,
    )  # fmt: skip

    def audit(snapshot: Snapshot, progress: Report) -> AuditResult:
        from audits.arms import parse_arm
        from audits.contrast import contrast as run
        from cli import audit_options as options

        arms = [parse_arm(ref, snapshot, "--ref"), parse_arm(alt, snapshot, "--alt")]
        return run(
            snapshot,
            *arms,
            weights=weights,
            target_types=options.names(target_types, "--target-types"),
            band=band,
            progress=progress,
            **given.terms([arm.channel for arm in arms], snapshot),
        ).audit

    perform(given, audit, as_json=as_json, verbose=verbose)
