"""The first lines of an audit's screen: what came, what is complete, why the rest is not.

A channel may have several acquisitions, and a transition is complete only where each of them is; so one
short acquisition can empty a cohort. That is warned of, with the option that leaves it out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cli import render
from cli.estimate_table import Fields
from contracts.findings import shown

if TYPE_CHECKING:
    from contracts.channel import Channel

ID = 28  # characters of a transition's or acquisition's name in a line
ABSENT = "absent"
# An example as `audits.flow.Example.text` writes it: the transition, then a cell or a sentence about it.
_NAMED = re.compile(r"(.+?/step[0-9]{2,}): |(.+): ", re.DOTALL)
# What an entry that breaks a rule of provenance is, in the words that follow a count.
RULES = {
    "segment-intact": "in a damaged segment",
    "channel-known": "of an unknown channel",
    "state-frozen": "whose state differs (state-frozen)",
    "candidates-frozen": "whose candidates differ (candidates-frozen)",
    "view-bound": "whose view is missing or differs (view-bound)",
    "request-bound": "without request (request-bound)",
    "request-rotated": "with one request for two layouts (request-rotated)",
    "acquisition-revoked": "of a revoked acquisition",
    "channel-revoked": "of a revoked channel",
    "level": "below the level",
}


def lines(result: Fields) -> Iterator[str]:
    """How many transitions came, how many are complete, and why the others are not."""
    flow, provenance = result["flow"], result["provenance"]
    out = flow["transitions"] - flow["complete"]
    yield (
        f"{render.plural(flow['transitions'], 'transition')}: {flow['complete']:,} complete in "
        f"{render.plural(flow['trajectories'], 'trajectory', 'trajectories')}, {out:,} left out"
    )
    if out:
        worst = _short(flow)
        name = worst[0]["acquisition"] if worst else None
        yield "left out: " + ", ".join(
            f"{row['transitions']:,} {row['reason']}{_example(row, name)}" for row in flow["excluded"]
        )
    broken = ", ".join(f"{n:,} {RULES.get(rule, rule)}" for rule, n in provenance["entries_out"].items() if n)
    if broken:
        yield f"entries kept out, of {provenance['entries_in']:,}: {broken}"
    levels = provenance["entries_by_level"]
    if not one_level(provenance):
        yield "entries by level: " + ", ".join(f"{count:,} {level}" for level, count in levels.items())


def level(provenance: Fields) -> str:
    """The level of an audit, with the number of entries where nothing else need be said of their levels."""
    text = f"level {provenance['level']}"
    if one_level(provenance):
        text += f", {render.plural(sum(provenance['entries_by_level'].values()), 'entry', 'entries')}"
    return text


def one_level(provenance: Fields) -> bool:
    """Whether every entry is at the level an audit asks for unless told otherwise, and this one did."""
    there = [name for name, count in provenance["entries_by_level"].items() if count]
    return there == [provenance["level"]] == ["bound"]


def warnings(result: Fields, channels: Mapping[str, Channel]) -> list[str]:
    """One acquisition among several of its channel that alone removes transitions, and how to leave it out.

    `channels` by role. The one that removes most is told; the others stand in the record's flow.
    """
    found = _short(result["flow"])
    if not found:
        return []
    worst = found[0]
    channel = channels[worst["arm"]].name
    others = " ".join(
        "--acquisition " + shlex.quote(f"{channel}@{row['acquisition']}")
        for row in result["flow"]["by_acquisition"]
        if row["arm"] == worst["arm"] and row["acquisition"] != worst["acquisition"]
    )
    return [
        f"acquisition {shown(worst['acquisition'], ID)} of {channel} lacks "
        f"{render.plural(worst['removed_alone'], 'transition')} that are otherwise complete; "
        f"leave it out with {others}"
    ]


def _short(flow: Fields) -> list[Fields]:
    """Acquisitions beside others of their channel that alone remove transitions, the worst first."""
    rows: Sequence[Fields] = flow["by_acquisition"]
    arms = [row["arm"] for row in rows]
    found = [row for row in rows if row["removed_alone"] and arms.count(row["arm"]) > 1]
    return sorted(found, key=lambda row: -row["removed_alone"])


def _example(row: Fields, acquisition: str | None) -> str:
    """A transition left out for a reason, and under which acquisition where that is the worst one."""
    examples: Sequence[str] = row["examples"]
    if not examples:
        return ""
    if acquisition is not None and row["reason"] == ABSENT:
        cell = f", acquisition {acquisition}, "
        for text in examples:
            if cell in text:
                return f" ({shown(_named(text), ID)} under acquisition {shown(acquisition, ID)})"
    return f" ({shown(_named(examples[0]), ID)})"


def _named(example: str) -> str:
    """The transition that an example is about; its name may have a colon, and a space after it, too."""
    match = _NAMED.match(example)
    return (match[1] or match[2]) if match else example
