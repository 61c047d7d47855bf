"""How an audit reads: one screen of 80 x 24 with what decides, every table behind `--verbose`.

Reads the result of a record, so that a stored audit could be shown the same way. Arms are called ref and
alt; the first line says which channels they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from audits.limits import COMMON
from audits.wording import estimate, interval, number, undefined
from cli import audit_flow, audit_screens, render
from cli.estimate_table import Fields, estimates, line
from contracts.findings import shown

if TYPE_CHECKING:
    from audits.record import AuditResult
    from cli.audit_record import Recorded

NAME = 24  # characters of a channel's name in a heading
WHOLE = 80  # columns of the screen
SHORT = {"one-layout-orbit": "1 orbit of layouts"}  # limits whose id is no plain phrase
LABELS = {
    "gain.ref": "gain ref",
    "gain.alt": "gain alt",
    "interaction": "interaction",
    "interaction@equal-target": " equal target",
    "interaction.median": " median",
    "interaction.trimmed10": " trimmed 10 %",
}
SIGNS = ("+", "0", "-")


def show(audit: AuditResult, recorded: Recorded, said: str, *, verbose: bool) -> None:
    """Print an audit: flow, estimates, flips, robustness, sensitivity, sentence, limits, record."""
    result = audit.result
    out = render.console()
    level = audit_flow.level(result["provenance"])
    line(f"{audit.audit}: {_heading(audit)}; {level}; head {audit.head.size}")
    for text in audit_flow.lines(result):
        line(text)
    warned = audit_flow.warnings(result, audit.channels)
    for text in warned:
        render.tell(f"Warning: {text}")
    body = audit_screens.SCREENS.get(audit.audit)
    if body is not None:
        body(result, verbose)
    else:
        estimates(result, LABELS if not verbose else {name: name for name in result["estimates"]})
        for text in (*_flips(result), *_sensitivity(result), *_success(result)):
            line(text)
    if verbose:
        from cli import audit_terms
        from cli.audit_details import details

        details(result)
        audit_terms.show()
    out.print(f"Verdict: {said}")
    _limits(result, verbose=verbose, brief=bool(warned))
    line(recorded.text if verbose else f"{recorded.text}; -v explains each term")
    if verbose:
        line(f"head {audit.head.size} of {audit.head.origin}")
        environment: Any = recorded.statement.predicate["environment"]
        for role, records in environment.get("repeatability", {}).items():
            line(f"repeatability of {role}: {', '.join(records)}")
    if verbose and recorded.logged is not None:
        render.say(f"record {recorded.logged.record}")
    if recorded.logged is not None:
        for warning in recorded.logged.warnings:
            render.say(f"warning: {warning}", stderr=True)


def _heading(audit: AuditResult) -> str:
    """Which channels the arms are, as far as one line says it."""
    names = audit.names
    channels = {channel.name for channel in audit.channels.values()}
    if len(names) > 2:
        return f"{len(names)} arms"
    if len(channels) == 1 and len(names) == 2:
        (channel,) = channels
        sources = {arm["role"]: arm["view_source"] for arm in audit.result["design"]["arms"]}
        views = ", ".join(f"{role} {shown(source, NAME)}" for role, source in sources.items())
        return f"{shown(channel, NAME)}, {views}"
    return ", ".join(
        shown(name, NAME) if name == role else f"{role} {shown(name, NAME)}" for role, name in names.items()
    )


def _flips(result: Fields) -> Iterator[str]:
    """The 3 x 3 table of signs at the left, flips and robustness at the right."""
    table = result["tables"].get("sign_table")
    if table is None:
        return
    cells = dict(zip(table["order"], table["ref_by_alt"], strict=True))
    rows = [[f"{cells[sign][place]:,}" for place in (2, 1, 0)] for sign in ("positive", "zero", "negative")]
    width = max(len(cell) for row in rows for cell in row)
    lines = [["ref\\alt", *SIGNS], *([f"gain {sign}", *row] for sign, row in zip(SIGNS, rows, strict=True))]
    room = WHOLE - 7 - 3 * (1 + width) - 3
    for (head, *row), remarks in zip(lines, _beside(result), strict=True):
        remark = next((text for text in remarks if len(text) <= room), remarks[-1])
        yield f"{head:<7}" + "".join(f" {cell:>{width}}" for cell in row) + f" | {remark}"


def _beside(result: Fields) -> Iterator[tuple[str, ...]]:
    """What stands beside the signs, each line about what it names; shorter wordings follow longer ones."""
    tables, estimates = result["tables"], result["estimates"]
    flips, share = tables["flips"], estimates["flip_share"]
    strict = flips["pos_to_neg"] + flips["neg_to_pos"]
    repeated = tables.get("repeatability", {})
    noise = ", ".join(f"{row['pairwise_sign_disagreement']:.2f}" for row in repeated.values())
    said = f"flips: {strict:,}, share {_short(share, signed=False)}"
    yield (said + (f"; of repeats {noise}" if noise else ""), said)
    direction = estimates["flip_direction_difference"]
    yield (f"flip direction: {_short(direction)} {direction.get('verdict', '')}".rstrip(),)
    layouts = _layouts(result)
    yield (f"interaction by layout: {layouts}", f"by layout: {layouts}")
    left = tables["leave_one_trajectory_out"]
    if left["min"] is None:
        out = undefined(left["reasons"]["min"])
    else:
        kept = "sign kept" if left["sign_kept"] else "sign not kept"
        if left["min"] == left["max"] == 0:
            kept = "no sign"
        out = f"{number(left['min'])} to {number(left['max'])}, {kept}"
    yield (f"interaction leave-one-out: {out}", f"leave-one-out: {out}")


def _short(fields: Fields, *, signed: bool = True) -> str:
    """An estimate of a cohort that has transitions; why an interval is undefined stands above."""
    ends = fields["ci95"]
    return f"{number(fields['value'], signed=signed)} " + (
        "[undefined]" if ends is None else interval(ends, signed=signed)
    )


def _layouts(result: Fields) -> str:
    fields = [f for name, f in result["estimates"].items() if name.startswith("interaction.layout.")]
    values = [f["value"] for f in fields]
    found = result["verdicts"]["layouts"]
    if found["intervals_agree"]:
        words = "intervals agree"
    elif found["points_agree"]:
        words = "only points agree" if found["intervals_agree"] is False else "points agree"
    else:
        words = "no common sign" if any(values) else "no sign"
    return f"{number(min(values))} to {number(max(values))}, {words}"


def _sensitivity(result: Fields) -> Iterator[str]:
    """Where signs would turn: pooling, recalibration, the excluded transitions."""
    found = result["tables"]["sensitivity"]
    reasons = found.get("reasons", {})
    if "empty_cohort" in reasons.values():
        return
    weight, ratio, tipping = (
        found[name] for name in ("pooled_sign_threshold", "recalibration_ratio", "tipping_mean_of_excluded")
    )
    turns = [
        f"alt weighs {weight:.3f} in a pool" if weight is not None else "",
        f"alt's slope is {ratio:.3f} of ref's" if ratio is not None else "",
    ]
    if any(turns):
        yield "signs turn where " + "; ".join(part for part in turns if part)
    if tipping:
        yield f"what is left out would have to average {number(tipping['interaction'])} to turn the sign"


def _success(result: Fields) -> Iterator[str]:
    """How well each channel's gains tell stored successes apart, where any are stored."""
    found = [result["estimates"].get(name) for name in ("auc.ref", "auc.alt", "auc_gap")]
    if None not in found:
        ref, alt = (number(f["value"], signed=False) if f["value"] is not None else "-" for f in found[:2])
        gap, verdict = found[2], found[2].get("verdict", "")
        yield f"stored success: auc ref {ref}, alt {alt}, gap {estimate(gap)} {verdict}".rstrip()


def short_limits(limits: Iterable[Fields]) -> list[str]:
    """Limits in the few words of their ids; those about one estimate stand beside it."""
    ids = [row["id"] for row in limits if ":" not in row["id"]]
    return [SHORT.get(name, name.replace("-", " ")) for name in ids]


def _limits(result: Fields, *, verbose: bool, brief: bool) -> None:
    """The limits in full, by their short forms, or, where a warning took their place, only the particular."""
    out = render.console()
    limits: Sequence[Fields] = result["limits"]
    if verbose:
        for row in (*limits, *result["provenance"]["non_claims"]):
            out.print(f"limit: {row['text']}")
        return
    warned = [row["text"] for row in limits if row["id"] == "few-clusters"]
    for text in warned:
        out.print(f"Caution: {text}")
    always = {limit.id for limit in COMMON} if brief else set()
    short = short_limits(row for row in limits if row["id"] not in always)
    short += [f"{len(always)} of every audit (-v)"] if brief else []
    out.print(f"Limits: {'; '.join(short)}")
