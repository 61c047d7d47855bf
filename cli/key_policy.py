"""`ledger key policy`: all roles at once, from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli import render, state
from cli.words import JsonOption, KeyOption, PublicKeyOption, SignerOption, TrustFirstOption, WaitOption

app = typer.Typer(
    no_args_is_help=True,
    help="Which keys may sign what, and how many of them have to.",
    epilog="Example: ledger key policy show > policy.toml; ledger key policy set policy.toml",
)


@app.command("set", epilog="Example: ledger key policy set policy.toml")
def set_policy(
    file: Annotated[Path, typer.Argument(help="TOML: a table for each role with keys and threshold.")],
    signer: SignerOption = None,
    key: KeyOption = None,
    wait: WaitOption = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Replace every role but the key of the heads; valid only if signed under the policy before it."""
    from ledger import key_changes, policy_file
    from ledger.home import signing_key

    home = state.find_home()
    roles = policy_file.load(file)
    signs = signing_key(home, key)
    done = key_changes.set_policy(home, signs, roles, signers=state.signers(signer), wait=wait)
    if as_json:
        told = {"event": done.event, "new": done.new, "size": done.commit.size}
        render.emit_json(told | {"took_away": list(done.taken)})
        return
    for role in key_changes.in_force(done.trust):
        names = ", ".join(text.partition("+")[0] for text in role.keys)
        render.say(f"{role.role:<10} {role.threshold} of {len(role.keys)}: {names}")
    if done.taken:
        render.say(f"took away: {', '.join(done.taken)}")
    render.say(f"in force behind event {done.event}" if done.new else "in force already; nothing is logged")


@app.command(epilog="Example: ledger key policy show > policy.toml")
def show(
    key: PublicKeyOption = None,
    trust_first: TrustFirstOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print the policy in force as a file that `key policy set` reads."""
    from ledger import key_changes, policy_file
    from ledger.reading import reading

    with reading(state.find_home(), key=state.public_key(key), trust_first=trust_first) as open_home:
        trust = open_home.head.trust.newest
    roles = key_changes.in_force(trust)
    if as_json:
        made = {r.role: {"keys": list(r.keys), "threshold": r.threshold} for r in roles}
        render.emit_json({"origin": trust.log, "behind_event": trust.changed, "roles": made})
    else:
        render.say(policy_file.dump(roles).rstrip("\n"))
