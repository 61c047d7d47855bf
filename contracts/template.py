"""Small valid files to start from: what `ingest --template` prints.

The scores are one transition under two channels, before and after, in four layouts with four candidates,
with the texts themselves in place of digests so that a person can read every row. They name the channels
`direct` and `generated`, which fit as examples/channels and `ledger demo --files` give them: four layouts,
four labels.
"""

from __future__ import annotations

import csv
import io
import json
from itertools import product

from contracts.errors import UsageError
from contracts.findings import shown
from contracts.kinds import KINDS

_CANDIDATES = ("north", "east", "south", "west")
_LABELS = "ABCD"
_COLUMNS = (
    "trajectory_id",
    "step",
    "endpoint",
    "channel",
    "layout",
    "acquisition_id",
    "candidate",
    "energy",
    "status",
    "target",
    "state",
    "candidates",
    "view",
    "request",
)
_STATES = {"before": "The agent has not looked yet.", "after": "The agent has read the sign."}
_VIEWS = {"before": "Nothing is known.", "after": "The sign points north."}
# An energy for each candidate: made up, and the same in all layouts.
_ENERGIES = {
    ("direct", "before"): (-1.5, -1.25, -1.375, -1.4375),
    ("direct", "after"): (-0.25, -2.5, -3.0, -2.75),
    ("generated", "before"): (-0.75, -1.75, -2.0, -2.25),
    ("generated", "after"): (-1.0, -1.5, -1.875, -2.0),
}
# What the scores go with, for whoever prints them.
NEXT = {
    "transport": "save this as scores.csv, `ledger channel add` direct and generated (from "
    "examples/channels or `ledger demo --files .`), then ledger ingest scores.csv",
    "jev": "save this as predictions.jsonl, then ledger ingest predictions.jsonl --acquisition ID",
}


def template(kind: str) -> str:
    """A small valid file of a kind: CSV for transport, JSON Lines for jev."""
    if kind == "transport":
        return _scores()
    if kind == "jev":
        return _predictions()
    raise UsageError("unknown kind", code="unknown-kind", expected=" or ".join(KINDS), got=shown(kind))


def _scores() -> str:
    text = io.StringIO()
    rows = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    rows.writeheader()
    for (channel, endpoint), layout in product(_ENERGIES, range(len(_CANDIDATES))):
        shown_as = (*_CANDIDATES[layout:], *_CANDIDATES[:layout])
        view = _VIEWS[endpoint] if channel == "generated" else ""
        options = " ".join(f"{letter}) {label}" for letter, label in zip(_LABELS, shown_as, strict=True))
        request = " ".join(part for part in (_STATES[endpoint], view, options) if part)
        for candidate, energy in zip(_CANDIDATES, _ENERGIES[channel, endpoint], strict=True):
            rows.writerow(
                {
                    "trajectory_id": "example-1",
                    "step": 0,
                    "endpoint": endpoint,
                    "channel": channel,
                    "layout": layout,
                    "acquisition_id": "run-1",
                    "candidate": candidate,
                    "energy": energy,
                    "status": "ok",
                    "target": "north",
                    "state": _STATES[endpoint],
                    "candidates": " | ".join(_CANDIDATES),
                    "view": view,
                    "request": request,
                }
            )
    return text.getvalue()


def _predictions() -> str:
    """One query in two scenarios: the same targets asked alone (before) and with others (after)."""
    pairs: tuple[tuple[str, dict[str, float], dict[str, float], list[str]], ...] = (
        ("none", {"p1": 0.25, "p2": 0.375}, {"p1": 0.25, "p2": 0.625}, []),
        ("one", {"p1": 0.875, "p2": 0.125}, {"p1": 0.75, "p2": 0.125}, ["p1"]),
    )
    lines = [
        {
            "year": 2019,
            "query_id": "example-1",
            "scenario": scenario,
            "before": before,
            "after": after,
            "positive_labels": positive,
        }
        for scenario, before, after, positive in pairs
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)
