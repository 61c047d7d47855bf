"""`ledger report`: an audit record as one page that people can look at and check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import render, state
from cli.words import JsonOption, PublicKeyOption, TrustFirstOption

if TYPE_CHECKING:
    from cli.report_record import Subject


def register(app: typer.Typer) -> None:
    """Add `report`."""
    app.command(epilog="Example: ledger report 83e9af96 -o report.html")(report)


def report(
    audit: Annotated[str, typer.Argument(help="An audit record's id (8 digits will do), or its event.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the page to this HTML file.")
    ] = None,
    plot: Annotated[bool, typer.Option("--plot", help="Draw the estimates here, as text.")] = False,
    key: PublicKeyOption = None,
    trust_first: TrustFirstOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show an audit as one page: figures, tables, limits, the signed record and how to check it."""
    from cli.report_record import logged
    from contracts.errors import UsageError

    if output is None and not plot:
        raise UsageError(
            "nowhere to show the report", expected="-o FILE for a page, or --plot for a look here",
            next_step=f"ledger report {audit[:80]} -o report.html",
        )  # fmt: skip
    if output is not None:
        prepare(output)
    found = logged(state.find_home(), audit, key=state.public_key(key), trust_first=trust_first)
    size = None if output is None else write(found, output)
    if as_json:
        render.emit_json(
            {
                "record": None if found.signed is None else found.signed.record,
                "event": None if found.signed is None else found.signed.event,
                "output": None if output is None else str(output),
                "bytes": size,
                "missing": found.missing,
            }
        )
        return
    if plot:
        from cli.text_plot import show

        show(found.result, found.names)
    if found.missing is not None:
        render.say(f"warning: rows could not be read: {render.printable(found.missing)}", stderr=True)
    if output is not None:
        render.say(f"wrote {output}: one file that needs no network and carries the signed record")


def prepare(output: Path) -> None:
    """UsageError or StorageError, before any work, where a page could not be drawn or written."""
    from cli.report_page import require_extra
    from contracts.errors import StorageError

    require_extra()
    if not output.parent.is_dir():
        raise StorageError("no such folder to write the report in", code="missing-file", where=output.parent)


def write(subject: Subject, output: Path) -> int:
    """Draw the page and put it in place as a whole; returns its size."""
    from cli.output_file import write_whole
    from cli.report_page import page

    data = page(subject)
    write_whole(output, data, "writing the report")
    return len(data)
