"""The figures of a request-independence audit: flips by scenario, before against after, changed actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cli.report_svg import (
    FLIP,
    INK,
    KEEP,
    MUTED,
    OTHER,
    RULE,
    TINT,
    Drawing,
    canvas,
    drawing,
    label,
)

if TYPE_CHECKING:
    from audits.points import SeriesPoints

BARS = 48  # bars of one figure
PLANES = 8  # series and years with a plane of their own
UNITS = 4000  # beyond so many only flips and an even share of the others are drawn
FLIPS = ("strict_flip", "preference_flip")


def flips_by_scenario(parts: Sequence[SeriesPoints]) -> Drawing:
    """The share of flipped answers in every scenario of every series and year."""
    rows: list[tuple[str, float | None, str]] = []
    for part in parts:
        rows.append((part.prefix, None, ""))
        for scene in part.scenes:
            rows.append((scene.scenario, scene.flips / scene.units, f"{scene.flips:,} / {scene.units:,}"))
    shown = rows[:BARS]
    title = "Flips by year and scenario"
    with canvas(0.75 + 0.24 * len(shown)) as figure:
        axes = figure.add_subplot()
        most = max([share for _, share, _ in shown if share is not None], default=0.0) or 1.0
        for place, (_, share, text) in enumerate(shown):
            if share is not None:
                axes.barh(place, share, height=0.66, color=FLIP, linewidth=0)
                axes.text(
                    share + most * 0.02, place, text, verticalalignment="center", fontsize=9, color=MUTED
                )
        axes.set_xlim(0, most * 1.35)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_yticks(range(len(shown)))
        axes.set_yticklabels([label(text, 34 if share is None else 22) for text, share, _ in shown])
        for tick, (_, share, _) in zip(axes.get_yticklabels(), shown, strict=True):
            tick.set_fontweight("bold" if share is None else "normal")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x", color=RULE, linewidth=0.4, alpha=0.6)
        axes.set_axisbelow(True)
        axes.set_xlabel("share of answers that flip")
        said = "; ".join(
            f"{label(part.prefix, 40)}: "
            + ", ".join(f"{label(s.scenario)} {s.flips:,} of {s.units:,}" for s in part.scenes[:BARS])
            for part in parts[:BARS]
        )
        return drawing(figure, "flips", title, f"Flipped answers by scenario. {said}.")


def plane(part: SeriesPoints, place: int) -> Drawing:
    """Every answer before against after; an answer in a tinted quadrant has changed its side of 1/2."""
    import numpy as np

    kept = np.flatnonzero(~part.flipped)
    total = len(part.before)
    if total > UNITS:
        kept = kept[:: -(-len(kept) // UNITS)]
    flipped = np.flatnonzero(part.flipped)[:UNITS]
    what = "share q of two labels" if part.shares else "probability"
    with canvas(4.7) as figure:
        axes = figure.add_subplot()
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.fill_between([-0.02, 0.5], 0.5, 1.02, color=TINT, linewidth=0)
        axes.fill_between([0.5, 1.02], -0.02, 0.5, color=TINT, linewidth=0)
        axes.axhline(0.5, color=MUTED, linewidth=0.9)
        axes.axvline(0.5, color=MUTED, linewidth=0.9)
        axes.plot([0, 1], [0, 1], color=RULE, linewidth=0.8, linestyle="--")
        for places, colour in ((kept, KEEP), (flipped, FLIP)):
            axes.scatter(part.before[places], part.after[places], s=12, color=colour, alpha=0.6, linewidths=0)
        up = int((part.flipped & (part.before < 0.5)).sum())
        down = int(part.flipped.sum()) - up
        for x, y, text in (
            (0.01, 0.99, f"below to above: {up:,}"),
            (0.99, 0.01, f"above to below: {down:,}"),
        ):
            axes.text(x, y, text, transform=axes.transAxes, color=FLIP, fontweight="bold",
                      horizontalalignment="left" if x < 0.5 else "right",
                      verticalalignment="bottom" if y < 0.5 else "top")  # fmt: skip
        axes.set_xlabel(f"{what} before")
        axes.set_ylabel(f"{what} after")
        thinned = f" Of the others {len(kept):,} are drawn, evenly spaced." if total > UNITS else ""
        said = (
            f"{total:,} answers of {label(part.prefix, 60)} before (across) against after (up), with lines "
            f"at 0.5. {up + down:,} flip: {up:,} from below to above, {down:,} from above to below; "
            f"{int(part.tied.sum()):,} are exactly at 0.5 in one arm and never a flip.{thinned}"
        )
        return drawing(figure, f"plane{place}", f"Before against after: {label(part.prefix, 60)}", said)


def action_changes(counts: Mapping[str, Any]) -> Drawing | None:
    """In how many pairs the chosen action changed, with and without a flip; from the record alone."""
    rows = [(prefix, c) for prefix, c in counts.items() if c["pairs"]][:BARS]
    if not rows:
        return None
    with canvas(1.15 + 0.34 * len(rows)) as figure:
        axes = figure.add_subplot()
        most = max(c["action_change"] / c["pairs"] for _, c in rows) or 1.0
        for place, (_, c) in enumerate(rows):
            silent, pairs = c["actions_changed_without_flip"], c["pairs"]
            loud = c["action_change"] - silent
            axes.barh(place, loud / pairs, height=0.6, color=FLIP, linewidth=0,
                      label=None if place else "with a flip")  # fmt: skip
            axes.barh(place, silent / pairs, left=loud / pairs, height=0.6, color=OTHER, linewidth=0,
                      label=None if place else "without any flip")  # fmt: skip
            end = (loud + silent) / pairs + most * 0.03
            text = f"{loud:,} + {silent:,} of {pairs:,}"
            axes.text(end, place, text, verticalalignment="center", fontsize=9, color=INK)
        axes.set_xlim(0, most * 1.5)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_yticks(range(len(rows)))
        axes.set_yticklabels([label(prefix, 22) for prefix, _ in rows])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("share of pairs whose action changes")
        figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
        said = "; ".join(
            f"{label(prefix, 40)}: {c['action_change']:,} of {c['pairs']:,} pairs, "
            f"{c['actions_changed_without_flip']:,} of them without any flip"
            for prefix, c in rows
        )
        return drawing(figure, "actions", "Changed actions", f"Pairs whose action changes. {said}.")
