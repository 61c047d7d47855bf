"""`ledger witness`: cosign heads as somebody who remembers what was shown before."""

from __future__ import annotations

from typing import Annotated

import typer

from cli import render, state
from cli.words import JsonOption, PublicKeyOption, TrustFirstOption, WaitOption

app = typer.Typer(
    no_args_is_help=True,
    help="A local witness: it cosigns heads that grew from the last one.",
    epilog="Example: ledger witness create my-desk; ledger witness sign my-desk",
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The witness's name.")]


@app.command(epilog="Example: ledger witness create my-desk")
def create(name: NameArgument, as_json: JsonOption = False) -> None:
    """Make a witness with a key of its own in the configuration folder."""
    from ledger import witness

    vkey = witness.create(name)
    if as_json:
        render.emit_json({"name": name, "vkey": str(vkey)})
    else:
        render.tell(f"witness   {vkey}", f"next: ledger key add witness {vkey}")


@app.command(epilog="Example: ledger witness sign my-desk --home /mnt/shared/.ledger")
def sign(
    name: NameArgument,
    key: PublicKeyOption = None,
    trust_first: TrustFirstOption = False,
    wait: WaitOption = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Cosign the newest head, unless it did not grow from the one this witness cosigned last."""
    from ledger import witness

    done = witness.sign(
        state.find_home(), name, key=state.public_key(key), trust_first=trust_first, wait=wait
    )
    if as_json:
        by = [{"witness": each.witness.name, "time": each.time} for each in done.by]
        render.emit_json({"size": done.size, "witnesses": by, "threshold": done.threshold})
        return
    render.say(f"cosigned  head of size {done.size} by {name}")
    counted = ", ".join(each.witness.name for each in done.by) or "none"
    render.say(f"counted   {counted}; the policy wants {done.threshold}")
