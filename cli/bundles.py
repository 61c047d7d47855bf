"""`ledger bundle`: an audit with everything a stranger needs to check it, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli import render, state
from cli.words import JsonOption, PublicKeyOption, TrustFirstOption
from contracts.errors import StorageError, UsageError

if TYPE_CHECKING:
    from ledger.bundle_verify import Checked
    from ledger.entry_proof import ProvedEntry
    from ledger.keys import PublicKey

SNIFFED = 64


def register(app: typer.Typer) -> None:
    """Add `bundle`."""
    app.command(epilog="Example: ledger bundle sha256:7c1f0a2b -o audit.bundle")(bundle)


def bundle(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The audit: its record or event number.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    key: PublicKeyOption = None,
    trust_first: TrustFirstOption = False,
    as_json: JsonOption = False,
) -> None:
    """Put an audit, its entries and the whole log into one file to check elsewhere: ledger verify FILE."""
    from audits.recompute import recompute
    from ledger.bundle_write import write
    from ledger.reading import reading

    if not output.parent.is_dir():
        raise StorageError("no such folder to write the bundle in", code="missing-file", where=output.parent)
    with reading(state.find_home(), key=state.public_key(key), trust_first=trust_first) as opened:
        made = write(opened, audit, output, recompute)
    if as_json:
        render.emit_json({"file": str(output), **vars(made)})
        return
    held = f"{render.plural(made.segments, 'segment')}, {made.size:,} events, {made.bytes:,} bytes"
    render.tell(
        f"{output}: audit {render.short(made.record)} of event {made.event}",
        f"{held}; computed again on the way, same result",
        f"next: send it with the public key; ledger verify {output} --key KEY.pem",
    )


def verify_file(file: Path, key: PublicKey | None, *, trust_first: bool, as_json: bool) -> None:
    """Check a bundle or a tlog-proof, whichever the file is, without any ledger."""
    from ledger import bundle as container
    from ledger.tlog_proof import HEADER

    try:
        with file.open("rb") as opened:
            first = opened.read(SNIFFED)
    except OSError as error:
        raise StorageError("cannot be read", code="missing-file", where=file, got=error.strerror) from error
    if first.startswith(container.MAGIC):
        _bundle(file, key, trust_first=trust_first, as_json=as_json)
    elif first.startswith(HEADER):
        _proof(file, key, as_json=as_json)
    else:
        raise UsageError(
            "neither a bundle nor a tlog-proof", code="unknown-file", where=file,
            expected="what `ledger bundle` or `ledger lineage ID --proof` wrote",
        )  # fmt: skip


def _bundle(file: Path, key: PublicKey | None, *, trust_first: bool, as_json: bool) -> None:
    from audits.recompute import recompute
    from ledger.bundle_verify import verify

    with render.progress() as progress:
        found = verify(file, key, recompute, trust_first=trust_first, progress=progress)
    told = _told(found)
    if as_json:
        render.emit_json({"ok": True, "file": str(file), **told})
        return
    head = found.head
    render.say(
        f"head      {head.origin}, size {head.size:,}, {render.short('sha256:' + head.root.hex())}",
        f"record    {render.short(found.record)}, {told['audit']} audit of event {found.event}",
        f"checked   {render.plural(found.entries, 'entry', 'entries')} of"
        f" {render.plural(found.segments, 'segment')}, {render.plural(found.proofs, 'proof')}",
    )
    for event in found.revoked_since:
        said = f"note: {event.target_kind} {event.target_id} was revoked later: {event.reason}"
        render.tell(said)
    for name in found.unread[:3]:
        render.say(f"note: nothing needs {name}", stderr=True)
    if found.recomputed:
        render.tell(f"said      {_sentence(found)}")
        render.say("verified  every event, every page, and the numbers computed again byte for byte")
    else:
        render.say("verified  signatures and log; this version cannot compute such an audit again")


def _sentence(found: Checked) -> str:
    """The verdict of the record, with the names its channels had when it was made."""
    from audits.prespecified import clause
    from audits.sentence import sentence

    result = found.result
    if result["design"]["audit"] == "jev":
        from audits.jev_sentence import sentence as jev_sentence

        return clause(result) + jev_sentence(result)
    environment: Any = found.statement.predicate["environment"]
    names = {
        arm["role"]: environment["channels"][arm["role"]]["name"]
        + ("" if arm["view_source"] == "own" else f":{arm['view_source']}")
        for arm in result["design"]["arms"]
    }
    return clause(result) + sentence(result, **names)


def _told(found: Checked) -> dict[str, Any]:
    return {
        "origin": found.head.origin,
        "size": found.head.size,
        "root": "sha256:" + found.head.root.hex(),
        "record": found.record,
        "event": found.event,
        "at": found.at,
        "audit": found.statement.predicate.get("audit"),
        "recomputed": found.recomputed,
        "sentence": _sentence(found) if found.recomputed else None,
        "entries": found.entries,
        "segments": found.segments,
        "proofs": found.proofs,
        "revoked_since": [
            {"kind": e.target_kind, "id": e.target_id, "reason": e.reason} for e in found.revoked_since
        ],
        "unread": list(found.unread),
    }


def _proof(file: Path, key: PublicKey | None, *, as_json: bool) -> None:
    from ledger.entry_proof import check
    from ledger.tlog_proof import MAX_PROOF

    with file.open("rb") as opened:
        found = check(opened.read(MAX_PROOF + 1), key)
    if as_json:
        render.emit_json({"ok": True, "file": str(file), **_proved(found)})
        return
    head = found.head
    render.say(
        f"head      {head.origin}, size {head.size:,}, {render.short('sha256:' + head.root.hex())}",
        f"entry     {found.id}, of the segment in event {found.event}",
    )
    for name, value in found.values.items():
        render.say(render.clip(f"          {name} {value}"))
    render.say("verified  the entry is in the log this key signed")


def _proved(found: ProvedEntry) -> dict[str, Any]:
    return {
        "origin": found.head.origin,
        "size": found.head.size,
        "root": "sha256:" + found.head.root.hex(),
        "entry": found.id,
        "event": found.event,
        "row": found.row,
        "segment": found.segment.root,
        "values": dict(found.values),
    }
