"""Estimates as a plot of text: a line of 80 columns each, intervals as bars over one scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from audits.points import is_pair
from audits.wording import number, undefined
from cli import render, report_forest
from cli.report_forest import Group, Row
from contracts.findings import shown

LABEL, PLOT = 22, 46  # columns; the rest of the line is the value
MOST = 40  # lines of one plot; the tables have all
ZERO, BAR, POINT, RANGE = "|", "-", "o", "="


def show(result: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Print the intervals of a record's estimates, those in margin units and those that are shares apart."""
    for text in lines(result, names):
        render.say(text)


def lines(result: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[str]:
    """The lines of the plot of a record."""
    estimates = result["estimates"]
    if is_pair(result):
        units = report_forest.pair_groups(result, names)
    else:
        units = report_forest.plain_groups(estimates, shares=False)
    shares = report_forest.plain_groups(estimates, shares=True)
    drawn = False
    for groups, unit in ((units, "log-odds"), (shares, "share")):
        values = [end for group in groups for row in group.rows for end in _ends(row)]
        if values:
            drawn = True
            yield from _plot(groups, min(*values, 0.0), max(*values, 0.0), unit)
    if not drawn:
        reason = next((fields.get("reason") for fields in estimates.values()), None)
        yield f"nothing to plot: estimates are {undefined(reason)}"


def _plot(groups: Sequence[Group], low: float, high: float, unit: str) -> Iterator[str]:
    left, right = number(low, signed=low < 0), f"{number(high, signed=low < 0)} {unit}"
    yield f"{'':{LABEL}} {left}{right:>{PLOT - len(left)}}"
    count = 0
    total = sum(len(group.rows) for group in groups)
    for group in groups:
        if group.heading and count < MOST:
            yield shown(group.heading, render.WIDTH)
        for row in group.rows:
            if count < MOST:
                yield _line(row, low, high)
            count += 1
    if total > MOST:
        yield f"and {render.plural(total - MOST, 'more estimate')}; see the tables"


def _line(row: Row, low: float, high: float) -> str:
    bar = [" "] * PLOT

    def place(value: float) -> int:
        return round((value - low) / (high - low) * (PLOT - 1)) if high > low else 0

    bar[place(0.0)] = ZERO
    if row.value is None:
        text = "undefined"
    else:
        if row.interval is not None:
            first, last = (place(end) for end in row.interval)
            bar[first : last + 1] = (RANGE if row.span else BAR) * (last + 1 - first)
        bar[place(row.value)] = POINT
        text = number(row.value, signed=low < 0)
    name = ("*" if row.primary else " ") + shown(row.label, LABEL - 2)
    return f"{name:{LABEL}} {''.join(bar)} {text}".rstrip()


def _ends(row: Row) -> list[float]:
    return [] if row.value is None else [row.value, *(row.interval or ())]
