"""`ledger ingest` and `ledger digest`: files become entries, or findings that say why not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import render, state
from cli.words import JsonOption, KeyOption, WaitOption
from contracts.errors import StorageError, UsageError

if TYPE_CHECKING:
    from contracts.findings import Findings
    from ledger.receipt import Receipt

FORMATS = ("text", "json", "junit")


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
    as_json: JsonOption = False,
) -> None:
    """Judge score files and record what is whole; every refused side is named and kept.

    Sides must come whole: give all files a side is spread over in one call.
    """
    if template is not None:
        from contracts.template import template as small

        render.say(small(template).rstrip("\n"))
        return
    if not files:
        raise UsageError(
            "no file to ingest", next_step="ledger ingest FILE…, or --template transport for a start"
        )
    if format_ not in FORMATS:
        raise UsageError("unknown format", expected=" | ".join(FORMATS), got=format_)
    from audits.statistics import label_mass
    from cli.attest import read
    from contracts.errors import ContractError
    from ledger.home import signing_key
    from ledger.ingest import ingest as run
    from ledger.ingest_extras import Extras
    from ledger.receipt import RefusedCallError

    home = state.find_home()
    signer = None if dry_run else signing_key(home, key)
    extras = Extras(tuple(read(path) for path in attestation or ()), supersedes)
    try:
        with render.progress() as progress:
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
            )
    except RefusedCallError as error:
        _write_rejects(rejects, error.receipt.findings, error.receipt.kind)
        _refused(error, "json" if as_json else format_)
        raise typer.Exit(ContractError.exit_code) from error
    _write_rejects(rejects, receipt.findings, receipt.kind)
    if as_json or format_ == "json":
        render.emit_json(receipt.as_json())
    elif format_ == "junit":
        _junit(receipt.findings)
    else:
        _tell(receipt)
    raise typer.Exit(receipt.exit_code)


def _junit(findings: Findings) -> None:
    from contracts.reporting import to_junit

    render.say(to_junit(findings).rstrip("\n"))


def _refused(error: Exception, format_: str) -> None:
    """The whole call was refused: all findings, bounded, and the next step."""
    from contracts.reporting import to_lines
    from ledger.receipt import RefusedCallError

    assert isinstance(error, RefusedCallError)
    findings = error.receipt.findings
    if format_ == "json":
        render.emit_json({"error": error.as_dict(), **error.receipt.as_json()})
        return
    if format_ == "junit":
        _junit(findings)
        return
    render.say("ledger: the call is refused, nothing was written", stderr=True)
    for line in to_lines(findings):
        render.say(*render.wrapped(line), stderr=True)
    if error.next_step:
        render.say(*render.wrapped(f"next: {error.next_step}", ""), stderr=True)
    else:
        render.say("next: mend the rows; --rejects FILE.csv lists every one of them", stderr=True)


def _tell(receipt: Receipt) -> None:
    """The receipt for people: what came, what was admitted, what was refused and why, what to do next."""
    from contracts.reporting import to_lines

    would = "would be " if receipt.dry_run else ""
    for source in receipt.sources:
        render.say(
            f"read      {render.plural(source.rows, 'row')} of {source.name}, {render.short(source.digest)}"
        )
    if receipt.ignored:
        render.say(render.clip(f"ignored   columns this kind does not have: {', '.join(receipt.ignored)}"))
    for column, names in (receipt.missing_digests or {}).items():
        render.say(
            render.clip(
                f"declared  {column} is missing in {', '.join(names)}: an audit needs --require declared"
            )
        )
    render.say(f"admitted  {render.plural(receipt.admitted, 'entry', 'entries')} {would}recorded")
    if receipt.skipped:
        render.say(f"skipped   {render.plural(receipt.skipped, 'entry', 'entries')} already in the ledger")
    for segment in receipt.segments:
        size = "" if segment.rows is None else f"{render.plural(segment.rows, 'entry', 'entries')}, "
        render.say(f"segment   {size}root {render.short(segment.root, 16)}")
    for each in receipt.attestations:
        render.say(f"attested  acquisition {each.acquisition}, event {each.event}")
    for warning in receipt.warnings:
        render.say(f"warning: {warning}", stderr=True)
    if receipt.refused_sides:
        for line in (*to_lines(receipt.findings), *([receipt.hint] if receipt.hint else [])):
            render.say(*render.wrapped(line))
    if receipt.head is not None:
        render.say(f"head      size {receipt.head[0]:,}, {render.short(receipt.head[1])}")
    elif not receipt.dry_run and not receipt.refused_sides:
        render.say("nothing new: the log is as it was")
    if receipt.refused_sides:
        kept = f", kept in {receipt.refusal.rows_file}" if receipt.refusal else ""
        before = f" ({receipt.refused_before:,} of them before)" if receipt.refused_before else ""
        render.say(
            f"refused   {render.plural(receipt.refused_sides, 'side')} of "
            f"{render.plural(receipt.refused_rows, 'row')}{before}{kept}"
        )


def _write_rejects(path: Path | None, findings: Findings, kind: str) -> None:
    """Every finding as a row, in the format that the name's ending says."""
    if path is None:
        return
    import json

    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    from contracts.schema import JEV, TRANSPORT

    table = findings.rejects(JEV if kind == "jev" else TRANSPORT)
    plain = [
        pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
        for f in table.schema
    ]
    table = table.cast(pa.schema(plain))
    try:
        if path.suffix == ".parquet":
            pq.write_table(table, path)
        elif path.suffix == ".jsonl":
            with path.open("w", encoding="utf-8") as file:
                for batch in table.to_batches(max_chunksize=10_000):
                    file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())
        elif path.suffix == ".csv":
            csv.write_csv(table, path)
        else:
            raise UsageError(
                "unknown kind of rejects file", expected=".csv, .jsonl or .parquet", got=path.name
            )
    except OSError as error:
        raise StorageError("the rejects cannot be written", where=path, got=error.strerror) from error


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
