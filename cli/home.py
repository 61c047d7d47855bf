"""`ledger init`, `status`, `log`, `repair` and `rebuild`: the home and its log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import render, state
from cli.words import JsonOption, KeyOption, PublicKeyOption, TrustFirstOption, WaitOption
from contracts.errors import UsageError

if TYPE_CHECKING:
    from ledger.status import Status


def register(app: typer.Typer) -> None:
    """Add the commands about the home itself."""
    app.command(epilog="Example: ledger init --origin acme-judges")(init)
    app.command(epilog="Example: ledger status")(status)
    app.command(epilog="Example: ledger log --limit 5")(log)
    app.command(epilog="Example: ledger repair")(repair)
    app.command(epilog="Example: ledger rebuild")(rebuild)


def init(
    folder: Annotated[Path | None, typer.Argument(help="Where .ledger is made (default: here).")] = None,
    origin: Annotated[str | None, typer.Option(help="The log's name in every signed head.")] = None,
    key: KeyOption = None,
    catalog: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Keep the catalog on a server: postgresql://[USER@]HOST/DATABASE[?schema=NAME]",
        ),
    ] = None,
    objects: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Keep the objects in a bucket or elsewhere: s3://BUCKET/PREFIX, file:///PATH"
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a ledger here, and a signing key outside it."""
    import os

    from ledger import home as homes
    from ledger.index import Index

    named = state.CURRENT.home or os.environ.get("LEDGER_HOME")
    if folder is not None and named:
        raise UsageError("a folder and --home both say where the home is", next_step="give one of them")
    if objects is not None and objects.startswith("memory:"):
        raise UsageError(
            "objects in memory end with this command", where="--objects",
            next_step="use a folder or a bucket: memory:// is for tests and callers of the Python API",
        )  # fmt: skip
    path = Path(named) if named else (folder or Path.cwd()) / homes.FOLDER
    made = homes.init(path, origin, key, catalog=catalog, objects=objects)
    with Index.open(made) as index:
        head = index.head()
    place = key or str(homes.key_path(made.origin))
    if as_json:
        render.emit_json(
            {
                "home": str(made.path),
                "origin": made.origin,
                "key": place,
                "catalog": made.catalog_url,
                "objects": made.objects_url,
                "size": head.size,
                "root": head.root,
            }
        )
        return
    render.tell(f"ledger {made.origin} in {made.path}")
    if catalog is not None:
        render.tell(f"catalog: {made.catalog_url}")
    if objects is not None:
        render.tell(f"objects: {made.objects_url}")
    render.tell(f"signing key: {place} (keep a copy; the home does not hold it)")
    render.tell("next: ledger channel add CHANNEL.toml")


def status(as_json: JsonOption = False) -> None:
    """Show the home at a glance: head, pin, entries, channels, refused sides, last audit."""
    from ledger import home as homes
    from ledger import status as statuses

    home = state.find_home()
    found = statuses.status(home)
    last = found.last_audit
    if as_json:
        render.emit_json(
            {
                "home": str(found.home),
                "catalog": home.catalog_url,
                "objects": home.objects_url,
                "origin": found.origin,
                "key_id": found.key_id,
                "size": found.size,
                "root": found.root,
                "time": found.time,
                "pinned": found.pinned,
                "published": found.published,
                "fault": None if found.fault is None else found.fault.as_dict(),
                "entries": found.entries,
                "segments": found.segments,
                "channels": found.channels,
                "acquisitions": found.acquisitions,
                "revoked": found.revoked,
                "refused_sides": found.refused_sides,
                "open_sides": found.open_sides,
                "refused_rows": found.refused_rows,
                "audits": found.audits,
                "last_audit": None
                if last is None
                else {"kind": last[0].kind, "record": last[0].record, "time": last[1]},
                "warnings": list(found.warnings),
            }
        )
    else:
        refused = _refused(found)
        places = (
            ("catalog", home.catalog_url, homes.CATALOG_URL),
            ("objects", home.objects_url, homes.OBJECTS_URL),
        )
        revoked = f" ({found.revoked:,} revoked)" if found.revoked else ""
        render.pairs(
            [
                ("home", found.home),
                *((name, url) for name, url, usual in places if url != usual),
                ("origin", found.origin),
                ("head", f"size {found.size:,}, {render.short(found.root)}, {found.time}"),
                ("pin", "none on this machine" if found.pinned is None else f"size {found.pinned:,}"),
                ("entries", f"{found.entries:,} in {render.plural(found.segments, 'segment')}"),
                ("channels", f"{found.channels:,}"),
                ("acquisitions", f"{found.acquisitions:,}{revoked}"),
                ("refused sides", refused),
                ("audits", f"{found.audits:,}"),
                (
                    "last audit",
                    None if last is None else f"{last[0].kind}, {render.short(last[0].record)}, {last[1]}",
                ),
            ]
        )
        for warning in found.warnings:
            render.tell(f"warning: {warning}", stderr=True)
    if found.fault is not None:
        raise found.fault


