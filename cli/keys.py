"""`ledger key`: the public side of the ledger's key, for people who want to verify."""

from __future__ import annotations

from typing import Annotated

import typer

from cli import render, state

app = typer.Typer(no_args_is_help=True, help="The public key that signs this ledger's heads and audits.")


@app.command(epilog="Example: ledger key show --pem > ledger.pub.pem")
def show(
    pem: Annotated[bool, typer.Option("--pem", help="Print the public key as PEM and nothing else.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show the public key to hand to whoever should check this ledger."""
    from ledger.keys import PublicKey, key_id
    from ledger.pin import load

    home = state.find_home()
    pin = load(home.origin)
    public = PublicKey.parse(pin.vkey)
    if pem:
        render.say(public.pem().decode().rstrip())
        return
    if as_json:
        render.emit_json(
            {"origin": home.origin, "vkey": pin.vkey, "key_id": key_id(public), "pem": public.pem().decode()}
        )
        return
    render.pairs({"origin": home.origin, "vkey": pin.vkey, "key id": key_id(public)})
    render.say("", "next: ledger key show --pem > ledger.pub.pem, and hand that file over by another way")
