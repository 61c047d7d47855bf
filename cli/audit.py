"""`ledger audit`: statistics from verified entries only, signed and logged; one command per audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from cli import audit_contrast, audit_family, audit_jev, audit_mixture, audit_pool, completion
from cli.audit_run import Options, Report, perform
from cli.audit_words import (
    AcquisitionOption,
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
from contracts.errors import UsageError

if TYPE_CHECKING:
    from audits.record import AuditResult
    from ledger.snapshot import Snapshot


class _Planned(TyperGroup):
    """`audit KIND --plan ID` as `audit --plan ID --kind KIND`: a plan leaves a kind nothing to be asked.

    Without a plan the group has nothing to do itself, so its options are shown as those of a plan.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.options_metavar, self.subcommand_metavar = "", "KIND [OPTIONS] | --plan ID [OPTIONS]"
        for option in self.params:
            option.rich_help_panel = "Options of audit --plan ID"  # type: ignore[attr-defined]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = any(word == "--plan" or word.startswith("--plan=") for word in args)
        if named and args[0] in self.commands:
            args = [*args[1:], "--kind", args[0]]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Planned,
    invoke_without_command=True,
    no_args_is_help=True,
    help="Compute statistics from verified entries; each audit is signed and logged.",
    epilog="Example: ledger audit transport --ref direct --alt generated; ledger audit --plan main",
)


@app.callback()
def planned(
    context: typer.Context,
    plan: Annotated[
        str | None, typer.Option(metavar="ID", help="Run exactly what this plan declares, nothing else.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="With --plan: refuse a plan of another kind.")] = None,
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
    """Compute statistics from verified entries; each audit is signed and logged."""
    if context.invoked_subcommand is not None:
        _refuse_before(context, context.invoked_subcommand, plan)
    elif plan is not None:
        from cli.plans import run_plan

        given = Options(
            None, None, 0, 0, "", at, no_record, key, trust_first, output, wait, report, plot,
            workers, engine,
        )  # fmt: skip
        run_plan(plan, kind, given, as_json=as_json, verbose=verbose)
    else:
        raise UsageError(
            "which audit", expected="a kind of audit, or --plan ID", next_step="ledger audit --help"
        )


def _refuse_before(context: typer.Context, named: str, plan: str | None) -> None:
    """UsageError where an option stands before a kind of audit, which would not hear of it."""
    sources = [(option, context.get_parameter_source(option.name or "")) for option in context.command.params]
    given = [option.opts[0] for option, source in sources if source and source.name == "COMMANDLINE"]
    if plan is not None:
        raise UsageError(
            "a plan says what is asked, so no audit stands beside it", where=f"--plan {plan[:80]}",
            next_step=f"ledger audit --plan {plan[:80]} --kind {named}",
        )  # fmt: skip
    if given:
        raise UsageError(
            f"stands before {named}, where only `ledger audit --plan ID` takes options",
            where=", ".join(given), next_step=f"write it behind: ledger audit {named} … {given[0]} …",
        )  # fmt: skip


@app.command(epilog="Example: ledger audit transport --ref direct --alt generated")
def transport(
    ref: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Reference channel: NAME, NAME@VERSION or fingerprint.",
            autocompletion=completion.channels,
        ),
    ],
    alt: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="The channel compared with it.", autocompletion=completion.channels
        ),
    ],
    acquisition: AcquisitionOption = None,
    where: WhereOption = None,
    weights: WeightsOption = "cohort",
    target_types: TargetTypesOption = None,
    missing_corner_range: Annotated[
        str | None,
        typer.Option(metavar="LOW,HIGH", help="Where the mean margin of a corner nobody scored may lie."),
    ] = None,
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
    """Does the gain of a step survive a change of evaluator? Gains, interaction, flips, robustness."""
    given = Options(
        acquisition, where, resamples, seed, require, at, no_record, key, trust_first, output, wait,
        report, plot, workers, engine,
    )  # fmt: skip

    def audit(snapshot: Snapshot, progress: Report) -> AuditResult:
        from audits.transport import transport as run
        from cli import audit_options as options

        channels = [snapshot.book.resolve(name) for name in (ref, alt)]
        return run(
            snapshot,
            *channels,
            weights=weights,
            target_types=options.names(target_types, "--target-types"),
            missing_corner_range=options.bounds(missing_corner_range, "--missing-corner-range"),
            progress=progress,
            **given.terms(channels, snapshot),
        ).audit

    perform(given, audit, as_json=as_json, verbose=verbose)


for _module in (audit_family, audit_contrast, audit_jev, audit_pool, audit_mixture):
    _module.register(app)
