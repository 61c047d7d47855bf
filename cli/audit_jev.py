"""`ledger audit jev`: does an answer depend on what else its request asks?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli import audit_words as words
from cli.audit_run import Options, Report, Voice, perform
from cli.words import AtOption, JsonOption, KeyOption, TrustFirstOption, WaitOption

if TYPE_CHECKING:
    from audits.record import AuditResult
    from ledger.snapshot import Snapshot


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: ledger audit jev --intervention questions --require declared")(jev)


def jev(
    threshold: Annotated[float, typer.Option(help="An action needs a probability strictly above.")] = 0.5,
    intervention: Annotated[
        list[str] | None,
        typer.Option(help="Only questions, evidence, candidates or undeclared; repeatable."),
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(help="Only independent, visible-schema, joint or undeclared; repeatable."),
    ] = None,
    channel: Annotated[
        list[str] | None, typer.Option(help="Only this channel, or undeclared; repeatable.")
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(metavar="A:B", help="Which flips of channel A vanish in channel B, pair by pair."),
    ] = None,
    scenarios: Annotated[
        str | None, typer.Option(metavar="A,B", help="The scenarios that count (default: all that occur).")
    ] = None,
    label_order: Annotated[
        str | None, typer.Option(metavar="A,B", help="Which of equal labels an action takes first.")
    ] = None,
    acquisition: words.AcquisitionOption = None,
    resamples: Annotated[int, typer.Option(help="Resamples of queries within each year.")] = 5_000,
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
    """Does an answer change when its request asks more? Flips, ties, actions and accuracies by year."""
    given = Options(
        acquisition, None, resamples, seed, require, at, no_record, key, trust_first, output, wait,
        report, plot,
    )  # fmt: skip

    def audit(snapshot: Snapshot, progress: Report) -> AuditResult:
        from audits.jev import run
        from audits.jev_design import JevDesign
        from cli import audit_jev_options as options

        pair = options.precision(precision, snapshot)
        design = JevDesign(
            scope=options.scope(
                given, snapshot, channel, intervention, mode, options.listed(scenarios, "--scenarios"), pair
            ),
            threshold=threshold,
            label_order=options.listed(label_order, "--label-order"),
            precision=pair,
            resamples=resamples,
            seed=seed,
        )
        return run(snapshot, design, progress=progress)

    from audits.jev_sentence import sentence
    from cli.audit_jev_tables import show

    perform(given, audit, as_json=as_json, verbose=verbose, voice=Voice(sentence, show))
