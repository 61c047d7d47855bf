"""Arms as people write and read them: `CHANNEL`, or `CHANNEL:SOURCE` for another view than its own."""

from __future__ import annotations

import re

from contracts.errors import UsageError
from ledger.snapshot import ANY_DONOR, OWN, Arm, Snapshot

SOURCES = (OWN, "before", "after", ANY_DONOR)
# A fingerprint holds a colon itself.
_ARM = re.compile(r"(?P<channel>blake3:[^:]*|[^:]*)(:(?P<source>.*))?", re.DOTALL)
_ONE_DONOR = re.compile(r"donor:.+", re.DOTALL)


def parse_arm(text: str, snapshot: Snapshot, where: str) -> Arm:
    """The arm a text means; UsageError for an unknown channel or view source.

    `where` names the option it came from. `donor` is any donor, `donor:TRAJECTORY[/STEP]` this one.
    """
    match = _ARM.fullmatch(text)
    assert match is not None, "the pattern takes any text"
    source = match["source"]
    if source is None:
        return Arm(snapshot.book.resolve(match["channel"]))
    if source not in SOURCES and not _ONE_DONOR.fullmatch(source):
        raise UsageError(
            "not a view source",
            code="view-source",
            expected=f"one of {', '.join(SOURCES)}, or donor:TRAJECTORY",
            got=ascii(source[:80]),
            where=where,
        )
    return Arm(snapshot.book.resolve(match["channel"]), source)


def called(arm: Arm) -> str:
    """An arm in the words of `parse_arm`; its own view goes without saying."""
    return arm.channel.name if arm.view_source == OWN else f"{arm.channel.name}:{arm.view_source}"
