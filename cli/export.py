"""`ledger export`: entries for pooling or supervision behind a gate, and records in other people's forms."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from cli import render, state
from cli.words import JsonOption, KeyOption, PublicKeyOption, TrustFirstOption
from contracts.errors import CannotAnswerError, StorageError, UsageError
from ledger import durable

if TYPE_CHECKING:
    import pyarrow as pa

    from audits.covered import Covered

FORMATS = ("parquet", "jsonl", "trl")
UNGATED = "no gate was asked: the audit covers these entries, nothing was required of its numbers"
SUFFIXES = {".parquet": "parquet", ".jsonl": "jsonl"}
# Which command writes a form that is asked for without one: `ledger export --format FORM ID`.
FORMS = {"eval-result": "record", "oms": "checkpoint"}


class _Forms(TyperGroup):
    """`export --format FORM ID` as `export COMMAND ID --format FORM`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = [word.removeprefix("--format=") for word in args]
        form = next((word for word in words if word in FORMS), None)
        if args and args[0] not in self.commands and form is not None:
            args = [FORMS[form], *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Forms,
    no_args_is_help=True,
    help="Hand on entries behind a gate; a record or checkpoint in other forms.",
    epilog="Example: ledger export scores --channel direct --gate 7 -o direct.parquet",
)


