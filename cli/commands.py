"""Which module holds which command; each imports what it needs only when it runs."""

from __future__ import annotations

import typer
from typer.models import CommandInfo, TyperInfo

# The panels of the help page, and what stands in each.
PANELS = {
    "The main job": ("init", "channel", "ingest", "audit", "lineage", "verify", "demo"),
    "Look": ("status", "log", "show", "scores", "acquisition", "report"),
    "Before the data, and after": ("plan", "gate", "export", "bundle", "revoke", "jev", "digest"),
    "Trust and care": ("key", "attest", "witness", "repair", "rebuild"),
}


def register(app: typer.Typer) -> None:
    """Add every command and group to the application, in the order of the help page."""
    from cli import (
        attest,
        audit,
        bundles,
        channels,
        demo,
        entries,
        export,
        gate,
        home,
        ingest,
        jev,
        keys,
        plans,
        report,
        revoke,
        verify,
        witness,
    )

    home.register(app)
    app.add_typer(channels.app, name="channel")
    app.add_typer(channels.acquisitions, name="acquisition")
    ingest.register(app)
    app.add_typer(plans.app, name="plan")
    app.add_typer(audit.app, name="audit")
    report.register(app)
    entries.register(app)
    verify.register(app)
    bundles.register(app)
    gate.register(app)
    app.add_typer(export.app, name="export")
    app.add_typer(attest.app, name="attest")
    app.add_typer(revoke.app, name="revoke")
    app.add_typer(keys.app, name="key")
    app.add_typer(witness.app, name="witness")
    app.add_typer(jev.app, name="jev")
    demo.register(app)
    _group(app)


def _group(app: typer.Typer) -> None:
    """Put every command into its panel of the help page; the panels come in their order."""
    place = {name: (row, panel) for row, (panel, names) in enumerate(PANELS.items()) for name in names}
    every: list[CommandInfo | TyperInfo] = [*app.registered_commands, *app.registered_groups]
    for info in every:
        info.rich_help_panel = place[_name(info)][1]
    app.registered_commands.sort(key=lambda info: place[_name(info)][0])
    app.registered_groups.sort(key=lambda info: place[_name(info)][0])


def _name(info: CommandInfo | TyperInfo) -> str:
    """What a person types; a command without a name is called after its function."""
    if isinstance(info, CommandInfo) and not info.name:
        assert info.callback is not None, "a command has a function"
        return info.callback.__name__
    return str(info.name)
