"""`ledger key`: the public side of the ledger's key, for people who want to verify."""

from __future__ import annotations

from typing import Annotated

import typer

from cli import render, state
from cli.words import JsonOption

app = typer.Typer(no_args_is_help=True, help="The public key that signs this ledger's heads and audits.")


@app.command(epilog="Example: ledger key show --pem > ledger.pub.pem")
def show(
    pem: Annotated[bool, typer.Option("--pem", help="Print the public key as PEM and nothing else.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the public key to hand to whoever should check this ledger."""
    from ledger import pin
    from ledger.heads import history
    from ledger.index import Index
    from ledger.keys import PublicKey, key_id

    home = state.find_home()
    pinned = pin.load(home.origin)
    if pinned is None:
        with Index.open(home) as index:
            vkey = str(history(index).heads.newest)
    else:
        vkey = pinned.vkey
    public = PublicKey.load(vkey)
    text = public.to_pem().decode()
    if pem:
        render.say(text.rstrip("\n"))
    elif as_json:
        render.emit_json(
            {
                "origin": home.origin,
                "vkey": vkey,
                "key_id": key_id(public),
                "pem": text,
                "pinned": pinned is not None,
            }
        )
    else:
        known = (
            "pinned here" if pinned else "named by the home itself: nothing vouches for it on this machine"
        )
        render.pairs({"origin": home.origin, "vkey": vkey, "key id": key_id(public), "known": known})
        render.say("next: ledger key show --pem > ledger.pub.pem, and hand that file over by another way")