def _refused(found: Status) -> str:
    """How many refused sides are still missing, and how many were ever refused."""
    if not found.refused_sides:
        return "0"
    rows = render.plural(found.refused_rows, "row")
    if found.open_sides is None:
        return f"{found.refused_sides:,} ever refused ({rows})"
    return f"{found.open_sides:,} not completed later, of {found.refused_sides:,} ever refused ({rows})"


def log(
    limit: Annotated[int, typer.Option(min=1, help="The newest so many events.")] = 20,
    start: Annotated[
        int | None, typer.Option(min=0, help="From this event on instead of the newest.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the events of the log, newest last."""
    from ledger import status as statuses
    from ledger.index import Index

    home = state.find_home()
    with Index.open(home) as index:
        size = index.size
    first = max(size - limit, 0) if start is None else start
    stop = min(first + limit, size)
    if as_json:
        render.emit_json({"size": size, "events": list(statuses.log_objects(home, first, stop))})
        return
    for line in statuses.log_lines(home, first, stop):
        told = f"{line.index:>6}  {line.time}  {line.type:<11}  {line.summary}"
        render.say(*render.one_line(told, below=8))
    if first > 0 and start is None:
        render.say(f"{render.plural(first, 'older event')} not shown: ledger log --start 0")


def repair(
    key: PublicKeyOption = None,
    trust_first: TrustFirstOption = False,
    wait: WaitOption = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Finish what a crash left undone and say what was done; the log is never touched.

    Files that no event names are removed once they are an hour old: a writer may still be at younger ones.
    """
    from ledger import repair as repairs

    done = repairs.repair(state.find_home(), key=state.public_key(key), trust_first=trust_first, wait=wait)
    if as_json:
        render.emit_json(
            {
                "actions": [{"what": action.what, "name": action.name} for action in done.actions],
                "young": list(done.young),
                "strays": list(done.strays),
            }
        )
        return
    for action in done.actions:
        render.say(f"{action.what}: {action.name}")
    if not done.actions:
        render.say("nothing to repair")
    if done.young:
        left = render.plural(len(done.young), "file")
        said = (
            f"left {left} younger than an hour, which a writer may still need; repair removes them after it"
        )
        render.tell(said)
    for name in done.strays[:10]:
        render.say(f"not ours, left alone: {name}")


def rebuild(
    key: PublicKeyOption = None,
    trust_first: TrustFirstOption = False,
    wait: WaitOption = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Make the catalog again from the published log and the objects."""
    from ledger import rebuild as rebuilds

    home = state.find_home()
    state.long_work(home)
    with render.progress() as progress:
        made = rebuilds.rebuild(
            home, key=state.public_key(key), trust_first=trust_first, wait=wait, progress=progress
        )
    if as_json:
        render.emit_json(
            {
                "size": made.size,
                "root": made.root,
                "heads": made.heads,
                "kept": None if made.kept is None else str(made.kept),
                "left_out": list(made.left_out),
            }
        )
        return
    render.say(
        f"catalog made again: {render.plural(made.size, 'event')}, {render.plural(made.heads, 'signed head')}"
    )
    if made.kept is not None:
        render.say(f"the old catalog is kept as {made.kept}")
    for name in made.left_out:
        render.say(f"left out, not a prefix of the log: {name}")
