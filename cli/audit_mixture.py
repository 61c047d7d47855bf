"""`ledger audit mixture` and `ledger audit redundancy`: what reweighting does, what a view adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli import audit_words as words
from cli.audit_run import Options, Report, perform
from cli.words import AtOption, JsonOption, KeyOption, TrustFirstOption, WaitOption

if TYPE_CHECKING:
    from audits.record import AuditResult
    from ledger.snapshot import Snapshot

ARM = "CHANNEL[:SOURCE]"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: ledger audit mixture --ref direct --alt generated --weights A=0.5,B=0.5")(
        mixture
    )
    app.command(epilog="Example: ledger audit redundancy --ref quoted --alt generated")(redundancy)


def mixture(
    ref: Annotated[
        str, typer.Option(metavar=ARM, help="Reference arm; SOURCE is own, before, after or donor.")
    ],
    alt: Annotated[str, typer.Option(metavar=ARM, help="The arm compared with it.")],
    weights: Annotated[
        str | None,
        typer.Option(metavar="A=0.5,B=0.5", help="Weights of target types; one not named weighs nothing."),
    ] = None,
    target_types: words.TargetTypesOption = None,
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
) -> None:
    """Which verdicts survive another mixture of targets? Cohort, equal and given weights, post hoc."""
    given = Options(
        acquisition, where, resamples, seed, require, at, no_record, key, trust_first, output, wait,
        report, plot,
    )  # fmt: skip

    def audit(snapshot: Snapshot, progress: Report) -> AuditResult:
        from audits.arms import parse_arm
        from audits.mixture import mixture as run
        from audits.weights import parse_weights
        from cli import audit_options as options

        arms = [parse_arm(ref, snapshot, "--ref"), parse_arm(alt, snapshot, "--alt")]
        return run(
            snapshot,
            *arms,
            weights=None if weights is None else parse_weights(weights),
            target_types=options.names(target_types, "--target-types"),
            progress=progress,
            **given.terms([arm.channel for arm in arms], snapshot),
        ).audit

    perform(given, audit, as_json=as_json, verbose=verbose)


def redundancy(
    ref: Annotated[
        str, typer.Option(metavar=ARM, help="Reference arm; SOURCE is own, before, after or donor.")
    ],
    alt: Annotated[str, typer.Option(metavar=ARM, help="The arm compared with it.")],
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
) -> None:
    """Does a view that should add nothing change nothing? Distances of margins, and the AUC gap."""
    given = Options(
        acquisition, where, resamples, seed, require, at, no_record, key, trust_first, output, wait,
        report, plot,
    )  # fmt: skip

    def audit(snapshot: Snapshot, progress: Report) -> AuditResult:
        from audits.arms import parse_arm
        from audits.redundancy_audit import redundancy as run

        arms = [parse_arm(ref, snapshot, "--ref"), parse_arm(alt, snapshot, "--alt")]
        return run(
            snapshot, *arms, progress=progress, **given.terms([arm.channel for arm in arms], snapshot)
        ).audit

    perform(given, audit, as_json=as_json, verbose=verbose)
