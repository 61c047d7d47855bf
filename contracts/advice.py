"""The next step after a file was refused, by what was found: one line, with the files of the call in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contracts.findings import REFUSING, Findings, shown
from contracts.reporting import FIRST
from contracts.side_models import (
    CANDIDATES_DIFFER,
    CANDIDATES_FEW,
    CANDIDATES_LABELS,
    CANDIDATES_REBOUND,
    CELL_DUPLICATED,
    CELL_MISSING,
    CELL_UNKNOWN,
    DONOR_SELF,
    DONOR_VIEW,
    READING_FAILED,
    TARGET_UNKNOWN,
    TWO_STEP_KINDS,
    TWO_SUCCESSES,
    TWO_TARGET_TYPES,
    TWO_TARGETS,
)

LISTING = "--rejects FILE.csv writes every finding as a row"
_COLUMNS = "mend the columns named; `ledger ingest --template transport` prints a file that has them all"
_ONE_VALUE = "give the same value in every row of the step"
_STEPS: Mapping[str, str] = {
    "missing-column": _COLUMNS,
    "wrong-type": "write the columns as the types named and ingest again",
    "unknown-channel": "ledger channel add CHANNEL.toml, or name a registered one; see `ledger channel list`",
    "ambiguous-channel": "write the channel with its version, as NAME@1",
    "channel-without-layouts": "register a version of the channel that has presentation.layouts",
    "missing-digest": "give the digest, or its text, in every scored row of the file or in none",
    "view-hash-missing": "give the digest, or its text, in every row whose channel shows a view, or in none",
    "conflict": (
        "ingest the corrected run whole under a new acquisition_id with --supersedes OLD, then "
        "`ledger revoke acquisition OLD --reason TEXT`, or audit with --acquisition NEW"
    ),
    CELL_MISSING: "bring each of these sides whole and ingest again; what are entries already is skipped",
    CELL_DUPLICATED: "keep one row for each cell; a second reading of it needs an acquisition_id of its own",
    CELL_UNKNOWN: "use the same candidates in every cell, and layouts from 0 to L - 1 of the channel",
    READING_FAILED: "read these again and ingest the whole sides; until then they are kept as refused",
    CANDIDATES_LABELS: "give one candidate for each label in readout.labels, or use a channel with as many",
    CANDIDATES_FEW: "give at least two candidates",
    CANDIDATES_DIFFER: "use the same candidates in every cell of the step",
    CANDIDATES_REBOUND: "digest the candidates that the rows hold",
    TARGET_UNKNOWN: "set target to one of the candidates, spelt as they are",
    TWO_TARGETS: _ONE_VALUE,
    TWO_TARGET_TYPES: _ONE_VALUE,
    TWO_STEP_KINDS: _ONE_VALUE,
    TWO_SUCCESSES: "give the same success in every row of the trajectory",
    DONOR_SELF: "name another trajectory or step as the donor, or write own",
    DONOR_VIEW: "show the view that the donor's own rows carry",
}


def next_step(findings: Findings, files: Sequence[str] = ()) -> str | None:
    """What to do about the gravest finding, None where nothing was found.

    A finding that refuses the whole call comes before one that refuses a side. Where findings went
    unshown, the way to all of them is named too.
    """
    codes = sorted(findings.by_code, key=lambda code: findings.level(code) not in REFUSING)
    if not codes:
        return None
    code = codes[0]
    step = _STEPS.get(code, "mend the rows named and ingest again")
    old = next((f.key.get("acquisition_id") for f in findings.examples if f.code == code and f.key), None)
    if code == "conflict" and isinstance(old, str):
        step = step.replace("OLD", shown(old))
    if code == CELL_MISSING and len(files) == 1:
        step += f"; cells in another file come in the same call: ledger ingest {shown(files[0])} OTHER"
    return step if len(findings.examples) <= FIRST else f"{step}; {LISTING}"
