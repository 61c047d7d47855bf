"""`ledger attest`: signed statements by those who were there, for a ledger to match and keep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import render, state
from cli.words import JsonOption, KeyOption, PublicKeyOption, TrustFirstOption, WaitOption
from contracts.errors import StorageError, UsageError

if TYPE_CHECKING:
    from ledger.attestations import Received
    from ledger.statement import Statement

app = typer.Typer(
    no_args_is_help=True,
    help="Sign what was run, and by which model; log what others signed.",
    epilog="Example: ledger attest acquisition main-1 scores.parquet --sign-with alpha.pem -o main-1.json",
)

SignOption = Annotated[
    list[str] | None,
    typer.Option("--sign-with", help="Private key of the role (default: the key of the heads); repeatable."),
]
SignatureOption = Annotated[
    Path | None,
    typer.Option(help="An OpenSSF Model Signing bundle of it, which is verified and kept (`model_signing`)."),
]
AttestationOutput = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the attestation here instead of logging it.")
]


@app.command(
    epilog="Example: ledger attest acquisition main-1 scores.parquet --sign-with alpha.pem -o main-1.json"
)
def acquisition(
    name: Annotated[str, typer.Argument(metavar="ID", help="The acquisition, as the files name it.")],
    files: Annotated[
        list[Path], typer.Argument(help="Every file with rows of it, as they will be ingested.")
    ],
    tool: Annotated[
        list[str] | None, typer.Option(help="NAME=VERSION of a program that was used; repeatable.")
    ] = None,
    start: Annotated[
        str | None, typer.Option(help="When it began, RFC 3339 in UTC: 2026-09-28T10:00:00Z.")
    ] = None,
    end: Annotated[str | None, typer.Option(help="When it ended.")] = None,
    gold_isolated: Annotated[
        bool | None,
        typer.Option(
            "--gold-isolated/--gold-visible",
            help="Claim that the evaluator could not, or could, see the gold; nothing is claimed otherwise.",
        ),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="The files have no acquisition column: all of them is this one.")
    ] = False,
    sign_with: SignOption = None,
    output: AttestationOutput = None,
    key: KeyOption = None,
    wait: WaitOption = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Sign the digests of an acquisition's files, requests and responses; needs no ledger with --output."""
    from ledger import attestations
    from ledger.attested_rows import Collected

    if (start is None) != (end is None):
        raise UsageError("a time window has two ends", code="window", expected="--start and --end")
    require_role(attestations.ACQUISITION, output, key)
    found = Collected(files, name, only=whole)
    statement = attestations.of_acquisition(
        name,
        found.subjects,
        rows=found.rows,
        requests=found.requests,
        responses=found.responses,
        tools=_tools(tool),
        window=None if start is None or end is None else (start, end),
        gold_isolated=gold_isolated,
    )
    conclude(statement, sign_with, output, key, wait, as_json=as_json)


