"""The figures of a ref/alt audit: gains of both against each other, and how their difference spreads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from audits.wording import number, undefined
from cli.report_svg import FLIP, INK, KEEP, MUTED, OTHER, RULE, TINT, Drawing, canvas, drawing, label

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes

    from audits.points import PairPoints

POINTS = 4000  # beyond so many the plane is drawn as counts
CELLS = 48
BARS = 48
MARGIN = 0.06
CENTRES = (
    ("interaction", "mean", INK, "-"),
    ("interaction.median", "median", FLIP, "--"),
    ("interaction.trimmed10", "trimmed mean", OTHER, ":"),
)


def scatter(points: PairPoints, names: Mapping[str, str]) -> Drawing:
    """Each transition by its gain under both channels; the tinted quadrants are where the sign changes."""
    ref, alt, opposed = points.ref, points.alt, points.opposed
    to_negative, to_positive = int((opposed & (ref > 0)).sum()), int((opposed & (ref < 0)).sum())
    both_positive = int(((ref > 0) & (alt > 0)).sum())
    both_negative = int(((ref < 0) & (alt < 0)).sum())
    with canvas(4.7) as figure:
        axes = figure.add_subplot()
        (left, right), (low, high) = _range(ref), _range(alt)
        axes.set_xlim(left, right)
        axes.set_ylim(low, high)
        axes.fill_between([left, 0], 0, high, color=TINT, linewidth=0)
        axes.fill_between([0, right], low, 0, color=TINT, linewidth=0)
        axes.axhline(0, color=MUTED, linewidth=0.8)
        axes.axvline(0, color=MUTED, linewidth=0.8)
        if len(ref) > POINTS:
            _density(axes, points, (left, right, low, high))
        else:
            for mask, colour in ((~opposed, KEEP), (opposed, FLIP)):
                axes.scatter(ref[mask], alt[mask], s=9, color=colour, alpha=0.55, linewidths=0)
        corners = (
            (0.01, 0.99, f"− to +: {to_positive:,}", FLIP),
            (0.99, 0.99, f"both +: {both_positive:,}", KEEP),
            (0.99, 0.01, f"+ to −: {to_negative:,}", FLIP),
            (0.01, 0.01, f"both −: {both_negative:,}", KEEP),
        )
        for x, y, text, colour in corners:
            axes.text(
                x, y, text, transform=axes.transAxes, color=colour, fontweight="bold",
                horizontalalignment="left" if x < 0.5 else "right",
                verticalalignment="bottom" if y < 0.5 else "top",
            )  # fmt: skip
        axes.set_xlabel(f"gain under {label(names['ref'])}")
        axes.set_ylabel(f"gain under {label(names['alt'])}")
        total, zero = len(ref), len(ref) - to_negative - to_positive - both_positive - both_negative
        title = f"Gains under both channels: {to_negative + to_positive:,} of {total:,} change sign"
        said = (
            f"{total:,} complete transitions by their gain under {label(names['ref'])} (across) and under "
            f"{label(names['alt'])} (up). {to_negative + to_positive:,} change sign: {to_negative:,} from "
            f"positive to negative, {to_positive:,} from negative to positive. {both_positive:,} are "
            f"positive in both, {both_negative:,} negative in both, {zero:,} have a zero."
        )
        return drawing(figure, "scatter", title, said)


def distribution(points: PairPoints, estimates: Mapping[str, Any]) -> Drawing:
    """How many transitions have which interaction Ω, with the mean, the median and the trimmed mean."""
    omega = points.interaction
    with canvas(3.6) as figure:
        axes = figure.add_subplot()
        axes.hist(omega, bins=BARS, color=KEEP, alpha=0.55, linewidth=0)
        axes.axvline(0, color=MUTED, linewidth=0.8)
        for name, words, colour, line in CENTRES:
            fields = estimates.get(name)
            if fields is not None and fields["value"] is not None:
                value = fields["value"]
                axes.axvline(value, color=colour, linewidth=1.8, linestyle=line,
                             label=f"{words} {number(value)}")  # fmt: skip
        axes.set_xlabel("interaction Ω = gain of alt − gain of ref")
        axes.set_ylabel("transitions")
        handles, texts = axes.get_legend_handles_labels()
        if handles:
            figure.legend(handles, texts, loc="outside upper center", ncols=3, frameon=False, fontsize=9,
                          handlelength=1.6, columnspacing=1.2)  # fmt: skip
        below, above = int((omega < 0).sum()), int((omega > 0).sum())
        centres = ", ".join(
            f"{words} {undefined(estimates[name].get('reason')) if estimates[name]['value'] is None else number(estimates[name]['value'])}"  # noqa: E501
            for name, words, _, _ in CENTRES
            if name in estimates
        )
        said = (
            f"Histogram of the interaction of {len(omega):,} transitions, from {number(float(omega.min()))} "
            f"to {number(float(omega.max()))}; {below:,} below 0, {above:,} above; {centres}."
        )
        return drawing(figure, "omega", "Spread of the interaction Ω", said)


def _range(values: npt.NDArray[Any]) -> tuple[float, float]:
    """The range of the values and 0, with some air on both sides."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    air = (high - low) * MARGIN or 1.0
    return low - air, high + air


def _density(axes: Axes, points: PairPoints, frame: tuple[float, float, float, float]) -> None:
    """The plane in squares, each as opaque as the logarithm of its count."""
    import numpy as np

    left, right, low, high = frame
    for mask, colour in ((~points.opposed, KEEP), (points.opposed, FLIP)):
        counts, across, up = np.histogram2d(
            points.ref[mask], points.alt[mask], bins=CELLS, range=((left, right), (low, high))
        )
        places = np.argwhere(counts > 0)
        if not len(places):
            continue
        strength = np.log1p(counts[counts > 0])
        axes.scatter(
            (across[:-1] + across[1:])[places[:, 0]] / 2, (up[:-1] + up[1:])[places[:, 1]] / 2,
            s=22, marker="s", color=colour, linewidths=0, alpha=0.15 + 0.85 * strength / strength.max(),
        )  # fmt: skip
    axes.axhline(0, color=RULE, linewidth=0.8)
