"""`ledger channel` and `ledger acquisition`: what scores were read through, and when they were read."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import render, state
from cli.words import AtOption, JsonOption, KeyOption, WaitOption

if TYPE_CHECKING:
    from contracts.channel import Channel, Difference

app = typer.Typer(
    no_args_is_help=True,
    help="Register, list and compare evaluation channels.",
    epilog="Example: ledger channel add channels/*.toml; ledger channel diff direct generated",
)
acquisitions = typer.Typer(
    no_args_is_help=True, help="The declared runs of collectors.", epilog="Example: ledger acquisition list"
)
FEW = 4  # channels of an acquisition that are named


def as_object(channel: Channel) -> dict[str, object]:
    """A channel as `--json` shows it."""
    return {
        "name": channel.name,
        "version": channel.version,
        "reference": channel.reference,
        "fingerprint": channel.fingerprint,
        "spec": {part: dict(table) for part, table in channel.spec.items()},
    }


@app.command(epilog="Example: ledger channel add channels/*.toml")
def add(
    files: Annotated[list[Path], typer.Argument(help="Channel specifications, TOML or JSON.")],
    new_version: Annotated[
        bool, typer.Option("--new-version", help="Register another specification under a known name.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and judge the files, and write nothing.")
    ] = False,
    key: KeyOption = None,
    wait: WaitOption = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Register channels; a specification that is known already changes nothing."""
    from ledger import channels
    from ledger.home import signing_key

    home = state.find_home()
    if dry_run:
        found, size = channels.judge(home, files, new_version=new_version), None
    else:
        done = channels.add(home, signing_key(home, key), files, new_version=new_version, wait=wait)
        found, size = done.channels, done.commit.size
    if as_json:
        told = [
            {**as_object(r.channel), "new": r.new, "aliases": list(r.aliases), "warnings": list(r.warnings)}
            for r in found
        ]
        render.emit_json({"channels": told, "dry_run": dry_run, "size": size})
        return
    for registered in found:
        channel = registered.channel
        word = ("would register" if dry_run else "registered") if registered.new else "known already"
        render.say(f"{word}: {channel.reference}  {channel.short}")
        if registered.aliases:
            render.tell(f"  the same specification as {', '.join(registered.aliases)}")
        for warning in registered.warnings:
            render.say(*render.wrapped(f"warning: {warning}"), stderr=True)
    if dry_run:
        render.say("nothing was written")
        return
    render.tell("next: ledger ingest SCORES, or ledger channel diff A B to see what separates two")


@app.command("list", epilog="Example: ledger channel list")
def list_(at: AtOption = None, as_json: JsonOption = False) -> None:
    """List the registered channels."""
    from ledger.heads import opened

    with opened(state.find_home()) as index:
        rows = index.channel_rows(at)
    if as_json:
        render.emit_json({"channels": [{**as_object(row.channel), "event": row.event} for row in rows]})
        return
    if not rows:
        render.say("no channel is registered yet", "next: ledger channel add CHANNEL.toml")
        return
    headings = ("channel", "fingerprint", "readout", "view", ("layouts", "right"))
    cells = [
        (c.reference, c.short, c.readout_kind, c.view_kind, c.layouts) for c in (row.channel for row in rows)
    ]
    render.listed(headings, cells, "channel")


@app.command(epilog="Example: ledger channel show direct")
def show(
    channel: Annotated[str, typer.Argument(help="NAME, NAME@N, or blake3: and at least 12 hex digits.")],
    as_json: JsonOption = False,
) -> None:
    """Show a channel's whole specification and its fingerprint."""
    from ledger.heads import opened

    with opened(state.find_home()) as index:
        found = index.channels().resolve(channel)
    if as_json:
        render.emit_json(as_object(found))
        return
    from cli.toml_text import specification

    render.say(f"# {found.reference}, fingerprint {found.fingerprint}")
    render.say(*specification(found.name, found.spec))