@app.command(epilog="Example: ledger export scores --channel direct --gate 7 -o direct.parquet")
def scores(
    channel: Annotated[str, typer.Option(help="The channel whose entries are handed on.")],
    gate: Annotated[
        str,
        typer.Option(metavar="PLAN|AUDIT", help="The audit that must cover them, or the plan it followed."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    format_: Annotated[
        str | None,
        typer.Option("--format", help="parquet, jsonl, or trl (stepwise rows); default by the file's name."),
    ] = None,
    key: PublicKeyOption = None,
    trust_first: TrustFirstOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write the entries an audit covers, if it stands and passes its plan's gates; exit 5 otherwise."""
    from audits.covered import covered
    from cli.gate import judged, refuse
    from ledger.gated_scores import gated_scores
    from ledger.reading import reading
    from ledger.snapshot import open_snapshot
    from ledger.standing import named, standing

    form = format_ or SUFFIXES.get(output.suffix, "")
    if form not in FORMATS:
        raise UsageError(
            "unknown format", where="--format", expected=" | ".join(FORMATS), got=form or output.name
        )
    if not output.parent.is_dir():
        raise StorageError("no such folder", code="missing-file", where=output.parent)
    home, public = state.find_home(), state.public_key(key)
    with reading(home, key=public, trust_first=trust_first) as opened:
        found = standing(opened, named(opened, gate))
    outcomes = judged(found, {}) if found.plan is not None and found.plan.plan["gates"] else ()
    refuse([*found.reasons, *(outcome.reason for outcome in outcomes if outcome.reason)])
    snapshot = open_snapshot(home, at=found.at, key=public, trust_first=trust_first)
    arms = covered(snapshot, found.result, snapshot.book.resolve(channel))
    record = found.record.row.record
    with reading(home, at=found.at, key=public, trust_first=trust_first) as opened:

        def tables(arm: Covered) -> Iterator[pa.Table]:
            pairs = list(zip(arm.trajectory, arm.step.tolist(), strict=True))
            return gated_scores(opened, arm.arm, arm.acquisitions, pairs, record)

        count, rows = _write(form, output, arms, tables, record)
    if not count:
        raise CannotAnswerError(
            "the audit covers no entries of that channel", code="not-covered", got=channel
        )
    told = {"file": str(output), "format": form, "entries": count, "rows": rows, "record": record}
    told |= {"gates": [outcome.gate for outcome in outcomes]}
    asked = render.plural(len(outcomes), "gate") + " asked and passed" if outcomes else UNGATED
    if as_json:
        told |= {"transitions": sum(len(arm.step) for arm in arms)}
        render.emit_json(told if outcomes else told | {"note": UNGATED})
        return
    render.say(
        f"{output}: {render.plural(count, 'entry', 'entries')} of {channel} in {rows:,} rows",
        f"covered by audit {render.short(record)}, event {found.record.row.event}, which stands",
        *render.wrapped(asked, ""),
    )


@app.command(epilog="Example: ledger export --format eval-result 7 -o verdict.dsse.json")
def record(
    audit: Annotated[
        str, typer.Argument(metavar="PLAN|AUDIT", help="The audit: record, event number, or its plan.")
    ],
    format_: Annotated[
        str, typer.Option("--format", help="eval-result: the in-toto proposal for evaluation results.")
    ] = "eval-result",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file (default: standard output).")
    ] = None,
    unsigned: Annotated[
        bool, typer.Option("--unsigned", help="The plain statement, in no envelope.")
    ] = False,
    key: KeyOption = None,
    trust_first: TrustFirstOption = False,
) -> None:
    """Write the verdicts of a standing audit in another form, signed anew; its gates become claims."""
    from audits.eval_result import eval_result
    from audits.gates import parse
    from cli.gate import refuse
    from ledger import envelope, statement
    from ledger.home import signing_key
    from ledger.keys import key_id
    from ledger.reading import reading
    from ledger.standing import named, standing

    if FORMS.get(format_) != "record":
        raise UsageError("unknown format", where="--format", expected="eval-result", got=format_[:40])
    home = state.find_home()
    signer = signing_key(home, key)
    with reading(home, trust_first=trust_first) as opened:
        found = standing(opened, named(opened, audit))
    refuse(list(found.reasons))
    made = eval_result(
        found.record.statement,
        record=found.record.row.record,
        event=found.record.row.event,
        signer=key_id(signer.public),
        wanted={} if found.plan is None else parse(found.plan.plan["gates"]),
    ).to_bytes()
    if not unsigned:
        made = envelope.sign(made, statement.PAYLOAD_TYPE, [signer]).to_bytes()
    if output is None:
        render.say(made.decode())
        return
    with durable.storage("writing the statement", output):
        staged = output.with_name(durable.temporary_name(".part"))
        durable.create(staged, made)
        durable.replace(staged, output)
    render.tell(f"{output}: {format_} of audit {render.short(found.record.row.record)}")


@app.command(
    epilog="Example: ledger export --format oms sha256:0123456789abcdef --key file:ec.pem -o model.sig"
)
def checkpoint(
    attestation: Annotated[
        str, typer.Argument(metavar="ID", help="A checkpoint's attestation, as `attest list` shows it.")
    ],
    key: Annotated[
        str,
        typer.Option(
            metavar="KEY",
            help="Elliptic curve key that signs (no Ed25519): a path, file:PATH or env:VARIABLE.",
        ),
    ],
    format_: Annotated[str, typer.Option("--format", help="oms: an OpenSSF Model Signing bundle.")] = "oms",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file (default: standard output).")
    ] = None,
    trust_first: TrustFirstOption = False,
) -> None:
    """Write an attested checkpoint as a bundle that `model_signing verify key` accepts."""
    from cli.output_file import write_whole
    from ledger.attest_log import logged
    from ledger.ec_keys import EcSigningKey
    from ledger.event_types import ATTESTATION
    from ledger.oms_export import export
    from ledger.reading import reading

    if FORMS.get(format_) != "checkpoint":
        raise UsageError("unknown format", where="--format", expected="oms", got=format_[:40])
    signer = EcSigningKey.load(key)
    with reading(state.find_home(), trust_first=trust_first) as opened:
        row, said, _ = logged(opened, attestation)
        for revoked in opened.index.revocations(opened.size):
            if (revoked.target_kind, revoked.target_id) == (ATTESTATION, row.statement):
                raise CannotAnswerError(
                    "the attestation was revoked", code="revoked", where=f"event {revoked.event}",
                    got=revoked.reason,
                )  # fmt: skip
    made = export(said, signer)
    if output is None:
        render.say(made.decode())
        return
    write_whole(output, made, "writing the bundle")
    render.say(
        f"{output}: {format_} bundle of checkpoint {said.subject}, signed by key {signer.public.id[:16]}",
        f"check it: model_signing verify key FOLDER --signature {output} --public_key PUB.pem",
    )


def _write(form: str, output: Path, arms: tuple[Covered, ...], tables: Any, record: str) -> tuple[int, int]:
    """Write a file that appears whole or not at all; gives its entries and rows."""
    from cli.entries import stream

    staged = output.with_name(durable.temporary_name(".part"))
    try:
        with durable.storage("writing the export", output):
            with staged.open("xb") as file:
                if form == "trl":
                    count, rows = 0, 0
                    for arm in arms:
                        for row in stepwise(arm, tables(arm), record):
                            count += sum(len(ids) for ids in row["entries"])
                            rows += 1
                            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
                else:
                    count = rows = stream((t for arm in arms for t in tables(arm)), form, file)
            if count:
                durable.sync(staged)
                durable.replace(staged, output)
    finally:
        staged.unlink(missing_ok=True)
    return count, rows


def stepwise(arm: Covered, tables: Iterator[pa.Table], record: str) -> Iterator[dict[str, Any]]:
    """One row a trajectory as TRL takes stepwise supervision: prompt, completions, labels.

    A ledger holds no texts: prompt and completions are the ids to put yours in for, `states` the digests of
    what was judged. A label is whether the gain of the step is above 0.
    """
    entries: dict[tuple[str, int], list[str]] = {}
    states: dict[tuple[str, int], str] = {}
    for table in tables:
        for row in table.select(["trajectory_id", "step", "endpoint", "state_hash", "entry"]).to_pylist():
            place = row["trajectory_id"], row["step"]
            entries.setdefault(place, []).append(row["entry"])
            if row["endpoint"] == "after" and row["state_hash"] is not None:
                states[place] = row["state_hash"]
    places: dict[str, list[int]] = {}
    for index, name in enumerate(arm.trajectory):
        places.setdefault(name, []).append(index)
    for name, at in places.items():
        steps = [int(arm.step[index]) for index in at]
        gains = [float(arm.gain[index]) for index in at]
        yield {
            "prompt": name,
            "completions": [f"{name}/step{step:02d}" for step in steps],
            "labels": [gain > 0 for gain in gains],
            "gains": gains,
            "steps": steps,
            "states": [states.get((name, step)) for step in steps],
            "channel": arm.arm.channel.reference,
            "fingerprint": arm.arm.channel.fingerprint,
            "entries": [entries.get((name, step), []) for step in steps],
            "audit": record,
        }
