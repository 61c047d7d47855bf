"""`ledger gate`: whether an audit shows what has to be shown before something is built on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli import render, state
from cli.words import JsonOption, PublicKeyOption, TrustFirstOption
from contracts.errors import CannotAnswerError, UsageError

if TYPE_CHECKING:
    from audits.gates import Outcome
    from ledger.standing import Standing


def register(app: typer.Typer) -> None:
    """Add `gate`."""
    app.command(epilog="Example: ledger gate main; ledger gate 7 --max-flip-share 0.1")(gate)


def gate(
    audit: Annotated[
        str, typer.Argument(metavar="PLAN|AUDIT", help="A plan, or an audit's record or event number.")
    ],
    no_strict_reversal: Annotated[
        bool, typer.Option("--no-strict-reversal", help="No strict reversal of the mean gain is supported.")
    ] = False,
    max_flip_share: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="At most this share of strict flips.")
    ] = None,
    equivalence: Annotated[
        bool, typer.Option("--equivalence", help="Equivalence within the declared band is established.")
    ] = False,
    min_complete_share: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="At least this share of transitions is complete.")
    ] = None,
    min_attested_share: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="At least this share of entries is attested.")
    ] = None,
    min_trajectories: Annotated[
        int | None, typer.Option(min=1, help="At least so many trajectories.")
    ] = None,
    prespecified: Annotated[
        bool, typer.Option("--prespecified", help="A plan preceded the first entry.")
    ] = False,
    key: PublicKeyOption = None,
    trust_first: TrustFirstOption = False,
    as_json: JsonOption = False,
) -> None:
    """Pass (exit 0) or not (exit 5, with the reasons): for scripts that train or publish on an audit."""
    from audits.gates import parse
    from ledger.reading import reading
    from ledger.standing import named, standing

    asked = {
        "no_strict_reversal": no_strict_reversal,
        "max_flip_share": max_flip_share,
        "equivalence": equivalence,
        "min_complete_share": min_complete_share,
        "min_attested_share": min_attested_share,
        "min_trajectories": min_trajectories,
        "prespecified": prespecified,
    }
    given = parse({name: value for name, value in asked.items() if value not in (None, False)})
    with reading(state.find_home(), key=state.public_key(key), trust_first=trust_first) as opened:
        found = standing(opened, named(opened, audit))
    outcomes = judged(found, given)
    reasons = [*found.reasons, *(outcome.reason for outcome in outcomes if outcome.reason)]
    if as_json:
        render.emit_json(_told(found, outcomes, reasons))
        if reasons:
            raise typer.Exit(CannotAnswerError.exit_code)
        return
    render.say(f"audit {render.short(found.record.row.record)}, event {found.record.row.event}")
    if found.plan is not None:
        render.say(f"plan  {found.plan.id}, event {found.plan.event}")
    for reason in found.reasons:
        render.tell(f"FAILED  {reason}")
    for outcome in outcomes:
        said = outcome.reason or _shown(outcome)
        render.tell(f"{'passed' if outcome.passed else 'FAILED'}  {outcome.gate}: {said}")
    refuse(reasons)
    render.say("the gate is passed")


def judged(found: Standing, given: dict[str, bool | float]) -> tuple[Outcome, ...]:
    """The gates of the audit's plan and those given besides: a plan's gate cannot be loosened here."""
    from audits.gates import judge, parse

    planned = {} if found.plan is None else parse(found.plan.plan["gates"])
    if not planned and not given:
        raise UsageError(
            "nothing to judge: neither the plan nor the command line names a gate", code="no-gate",
            next_step="see `ledger gate --help`",
        )  # fmt: skip
    besides = {name: wanted for name, wanted in given.items() if planned.get(name) != wanted}
    return (*judge(found.result, planned), *judge(found.result, besides))


def refuse(reasons: list[str]) -> None:
    """CannotAnswerError `gate` unless there is no reason."""
    if reasons:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        raise CannotAnswerError(f"the gate is not passed: {reasons[0]}{more}", code="gate")


def _shown(outcome: Outcome) -> str:
    return "yes" if isinstance(outcome.got, bool) else f"{outcome.got:.6g} against {outcome.wanted:.6g}"


def _told(found: Standing, outcomes: tuple[Outcome, ...], reasons: list[str]) -> dict[str, Any]:
    return {
        "passed": not reasons,
        "record": found.record.row.record,
        "event": found.record.row.event,
        "plan": None if found.plan is None else found.plan.id,
        "reasons": reasons,
        "gates": [{**vars(outcome), "passed": outcome.passed} for outcome in outcomes],
    }