@app.command(epilog="Example: ledger attest checkpoint models/qwen --name qwen-7b")
def checkpoint(
    path: Annotated[Path, typer.Argument(help="A weights file, or the folder of a whole checkpoint.")],
    name: Annotated[str | None, typer.Option(help="What to call it (default: the name of the path).")] = None,
    follow_symlinks: Annotated[
        bool,
        typer.Option("--follow-symlinks", help="Digest what links point to, as model hubs lay files out."),
    ] = False,
    signature: SignatureOption = None,
    signature_key: Annotated[
        Path | None,
        typer.Option(help="The public key of that signature: PEM of an elliptic curve key, no certificate."),
    ] = None,
    sign_with: SignOption = None,
    output: AttestationOutput = None,
    key: KeyOption = None,
    wait: WaitOption = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Digest every file of a model, read types and tensor counts from its headers, sign and log it."""
    from cli.attest_checkpoint import signed, tell
    from ledger import attestations, model_checkpoint

    require_role(attestations.MODEL, output, key)
    accepted = None
    if signature is not None or signature_key is not None:
        accepted = signed(path, signature, signature_key, follow=follow_symlinks, as_json=as_json)
        found = accepted.found
    else:
        with render.progress() as progress:
            found = model_checkpoint.digest(path, follow=follow_symlinks, progress=progress)
    kept = None if accepted is None else accepted.signature
    statement = model_checkpoint.statement(name or path.absolute().name, found, kept)
    if not as_json:
        tell(statement, found, accepted)
    bundle = None if accepted is None else accepted.bundle
    conclude(statement, sign_with, output, key, wait, bundle=bundle, as_json=as_json)


@app.command(epilog="Example: ledger attest stack gpt --provider openai --model gpt-5 --start … --end …")
def stack(
    name: Annotated[str, typer.Argument(help="What to call the hosted model here.")],
    provider: Annotated[str, typer.Option(help="Who runs it.")],
    model: Annotated[str, typer.Option(help="The model's name at the provider.")],
    start: Annotated[str, typer.Option(help="First use, RFC 3339 in UTC: 2026-09-28T10:00:00Z.")],
    end: Annotated[str, typer.Option(help="Last use.")],
    revision: Annotated[str | None, typer.Option(help="Revision or snapshot the provider names.")] = None,
    system_fingerprint: Annotated[str | None, typer.Option(help="As returned with the responses.")] = None,
    sign_with: SignOption = None,
    output: AttestationOutput = None,
    key: KeyOption = None,
    wait: WaitOption = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Record what a hosted model was called and when: a claim, never a proof of its weights."""
    from ledger import model_checkpoint

    statement = model_checkpoint.stack(
        name,
        provider=provider,
        model=model,
        revision=revision,
        system_fingerprint=system_fingerprint,
        period=(start, end),
    )
    conclude(statement, sign_with, output, key, wait, as_json=as_json)


@app.command("add", epilog="Example: ledger attest add main-1.json")
def add(
    file: Annotated[Path, typer.Argument(help="An attestation that was written with --output.")],
    signature: SignatureOption = None,
    key: KeyOption = None,
    wait: WaitOption = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Log an attestation somebody signed elsewhere; its keys need the role for it."""
    from ledger.oms_accept import read_bundle

    bundle = None if signature is None else read_bundle(signature)
    log(read(file, bundle), key, wait, as_json=as_json)


@app.command("list", epilog="Example: ledger attest list")
def list_attestations(
    key: PublicKeyOption = None,
    trust_first: TrustFirstOption = False,
    as_json: JsonOption = False,
) -> None:
    """List the attestations in the log, with whether each was revoked."""
    from ledger.reading import reading

    with reading(state.find_home(), key=state.public_key(key), trust_first=trust_first) as open_home:
        revoked = {r.target_id for r in open_home.index.revocations() if r.target_kind == "attestation"}
        rows = open_home.index.attestations()
        for row in rows:
            open_home.confirm(row.event)
    found = [
        {
            "event": row.event,
            "kind": row.kind,
            "subject": row.subject,
            "statement": row.statement,
            "revoked": row.statement in revoked,
        }
        for row in rows
    ]
    if as_json:
        render.emit_json({"attestations": found})
        return
    if not rows:
        render.say("no attestation")
        return
    cells = [
        [row.event, row.kind, row.subject, render.short(row.statement, 16), "revoked" if r["revoked"] else ""]
        for row, r in zip(rows, found, strict=True)
    ]
    render.listed(["event", "kind", "subject", "statement", ""], cells, "attestation")


@app.command(epilog="Example: ledger attest show sha256:0123456789abcdef")
def show(
    named: Annotated[str, typer.Argument(metavar="ID", help="Its digest, as `attest list` shows it.")],
    key: PublicKeyOption = None,
    trust_first: TrustFirstOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print what an attestation says, and by whose keys, as verified under the roles of its time."""
    from ledger.attest_log import logged
    from ledger.reading import reading

    with reading(state.find_home(), key=state.public_key(key), trust_first=trust_first) as open_home:
        row, said, by = logged(open_home, named)
    told = {"kind": row.kind, "subject": row.subject, "event": row.event, "signed_by": by}
    if as_json:
        files = [{"name": name, "digests": list(digests)} for name, digests in said.files]
        render.emit_json(told | {"predicate": dict(said.statement.predicate), "files": files})
        return
    render.pairs({**told, "signed_by": ", ".join(by), "files": said.count})
    for name, value in said.statement.predicate.items():
        render.say(render.clip(f"{name}: {value}"))


def require_role(kind: str, output: Path | None, key: str | None) -> None:
    """Before any file is read: UsageError where an attestation would be logged that nobody may sign."""
    if output is not None:
        return
    from ledger import attestations
    from ledger.home import signing_key
    from ledger.reading import reading

    home = state.find_home()
    with reading(home, key=signing_key(home, key).public) as opened:
        attestations.require_signers(opened.head.trust.newest, kind)


def conclude(
    statement: Statement,
    sign_with: list[str] | None,
    output: Path | None,
    key: str | None,
    wait: float,
    *,
    bundle: bytes | None = None,
    as_json: bool,
) -> None:
    """Sign a statement; write it where that was asked for, else log it with the `bundle` it accepts."""
    from ledger import attestations, envelope
    from ledger.statement import PAYLOAD_TYPE

    signers = state.signers(sign_with)
    if not signers:
        from ledger.home import signing_key

        signers = [signing_key(state.find_home(), key)]
    data = envelope.sign(statement.to_bytes(), PAYLOAD_TYPE, signers).to_bytes()
    received = attestations.receive(data, bundle=bundle)
    if output is None:
        log(received, key, wait, as_json=as_json)
        return
    from cli.output_file import write_whole

    write_whole(output, data, "writing the attestation")
    if as_json:
        render.emit_json({"kind": received.said.kind, "subject": received.said.subject, "file": str(output)})
    else:
        render.tell(f"{received.said.kind} {received.said.subject} signed: {output}")
        if received.said.kind == attestations.ACQUISITION:
            render.tell(f"next: ledger ingest FILES --attestation {output}")
        else:
            with_it = "" if bundle is None else " --signature FILE"
            render.tell(f"next: ledger attest add {output}{with_it}")


def log(received: Received, key: str | None, wait: float, *, as_json: bool) -> None:
    """Log an attestation and say where it stands."""
    from ledger.attest_log import log_attestation
    from ledger.attestations import STACK
    from ledger.home import signing_key

    home = state.find_home()
    done = log_attestation(home, signing_key(home, key), received, wait=wait)
    said = received.said
    if as_json:
        told = {"kind": said.kind, "subject": said.subject, "statement": done.statement, "event": done.event}
        told |= {"new": done.new, "files": said.count}
        if said.signature is not None:
            told |= {"signature": said.signature.bundle, "subject_digest": said.signature.digest}
        render.emit_json(told)
        return
    how = "logged as" if done.new else "was logged before as"
    what = "a claim, no files" if said.kind == STACK else f"{render.plural(said.count, 'file')} attested"
    render.tell(f"{said.kind} {said.subject}: {what}")
    render.tell(f"{how} event {done.event}, {render.short(done.statement, 16)}")
    for warning in done.commit.warnings:
        render.tell(f"warning: {warning}", stderr=True)


def read(file: Path, bundle: bytes | None = None) -> Received:
    """The attestation in a file; StorageError when it cannot be read, MalformedError when it is none.

    `bundle` is the model signature that a checkpoint's attestation accepts.
    """
    from ledger import attestations

    try:
        with file.open("rb") as opened:
            data = opened.read(attestations.MAX_ATTESTATION + 1)
    except OSError as error:
        raise StorageError("cannot be read", where=file, got=error.strerror) from error
    return attestations.receive(data, str(file), bundle=bundle)


def _tools(named: list[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in named or ():
        name, equals, version = text.partition("=")
        if not equals or not name or not version:
            raise UsageError(
                "not a tool", code="tool", expected="NAME=VERSION", got=text[:80], where="--tool"
            )
        found[name] = version
    return found
