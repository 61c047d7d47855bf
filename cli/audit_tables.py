"""How an audit reads: one screen of 80 x 24 with what decides, every table behind `--verbose`.

Reads the result of a record, so that a stored audit could be shown the same way. Arms are called ref and
alt; the first line says which channels they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from audits.wording import estimate, interval, number, undefined
from cli import audit_screens, render
from cli.estimate_table import Fields, estimates, line
from contracts.findings import shown

if TYPE_CHECKING:
    from audits.record import AuditResult
    from cli.audit_record import Recorded

NAME = 24  # characters of a channel's name in a heading
ID = 14  # characters of a trajectory's id in a line
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
    level = result["provenance"]["level"]
    out = render.console()
    line(f"{audit.audit}: {_heading(audit)}; level {level}; head {audit.head.size} of {audit.head.origin}")
    for text in _flow(result):
        line(text)
    body = audit_screens.SCREENS.get(audit.audit)
    if body is not None:
        body(result, verbose)
    else:
        estimates(result, LABELS if not verbose else {name: name for name in result["estimates"]})
        for text in (*_flips(result), *_sensitivity(result), *_success(result)):
            line(text)
    if verbose:
        from cli.audit_details import details

        details(result)
    out.print(f"Verdict: {said}")
    _limits(result, verbose=verbose)
    line(recorded.text)
    if verbose:
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


def _flow(result: Fields) -> Iterator[str]:
    """How many transitions came, how many are complete, and why the others are not."""
    flow, provenance = result["flow"], result["provenance"]
    out = flow["transitions"] - flow["complete"]
    yield (
        f"{render.plural(flow['transitions'], 'transition')}: {flow['complete']:,} complete in "
        f"{render.plural(flow['trajectories'], 'trajectory', 'trajectories')}, {out:,} left out"
    )
    if out:
        yield "left out: " + ", ".join(
            f"{row['transitions']:,} {row['reason']}{_first(row['examples'])}" for row in flow["excluded"]
        )
    broken = ", ".join(f"{n:,} break {rule}" for rule, n in provenance["entries_out"].items() if n)
    if broken:
        yield f"entries kept out, of {provenance['entries_in']:,}: {broken}"
    levels = provenance["entries_by_level"].items()
    yield "entries by level: " + ", ".join(f"{count:,} {level}" for level, count in levels)


def _first(examples: Sequence[str]) -> str:
    """The transition of the first example; its cell stands in the record and in `--verbose`."""
    return f" ({shown(examples[0].partition(':')[0], 2 * ID)})" if examples else ""


def _flips(result: Fields) -> Iterator[str]:
    """The 3 x 3 table of signs at the left, flips and robustness at the right."""
    table = result["tables"].get("sign_table")
    if table is None:
        return
    cells = dict(zip(table["order"], table["ref_by_alt"], strict=True))
    rows = [[f"{cells[sign][place]:,}" for place in (2, 1, 0)] for sign in ("positive", "zero", "negative")]
    width = max(len(cell) for row in rows for cell in row)
    lines = [["ref \\ alt", *SIGNS], *([f"gain {sign}", *row] for sign, row in zip(SIGNS, rows, strict=True))]
    for (head, *row), remark in zip(lines, _beside(result), strict=True):
        yield f"{head:<9}" + "".join(f"  {cell:>{width}}" for cell in row) + f"   {remark}"


def _beside(result: Fields) -> Iterator[str]:
    """What goes beside the signs: flips, with those of each channel against itself, and robustness."""
    tables, estimates = result["tables"], result["estimates"]
    flips, share = tables["flips"], estimates["flip_share"]
    strict = flips["pos_to_neg"] + flips["neg_to_pos"]
    repeated = tables.get("repeatability", {})
    noise = ", ".join(f"{row['pairwise_sign_disagreement']:.2f}" for row in repeated.values())
    yield f"{strict:,} flip, {_short(share, signed=False)}" + (f"; repeats {noise}" if noise else "")
    direction = estimates["flip_direction_difference"]
    yield f"direction {_short(direction)} {direction.get('verdict', '')}".rstrip()
    yield _layouts(result)
    left = tables["leave_one_trajectory_out"]
    if left["min"] is None:
        yield f"without one trajectory {undefined(left['reasons']['min'])}"
    else:
        kept = "sign kept" if left["sign_kept"] else "sign not kept"
        yield f"without one trajectory {number(left['min'])} to {number(left['max'])}, {kept}"


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
        words = "points agree" + (", intervals do not" if found["intervals_agree"] is False else "")
    else:
        words = "no common sign"
    return f"{len(values)} layouts {number(min(values))} to {number(max(values))}, {words}"


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
        f"pooled at alt weight {weight:.3f}" if weight is not None else "",
        f"interaction at slope ratio {ratio:.3f}" if ratio is not None else "",
        f"interaction at excluded mean {number(tipping['interaction'])}" if tipping else "",
    ]
    if any(turns):
        yield "signs turn: " + "; ".join(part for part in turns if part)


def _success(result: Fields) -> Iterator[str]:
    """How well each channel's gains tell stored successes apart, where any are stored."""
    found = [result["estimates"].get(name) for name in ("auc.ref", "auc.alt", "auc_gap")]
    if None not in found:
        ref, alt = (number(f["value"], signed=False) if f["value"] is not None else "-" for f in found[:2])
        gap, verdict = found[2], found[2].get("verdict", "")
        yield f"stored success: auc ref {ref}, alt {alt}, gap {estimate(gap)} {verdict}".rstrip()


def _limits(result: Fields, *, verbose: bool) -> None:
    out = render.console()
    limits: Sequence[Fields] = result["limits"]
    if verbose:
        for row in (*limits, *result["provenance"]["non_claims"]):
            out.print(f"limit: {row['text']}")
        return
    warned = [row["text"] for row in limits if row["id"] == "few-clusters"]
    for text in warned:
        out.print(f"Caution: {text}")
    short = "; ".join(row["id"].replace("-", " ") for row in limits if ":" not in row["id"])
    out.print(f"Limits: {short}")
