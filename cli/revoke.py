"""`ledger revoke`: take something out of later audits; nothing is deleted."""

from __future__ import annotations

from typing import Annotated

import typer

from cli import render, state
from cli.words import JsonOption, KeyOption, WaitOption

app = typer.Typer(
    no_args_is_help=True,
    help="Take something out of later audits; nothing is deleted.",
    epilog='Example: ledger revoke acquisition main-1 --reason "wrong prompt file"',
)

ReasonOption = Annotated[str, typer.Option(help="Why; it stands in the log for good.")]
ENTRIES = "its entries stay; later audits leave them out and count them"
EFFECTS = {
    "acquisition": ENTRIES,
    "channel": ENTRIES,
    "attestation": "what it vouched for is no longer attested in later audits",
}


@app.command(epilog='Example: ledger revoke acquisition main-1 --reason "wrong prompt file"')
def acquisition(
    named: Annotated[
        str, typer.Argument(metavar="ID", help="An acquisition, as `acquisition list` shows it.")
    ],
    reason: ReasonOption,
    key: KeyOption = None,
    wait: WaitOption = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Leave an acquisition out of every later audit, which will count it."""
    _revoke("acquisition", named, reason, key, wait, as_json=as_json)


@app.command(epilog='Example: ledger revoke channel direct --reason "the template had a typo"')
def channel(
    named: Annotated[str, typer.Argument(metavar="NAME", help="NAME, NAME@VERSION or fingerprint.")],
    reason: ReasonOption,
    key: KeyOption = None,
    wait: WaitOption = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Leave every entry of a channel, under any of its names, out of later audits."""
    _revoke("channel", named, reason, key, wait, as_json=as_json)


@app.command(epilog='Example: ledger revoke attestation sha256:0123456789abcdef --reason "key was lost"')
def attestation(
    named: Annotated[str, typer.Argument(metavar="ID", help="Its digest, as `attest list` shows it.")],
    reason: ReasonOption,
    key: KeyOption = None,
    wait: WaitOption = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Believe an attestation no longer: what only it vouched for falls back to level bound."""
    _revoke("attestation", named, reason, key, wait, as_json=as_json)


def _revoke(kind: str, named: str, reason: str, key: str | None, wait: float, *, as_json: bool) -> None:
    from ledger.home import signing_key
    from ledger.revocations import revoke

    home = state.find_home()
    done = revoke(home, signing_key(home, key), kind, named, reason, wait=wait)
    if as_json:
        told = {kind: named, "target": done.target, "event": done.event, "reason": done.reason}
        render.emit_json(told | {"new": done.new, "size": done.commit.size})
    elif done.new:
        render.tell(f"{kind} {named} is revoked by event {done.event}")
        render.say(EFFECTS[kind])
    else:
        render.tell(f"{kind} {named} was revoked already, by event {done.event}: {done.reason}")
