"""`ledger ingest` and `ledger digest`: files become entries, or findings that say why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import render, state
from cli.means import means
from cli.output_file import require_place
from cli.words import EngineOption, JsonOption, KeyOption, WaitOption, WorkersOption
from contracts.errors import ContractError, StorageError, UsageError

if TYPE_CHECKING:
    from ledger.ingest_extras import Extras

ALONE = "predictions are taken in by one process, whatever --engine and --workers say"
FORMATS = ("text", "json", "junit")
REJECTS = (".csv", ".jsonl", ".parquet")


def register(app: typer.Typer) -> None:
    """Add the commands that take files in."""
    app.command(epilog="Example: ledger ingest scores.parquet --dry-run")(ingest)
    app.command(epilog="Example: ledger digest state.txt request.json")(digest)


def ingest(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Parquet, Arrow, CSV or JSON Lines; all files of a call are judged as one set."),
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="transport or jev (default: told from the columns).")
    ] = None,
    channel: Annotated[str | None, typer.Option(help="The channel of files that name none.")] = None,
    acquisition: Annotated[str | None, typer.Option(help="The acquisition of files that name none.")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse the whole call if any side is refused.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Judge, and write nothing.")] = False,
    rejects: Annotated[
        Path | None, typer.Option(help="Write every finding as a row to this .csv, .jsonl or .parquet file.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", help="text, json or junit.")] = "text",
    template: Annotated[
        str | None, typer.Option(help="Print a small valid file of this kind (transport or jev) and stop.")
    ] = None,
    attestation: Annotated[
        list[Path] | None,
        typer.Option(help="A collector's attestation of an acquisition in these files; repeatable."),
    ] = None,
    supersedes: Annotated[
        str | None, typer.Option(help="The acquisition that the new ones of this call correct.")
    ] = None,
    key: KeyOption = None,
    wait: WaitOption = 5.0,
    workers: WorkersOption = None,
    engine: EngineOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge score files and record what is whole; every refused side is named and kept.

    Sides must come whole: give all files a side is spread over in one call.

    A call of millions of scores is shared with other processes (--workers, --engine), to the same bytes.
    """
    if template is not None:
        from contracts.template import NEXT
        from contracts.template import template as small

        render.say(small(template).rstrip("\n"))
        render.tell(f"next: {NEXT[template]}", stderr=True)
        return
    if not files:
        raise UsageError(
            "no file to ingest", next_step="ledger ingest FILE…, or --template transport for a start"
        )
    if format_ not in FORMATS:
        raise UsageError("unknown format", expected=" | ".join(FORMATS), got=format_)
    if rejects is not None:
        require_place(rejects, "rejects", REJECTS, files)
    from audits.statistics import label_mass
    from ledger.home import signing_key
    from ledger.ingest import ingest as run

    home = state.find_home()
    state.long_work(home)
    signer = None if dry_run else signing_key(home, key)
    extras = _extras(attestation or (), supersedes)
    form = "json" if as_json else format_
    try:
        with render.progress() as progress, means(engine, workers, progress, needed=False) as given:
            receipt = run(
                home,
                list(files),
                key=signer,
                kind=kind,
                channel=channel,
                acquisition=acquisition,
                strict=strict,
                dry_run=dry_run,
                labels=label_mass,
                extras=extras,
                wait=wait,
                progress=progress,
                engine=given.engine,
            )
    except ContractError as error:
        _refused(error, form, rejects)
        raise typer.Exit(ContractError.exit_code) from error
    if receipt.kind == "jev" and (engine not in (None, "inline") or (workers or 1) > 1):
        receipt = replace(receipt, warnings=(*receipt.warnings, ALONE))
    from cli import receipts  # only now: what it needs was imported while the files were decoded
    from cli.rejects import write_rejects

    written = write_rejects(rejects, receipt.findings, receipt.kind)
    if form == "json":
        render.emit_json(receipt.as_json())
    elif form == "junit":
        receipts.junit(receipt.findings)
    else:
        receipts.tell(receipt, home, superseded=supersedes, written=written)
    raise typer.Exit(receipt.exit_code)


def _extras(attestations: Sequence[Path], supersedes: str | None) -> Extras | None:
    """What goes beside the files of a call, None where nothing does."""
    if not attestations and supersedes is None:
        return None
    from cli.attest import read
    from ledger.ingest_extras import Extras

    return Extras(tuple(read(path) for path in attestations), supersedes)


def _refused(error: ContractError, form: str, rejects: Path | None) -> None:
    """Says what is wrong with a call that was refused; raises what says it by itself."""
    from cli import receipts
    from cli.rejects import write_rejects
    from ledger.receipt import RefusedCallError

    if isinstance(error, RefusedCallError):
        written = write_rejects(rejects, error.receipt.findings, error.receipt.kind)
        receipts.refused(error, form, written)
    elif form == "text":
        raise error
    else:
        receipts.refused_file(error, form)


def digest(
    files: Annotated[list[Path], typer.Argument(help="Files whose bytes to digest; - is standard input.")],
    as_json: JsonOption = False,
) -> None:
    """Print the digest of each file's bytes, as a collector would write it into a score file."""
    import sys

    from contracts.digest import blake3_stream

    found = []
    for path in files:
        try:
            if str(path) == "-":
                found.append((blake3_stream(iter(lambda: sys.stdin.buffer.read(1 << 20), b"")), "-"))
                continue
            with path.open("rb") as file:
                found.append((blake3_stream(iter(lambda: file.read(1 << 20), b"")), str(path)))
        except OSError as error:
            raise StorageError("cannot be read", where=path, got=error.strerror) from error
    if as_json:
        render.emit_json({"digests": [{"digest": value, "file": name} for value, name in found]})
        return
    for value, name in found:
        render.say(f"{value}  {name}")
