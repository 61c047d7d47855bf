"""Estimates as people read them: one line each with both intervals and the verdict, in 80 columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from audits.wording import interval, number, reason, undefined
from cli import render

Fields = Mapping[str, Any]
WHAT = "mean over transitions"
RATES = ("flip_share", "interaction.negative_share", "auc.ref", "auc.alt")


def line(text: str) -> None:
    """One line: cut on a terminal too narrow for it, wrapped and whole in a pipe."""
    render.say(*render.one_line(text))


def estimates(
    result: Fields, labels: Mapping[str, str], *, what: str = WHAT, unsigned: Collection[str] = RATES
) -> None:
    """Print estimates (id to label); of a cohort without transitions only why there are none.

    `unsigned` are the ids whose sign goes without saying.
    """
    from rich.table import Table

    named = {name: result["estimates"][name] for name in labels if name in result["estimates"]}
    if all(fields["value"] is None for fields in named.values()):
        line(f"all estimates are {undefined(next((f['reason'] for f in named.values()), None))}")
        return
    grid = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    grid.add_column(what, no_wrap=True)
    grid.add_column("value", justify="right", no_wrap=True)
    grid.add_column("95 % percentile", no_wrap=True)
    grid.add_column("95 % t", no_wrap=True)
    grid.add_column("verdict")
    for name, fields in named.items():
        grid.add_row(labels[name], *_cells(fields, signed=name not in unsigned))
    render.console().print(grid)
    reasons = dict.fromkeys(f["reason"] for f in named.values() if f.get("reason"))
    if reasons:
        line("undefined: " + "; ".join(reason(code) for code in reasons))


def _cells(fields: Fields, *, signed: bool) -> tuple[str, str, str, str]:
    """Value, both intervals and verdict; the reasons of what is undefined stand below the table."""
    ends, student = fields["ci95"], fields.get("ci95_t")
    marks = [name for name in ("fragile", "mc_sensitive") if fields.get(name)]
    verdict = fields.get("verdict") or ("undefined" if fields.get("reason") else "")
    return (
        "undefined" if fields["value"] is None else number(fields["value"], signed=signed),
        "undefined" if ends is None else interval(ends, signed=signed),
        interval(student, signed=signed) if student else "",
        ", ".join(part for part in (verdict, *marks) if part),
    )
