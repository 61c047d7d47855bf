"""How numbers and undefined values read for people: signs, three decimals, brackets, reasons in words.

Display only; verdicts are never taken from what is printed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# A nonzero number below this would print as 0.000 and hide its sign.
VISIBLE = 0.0005

REASONS = {
    "empty_cohort": "no complete transition",
    "one_cluster": "one trajectory has no spread to resample",
    "too_few_clusters": "fewer than 10 trajectories",
    "undefined_replicates": "more than 1 % of the replicates are undefined",
    "empty_type": "a target type has no transition",
    "too_many_types": "more than 20 target types; name some with --target-types",
    "one_class": "all trajectories have the same outcome",
    "few_of_a_class": "fewer than 10 trajectories of one outcome",
    "one_acquisition": "one acquisition only",
    "zero_denominator": "nothing varies",
    "zero_events": "no event was seen",
    "no_excluded": "nothing was excluded",
    "means_do_not_oppose": "the means do not have opposite strict signs",
    "means_do_not_agree": "the means do not share a strict sign",
    "the_mean_is_zero": "the mean is exactly 0",
    "the_mean_is_not_inside_the_band": "the mean itself is not inside the band",
    "no_verdict": "a weighting gives no verdict",
    "no_strict_verdict": "the cohort's own verdict is not strict",
    "several_corners_missing": "several corners are missing",
}


# What closes the id of an estimate or verdict, in words; before it may stand what people called a vertex.
_NAMED = {
    "gain.ref": "gain ref",
    "gain.alt": "gain alt",
    "auc_gap": "AUC gap",
    "strict_mean_reversal": "strict reversal of the mean",
    "all_interactions_negative": "every interaction negative",
    "strict_reversal_everywhere": "strict reversal everywhere",
    "state.view_before": "state under view before",
    "state.view_after": "state under view after",
    "view.state_before": "view under state before",
    "view.state_after": "view under state after",
    "depends_on_weights": "depends on the weights",
}


def named(code: str) -> str:
    """The id of an estimate, a verdict or a sign as people say it; names that a user gave stay."""
    for end, words in _NAMED.items():
        if code == end:
            return words
        if code.endswith(f".{end}"):
            return f"{code.removesuffix(end).removesuffix('.')} {words}"
    under, mark, weighting = code.rpartition("@")
    return f"{named(under)}@{weighting}" if mark else code


def reason(code: str) -> str:
    """A reason code in words."""
    return REASONS.get(code, code.replace("_", " "))


def undefined(code: str | None) -> str:
    """What stands where a number would: never 0, never nan."""
    return f"undefined ({reason(code)})" if code else "undefined"


def number(value: float, *, signed: bool = True) -> str:
    """A number with its sign and three decimals; a sign that rounding would hide is kept."""
    if value == 0:
        return "0.000"
    sign = "+" if signed else ""
    return format(value, f"{sign}.1e" if abs(value) < VISIBLE else f"{sign}.3f")


def interval(ends: Sequence[float], *, signed: bool = True) -> str:
    """Both ends of an interval in brackets."""
    low, high = ends
    return f"[{number(low, signed=signed)}, {number(high, signed=signed)}]"


def estimate(fields: Mapping[str, object], *, signed: bool = True) -> str:
    """An estimate of a record as `+0.163 [+0.103, +0.221]`, or why there is none."""
    value, ends = fields.get("value"), fields.get("ci95")
    why = fields.get("reason")
    code = why if isinstance(why, str) else None
    if not isinstance(value, int | float):
        return undefined(code)
    shown = number(value, signed=signed)
    if isinstance(ends, Sequence):
        return f"{shown} {interval(ends, signed=signed)}"
    return f"{shown} [interval {undefined(code)}]"


def judged(what: str, fields: Mapping[str, object]) -> str:
    """What an estimate's interval says of its sign, in words: `what` is the subject."""
    verdict = fields.get("verdict")
    if verdict in ("positive", "negative"):
        return f"{what} is {verdict}, {estimate(fields)}"
    if verdict == "unresolved":
        return f"the sign of {what} is unresolved, {estimate(fields)}"
    if fields.get("ci95") is None:
        return f"{what} is {estimate(fields)} and has no verdict"
    why = fields.get("reason")
    return (
        f"{what} is {estimate(fields)} without a verdict ({reason(str(why)) if why else 'none is defined'})"
    )


def equivalence(stated: Mapping[str, object] | None, what: str) -> list[str]:
    """A clause on the equivalence statement of a record; none where no band was declared."""
    if stated is None:
        return []
    band, smallest = stated["band"], stated["smallest_band"]
    assert isinstance(band, float)
    if not isinstance(smallest, float):
        why = stated.get("reason")
        return [f"whether {what} lies within ±{band:g} is {undefined(str(why) if why else None)}"]
    found = "is" if stated["established"] else "is not"
    return [
        f"that {what} lies within ±{band:g} {found} established "
        f"(the smallest band would be {number(smallest, signed=False)}, post hoc)"
    ]


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
