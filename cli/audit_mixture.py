"""`ledger audit mixture` and `ledger audit redundancy`: what reweighting does, what a view adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli import audit_words as words
from cli import completion, state
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
from contracts.errors import UsageError

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
        str | None,
        typer.Option(
            metavar=ARM,
            help="Reference arm; SOURCE is own, before, after or donor.",
            autocompletion=completion.channels,
        ),
    ] = None,
    alt: Annotated[
        str | None,
        typer.Option(metavar=ARM, help="The arm compared with it.", autocompletion=completion.channels),
    ] = None,
    of: Annotated[
        str | None,
        typer.Option(metavar="RECORD", help="Reweight this logged audit (face, cube, bridge, ...) instead."),
    ] = None,
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
    workers: WorkersOption = None,
    engine: EngineOption = None,
) -> None:
    """Which verdicts survive another mixture of targets? Cohort, equal and given weights, post hoc."""
    given = Options(
        acquisition, where, resamples, seed, require, at, no_record, key, trust_first, output, wait,
        report, plot, workers, engine,
    )  # fmt: skip

    def audit(snapshot: Snapshot, progress: Report) -> AuditResult:
        from audits.weights import parse_weights
        from cli import audit_options as options

        asked: dict[str, Any] = {
            "weights": None if weights is None else parse_weights(weights),
            "target_types": options.names(target_types, "--target-types"),
            "progress": progress,
        }
        if of is not None:
            return _of_record(snapshot, of, given, asked, ref or alt)
        if ref is None or alt is None:
            raise UsageError("nothing to reweight", expected="--ref and --alt, or --of RECORD")
        from audits.arms import parse_arm
        from audits.mixture import mixture as run

        arms = [parse_arm(ref, snapshot, "--ref"), parse_arm(alt, snapshot, "--alt")]
        terms = given.terms([arm.channel for arm in arms], snapshot)
        return run(snapshot, arms[0], arms[1], **asked, **terms).audit

    perform(given, audit, as_json=as_json, verbose=verbose)


def _of_record(
    snapshot: Snapshot, record: str, given: Options, asked: dict[str, Any], arm: str | None
) -> AuditResult:
    """Reweight what a logged audit estimates; its record says of which entries."""
    from audits.design import parse
    from audits.mixture import reweigh
    from ledger.records import logged_record

    if arm is not None or given.where or given.acquisition:
        raise UsageError(
            "the record says which entries are meant",
            expected="--of without --ref, --alt, --where and --acquisition",
            where="--of",
        )
    stated: Any = logged_record(state.find_home(), record, at=snapshot.size).predicate["result"]
    design = parse({k: v for k, v in stated["design"].items() if k != "plan"}, snapshot.book)
    if design is None:
        raise UsageError("the record is of another version of this program", got=record[:80], where="--of")
    return reweigh(snapshot, design, **asked, resamples=given.resamples, seed=given.seed).audit


def redundancy(
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
    """Does a view that should add nothing change nothing? Distances of margins, and the AUC gap."""
    given = Options(
        acquisition, where, resamples, seed, require, at, no_record, key, trust_first, output, wait,
        report, plot, workers, engine,
    )  # fmt: skip

    def audit(snapshot: Snapshot, progress: Report) -> AuditResult:
        from audits.arms import parse_arm
        from audits.redundancy_audit import redundancy as run

        arms = [parse_arm(ref, snapshot, "--ref"), parse_arm(alt, snapshot, "--alt")]
        return run(
            snapshot, *arms, progress=progress, **given.terms([arm.channel for arm in arms], snapshot)
        ).audit

    perform(given, audit, as_json=as_json, verbose=verbose)
