"""The verdicts of face, cube and bridge in one sentence each, claiming no more than their intervals do.

Input is the `result` of a record, as in `audits.sentence`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from audits.wording import equivalence, judged, listed, undefined

Fields = Mapping[str, Any]
Names = Mapping[str, str]
SHARES = (("view", "the share of the view"), ("state", "the share of the state"))
CONJUNCTIONS = (
    ("all_interactions_negative", "interaction", "negative", "the interaction is negative"),
    ("all_auc_gaps_positive", "auc_gap", "positive", "the AUC gap is positive"),
)


def _face(result: Fields, names: Names) -> str:
    del names
    verdicts, estimates = result["verdicts"], result["estimates"]
    missing = verdicts.get("identification", {}).get("missing")
    if missing is not None:
        corners = " and ".join(f"(state {e}, view {role.removeprefix('view_')})" for role, e in missing)
        return f"The split is not identified: no complete scores of the corner {corners}."
    if estimates["diagonal"]["value"] is None:
        return f"The split is {undefined(estimates['diagonal'].get('reason'))}."
    clauses = [judged(what, estimates[share]) for share, what in SHARES]
    clauses.append(judged("their sum, the diagonal,", estimates["diagonal"]))
    apart = [s for s, _ in SHARES if verdicts["paths"][s]["points_agree"] is False]
    if apart:
        clauses.append(f"the two paths of {' and of '.join(apart)} do not have one sign")
    clauses += equivalence(verdicts.get("equivalence"), "the share of the view")
    return _sentence(clauses)


def _cube(result: Fields, names: Names) -> str:
    del names
    estimates, options = result["estimates"], result["design"]["options"]
    first, second = options["levels"]
    change = f"the change of {first[-1]} minus {first[-2]} from {second[0]} to {second[-1]}"
    fields = estimates[result["design"]["primary"]]
    if fields["value"] is None:
        return f"{change[0].upper()}{change[1:]} is {undefined(fields.get('reason'))}."
    clauses = [judged(change, fields)]
    clauses += equivalence(result["verdicts"].get("equivalence"), "the change")
    for earlier, later in reversed(list(pairwise(first))):
        found = {level: estimates[f"contrast.{later}-{earlier}/{level}"].get("verdict") for level in second}
        clauses.append(f"{later} minus {earlier} is {_by_level(found)}")
    return _sentence(clauses)


def _by_level(found: Mapping[str, str | None]) -> str:
    """Verdicts by level: `negative at neutral and unresolved at evidence-primary`."""
    said = {level: verdict or "without a verdict" for level, verdict in found.items()}
    if len(set(said.values())) == 1:
        return f"{next(iter(said.values()))} at {listed(list(said))}"
    return listed([f"{verdict} at {level}" for level, verdict in said.items()])


def _bridge(result: Fields, names: Names) -> str:
    del names
    bridge, estimates = result["verdicts"]["bridge"], result["estimates"]
    vertices = bridge["observed"]
    unseen = [row["vertex"] for row in bridge["unobserved"]]
    if not vertices:
        return f"No vertex was observed: {listed(unseen)}."
    if all(estimates[f"{v}.interaction"]["value"] is None for v in vertices):
        return f"The interactions are {undefined(estimates[f'{vertices[0]}.interaction'].get('reason'))}."
    clauses = list(_conjunctions(bridge, estimates, vertices))
    clauses.append("vertices compare by direction only")
    if unseen:
        were = "was" if len(unseen) == 1 else "were"
        clauses.append(f"{listed(unseen)} {were} not observed, so the compound endpoint is not decomposed")
    return _sentence(clauses)


def _conjunctions(bridge: Fields, estimates: Fields, vertices: Sequence[str]) -> Iterator[str]:
    """What holds at every observed vertex, or where it does not."""
    held, where = [], f"at {listed(vertices)}"
    others = []
    for name, part, wanted, words in CONJUNCTIONS:
        if bridge[name]:
            held.append(words)
        elif bridge[name] is not None:
            apart = [f"{v}.{part}" for v in vertices if estimates[f"{v}.{part}"].get("verdict") != wanted]
            found = [f"{estimates[a]['verdict']} at {a.partition('.')[0]}" for a in apart]
            others.append(f"not everywhere is it shown that {words}: {listed(found)}")
        elif all(f"{v}.{part}" in estimates for v in vertices):
            others.append(f"whether {words} everywhere has no verdict")
    if bridge["strict_reversal_everywhere"]:
        held.insert(1, "a strict reversal of the mean gain is supported")
    elif bridge["strict_reversal_everywhere"] is not None:
        others.append("a strict reversal of the mean gain is not supported everywhere")
    if held:
        yield f"{where} {listed(held)}"
    yield from others


def _sentence(clauses: Sequence[str]) -> str:
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}."


SENTENCES: Mapping[str, Callable[[Fields, Names], str]] = {"face": _face, "cube": _cube, "bridge": _bridge}
