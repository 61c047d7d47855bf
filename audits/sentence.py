"""The verdict of a ref/alt audit in one sentence that claims no more than its intervals do.

Input is the `result` of a record (parsed JSON), so a stored record reads as it did when it was made.
A clause is added for everything that weakens the verdict: the t interval disagrees (fragile), zero lies
within the Monte Carlo error of an endpoint, the median or the trimmed mean has another verdict, or the
other weighting of targets has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from audits.companion_sentences import SENTENCES as COMPANIONS
from audits.family_sentences import SENTENCES as FAMILY
from audits.wording import equivalence, judged, listed, number, reason, undefined

Fields = Mapping[str, Any]
SUFFIX = {"cohort": "", "equal-target": "@equal-target"}
WEIGHTED = {"cohort": "cohort-weighted", "equal-target": "with equal target weights"}
OTHER = {"cohort": "equal-target", "equal-target": "cohort"}
LOCATIONS = (("interaction.median", "the median"), ("interaction.trimmed10", "the trimmed mean"))


def sentence(result: Mapping[str, Any], **names: str) -> str:
    """What the audit found, with its arms called by `names`, one for each role."""
    kinds = {**FAMILY, **COMPANIONS}
    return kinds.get(result["design"].get("audit", ""), _pair)(result, names)


def _pair(result: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """What an audit of a reference and an alternative found."""
    ref, alt = names["ref"], names["alt"]
    verdicts, estimates = result["verdicts"], result["estimates"]
    identification = verdicts.get("identification")
    if identification is not None:
        return _not_identified(identification, {"ref": ref, "alt": alt})
    weights = result["design"]["weights"]["quoted"]
    suffix = SUFFIX[weights]
    quoted = {name: estimates[name + suffix] for name in ("gain.ref", "gain.alt", "interaction")}
    interaction = quoted["interaction"]
    if interaction.get("value") is None:
        return f"{_capital(WEIGHTED[weights])}, the interaction is {undefined(interaction.get('reason'))}."
    head = f"{_capital(WEIGHTED[weights])}, {judged('the mean interaction', interaction)}"
    head += _locations(estimates, interaction)
    clauses = [head, _gains(quoted, verdicts["strict_mean_reversal"], suffix, ref, alt)]
    clauses += equivalence(verdicts.get("equivalence"), "the mean interaction")
    clauses += [*_weak(quoted), *_reweighted(result, weights)]
    return "; ".join(clauses) + "."


def _not_identified(found: Mapping[str, Any], names: Mapping[str, str]) -> str:
    corners = " and ".join(f"({names[arm]}, {endpoint})" for arm, endpoint in found["missing"])
    said = f"The interaction is not identified: no complete scores of the corner {corners}"
    if "range" not in found:
        return f"{said}."
    if found["interval"] is None:
        return f"{said}, and no interval follows from the declared range ({reason(found['reason'])})."
    (low, high), (least, most) = found["range"], found["interval"]
    return (
        f"{said}; were its mean margin within [{number(low)}, {number(high)}], the interaction "
        f"would lie in [{number(least)}, {number(most)}]."
    )


def _gains(quoted: Mapping[str, Fields], reversal: Fields, suffix: str, ref: str, alt: str) -> str:
    first, second = (number(quoted[name]["value"]) for name in ("gain.ref", "gain.alt"))
    gains = f"{first} under {ref} and {second} under {alt}"
    if reversal.get("supported" + suffix):
        return f"a strict reversal of the mean gain is supported, {gains}"
    if reversal.get("point" + suffix):
        return f"the mean gains oppose each other as points only, no reversal is supported, {gains}"
    return f"the mean gains do not oppose each other, no reversal is shown, {gains}"


def _weak(quoted: Mapping[str, Fields]) -> list[str]:
    clauses = []
    fragile = [name for name, fields in quoted.items() if fields.get("fragile")]
    if fragile:
        clauses.append(f"fragile: the t interval gives another verdict for {listed(fragile)}")
    sensitive = [name for name, fields in quoted.items() if fields.get("mc_sensitive")]
    if sensitive:
        clauses.append(f"more resamples could turn the verdict for {listed(sensitive)}")
    return clauses


def _locations(estimates: Mapping[str, Fields], interaction: Fields) -> str:
    """A clause when the median or trimmed mean has another verdict than the mean that is quoted."""
    verdict = interaction.get("verdict")
    if verdict is None:
        return ""
    apart = {
        words: estimates[name]["verdict"]
        for name, words in LOCATIONS
        if estimates.get(name, {}).get("verdict") not in (None, verdict)
    }
    found = set(apart.values())
    if len(apart) == 2 and len(found) == 1:
        return f", which {' and '.join(apart)} (both {found.pop()}) do not share"
    said = " and ".join(f"{words} ({other})" for words, other in apart.items())
    return f", which {said} {'does' if len(apart) == 1 else 'do'} not share" if apart else ""


def _reweighted(result: Mapping[str, Any], weights: str) -> list[str]:
    """A clause when the weighting that is not quoted supports something else."""
    other = OTHER[weights]
    reversal, estimates = result["verdicts"]["strict_mean_reversal"], result["estimates"]
    mine, theirs = reversal.get("supported" + SUFFIX[weights]), reversal.get("supported" + SUFFIX[other])
    clauses = []
    if mine is not None and theirs is not None and mine != theirs:
        clauses.append(f"{WEIGHTED[other]} the reversal is {'supported' if theirs else 'not supported'}")
    here = estimates["interaction" + SUFFIX[weights]].get("verdict")
    there = estimates.get("interaction" + SUFFIX[other], {}).get("verdict")
    if here is not None and there is not None and here != there:
        clauses.append(f"{WEIGHTED[other]} the interaction is {there}")
    return clauses


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
