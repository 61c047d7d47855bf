"""Options that every audit has, each worded once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

AcquisitionOption = Annotated[
    list[str] | None,
    typer.Option(help="Only this acquisition; CHANNEL@ID for one channel; repeatable."),
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=VALUE", help="Only such transitions (step_kind, target, ...); repeatable."),
]
WeightsOption = Annotated[
    Literal["cohort", "equal-target"],
    typer.Option(help="The weighting the verdict quotes; both are computed."),
]
TargetTypesOption = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="Target types that weigh alike (default: those observed)."),
]
BandOption = Annotated[
    float | None,
    typer.Option(metavar="D", help="Equivalence band: is the primary estimate within -D and D?"),
]
ResamplesOption = Annotated[int, typer.Option(help="Cluster resamples.")]
SeedOption = Annotated[int, typer.Option(help="Seed of the draws.")]
RequireOption = Annotated[
    Literal["declared", "bound", "attested"], typer.Option(help="Weakest provenance that may enter.")
]
NoRecordOption = Annotated[bool, typer.Option("--no-record", help="Sign and log nothing.")]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the signed envelope (DSSE) to this file.")
]
ReportOption = Annotated[
    Path | None, typer.Option("--report", help="Write the audit as one HTML page (see `ledger report`).")
]
PlotOption = Annotated[bool, typer.Option("--plot", help="Draw the intervals as text.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Print every table.")]
