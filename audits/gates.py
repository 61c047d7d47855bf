"""Gates: what a result must show before something is built on it, each judged from the record alone.

A gate whose number is undefined is not passed: what cannot be judged is no permission.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from audits import prespecified, wording
from contracts.errors import UsageError

Fields = Mapping[str, Any]
FLIPS = ("strict_flip", "preference_flip")


@dataclass(frozen=True)
class Outcome:
    """One gate: what was wanted, what the record has, and why it was not passed (None: it was)."""

    gate: str
    wanted: bool | float
    got: bool | float | None
    reason: str | None

    @property
    def passed(self) -> bool:
        """Whether the gate lets through."""
        return self.reason is None


@dataclass(frozen=True)
class Gate:
    """How a gate reads its number or statement in a result, and when that is enough.

    `says` is the failure of a flag, or what a number is. `read` gives None where the record has nothing to
    judge, and `lacks` says then what that is, or why it is undefined. `kind` is flag, share or count.
    """

    kind: str
    read: Callable[[Fields], bool | float | None]
    enough: Callable[[Any, Any], bool]
    says: str
    lacks: Callable[[Fields], str] = lambda _: "the record does not state it"

    def judge(self, name: str, wanted: bool | float, result: Fields) -> Outcome:
        """The outcome of the gate."""
        got = self.read(result)
        if got is None:
            return Outcome(name, wanted, None, self.lacks(result))
        if self.enough(got, wanted):
            return Outcome(name, wanted, got, None)
        if self.kind == "flag":
            return Outcome(name, wanted, got, self.says)
        return Outcome(name, wanted, got, f"{self.says}: {got:.6g}, {wanted:.6g} wanted")


def parse(value: Mapping[str, Any]) -> dict[str, bool | float]:
    """Gates as a plan or a command line states them; UsageError names the wrong one.

    A flag is true (false leaves it out), a share lies in [0, 1], a count is a whole number from 1.
    """
    found: dict[str, bool | float] = {}
    for name, wanted in value.items():
        gate = GATES.get(name)
        if gate is None:
            raise UsageError("unknown gate", where=f"gates.{name[:40]}", expected=" | ".join(GATES))
        number = isinstance(wanted, int | float) and not isinstance(wanted, bool)
        right = {
            "flag": isinstance(wanted, bool),
            "share": number and 0 <= wanted <= 1,
            "count": number and wanted == int(wanted) and wanted >= 1,
        }
        if not right[gate.kind]:
            expected = {"flag": "true", "share": "a share from 0 to 1", "count": "a whole number from 1"}
            raise UsageError("not what the gate needs", where=f"gates.{name}", expected=expected[gate.kind])
        if wanted is not False:
            found[name] = wanted
    return found


def judge(result: Fields, wanted: Mapping[str, bool | float]) -> tuple[Outcome, ...]:
    """Every gate that is wanted, in the order of GATES."""
    return tuple(gate.judge(name, wanted[name], result) for name, gate in GATES.items() if name in wanted)


def _reversal(result: Fields) -> bool | None:
    """Whether a strict reversal is supported under any weighting."""
    stated = result["verdicts"].get("strict_mean_reversal", {})
    judged = [stated[key] for key in ("supported", "supported@equal-target") if stated.get(key) is not None]
    return any(judged) if "supported" in stated and stated["supported"] is not None else None


def _is_flips(name: str) -> bool:
    return name == "flip_share" or (name.rpartition(".")[2] in FLIPS and ".difference." not in name)


def _flips(result: Fields) -> float | None:
    """The share of flips; the largest where a record has several, and none when one is undefined."""
    shares = [fields.get("value") for name, fields in result["estimates"].items() if _is_flips(name)]
    return None if not shares or None in shares else max(shares)


def _no_reversal(result: Fields) -> str:
    if "strict_mean_reversal" not in result["verdicts"]:
        return "this kind of audit states no reversal of the mean gain"
    gains = ("gain.ref", "gain.alt")
    return "a reversal of the mean gain cannot be judged" + _because(result, gains, ("verdict", "value"))


def _no_flips(result: Fields) -> str:
    names = [name for name in result["estimates"] if _is_flips(name)]
    if not names:
        return "this audit has no share of flips"
    return "share of flips: undefined" + _because(result, names, ("value",))


def _no_equivalence(result: Fields) -> str:
    stated = result["verdicts"].get("equivalence")
    if stated is None:
        return "equivalence cannot be judged: the audit declared no band"
    why = stated.get("reason")
    return "equivalence cannot be judged" + (f": {wording.reason(why)}" if why else "")


def _because(result: Fields, names: Iterable[str], absent: Iterable[str]) -> str:
    """Why the first of these estimates lacks one of these fields, to go behind what it is."""
    for name in names:
        fields = result["estimates"].get(name, {})
        if fields.get("reason") and any(fields.get(key) is None for key in absent):
            return f", {wording.reason(fields['reason'])}"
    return ""


def _complete(result: Fields) -> float | None:
    flow = result["flow"]
    total = flow.get("transitions")
    return flow["complete"] / total if total else None


def _attested(result: Fields) -> float | None:
    provenance = result["provenance"]
    total, levels = provenance.get("entries_in"), provenance.get("entries_by_level", {})
    return levels.get("attested", 0) / total if total else None


def _equivalent(result: Fields) -> bool | None:
    stated = result["verdicts"].get("equivalence")
    established = None if stated is None else stated.get("established")
    # the verdict is a word or a truth, by the version that wrote it
    return None if established is None else established in (True, "established")


def _ahead(result: Fields) -> bool | None:
    said = prespecified.of(result)
    return False if said is None else bool(said["prespecified"])


GATES: Mapping[str, Gate] = {
    "no_strict_reversal": Gate(
        "flag", _reversal, lambda got, _: not got, "a strict reversal of the mean gain is supported",
        _no_reversal,
    ),
    "max_flip_share": Gate("share", _flips, lambda got, most: got <= most, "share of flips", _no_flips),
    "equivalence": Gate(
        "flag", _equivalent, lambda got, _: got, "equivalence within the band is not established",
        _no_equivalence,
    ),
    "min_complete_share": Gate(
        "share", _complete, lambda got, least: got >= least, "share of transitions that are complete",
        lambda _: "share of transitions that are complete: undefined, the record counts no transitions",
    ),
    "min_attested_share": Gate(
        "share", _attested, lambda got, least: got >= least, "share of entries that are attested",
        lambda _: "share of entries that are attested: undefined, no entry was in scope",
    ),
    "min_trajectories": Gate(
        "count", lambda result: result["flow"].get("trajectories"), lambda got, n: got >= n, "trajectories",
        lambda _: "trajectories: this kind of audit counts none",
    ),
    "prespecified": Gate("flag", _ahead, lambda got, _: got, "no plan preceded the first entry"),
}  # fmt: skip
