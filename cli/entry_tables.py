"""Entries as people look at them: a line for each, its id whole, nothing wider than the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli import render

if TYPE_CHECKING:
    import pyarrow as pa


def show(tables: list[pa.Table], first: int | None) -> None:
    """The entries of some tables, or the first of them where that is asked and there are more."""
    rows = [row for table in tables for row in table.to_pylist()]
    if not rows:
        render.say("no entry matches", "next: ledger status, or ledger acquisition list")
        return
    (_print_predictions if "query_id" in rows[0] else _print_scores)(rows[:first])
    if first is not None and len(rows) > first:
        render.say(f"the first {first}; all of them: --limit N, or --format csv|jsonl|parquet")


def _print_scores(rows: list[dict[str, Any]]) -> None:
    """A line for each entry, its id whole and its value before what may be long.

    Where that is too wide, transition, channel and acquisition stand above the entries they have in common.
    """
    headings = ("entry", "energy", "end", "lay", "cand")
    naming = ("transition", "channel", "acquisition")
    cells = [
        (
            row["entry"],
            f"{row['energy']:+.3f}",
            row["endpoint"],
            str(row["layout"]),
            row["candidate"],
            f"{row['trajectory_id']}/{row['step']}",
            row["channel"],
            row["acquisition_id"],
        )
        for row in rows
    ]
    lines = _aligned([(*headings, *naming), *cells])
    if max(map(len, lines)) <= render.WIDTH:
        render.say(*lines)
        return
    head, *lines = _aligned([headings, *(cell[: len(headings)] for cell in cells)])
    render.tell(head)
    above = None
    for line, (transition, channel, acquisition) in zip(
        lines, (c[len(headings) :] for c in cells), strict=True
    ):
        if above != (above := (transition, channel, acquisition)):
            render.tell(f"{transition} under {channel}, acquisition {acquisition}")
        render.tell(line)


def _aligned(cells: list[tuple[str, ...]]) -> list[str]:
    """Columns of text as lines, two spaces apart where the lines then fit the screen, else one."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    gap = "  " if sum(widths) + 2 * (len(widths) - 1) <= render.WIDTH else " "
    return [
        gap.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


def _print_predictions(rows: list[dict[str, Any]]) -> None:
    """Probabilities by pair, label and arm; or the positive labels, which have neither."""
    answered = "arm" in rows[0]
    headings: list[str | tuple[str, str]] = [
        ("entry", "whole"),
        "year",
        "query",
        "scenario",
        "group",
        "label",
    ]
    headings += ["arm", ("p", "right")] if answered else []
    cells = []
    for row in rows:
        group = (row["intervention"], row["mode"], row["variant"], row["channel"])
        shown = "/".join(part for part in group if part) or "undeclared"
        cell = [row["entry"], row["year"], row["query_id"], row["scenario"], shown, row["label"]]
        cells.append([*cell, row["arm"], f"{row['probability']:.4f}"] if answered else cell)
    render.console().print(render.table(headings, cells))
