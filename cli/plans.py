"""`ledger plan`, and `ledger audit --plan`: a design declared before the data, and run as declared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli import render, state
from cli.words import AtOption, JsonOption, KeyOption, WaitOption
from contracts.errors import StorageError, UsageError

if TYPE_CHECKING:
    from audits.record import AuditResult
    from cli.audit_run import Options, Report
    from ledger.index_rows import PlanRow
    from ledger.snapshot import Snapshot

MAX_FILE = 1 << 20
app = typer.Typer(
    no_args_is_help=True,
    help="Declare what an audit will be asked, before the scores.",
    epilog="Example: ledger plan add plan.toml; ledger audit --plan main",
)


@app.command(epilog="Example: ledger plan add plan.toml")
def add(
    file: Annotated[Path, typer.Argument(help="The plan, TOML or JSON; see docs/plans.md.")],
    key: KeyOption = None,
    wait: WaitOption = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Log a plan; one that is there under its name already changes nothing."""
    from audits.gates import parse as read_gates
    from audits.plan import read
    from ledger.home import signing_key
    from ledger.plans import add as declare
    from ledger.snapshot import open_snapshot

    home = state.find_home()
    signer = signing_key(home, key)
    snapshot = open_snapshot(home, key=signer.public)
    plan = read(_document(file), snapshot)
    read_gates(plan.gates)
    done = declare(home, signer, plan.name, plan.as_json(), wait=wait)
    entries = sum(row.rows for row in snapshot.segments)
    if as_json:
        render.emit_json({**vars(done), "plan": plan.as_json(), "entries_before": entries})
        return
    word = "known already" if done.existed else "declared"
    render.say(f"{word}: plan {done.id}  {render.short(done.digest)}, event {done.event}")
    if entries and not done.existed:
        said = f"note: {entries:,} entries are there already; an audit that reads them calls this plan late"
        render.tell(said)
    render.tell(f"next: ledger ingest SCORES, then ledger audit --plan {done.id}")


@app.command("list", epilog="Example: ledger plan list")
def list_(at: AtOption = None, as_json: JsonOption = False) -> None:
    """List the declared plans."""
    from ledger.heads import opened

    with opened(state.find_home()) as index:
        rows = index.plans(at)
    if as_json:
        render.emit_json({"plans": [_as_object(row) for row in rows]})
        return
    if not rows:
        render.say("no plan is declared", "next: ledger plan add PLAN.toml")
        return
    cells = [
        (row.id, row.plan["audit"], row.event, render.short(row.digest), ", ".join(row.plan["gates"]) or "-")
        for row in rows
    ]
    render.console().print(render.table(("plan", "audit", ("event", "right"), "digest", "gates"), cells))


@app.command(epilog="Example: ledger plan show main")
def show(
    plan: Annotated[str, typer.Argument(help="Its name, or its digest from 8 digits.")],
    at: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a plan: the design, what it is about, and its gates."""
    from ledger.heads import opened
    from ledger.plans import find

    with opened(state.find_home()) as index:
        row = find(index.plans(at), plan)
        names = {c.fingerprint: c.reference for c in index.channels(at).channels}
    if as_json:
        render.emit_json(_as_object(row))
        return
    design = row.plan["design"]
    arms = [f"{arm['role']} {names.get(arm['channel'], arm['channel'])}" for arm in design.get("arms", [])]
    shown: dict[str, object] = {
        "plan": row.id,
        "digest": row.digest,
        "event": row.event,
        "audit": ", ".join([str(row.plan["audit"]), *arms]),
        "primary": design["primary"],
        "estimands": ", ".join(row.plan["estimands"]),
        "weights": design.get("weights", {}).get("quoted"),
        "band": design.get("options", {}).get("band"),
        "draws": f"{design['resamples']:,} resamples, seed {design['seed']}",
        "level": design["scope"]["require"],
        "gates": ", ".join(f"{name} {_gate(value)}" for name, value in row.plan["gates"].items()) or None,
    }
    render.pairs({name: value for name, value in shown.items() if value is not None})


def run_plan(text: str, kind: str | None, given: Options, *, as_json: bool, verbose: bool) -> None:
    """Run exactly what a plan declares; `kind` refuses a plan of another kind of audit."""
    from audits import prespecified
    from cli.audit_run import Voice, perform
    from ledger.heads import opened
    from ledger.plans import find

    with opened(state.find_home()) as index:
        row = find(index.plans(given.at), text)
    if kind is not None and row.plan["audit"] != kind:
        raise UsageError(
            "the plan is of another kind of audit", where=f"plan {row.id}", expected=kind,
            got=row.plan["audit"], next_step=f"run `ledger audit --plan {row.id}`",
        )  # fmt: skip
    voice = None
    if row.plan["audit"] == "jev":
        from audits.jev_sentence import sentence
        from cli.audit_jev_tables import show as tables

        voice = Voice(sentence, tables)

    def audit(snapshot: Snapshot, progress: Report) -> AuditResult:
        return prespecified.run(snapshot, find(snapshot.plans, row.digest), progress=progress)

    perform(given, audit, as_json=as_json, verbose=verbose, voice=voice)


def _gate(value: object) -> str:
    return "" if value is True else str(value)


def _as_object(row: PlanRow) -> dict[str, Any]:
    return {"id": row.id, "digest": row.digest, "event": row.event, **row.plan}


def _document(file: Path) -> dict[str, Any]:
    """The table in a TOML or JSON file; UsageError where it is none."""
    import tomllib

    from contracts.canonical import parse
    from contracts.errors import MalformedError

    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_FILE + 1)
    except OSError as error:
        raise StorageError("cannot be read", code="missing-file", where=file, got=error.strerror) from error
    try:
        if data.lstrip()[:1] == b"{":
            found = parse(data, limit=MAX_FILE, whole_floats=True)
        else:
            found = tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, MalformedError) as error:
        raise UsageError(f"not a plan ({error})", code="bad-plan", where=file) from error
    if not isinstance(found, dict):
        raise UsageError("not a plan", code="bad-plan", where=file, expected="a table of keys")
    return found
