"""Options that every audit has, each worded once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

AcquisitionOption = Annotated[
    list[str] | None,
    typer.Option(metavar="ID", help="Only this acquisition; CHANNEL@ID for one channel; repeatable."),
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(metavar="COL=VALUE", help="Only such transitions (step_kind, target, ...); repeatable."),
]
WeightsOption = Annotated[
    Literal["cohort", "equal-target"],
    typer.Option(
        metavar="NAME", help="Weighting the verdict quotes, cohort or equal-target; both are computed."
    ),
]
TargetTypesOption = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="Target types that weigh alike (default: those observed)."),
]
BandOption = Annotated[
    float | None,
    typer.Option(metavar="D", help="Equivalence band: is the primary estimate within -D and D?"),
]
ResamplesOption = Annotated[int, typer.Option(metavar="N", help="Cluster resamples.")]
SeedOption = Annotated[int, typer.Option(metavar="N", help="Seed of the draws.")]
RequireOption = Annotated[
    Literal["declared", "bound", "attested"],
    typer.Option(metavar="LEVEL", help="Weakest provenance that may enter: declared, bound or attested."),
]
NoRecordOption = Annotated[bool, typer.Option("--no-record", help="Sign and log nothing.")]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the signed envelope (DSSE) to this file."),
]
ReportOption = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="Write the audit as one HTML page (see `ledger report`)."),
]
PlotOption = Annotated[bool, typer.Option("--plot", help="Draw the intervals as text.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print every table, and what each term means.")
]
