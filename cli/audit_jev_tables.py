"""How a request-independence audit reads: one screen with what decides, every estimate behind `--verbose`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from audits.jev_sentence import REASONS
from audits.wording import interval, number
from cli import render
from cli.audit_tables import short_limits
from cli.folding import Folded
from contracts.findings import shown

if TYPE_CHECKING:
    from audits.record import AuditResult
    from cli.audit_record import Recorded

Fields = Mapping[str, Any]
ROWS = 12  # of the table of rates on the first screen
RATES = {
    "strict_flip": "flip",
    "preference_flip": "preference flip",
    "tie": "tie",
    "action_change": "action change",
    "binary_accuracy_before": "binary before",
    "binary_accuracy_after": "binary after",
    "binary_accuracy_difference": "binary gain",
    "action_accuracy_before": "action before",
    "action_accuracy_after": "action after",
    "action_accuracy_difference": "action gain",
}
FIRST = ("strict_flip", "preference_flip", "tie", "action_change", "binary_accuracy_difference")


def show(audit: AuditResult, recorded: Recorded, said: str, verbose: bool) -> None:
    """Print an audit: flow, rates, differences, precision, label mass, sentence, limits, record."""
    result, out = audit.result, render.console()
    level = result["provenance"]["level"]
    _line(f"jev: request independence; level {level}; head {audit.head.size} of {audit.head.origin}")
    for line in (*_flow(result), *_channels(audit)):
        _line(line)
    if result["tables"]:
        if "series" in result["tables"]:
            _across(result, verbose=verbose)
        if verbose or "series" not in result["tables"]:
            _rates(result, verbose=verbose)
        for line in (*_silent(result), *_precision(result), *_differences(result, verbose=verbose)):
            _line(line)
        for line in _masses(result, verbose=verbose):
            _line(line)
        _line("order of labels: " + ", ".join(result["tables"]["label_order"]))
    out.print(f"Found: {said}")
    _limits(result, verbose=verbose)
    _line(recorded.text)
    if recorded.logged is not None:
        if verbose:
            render.say(f"record {recorded.logged.record}")
        for warning in recorded.logged.warnings:
            render.say(f"warning: {warning}", stderr=True)


def _line(text: str) -> None:
    render.say(*render.one_line(text))


def _flow(result: Fields) -> Iterator[str]:
    flow = result["flow"]
    yield (
        f"{render.plural(flow['pairs'], 'pair')} in {render.plural(flow['groups'], 'group')}: "
        f"{flow['complete']:,} admitted, {render.plural(flow['queries'], 'query', 'queries')}"
    )
    for row in flow["excluded"]:
        yield (
            f"kept out by {row['reason']}: {render.plural(row['pairs'], 'pair')} in "
            f"{render.plural(row['groups'], 'group')} ({shown(row['examples'][0], 40)})"
        )


def _channels(audit: AuditResult) -> Iterator[str]:
    if audit.channels:
        yield "channels: " + ", ".join(shown(name, 24) for name in audit.channels)


def _across(result: Fields, *, verbose: bool) -> None:
    """One line for each year and series: how many answers flip, how often, and what actions do."""
    counts, estimates = result["tables"]["counts"], result["estimates"]
    rows = []
    for prefix, count in counts.items():
        name = "strict_flip" if "strict_flip" in count else "preference_flip"
        value, first, _, _ = _cells(estimates[f"{prefix}.{name}"], name)
        changed = number(estimates[f"{prefix}.action_change"]["value"], signed=False)
        rows.append((prefix, f"{count[name]:,}/{count['units']:,}", f"{value} {first}", changed))
    headings = ("year/intervention/mode/channel", ("flips", "right"), "rate, 95 %", ("actions", "right"))
    render.console().print(render.table(headings, rows if verbose else rows[:ROWS]))
    if len(rows) > ROWS and not verbose:
        _line(f"the first {ROWS} of {len(rows)} rows; --verbose prints all")


def _rates(result: Fields, *, verbose: bool) -> None:
    """Estimates with both intervals by year and series; differences between series stand apart."""
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    grid.add_column("mean over queries", overflow="fold")
    grid.add_column("value", justify="right", no_wrap=True)
    grid.add_column("95 % percentile", no_wrap=True)
    grid.add_column("95 % second", no_wrap=True)
    grid.add_column("verdict", no_wrap=True)
    wanted = tuple(RATES) if verbose else FIRST
    rows = [
        (Folded(f"{prefix} {RATES[name]}"), *_cells(result["estimates"][f"{prefix}.{name}"], name))
        for prefix in result["tables"]["counts"]
        for name in wanted
        if f"{prefix}.{name}" in result["estimates"]
    ]
    for row in rows if verbose else rows[:ROWS]:
        grid.add_row(*row)
    render.console().print(grid)
    if len(rows) > ROWS and not verbose:
        _line(f"the first {ROWS} of {len(rows)} rows; --verbose prints all")


def _cells(fields: Fields, name: str) -> tuple[str, str, str, str]:
    """Value, both intervals, and the verdict or what stands for an interval."""
    signed = name.endswith("difference")
    second = fields.get("ci95_wilson") or fields.get("ci95_t")
    bound, why = fields.get("zero_event_upper95"), fields.get("reason")
    if bound is not None:
        first = f"below {number(bound, signed=False)}"
    elif fields["ci95"] is None:
        first = "undefined"
    else:
        first = interval(fields["ci95"], signed=signed)
    marks = [mark for mark in ("fragile", "mc_sensitive") if fields.get(mark)]
    verdict = fields.get("verdict") or (REASONS.get(why, why) if why else "")
    return (
        number(fields["value"], signed=signed),
        first,
        interval(second, signed=signed) if second else "",
        ", ".join(part for part in (verdict, *marks) if part),
    )


def _silent(result: Fields) -> Iterator[str]:
    silent = {
        prefix: counts["actions_changed_without_flip"]
        for prefix, counts in result["tables"]["counts"].items()
    }
    seen = [prefix for prefix, count in silent.items() if count]
    listed = ", ".join(f"{silent[prefix]:,} in {prefix}" for prefix in seen[:2])
    more = f" and {sum(silent[prefix] for prefix in seen[2:]):,} more" if seen[2:] else ""
    yield f"actions changed without any flip: {listed or 'none'}{more}"


def _precision(result: Fields) -> Iterator[str]:
    for name, row in result["tables"].get("precision", {}).items():
        flips = row["flips"]
        yield (
            f"precision {name}: {flips['first']:,} flips, {flips['second']:,} in the other channel; "
            f"{row['vanish']:,} vanish, {row['appear']:,} appear"
        )


def _differences(result: Fields, *, verbose: bool) -> Iterator[str]:
    """Paired differences between series, first minus second; of flips only unless all are asked for."""
    wanted = [name for name in result["estimates"] if ".difference." in name]
    if wanted and not verbose:
        wanted = [name for name in wanted if name.endswith("_flip")][:ROWS]
        yield "paired differences, first minus second:"
    for name in wanted:
        year, _, rest = name.partition(".difference.")
        pair, _, metric = rest.rpartition(".")
        value, first, _, verdict = _cells(result["estimates"][name], "difference")
        yield f"{year} {RATES[metric]} {value} {first} {verdict}"
        yield f"  {pair}"


def _masses(result: Fields, *, verbose: bool) -> Iterator[str]:
    tables = result["tables"]
    arms = [row for parts in tables.get("label_mass_by_year", {}).values() for row in parts.values()]
    if not verbose and all(row["unavailable"] == row["n"] for row in arms):
        yield f"label mass: undefined (unavailable for all {sum(row['n'] for row in arms):,} answers)"
        return
    named = tables["label_mass_by_year"] if verbose else tables.get("label_mass", {})
    whole = {"": named} if "before" in named else named
    for label, arms in whole.items():
        for arm in ("before", "after"):
            row = arms[arm]
            start = f"label mass {label} {arm}".replace("  ", " ")
            if row["min"] is None:
                bounds = f", {row['lower_bounds']:,} only a lower bound" if row["lower_bounds"] else ""
                yield f"{start}: undefined (unavailable for {row['unavailable']:,} of {row['n']:,}{bounds})"
                continue
            yield (
                f"{start}: min {number(row['min'], signed=False)}, median "
                f"{number(row['median'], signed=False)}, below 1/2 in "
                f"{number(row['share_below_half'], signed=False)}; {row['unavailable']:,} unavailable, "
                f"{row['lower_bounds']:,} lower bounds"
            )


def _limits(result: Fields, *, verbose: bool) -> None:
    """Limits by their short names, or each with its sentence."""
    said = result["limits"]
    if verbose:
        for limit in said:
            render.console().print(f"limit: {limit['text']}")
        return
    short = short_limits(said)
    if any(limit["id"].startswith("absent:difference:") for limit in said):
        short.append("some series not compared")
    render.console().print(f"Limits: {'; '.join(short)}")