@app.command(epilog="Example: ledger channel diff direct generated")
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="One channel.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The other.")],
    as_json: JsonOption = False,
) -> None:
    """Show in which parts two channels differ, the first thing to ask about two numbers."""
    from contracts.channel import differences
    from ledger.heads import opened

    with opened(state.find_home()) as index:
        book = index.channels()
    left, right = book.resolve(a), book.resolve(b)
    found = differences(left, right)
    if as_json:
        render.emit_json(
            {
                "a": left.reference,
                "b": right.reference,
                "same": not found,
                "differences": [{"part": d.part, "path": d.path, "a": d.a, "b": d.b} for d in found],
            }
        )
        return
    if not found:
        render.tell(f"{left.reference} and {right.reference} are one channel: {left.short}")
        return
    parts = list(dict.fromkeys(d.part for d in found))
    same = [part for part in left.spec if part not in parts]
    render.tell(f"{left.reference} and {right.reference} differ in {', '.join(parts)}")
    if same:
        render.tell(f"the same in both: {', '.join(same)}")
    for difference in found:
        _difference(difference, left.reference, right.reference)


def _difference(difference: Difference, left: str, right: str) -> None:
    """The two values below each other; texts of several lines as the lines in which they differ."""
    width = max(len(left), len(right))
    render.say("", difference.path)
    texts = [_text(value) for value in (difference.a, difference.b)]
    if all(text is not None for text in texts) and any("\n" in (text or "") for text in texts):
        first, second = ((text or "").splitlines() for text in texts)
        lines = difflib.unified_diff(first, second, left, right, n=0, lineterm="")
        for line in lines:
            if not line.startswith("@@"):
                render.say(*render.wrapped(line))
        return
    values = ["(absent)" if value is None else value for value in (difference.a, difference.b)]
    apart = next((i for i, pair in enumerate(zip(*values, strict=False)) if pair[0] != pair[1]), 0)
    for name, value in zip((left, right), values, strict=True):
        start = f"  {name.ljust(width)}  "
        render.say(start + _near(render.printable(value), apart, render.WIDTH - len(start)))


def _text(value: str | None) -> str | None:
    """A value that is text, as the text it is."""
    found = None if value is None else json.loads(value)
    return found if isinstance(found, str) else None


def _near(value: str, apart: int, room: int) -> str:
    """A value in one line; of a long one its beginning and what stands where the two differ."""
    if len(value) <= room:
        return value
    begin = room // 3
    if apart < room - 1 - begin:
        return value[: room - 1] + "…"
    rest = room - begin - 2
    start = min(apart - begin // 2, len(value) - rest - 1)
    end = value[start : start + rest + 1]
    return f"{value[:begin]}…{end}" if start + rest + 1 >= len(value) else f"{value[:begin]}…{end[:-1]}…"


@acquisitions.command("list", epilog="Example: ledger acquisition list")
def list_acquisitions(at: AtOption = None, as_json: JsonOption = False) -> None:
    """List the acquisitions: their channels, entries, refused sides, and whether they are revoked."""
    from ledger import status as statuses

    found = statuses.acquisitions(state.find_home(), at)
    if as_json:
        render.emit_json(
            {
                "acquisitions": [
                    {
                        "id": item.id,
                        "kind": item.kind,
                        "event": item.event,
                        "time": item.time,
                        "channels": list(item.channels),
                        "entries": item.entries,
                        "refused_sides": item.refused_sides,
                        "revoked": None
                        if item.revocation is None
                        else {"event": item.revocation.event, "reason": item.revocation.reason},
                    }
                    for item in found
                ]
            }
        )
        return
    if not found:
        render.say("no acquisition yet", "next: ledger ingest SCORES")
        return
    headings = ("acquisition", "kind", "channels", ("entries", "right"), ("refused", "right"), "revoked")
    cells = [
        (
            item.id,
            item.kind,
            _few(item.channels),
            f"{item.entries:,}",
            f"{item.refused_sides:,}",
            None if item.revocation is None else f"event {item.revocation.event}: {item.revocation.reason}",
        )
        for item in found
    ]
    render.listed(headings, cells, "acquisition")


def _few(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - FEW:,} more" if len(names) > FEW else ""
    return ", ".join(names[:FEW]) + more
