"""The verdicts of the audits that go beside a transport audit, in one sentence each.

As in `audits.sentence`: read off the `result` of a record, and claiming no more than its intervals do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from audits.wording import estimate, named, undefined

Fields = Mapping[str, Any]
Names = Mapping[str, str]
DEPENDS = "depends_on_weights"
TURNS = 3  # edges of a pool that the sentence names
JOINED = (
    ("all_interactions_negative", "every interaction negative"),
    ("strict_reversal_everywhere", "a strict reversal everywhere"),
)
LOST = 3  # verdicts that do not survive, named in the sentence
DISTANCE = {"energy": "energy distance", "ks": "Kolmogorov-Smirnov"}


def _repeatability(result: Fields, names: Names) -> str:
    own = result["design"]["options"]["name"]
    parts = ("within_sd", "icc1", "sign_agreement")
    within, icc, agree = (result["estimates"][f"{own}.{part}"] for part in parts)
    if agree["value"] is None:
        return f"The repeatability of {names['channel']} is {undefined(agree['reason'])}."
    times = len(result["tables"]["acquisitions"])
    return (
        f"Over {times} acquisitions {names['channel']} gives one strict sign for a share of "
        f"{estimate(agree, signed=False)} of the transitions, within SD {estimate(within, signed=False)}, "
        f"ICC(1) {estimate(icc)}; this is no evidence of transport."
    )


def _pool(result: Fields, names: Names) -> str:
    pooled, mapped = result["estimates"]["pooled"], result["tables"]["sign_map"]
    if mapped is None:
        return f"The pooled gain is {undefined(pooled['reason'])}."
    shares = ", ".join(f"{share:.3f} {names[role]}" for role, share in result["tables"]["weights"].items())
    head = f"Pooled as {shares}, the mean gain is {estimate(pooled)}"
    if mapped["whole"] != DEPENDS:
        return (
            f"{head}; the intervals of all components are {mapped['whole']}, and so is every mixture of them."
        )
    turns = [edge for edge in mapped["edges"] if edge["turns_at"] is not None]
    if not turns:
        return f"{head}; its sign is not stable, because not every component's interval has one strict sign."
    where = " and ".join(
        f"weight {edge['turns_at']:.3f} of {names[edge['second']]}" for edge in turns[:TURNS]
    )
    more = f" and on {len(turns) - TURNS} more edges" if len(turns) > TURNS else ""
    return f"{head}; its sign depends on the weights: mixtures turn at {where}{more}."


def _mixture(result: Fields, names: Names) -> str:
    rows = {row["of"]: row for row in result["tables"]["survival"]}
    reasons = {fields.get("reason") for fields in result["estimates"].values()}
    if reasons == {"empty_cohort"}:
        return f"What survives reweighting is {undefined('empty_cohort')}."
    if "strict_mean_reversal" in rows:
        said = [_survival("the mean interaction", rows["interaction"])]
        pair = f"strict reversal of {names['ref']} and {names['alt']}"
        said.append(_joint(f"a {pair}", f"the {pair}", rows["strict_mean_reversal"]))
    else:
        said = [_counted(list(rows.values()))]
        said += [_joint(words, words, rows[name]) for name, words in JOINED if name in rows]
    post_hoc = any(limit["id"] == "post-hoc-weights" for limit in result["limits"])
    weights = "post hoc" if post_hoc else "those declared ahead"
    return f"{_capital('; '.join(said))}; the weights are {weights}."


def _joint(open_words: str, words: str, row: Fields) -> str:
    """Whether a conjunction survives, or under which weights alone it is supported."""
    if row["under"]["cohort"] is not False:
        return _survival(words, row)
    others = [weighting for weighting, holds in row["under"].items() if holds]
    found = f"only under {' and '.join(others)} weights" if others else "under none"
    return f"{open_words} is supported {found}"


def _counted(rows: Sequence[Fields]) -> str:
    """How many strict verdicts survive, and the first of those that do not."""
    strict = [row for row in rows if isinstance(row["under"]["cohort"], str) and row["survives"] is not None]
    lost = [row for row in strict if not row["survives"]]
    said = (
        f"of {len(strict)} strict verdicts under cohort weights {len(strict) - len(lost)} survive reweighting"
    )
    if not lost:
        return said
    more = f" and {len(lost) - LOST} more" if len(lost) > LOST else ""
    return f"{said}, not {', '.join(named(row['of']) for row in lost[:LOST])}{more}"


def _survival(what: str, row: Fields) -> str:
    """Whether one verdict survives the other weightings, and which of them it does not."""
    under: Mapping[str, object] = row["under"]
    own = under["cohort"]
    verdict = "is supported" if own is True else f"is {own}"
    if row["survives"] is None:
        if row["reason"] == "no_strict_verdict":
            return f"{what} {verdict} under cohort weights, so there is no verdict to survive"
        missing = " and ".join(weighting for weighting, found in under.items() if found is None)
        return f"{what} has no verdict under {missing} weights, so its survival is open"
    others = " and ".join(weighting for weighting in under if weighting != "cohort")
    if row["survives"]:
        return f"{what} {verdict} under cohort weights and survives {others} weights"
    lost = " and ".join(weighting for weighting, found in under.items() if found != own)
    return f"{what} {verdict} under cohort weights and does not survive {lost} weights"


def _redundancy(result: Fields, names: Names) -> str:
    verdicts = result["verdicts"]["redundancy"]
    if not verdicts:
        return f"The distance of the views is {undefined('empty_cohort')}."
    found: list[str] = []
    kept: list[str] = []
    open_ones: list[str] = []
    for endpoint, tests in verdicts.items():
        for name, verdict in tests.items():
            listed = open_ones if verdict is None else found if verdict == "departure_detected" else kept
            listed.append(f"{DISTANCE[name]} {endpoint}")
    parts = []
    if found:
        parts.append(f"departure from the redundancy benchmark detected ({', '.join(found)})")
    if kept:
        parts.append(f"no departure detected ({', '.join(kept)}), which is no support for redundancy")
    if open_ones:
        parts.append(f"undefined ({', '.join(open_ones)})")
    gap = result["estimates"].get("auc_gap")
    if gap is not None:
        verdict = gap.get("verdict") or "without a verdict"
        parts.append(f"paired AUC gap {verdict}, {estimate(gap)}")
    return f"Between {names['ref']} and {names['alt']}: {'; '.join(parts)}."


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


SENTENCES: Mapping[str, Callable[[Fields, Names], str]] = {
    "repeatability": _repeatability,
    "pool": _pool,
    "mixture": _mixture,
    "redundancy": _redundancy,
}
