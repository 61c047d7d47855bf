"""`ledger audit`: statistics from verified entries only, signed and logged.

Each audit opens a snapshot, hands it to its function in `audits`, and passes the result to `conclude`,
which signs, logs and prints it. An audit that cannot answer is concluded like any other and ends with
exit 5.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli import render, state
from cli.words import AtOption, JsonOption, KeyOption, TrustFirstOption, WaitOption

if TYPE_CHECKING:
    from audits.record import AuditResult
    from cli.audit_record import Recorder

app = typer.Typer(
    no_args_is_help=True, help="Compute statistics from verified entries; each audit is signed and logged."
)


@app.command(epilog="Example: ledger audit transport --ref direct --alt generated")
def transport(
    ref: Annotated[str, typer.Option(help="Reference channel: NAME, NAME@VERSION or fingerprint.")],
    alt: Annotated[str, typer.Option(help="The channel compared with it.")],
    acquisition: Annotated[
        list[str] | None,
        typer.Option(help="Only this acquisition; CHANNEL@ID for one channel; repeatable."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE", help="Only such transitions (step_kind, target, ...); repeatable."
        ),
    ] = None,
    weights: Annotated[
        Literal["cohort", "equal-target"],
        typer.Option(help="The weighting the verdict quotes; both are computed."),
    ] = "cohort",
    target_types: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Target types that weigh alike (default: those observed)."),
    ] = None,
    missing_corner_range: Annotated[
        str | None,
        typer.Option(metavar="LOW,HIGH", help="Where the mean margin of a corner nobody scored may lie."),
    ] = None,
    resamples: Annotated[int, typer.Option(help="Cluster resamples.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 20260928,
    require: Annotated[
        Literal["declared", "bound", "attested"], typer.Option(help="Weakest provenance that may enter.")
    ] = "bound",
    at: AtOption = None,
    no_record: Annotated[bool, typer.Option("--no-record", help="Sign and log nothing.")] = False,
    key: KeyOption = None,
    trust_first: TrustFirstOption = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the signed envelope (DSSE) to this file.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every table.")] = False,
    as_json: JsonOption = False,
    wait: WaitOption = 5.0,
) -> None:
    """Does the gain of a step survive a change of evaluator? Gains, interaction, flips, robustness."""
    from audits.transport import transport as audit
    from cli import audit_options as options
    from cli.audit_record import recorder
    from ledger.snapshot import Level

    with render.progress() as advance:
        writer = recorder(state.find_home(), key, no_record=no_record, output=output, wait=wait)
        snapshot = writer.snapshot(at, trust_first=trust_first)
        channels = [snapshot.book.resolve(name) for name in (ref, alt)]
        found = audit(
            snapshot,
            *channels,
            where=options.filters(where or []),
            acquisitions=options.acquisitions(acquisition or [], channels, snapshot),
            require=Level(require),
            weights=weights,
            target_types=options.names(target_types, "--target-types"),
            missing_corner_range=options.bounds(missing_corner_range, "--missing-corner-range"),
            resamples=resamples,
            seed=seed,
            progress=lambda done, total: advance("resampling", done, total),
        )
    conclude(writer, found.audit, as_json=as_json, verbose=verbose)


def conclude(writer: Recorder, audit: AuditResult, *, as_json: bool, verbose: bool) -> None:
    """Sign and log what can be, print it, and end with exit 5 where the entries could not answer."""
    from audits.sentence import sentence

    recorded = writer.record(audit)
    names = {role: channel.name for role, channel in audit.channels.items()}
    said = sentence(audit.result, **names)
    if as_json:
        made = recorded.as_json() | {"sentence": said}
        if audit.shortfall is not None:
            made["error"] = dict(audit.shortfall.as_dict())
        render.emit_json(made)
        if audit.shortfall is not None:
            raise typer.Exit(audit.shortfall.exit_code)
        return
    from cli import audit_tables

    audit_tables.show(audit, recorded, said, verbose=verbose)
    if audit.shortfall is not None:
        raise audit.shortfall
