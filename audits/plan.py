"""What a plan says, read from a file: one audit's design, the estimates it is about, and its gates.

    name, audit            required; audit is transport, contrast, face, repeatability or jev
    ref, alt | channel     the arms, as on the command line
    estimands              ids of estimates; a last * stands for anything
    primary, weights, target_types, resamples, seed, band, require, where, acquisitions
    gates                  see `audits.gates`
    design                 in place of all these: the design of a record, of any kind of audit

The design in a plan is the one that the audit's own record will have, so both can be compared.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from audits import design as designs
from audits import jev_design
from audits.arms import parse_arm
from audits.design import RESAMPLES, SEED, Design, scope_of
from audits.equivalence import band_options
from audits.jev_design import JevDesign
from contracts.channel import ChannelBook
from contracts.errors import MalformedError, UsageError
from ledger.snapshot import Arm, Level, PredictionScope, Snapshot

VERSION = 1
PAIRS = ("transport", "contrast")
SINGLES = ("face", "repeatability")
COMPLETENESS = "joint-all-cells-all-acquisitions-v1"
_COMMON = ("name", "audit", "estimands", "gates", "resamples", "seed", "require", "acquisitions")
_FAMILY = ("primary", "where", "band", "completeness")
ALLOWED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(PAIRS, (*_COMMON, *_FAMILY, "ref", "alt", "weights", "target_types")),
    **dict.fromkeys(SINGLES, (*_COMMON, *_FAMILY, "channel")),
    "jev": (*_COMMON, "channels", "interventions", "modes", "scenarios", "threshold", "label_order"),
}
BY_DESIGN = ("name", "audit", "estimands", "gates", "design")
_WEIGHED = ("gain.ref", "gain.alt", "interaction")
_PAIR = (
    *_WEIGHED, "interaction.median", "interaction.trimmed10", "interaction.negative_share", "flip_share",
    "flip_direction_difference", "diagonal", "baseline_shift", "auc.ref", "auc.alt", "auc_gap",
    *(f"{name}@equal-target" for name in _WEIGHED),
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """One declared audit: its design, the ids (or beginnings of ids) it is about, and its gates."""

    name: str
    design: Design | JevDesign
    estimands: tuple[str, ...]
    gates: Mapping[str, Any] = field(default_factory=dict)

    @property
    def audit(self) -> str:
        """The kind of audit."""
        return self.design.audit if isinstance(self.design, Design) else jev_design.AUDIT

    def as_json(self) -> dict[str, Any]:
        """The plan as the log holds it; `parse` reads it back."""
        return {
            "v": VERSION,
            "audit": self.audit,
            "design": self.design.as_json(),
            "estimands": list(self.estimands),
            "gates": dict(self.gates),
        }

    def names(self, estimate: str) -> bool:
        """Whether the plan is about an estimate."""
        return any(
            estimate.startswith(name[:-1]) if name.endswith("*") else estimate == name
            for name in self.estimands
        )


def parse(name: str, value: Mapping[str, Any], book: ChannelBook) -> Plan | None:
    """The plan in the log; None when its method is not the one this program computes by."""
    if value.get("v") != VERSION or set(value) != {"v", "audit", "design", "estimands", "gates"}:
        raise MalformedError("not a plan of this version", where=f"plan {name}")
    found = read_design(str(value["audit"]), value["design"], book)
    estimands, gates = value["estimands"], value["gates"]
    if not isinstance(gates, Mapping) or not _texts(estimands):
        raise MalformedError("not a plan of this version", where=f"plan {name}")
    return None if found is None else Plan(name, found, tuple(estimands), gates)


def read_design(audit: str, value: object, book: ChannelBook) -> Design | JevDesign | None:
    """The design of a record of any kind of audit; None when this program has another method for it."""
    if audit == jev_design.AUDIT:
        return jev_design.parse(value, book)
    return designs.parse(value, book)


def read(document: Mapping[str, Any], snapshot: Snapshot) -> Plan:
    """The plan that a file describes; UsageError names the key that is wrong."""
    name, audit = _text(document, "name"), _text(document, "audit")
    if "design" in document:
        _known(document, BY_DESIGN)
        made = read_design(audit, document["design"], snapshot.book)
        if made is None:
            raise UsageError("a design of another version of this program", where="design")
    elif audit in ALLOWED:
        _known(document, ALLOWED[audit])
        made = _jev(document, snapshot) if audit == jev_design.AUDIT else _family(audit, document, snapshot)
    else:
        raise UsageError(
            "no plan of that kind can be written out", where="audit", got=audit[:40],
            expected=" | ".join(ALLOWED), next_step="give the design of a record as `design`",
        )  # fmt: skip
    if (made.audit if isinstance(made, Design) else jev_design.AUDIT) != audit:
        raise UsageError("the design is of another kind of audit", where="audit", got=audit[:40])
    gates = document.get("gates", {})
    if not isinstance(gates, Mapping):
        raise UsageError("gates are a table", where="gates")
    return Plan(name, made, _estimands(document, audit, made), dict(gates))


def _family(audit: str, document: Mapping[str, Any], snapshot: Snapshot) -> Design:
    pair = audit in PAIRS
    roles = ("ref", "alt") if pair else ("channel",)
    arms = [_arm(audit, _text(document, role), snapshot, role) for role in roles]
    if document.get("completeness", COMPLETENESS) != COMPLETENESS:
        raise UsageError("unknown completeness rule", where="completeness", expected=COMPLETENESS)
    usual = {"face": "view", "repeatability": f"{arms[0].channel.name}.within_sd"}.get(audit, "interaction")
    primary = str(document.get("primary", usual))
    if primary != usual and "band" in document:
        raise UsageError("a band is about the usual primary estimate", where="primary", expected=usual)
    types = _list(document, "target_types") if "target_types" in document else None
    return Design(
        audit=audit,
        roles=roles if audit != "face" else _face_roles(),
        scope=scope_of(
            arms if audit != "face" else _face_arms(arms[0]),
            where={k: _list(document["where"], k) for k in document.get("where", {})},
            acquisitions=_acquisitions(document, snapshot),
            require=_level(document),
        ),
        primary=primary,
        resamples=_whole(document, "resamples", RESAMPLES),
        seed=_whole(document, "seed", SEED),
        quoted=document.get("weights", "cohort"),
        target_types=None if types is None else tuple(sorted(types)),
        options=band_options(_number(document, "band"))
        | ({"name": arms[0].channel.name} if audit == "repeatability" else {}),
    )


def _face_roles() -> tuple[str, ...]:
    from audits.face import ROLES

    return tuple(ROLES)


def _face_arms(arm: Arm) -> list[Arm]:
    from audits.flow import ENDPOINTS

    return [Arm(arm.channel, endpoint) for endpoint in ENDPOINTS]


def _jev(document: Mapping[str, Any], snapshot: Snapshot) -> JevDesign:
    channels = _optional(document, "channels")
    order = _optional(document, "label_order")
    return JevDesign(
        scope=PredictionScope(
            channels=None
            if channels is None
            else tuple(sorted(snapshot.book.resolve(name).fingerprint for name in channels)),
            interventions=_optional(document, "interventions"),
            modes=_optional(document, "modes"),
            scenarios=_optional(document, "scenarios"),
            acquisitions=tuple(_acquisitions(document, snapshot)),
            require=_level(document),
        ),
        threshold=_number(document, "threshold") or 0.5,
        label_order=order,
        resamples=_whole(document, "resamples", jev_design.RESAMPLES),
        seed=_whole(document, "seed", SEED),
    )


def _estimands(document: Mapping[str, Any], audit: str, made: Design | JevDesign) -> tuple[str, ...]:
    stated = _list(document, "estimands")
    if isinstance(made, Design) and made.primary not in stated:
        stated = [made.primary, *stated]
    for name in stated if audit in PAIRS else ():
        if name not in _PAIR and not name.endswith("*") and not name.startswith("interaction.layout."):
            close = difflib.get_close_matches(name, _PAIR, n=3) or _PAIR[:3]
            raise UsageError(
                "no estimate has that id", where="estimands", got=name[:80], expected=", ".join(close)
            )
    return tuple(dict.fromkeys(stated))


def _arm(audit: str, text: str, snapshot: Snapshot, key: str) -> Arm:
    if audit in ("transport", "face"):
        return Arm(snapshot.book.resolve(text))
    return parse_arm(text, snapshot, key)


def _acquisitions(document: Mapping[str, Any], snapshot: Snapshot) -> list[tuple[str | None, str]]:
    """`ID`, or [channel, ID] for one channel; the ledger need not know the id yet."""
    found: list[tuple[str | None, str]] = []
    for item in document.get("acquisitions", []):
        if isinstance(item, str) and item:
            found.append((None, item))
        elif _texts(item) and len(item) == 2:
            found.append((snapshot.book.resolve(item[0]).fingerprint, item[1]))
        else:
            raise UsageError("not an acquisition", where="acquisitions", expected="ID or [CHANNEL, ID]")
    return found


def _known(document: Mapping[str, Any], keys: Sequence[str]) -> None:
    for key in document:
        if key not in keys:
            close = difflib.get_close_matches(key, keys, n=2) or keys
            raise UsageError("a key that means nothing", where=key[:80], expected=", ".join(close))


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str) or not value:
        raise UsageError(f"a plan needs `{key}`", where=key, expected="text")
    return value


def _texts(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) and v for v in value)


def _list(document: Mapping[str, Any], key: str) -> list[str]:
    value = document.get(key)
    if not isinstance(value, list) or not _texts(value):
        raise UsageError(f"`{key}` is a list of texts", where=key)
    return list(value)


def _optional(document: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    return tuple(_list(document, key)) if key in document else None


def _whole(document: Mapping[str, Any], key: str, usual: int) -> int:
    value = document.get(key, usual)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"`{key}` is a whole number", where=key)
    return value


def _number(document: Mapping[str, Any], key: str) -> float | None:
    value = document.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise UsageError(f"`{key}` is a number", where=key)
    return None if value is None else float(value)


def _level(document: Mapping[str, Any]) -> Level:
    try:
        return Level(document.get("require", "bound"))
    except ValueError as error:
        raise UsageError("unknown level", where="require", expected=" | ".join(Level)) from error
