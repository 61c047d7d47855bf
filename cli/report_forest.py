"""The interval forest: every estimate as a point with its intervals, grouped by what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from audits.wording import number
from cli.report_svg import FLIP, INK, KEEP, MUTED, RULE, Drawing, canvas, drawing, label

Fields = Mapping[str, Any]
ROWS = 60  # rows of one forest; the table below has them all
# What ends the id of an estimate that is a share, not a number of margin units.
SHARES = (
    "share", "share_below_half", "flip", "tie", "action_change", "agreement", "icc1", "direction_difference",
    "accuracy_before", "accuracy_after", "accuracy_difference", "auc", "auc_gap",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One line of a forest. A `span` is a range without a point, which no interval is."""

    label: str
    value: float | None
    interval: Sequence[float] | None
    second: Sequence[float] | None = None
    span: bool = False
    primary: bool = False


@dataclass(frozen=True)
class Group:
    """Rows under one heading."""

    heading: str
    rows: tuple[Row, ...]


def is_share(name: str) -> bool:
    """Whether an estimate is a share, an area or a difference of such."""
    stem = name.partition("@")[0]
    return stem.startswith("auc") or ".auc." in stem or stem.endswith(SHARES)


def row(text: str, fields: Fields) -> Row:
    """An estimate of a record as a row."""
    second = fields.get("ci95_t") or fields.get("ci95_wilson")
    return Row(text, fields["value"], fields["ci95"], second, primary=fields.get("role") == "primary")


def pair_groups(result: Fields, names: Mapping[str, str]) -> list[Group]:
    """Channels, interaction, layouts, weights and the range over left-out trajectories."""
    estimates = result["estimates"]

    def rows(*wanted: tuple[str, str]) -> tuple[Row, ...]:
        return tuple(row(text, estimates[name]) for name, text in wanted if name in estimates)

    channels = rows(*((f"gain.{role}", f"gain {names[role]}") for role in ("ref", "alt")))
    interaction = rows(
        ("interaction", "mean Ω"), ("interaction.median", "median Ω"),
        ("interaction.trimmed10", "10 % trimmed Ω"),
    )  # fmt: skip
    prefix = "interaction.layout."
    places = sorted(int(name.removeprefix(prefix)) for name in estimates if name.startswith(prefix))
    layouts = rows(*((f"{prefix}{place}", f"Ω in layout {place}") for place in places))
    weights = rows(
        ("gain.ref@equal-target", "gain ref"), ("gain.alt@equal-target", "gain alt"),
        ("interaction@equal-target", "mean Ω"),
    )  # fmt: skip
    left_out = result["tables"].get("leave_one_trajectory_out", {})
    found = [
        Group("channels", channels),
        Group("interaction", interaction),
        Group("layouts", layouts),
        Group("equal target weights", weights),
    ]
    if left_out.get("min") is not None:
        value, ends = estimates["interaction"]["value"], (left_out["min"], left_out["max"])
        found.append(Group("leaving one trajectory out", (Row("range of mean Ω", value, ends, span=True),)))
    return [group for group in found if group.rows]


def plain_groups(estimates: Fields, *, shares: bool) -> list[Group]:
    """Every estimate of one unit, grouped by what stands before its last part."""
    grouped: dict[str, list[Row]] = {}
    for name, fields in estimates.items():
        if is_share(name) == shares:
            heading, _, last = name.rpartition(".")
            grouped.setdefault(heading, []).append(row(last.replace("_", " "), fields))
    return [Group(heading, tuple(rows)) for heading, rows in grouped.items()]


def forest(groups: Sequence[Group], name: str, title: str, unit: str) -> Drawing | None:
    """The groups as one figure; None where nothing in them has a value."""
    if not any(r.value is not None for group in groups for r in group.rows):
        return None
    lines: list[tuple[str, Row | None]] = []
    for group in groups:
        if group.heading:
            lines.append((group.heading, None))
        lines += [(r.label, r) for r in group.rows]
    cut = lines[:ROWS]
    with canvas(0.75 + 0.235 * len(cut)) as figure:
        axes = figure.add_subplot()
        axes.axvline(0, color=MUTED, linewidth=0.8)
        for place, (_, drawn) in enumerate(cut):
            if drawn is not None and drawn.value is not None:
                _draw(axes, place, drawn)
        axes.set_ylim(len(cut) - 0.4, -0.6)
        axes.set_yticks(range(len(cut)))
        axes.set_yticklabels([label(text) if r else label(text, 34) for text, r in cut])
        for tick, (_, r) in zip(axes.get_yticklabels(), cut, strict=True):
            tick.set_fontweight("bold" if r is None else "normal")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x", color=RULE, linewidth=0.4, alpha=0.6)
        axes.set_xlabel(unit)
        axes.locator_params(axis="x", nbins=6)
        return drawing(figure, name, title, _said(groups, len(lines) - len(cut)))


def _draw(axes: Any, place: int, drawn: Row) -> None:
    colour = FLIP if drawn.primary else INK
    if drawn.interval is not None:
        low, high = drawn.interval
        if drawn.span:
            axes.plot([low, high], [place, place], color=MUTED, linewidth=5, solid_capstyle="butt", alpha=0.5)
        else:
            axes.plot([low, high], [place, place], color=colour, linewidth=2.2, solid_capstyle="butt")
    if drawn.second is not None:
        axes.plot(list(drawn.second), [place, place], color=KEEP, marker="|", markersize=7, linestyle="none")
    axes.plot([drawn.value], [place], color=colour, marker="D" if drawn.primary else "o", markersize=5)


def _said(groups: Sequence[Group], more: int) -> str:
    parts = []
    for group in groups:
        rows = "; ".join(_row_said(r) for r in group.rows[:ROWS])
        parts.append(f"{label(group.heading, 60)}: {rows}" if group.heading else rows)
    text = "Points with 95 % percentile intervals. " + ". ".join(parts) + "."
    return text + (f" {more:,} more lines stand in the table." if more > 0 else "")


def _row_said(r: Row) -> str:
    signed = r.interval is None or min(r.interval) < 0
    if r.value is None:
        return f"{label(r.label, 40)} undefined"
    if r.interval is None:
        return f"{label(r.label, 40)} {number(r.value, signed=signed)} without an interval"
    low, high = (number(end, signed=signed) for end in r.interval)
    if r.span:
        return f"{label(r.label, 40)} from {low} to {high}"
    return f"{label(r.label, 40)} {number(r.value, signed=signed)} [{low}, {high}]"
