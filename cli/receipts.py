"""What `ledger ingest` says when it is done, or when it wrote nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cli import render
from contracts.advice import LISTING
from contracts.errors import ContractError
from contracts.findings import Finding, Findings
from contracts.reporting import to_json, to_lines
from ledger.receipt import Receipt, RefusedCallError

if TYPE_CHECKING:
    from cli.rejects import Written
    from ledger.home import Home

# The column whose text may stand in the place of a digest, by the digest's column.
_TEXTS = {f"{name}_hash": name for name in ("state", "candidates", "request", "view")}


def junit(findings: Findings) -> None:
    """The findings as a build server's test report."""
    from contracts.junit import to_junit

    render.say(to_junit(findings).rstrip("\n"))


def refused(error: RefusedCallError, form: str, written: Written | None = None) -> None:
    """The whole call was refused: all findings, bounded, and the next step."""
    findings = error.receipt.findings
    if form == "json":
        render.emit_json({"error": error.as_dict(), **error.receipt.as_json()})
        return
    if form == "junit":
        junit(findings)
        return
    render.say("ledger: the call is refused, nothing was written", stderr=True)
    _warn(error.receipt)
    for line in to_lines(findings):
        render.say(*render.wrapped(line), stderr=True)
    if written is not None:
        render.tell(_listing(written), stderr=True)
    if error.next_step:
        render.tell(f"next: {_without_listing(error.next_step, written)}", stderr=True)


def refused_file(error: ContractError, form: str) -> None:
    """A file was refused before its rows were judged: the same shape, with the one finding that it makes."""
    findings = Findings()
    findings.add(
        Finding(error.code, "file", str(error), file=error.where, wanted=error.expected, got=error.got)
    )
    if form == "junit":
        junit(findings)
        return
    render.emit_json({"error": error.as_dict(), "findings": to_json(findings)})


def tell(receipt: Receipt, home: Home, superseded: str | None = None, written: Written | None = None) -> None:
    """The receipt for people: what came, what was admitted, what was refused and why, what to do next."""
    for source in receipt.sources:
        render.say(
            f"read      {render.plural(source.rows, 'row')} of {source.name}, {render.short(source.digest)}"
        )
    _columns(receipt)
    would = "would be " if receipt.dry_run else ""
    render.say(f"admitted  {render.plural(receipt.admitted, 'entry', 'entries')} {would}recorded")
    if receipt.refused_sides:
        render.say(*_refused(receipt, home))
    if receipt.skipped:
        render.say(f"skipped   {render.plural(receipt.skipped, 'entry', 'entries')} already in the ledger")
    for segment in receipt.segments:
        size = f"{render.plural(segment.rows, 'entry', 'entries')}, "
        root = "root would be" if receipt.dry_run else "root"
        render.say(f"segment   {size}{root} {render.short(segment.root, 16)}")
    for each in receipt.attestations:
        render.say(f"attested  acquisition {each.acquisition}, event {each.event}")
    _warn(receipt)
    if receipt.refused_sides:
        for line in to_lines(receipt.findings):
            render.say(*render.wrapped(line))
    if written is not None:
        render.tell(_listing(written))
    if receipt.head is not None:
        render.say(f"head      size {receipt.head[0]:,}, {render.short(receipt.head[1])}")
    elif not receipt.dry_run and not receipt.refused_sides:
        render.say("nothing new: the log is as it was")
    for step in _next_steps(receipt, superseded, written):
        render.tell(f"next: {step}")


def _warn(receipt: Receipt) -> None:
    for warning in receipt.warnings:
        render.tell(f"warning: {warning}", stderr=True)


def _refused(receipt: Receipt, home: Home) -> list[str]:
    """How much was refused, and the file that keeps it: whole on a line of its own so that it opens."""
    before = f" ({receipt.refused_before:,} of them before)" if receipt.refused_before else ""
    text = (
        f"refused   {render.plural(receipt.refused_sides, 'side')} of "
        f"{render.plural(receipt.refused_rows, 'row')}{before}"
    )
    if receipt.refusal is None:
        return [text]
    place = home.objects.where(receipt.refusal.rows_file)
    if os.path.isabs(place):
        place = min(place, os.path.relpath(place), key=len)
    return [f"{text}, kept in", f"  {render.printable(place)}"]


def _listing(written: Written) -> str:
    return f"findings written to {written.path} ({render.plural(written.rows, 'row')})"


def _without_listing(hint: str, written: Written | None) -> str:
    """A hint; where every finding stands in a file already, without the way to such a file."""
    return hint if written is None else hint.removesuffix(LISTING).removesuffix("; ")


def _columns(receipt: Receipt) -> None:
    """The columns that were not taken, and the digests that are not there."""
    if receipt.ignored:
        names = ", ".join(name or "one without a name (pandas: index=False)" for name in receipt.ignored)
        render.say(render.clip(f"ignored   columns this kind does not have: {names}"))
    for column, files in (receipt.missing_digests or {}).items():
        text = f" (or {_TEXTS[column]}, its text)" if column in _TEXTS else ""
        line = f"declared  {column}{text} is missing in {', '.join(files)}: an audit needs --require declared"
        render.tell(line)


def _next_steps(receipt: Receipt, superseded: str | None, written: Written | None) -> list[str]:
    steps = [_without_listing(receipt.hint, written)] if receipt.hint and receipt.refused_sides else []
    if receipt.dry_run:
        return steps
    if superseded is not None:
        steps.append(f"ledger revoke acquisition {superseded} --reason TEXT, so that audits leave it out")
    elif receipt.next_step is not None and (receipt.admitted or receipt.skipped):
        steps.append(receipt.next_step)
    return steps
