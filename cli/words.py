"""Options that several commands share, each worded once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
KeyOption = Annotated[
    str | None,
    typer.Option(
        metavar="KEY",
        help="Signing key: a path, file:PATH or env:VARIABLE (default: $LEDGER_KEY, else the home's).",
    ),
]
SignerOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY", help="Another private key that signs too, where the policy wants several; repeatable."
    ),
]
PublicKeyOption = Annotated[
    str | None,
    typer.Option(
        "--key", metavar="KEY", help="Public key to trust: a PEM file or a key text (default: the pin's)."
    ),
]
TrustFirstOption = Annotated[
    bool,
    typer.Option("--trust-first", help="Trust the key this home names, and pin it; for a first look only."),
]
WaitOption = Annotated[
    float, typer.Option(min=0.0, metavar="SECS", help="Seconds to wait for another writer.")
]
AtOption = Annotated[
    int | None, typer.Option(min=1, metavar="SIZE", help="Look at the signed head of this size.")
]
FilesArgument = Annotated[list[Path], typer.Argument(help="One or more files, judged as one set.")]
EngineOption = Annotated[
    str | None,
    typer.Option(metavar="ENGINE", help="inline, pool or spark[:MASTER] (default: a pool where it pays)."),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1024,
        metavar="N",
        help="Processes to use, at most 4 for each core (default: all cores where it pays).",
    ),
]
