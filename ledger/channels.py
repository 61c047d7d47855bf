"""Registering channel specifications: every file of a call, or none of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contracts.channel import Channel, ChannelBook, differences, fingerprint, look_alikes
from contracts.channel_file import load_spec
from contracts.errors import ContractError, UsageError
from ledger import lock, log
from ledger.event_types import ChannelEvent
from ledger.home import Home
from ledger.index import Index
from ledger.keys import SigningKey
from ledger.log import Commit, Transaction

_SHOWN = 3
_WIDE = 40


@dataclass(frozen=True)
class Registered:
    """A channel as the ledger has it after a call; `aliases` are other names of its fingerprint.

    `warnings` name keys that look like ones the ledger reads and are not.
    """

    channel: Channel
    new: bool
    aliases: tuple[str, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(look_alikes(self.channel.spec))


@dataclass(frozen=True)
class Registration:
    """What became of each file, in the order given, and the head after it."""

    channels: tuple[Registered, ...]
    commit: Commit


def add(
    home: Home,
    key: SigningKey,
    files: Sequence[Path],
    *,
    new_version: bool = False,
    wait: float = lock.WAIT,
) -> Registration:
    """Registers the specification in each file; one that is known under its name changes nothing.

    UsageError `channel-exists` when a name is known with another specification and `new_version` is not
    set. ContractError when two files of the call give one name two specifications.
    """
    specs = [load_spec(path) for path in files]
    found: tuple[Registered, ...] = ()

    def build(transaction: Transaction) -> list[ChannelEvent]:
        nonlocal found
        found = _judge(transaction.index.channels(), files, specs, new_version)
        channels = [registered.channel for registered in found if registered.new]
        return [ChannelEvent(c.name, c.version, c.fingerprint, c.spec) for c in channels]

    commit = log.commit(home, key, build, wait=wait)
    return Registration(found, commit)


def judge(home: Home, files: Sequence[Path], *, new_version: bool = False) -> tuple[Registered, ...]:
    """What `add` would make of the files, with nothing written; raises what it would raise."""
    specs = [load_spec(path) for path in files]
    with Index.open(home) as index:
        return _judge(index.channels(), files, specs, new_version)


def _judge(
    book: ChannelBook,
    files: Sequence[Path],
    specs: Sequence[tuple[str, dict[str, object]]],
    new_version: bool,
) -> tuple[Registered, ...]:
    decided: list[tuple[Channel, bool]] = []
    named: dict[str, Channel] = {}
    for path, (name, spec) in zip(files, specs, strict=True):
        channel, new = _decide(book, named.get(name), name, spec, new_version, path)
        named[name] = channel
        decided.append((channel, new))
        if new:
            book = ChannelBook((*book.channels, channel))
    return tuple(Registered(channel, new, _aliases(book, channel)) for channel, new in decided)


def _decide(
    book: ChannelBook,
    named: Channel | None,
    name: str,
    spec: dict[str, object],
    new_version: bool,
    path: Path,
) -> tuple[Channel, bool]:
    """The channel a specification is or becomes, and whether it is new."""
    found = fingerprint(spec)
    if named is not None and named.fingerprint != found:
        raise ContractError(
            f"two specifications for the name {name} in one call", code="channel-twice", where=path,
            next_step="add one of them first, then the other with --new-version",
        )  # fmt: skip
    versions = book.versions(name)
    for channel in versions:
        if channel.fingerprint == found:
            return channel, False
    tables = {part: table for part, table in spec.items() if isinstance(table, dict)}
    channel = Channel(name, len(versions) + 1, tables, found)
    if versions and not new_version:
        changed = [f"{d.path} {_was(d.a)} → {_was(d.b)}" for d in differences(versions[-1], channel)]
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        raise UsageError(
            f"channel {name} is already registered with another specification", code="channel-exists",
            where=path, got=f"changes: {', '.join(changed[:_SHOWN])}{more}",
            next_step=f"register it as {name}@{channel.version} with --new-version, or under another name",
        )  # fmt: skip
    return channel, True


def _was(value: str | None) -> str:
    return "(absent)" if value is None else value if len(value) <= _WIDE else value[: _WIDE - 1] + "…"


def _aliases(book: ChannelBook, channel: Channel) -> tuple[str, ...]:
    same = [c for c in book.channels if c.fingerprint == channel.fingerprint and c != channel]
    return tuple(other.reference for other in same)
