"""What the options of an audit mean: filters, acquisitions, types and ranges as people write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from contracts.errors import UsageError

if TYPE_CHECKING:
    from contracts.channel import Channel
    from ledger.snapshot import Snapshot


def filters(texts: Sequence[str]) -> dict[str, list[str]]:
    """`COLUMN=VALUE` texts by column: values of one column are alternatives, columns must all hold."""
    found: dict[str, list[str]] = {}
    for text in texts:
        column, sign, value = text.partition("=")
        if not sign or not column or not value:
            raise UsageError("not a filter", expected="COLUMN=VALUE", got=text[:80], where="--where")
        found.setdefault(column, []).append(value)
    return found


def acquisitions(
    texts: Sequence[str], channels: Sequence[Channel], snapshot: Snapshot
) -> list[tuple[str | None, str]]:
    """`ACQUISITION` or `CHANNEL@ACQUISITION` texts as (fingerprint or None, acquisition id).

    An id may hold an @ itself, and so may a channel with its version: what the ledger knows decides.
    """
    return [_acquisition(text, channels, snapshot) for text in texts]


def _acquisition(text: str, channels: Sequence[Channel], snapshot: Snapshot) -> tuple[str | None, str]:
    if text in snapshot.acquisitions:
        return None, text
    places = [place for place, letter in enumerate(text) if letter == "@"]
    for place in places:
        channel, name = _named(text[:place], channels), text[place + 1 :]
        if channel is not None and name in snapshot.acquisitions:
            return channel.fingerprint, name
    if places and all(_named(text[:place], channels) is None for place in places):
        raise UsageError(
            "not a channel of this audit",
            expected=" or ".join(channel.name for channel in channels),
            got=text[: places[-1]][:80],
            where="--acquisition",
        )
    # the snapshot names the acquisitions there are
    return None, text[places[0] + 1 :] if places else text


def _named(text: str, channels: Sequence[Channel]) -> Channel | None:
    """The channel of this audit that a reference names, if it names exactly one."""
    from contracts.channel import ChannelBook

    try:
        return ChannelBook(tuple(channels)).resolve(text)
    except UsageError:
        return None


def names(text: str | None, option: str) -> list[str] | None:
    """A comma-separated list; None where the option was not given."""
    if text is None:
        return None
    found = [part.strip() for part in text.split(",")]
    if not all(found):
        raise UsageError("an empty name in a list", expected="A,B,C", got=text[:80], where=option)
    return found


def bounds(text: str | None, option: str) -> tuple[float, float] | None:
    """`LOW,HIGH` as two numbers; None where the option was not given."""
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError("not a range", expected="LOW,HIGH", got=text[:80], where=option) from error
    return low, high
