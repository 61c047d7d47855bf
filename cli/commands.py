"""Which module holds which command; each imports what it needs only when it runs."""

from __future__ import annotations

import typer


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
