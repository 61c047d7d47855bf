"""The words of an audit's screen, one sentence each, for `--verbose`."""

from __future__ import annotations

from cli import render

TERMS = (
    ("transition", "one frozen step of a trajectory, scored before and after it."),
    ("complete", "every layout and candidate, before and after, in every acquisition of each channel."),
    ("absent", "a score is not there: its side was refused for that, or never came."),
    ("failed:STATUS", "the evaluator gave no usable reading; its side was refused."),
    ("level", "bound: all digests are there and agree; declared: some are not; attested: signed for too."),
    ("margin", "energy of the target minus the log of the summed exponentials of its competitors."),
    ("gain", "margin after minus margin before, averaged over layouts and acquisitions."),
    ("interaction", "gain alt minus gain ref of the same transition."),
    ("equal target", "the interaction with every target type weighing alike."),
    ("trimmed 10 %", "the mean without the tenth at either end."),
    ("95 % percentile, t", "whole trajectories are resampled; t is the second, cluster-robust interval."),
    (
        "verdict",
        "the sign of the percentile interval; unresolved where it reaches 0; fragile where t differs.",
    ),
    ("ref\\alt", "transitions by the sign of their gain under ref (rows) and alt (columns)."),
    ("flips", "strict sign changes, their share of all transitions, and that share between repeats."),
    ("flip direction", "share turning from + to - less the share turning from - to +."),
    ("interaction by layout", "smallest and largest interaction over the layouts, each taken alone."),
    ("interaction leave-one-out", "smallest and largest interaction with one trajectory left out."),
    ("signs turn where", "weight in a pool or ratio of slopes that turns a sign to 0."),
    ("would have to average", "mean of what is left out that would turn the sign; nothing measured it."),
    ("orbit of layouts", "the cyclic rotations of the labels, not every order."),
)


def show() -> None:
    """Print every term with its sentence."""
    render.say("", "terms (docs/statistics.md has the definitions)")
    for term, sentence in TERMS:
        render.tell(f"{term}: {sentence}")
