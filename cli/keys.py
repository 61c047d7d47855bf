"""`ledger key`: the keys this log trusts, by role, and how they change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import key_policy, render, state
from cli.words import JsonOption, KeyOption, PublicKeyOption, SignerOption, TrustFirstOption, WaitOption

if TYPE_CHECKING:
    from ledger.key_changes import Changed

app = typer.Typer(
    no_args_is_help=True,
    help="The keys this ledger trusts, by role; every change is signed.",
    epilog="Example: ledger key list; ledger key add collector alpha.pub.pem --name alpha",
)
app.add_typer(key_policy.app, name="policy")

RoleArgument = Annotated[
    str, typer.Argument(metavar="ROLE", help="head, policy, collector, checkpoint, auditor or witness.")
]
NameOption = Annotated[str | None, typer.Option(help="What to call the key (default: the file's name).")]


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
        render.tell("next: ledger key show --pem > ledger.pub.pem; hand that over by another way")


@app.command(epilog="Example: ledger key generate alpha.pem --name alpha")
def generate(
    path: Annotated[Path, typer.Argument(help="New file for the private key, readable by its owner only.")],
    name: NameOption = None,
    witness: Annotated[bool, typer.Option("--witness", help="Print the key as one that cosigns.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make an Ed25519 key, outside any ledger, and print its public side."""
    from ledger.key_changes import verifier_key
    from ledger.keys import SigningKey
    from ledger.vkey import VerifierKey

    key = SigningKey.generate()
    named = name or path.name.partition(".")[0]
    public = str(VerifierKey(named, key.public.raw))  # the name is judged before a file is made
    if witness:
        from ledger.vkey import COSIGNATURE

        public = str(VerifierKey(named, key.public.raw, COSIGNATURE))
    verifier_key("witness" if witness else "collector", public)
    key.save(path)
    if as_json:
        render.emit_json({"file": str(path), "vkey": public, "pem": key.public.to_pem().decode()})
    else:
        role = "witness" if witness else "ROLE"
        render.say(f"key       {path}", f"public    {public}")
        render.tell(f"next: ledger key add {role} KEY, where KEY is the public text above")


@app.command("list", epilog="Example: ledger key list --all")
def list_keys(
    every: Annotated[
        bool, typer.Option("--all", help="Show every change, not only what is in force.")
    ] = False,
    key: PublicKeyOption = None,
    trust_first: TrustFirstOption = False,
    as_json: JsonOption = False,
) -> None:
    """List the keys in force by role, with the event that named them."""
    from ledger.reading import reading

    home = state.find_home()
    with reading(home, key=state.public_key(key), trust_first=trust_first) as open_home:
        states = open_home.head.trust.states
        rows: list[dict[str, object]] = []
        for trust in states if every else states[-1:]:
            rows += [
                {"behind_event": trust.changed, "role": name, "threshold": role.threshold, "vkey": str(one)}
                for name, role in trust.roles.items()
                for one in role.keys
            ]
    if as_json:
        render.emit_json({"origin": home.origin, "keys": rows})
        return
    columns = ["role", "signs", "key", "behind event"]
    cells = [
        [
            str(r["role"]),
            f"{r['threshold']} needed",
            str(r["vkey"]).rpartition("+")[0],
            str(r["behind_event"]),
        ]
        for r in rows
    ]
    render.console().print(render.table(columns, cells))
    render.say("whole keys: ledger key list --json")


@app.command(epilog="Example: ledger key add collector alpha.pub.pem --name alpha")
def add(
    role: RoleArgument,
    public: Annotated[str, typer.Argument(metavar="KEY", help="A public key: PEM file or verifier key.")],
    name: NameOption = None,
    signer: SignerOption = None,
    key: KeyOption = None,
    wait: WaitOption = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Let a key sign for a role from now on; signed by who may change the policy."""
    from ledger.home import signing_key
    from ledger.key_changes import add as change
    from ledger.key_changes import verifier_key

    home = state.find_home()
    added = verifier_key(role, public, name)
    done = change(home, signing_key(home, key), role, added, signers=state.signers(signer), wait=wait)
    _tell(done, f"{added.name} signs as {role}", f"{added.name} signed as {role} already", as_json)


@app.command(epilog="Example: ledger key rotate head")
def rotate(
    role: RoleArgument,
    old: Annotated[
        str | None, typer.Option(help="Private key that is replaced (default for head: the one that signs).")
    ] = None,
    new: Annotated[
        str | None, typer.Option(help="Private key that replaces it (default for head: a new one is made).")
    ] = None,
    name: NameOption = None,
    key: KeyOption = None,
    wait: WaitOption = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Put a new key in the place of an old one, signed by both; what the old one signed stays valid."""
    from contracts.errors import UsageError
    from ledger import key_changes
    from ledger.home import signing_key
    from ledger.keys import SigningKey

    home = state.find_home()
    key_changes.check_role(role)
    if role != "head" and (old is None or new is None):
        raise UsageError("rotating needs both private keys", expected="--old and --new", code="rotate-keys")
    if role == "head" and new is None and (kept := key_changes.finish_rotation(home)) is not None:
        if as_json:
            render.emit_json({"event": None, "new": False, "kept": str(kept)})
        else:
            render.tell(f"an earlier rotation is finished; the old private key is kept as {kept}")
        return
    signs = signing_key(home, key)
    replaced = signs if old is None else SigningKey.load(old)
    replacing = key_changes.successor(home) if new is None else SigningKey.load(new)
    done = key_changes.rotate(home, signs, role, replaced, replacing, name=name, wait=wait)
    text = f"the {role} key is rotated"
    if new is None:
        text += f"; the old private key is kept as {key_changes.install_successor(home)}"
    _tell(done, text, text, as_json)


@app.command(epilog="Example: ledger key retire collector alpha")
def retire(
    role: RoleArgument,
    named: Annotated[str, typer.Argument(metavar="KEY", help="Name, id or verifier key of the key.")],
    signer: SignerOption = None,
    key: KeyOption = None,
    wait: WaitOption = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Take a key out of a role; what it signed before stays valid."""
    from ledger.home import signing_key
    from ledger.key_changes import retire as change

    home = state.find_home()
    done = change(home, signing_key(home, key), role, named, signers=state.signers(signer), wait=wait)
    _tell(done, f"{named} no longer signs as {role}", "", as_json)


def _tell(done: Changed, changed: str, same: str, as_json: bool) -> None:
    if as_json:
        render.emit_json({"event": done.event, "new": done.new, "size": done.commit.size})
        return
    render.tell(f"{changed}, by event {done.event}" if done.new else f"{same}; nothing is logged")
    for warning in done.commit.warnings:
        render.tell(f"warning: {warning}", stderr=True)
