"""A channel: the full scoring configuration behind a score, its fingerprint, and how people refer to it.

A specification is a mapping of exactly five tables, open inside. Its fingerprint is the BLAKE3 of
`ledger.channel.v1` and a newline before the canonical JSON of those tables; the name is no part of it.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from contracts.canonical import at_key, canonical
from contracts.digest import blake3_digest, is_digest
from contracts.errors import UsageError

PARTS = ("prompt", "readout", "stack", "view", "presentation")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}", re.ASCII)
DOMAIN = b"ledger.channel.v1\n"
MIN_HEX = 12
MAX_LAYOUTS = 64
_REFERENCE = re.compile(
    rf"(?P<name>{NAME.pattern})(@(?P<version>[1-9][0-9]{{0,8}}))?|(?P<prefix>blake3:[0-9a-f]{{{MIN_HEX},64}})",
    re.ASCII,
)
_LISTED = 8
_CLOSE = 0.75
# What the ledger itself reads in a specification; everything else only describes and is fingerprinted.
_READ_KEYS = {
    "readout": ("kind", "labels", "dtype"),
    "stack": ("hosted", "checkpoint"),
    "view": ("kind",),
    "presentation": ("layouts",),
}


@dataclass(frozen=True)
class Channel:
    """One registered specification under a name and a version (1 for the first of that name)."""

    name: str
    version: int
    spec: Mapping[str, Mapping[str, object]] = field(compare=False, repr=False)
    fingerprint: str

    @property
    def layouts(self) -> int | None:
        """L, the number of cyclic label rotations; None where the channel cannot carry `transport` scores."""
        return _whole(self.spec["presentation"].get("layouts"))

    @property
    def readout_kind(self) -> str:
        return str(self.spec["readout"]["kind"])

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The labels the readout scores, where the channel fixes them."""
        labels = self.spec["readout"].get("labels")
        return tuple(str(label) for label in labels) if isinstance(labels, list | tuple) else None

    @property
    def float32(self) -> bool:
        """Whether energies of this channel may arrive in single precision."""
        return self.spec["readout"].get("dtype") == "float32"

    @property
    def view_kind(self) -> str:
        return str(self.spec["view"]["kind"])

    @property
    def needs_view(self) -> bool:
        """Whether the evaluator saw a derived view, so that every entry must carry its digest."""
        return self.view_kind not in ("none", "empty")

    @property
    def hosted(self) -> bool | None:
        """Whether somebody else runs the weights; None where the channel does not say."""
        hosted = self.spec["stack"].get("hosted")
        return hosted if isinstance(hosted, bool) else None

    @property
    def checkpoint(self) -> str | None:
        """The digest of the model checkpoint, where `stack.checkpoint` is one or is a file reference."""
        named = self.spec["stack"].get("checkpoint")
        digest = named.get("digest") if isinstance(named, Mapping) else named
        return digest if isinstance(digest, str) and is_digest(digest) else None

    @cached_property
    def leaves(self) -> Mapping[str, str]:
        """Every value that is not a table as JSON text, by its path in the specification."""
        return {path: text for part in PARTS for path, text in _leaves(self.spec[part], part)}

    @property
    def reference(self) -> str:
        """The unambiguous spelling `NAME@N`."""
        return f"{self.name}@{self.version}"

    @property
    def short(self) -> str:
        """The shortest fingerprint a reference may use, for tables and messages."""
        return self.fingerprint[: len("blake3:") + MIN_HEX]


def fingerprint(spec: Mapping[str, object]) -> str:
    """The `blake3:` fingerprint of a specification without its name."""
    return blake3_digest(DOMAIN + canonical(dict(spec)))


def spec_faults(spec: Mapping[str, object]) -> list[str]:
    """Everything that keeps a mapping of JSON values (name taken out) from being a specification."""
    faults = [
        f"{at_key('', key)}: unknown key, the tables are {', '.join(PARTS)}"
        for key in spec
        if key not in PARTS
    ]
    for part in PARTS:
        if part not in spec:
            faults.append(f"{part}: table is missing")
        elif not isinstance(spec[part], dict):
            faults.append(f"{part}: must be a table")
    tables = {part: table for part in PARTS if isinstance(table := spec.get(part), dict)}
    for part in ("readout", "view"):
        kind = tables.get(part, {"kind": "?"}).get("kind")
        if not (isinstance(kind, str) and kind.strip() == kind and kind):
            faults.append(
                f"{part}.kind: must be text without outer spaces, "
                + ("is missing" if kind is None else "is not")
            )
    return [*faults, *_value_faults(tables)]


def _value_faults(tables: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    """The optional values that the ledger itself reads, where present."""
    layouts = tables.get("presentation", {}).get("layouts", 1)
    whole = _whole(layouts)
    if whole is None or not 1 <= whole <= MAX_LAYOUTS:
        yield f"presentation.layouts: must be a whole number from 1 to {MAX_LAYOUTS}, got {_shown(layouts)}"
    readout = tables.get("readout", {})
    if "labels" in readout:
        labels = readout["labels"]
        if (
            not isinstance(labels, list)
            or len(labels) < 2
            or not all(isinstance(x, str) and x for x in labels)
        ):
            yield "readout.labels: must be a list of at least two texts"
        elif len(set(labels)) < len(labels):
            yield "readout.labels: a label occurs twice"
    if not isinstance(tables.get("stack", {}).get("hosted", False), bool):
        yield "stack.hosted: must be true or false"


def look_alikes(spec: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    """Keys that the ledger does not read and that look like ones it does, each as a sentence.

    The tables are open, so such a key may be meant; a misspelt `layouts` is far likelier.
    """
    for part, known in _READ_KEYS.items():
        for key in spec[part]:
            close = [] if key in known else difflib.get_close_matches(key, known, n=1, cutoff=_CLOSE)
            if close:
                yield f"{at_key(part, key)} is not read by the ledger; was {part}.{close[0]} meant?"


@dataclass(frozen=True)
class Difference:
    """One path at which two specifications differ; a side is canonical JSON text, None where absent."""

    path: str
    a: str | None
    b: str | None

    @property
    def part(self) -> str:
        """The table of the specification it lies in, one of PARTS."""
        return self.path.partition(".")[0]


def differences(a: Channel, b: Channel) -> tuple[Difference, ...]:
    """The leaves (values that are not tables) in which two channels differ, in the order of PARTS."""
    found: list[Difference] = []
    for part in PARTS:
        left, right = dict(_leaves(a.spec[part], part)), dict(_leaves(b.spec[part], part))
        found.extend(
            Difference(path, left.get(path), right.get(path))
            for path in sorted(left.keys() | right.keys())
            if left.get(path) != right.get(path)
        )
    return tuple(found)


def _leaves(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, at_key(path, str(key)))
    else:
        yield path, _shown(value)


@dataclass(frozen=True)
class Reference:
    """How somebody asked for a channel: by name, by name and version, or by fingerprint."""

    name: str | None = None
    version: int | None = None
    fingerprint_prefix: str | None = None


def parse_reference(text: str) -> Reference:
    """`NAME`, `NAME@N` or `blake3:` and at least 12 hex digits; UsageError on anything else."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise UsageError(
            "not a channel reference",
            code="channel-reference",
            expected=f"NAME, NAME@VERSION or blake3: and {MIN_HEX} to 64 lower-case hex",
            got=ascii(text[:80]),
        )
    version = match["version"]
    return Reference(match["name"], int(version) if version else None, match["prefix"])


@dataclass(frozen=True)
class ChannelBook:
    """Every registered channel, in the order of registration."""

    channels: tuple[Channel, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The registered names, sorted, each once."""
        return tuple(sorted(self._by_name))

    def versions(self, name: str) -> tuple[Channel, ...]:
        """The channels of one name by version; empty when nobody registered it."""
        return self._by_name.get(name, ())

    def by_fingerprint(self, fingerprint: str) -> Channel | None:
        """The first channel registered with this whole fingerprint; aliases share it."""
        return self._by_fingerprint.get(fingerprint)

    def resolve(self, text: str) -> Channel:
        """The one channel a reference means, else UsageError `unknown-channel` or `ambiguous-channel`."""
        reference = parse_reference(text)
        if reference.fingerprint_prefix is not None:
            prefix = reference.fingerprint_prefix
            found = [c for fp, c in self._by_fingerprint.items() if fp.startswith(prefix)]
        else:
            found = list(self.versions(reference.name or ""))
            if reference.version is not None:
                found = [channel for channel in found if channel.version == reference.version]
        if len(found) == 1:
            return found[0]
        raise self._ambiguous(text, found) if found else self._unknown(text, reference)

    def _ambiguous(self, text: str, found: list[Channel]) -> UsageError:
        first, last = found[0].reference, found[-1].reference
        choices = ", ".join(f"{channel.reference} ({channel.short})" for channel in found)
        return UsageError(
            f"channel {text} means several specifications",
            code="ambiguous-channel",
            expected=f"one of {choices}",
            next_step=f"say which, or see `ledger channel diff {first} {last}`",
        )

    def _unknown(self, text: str, reference: Reference) -> UsageError:
        known = [channel.reference for channel in self.versions(reference.name or "")]
        close = known or difflib.get_close_matches(text, self.names, n=3)
        hint = f"did you mean {' or '.join(close)}? otherwise " if close else ""
        listed = ", ".join(self.names[:_LISTED]) + (", …" if len(self.names) > _LISTED else "")
        return UsageError(
            f"unknown channel {text}",
            code="unknown-channel",
            expected=f"one of {listed}" if listed else "a registered channel, none is yet",
            next_step=f"{hint}register it with `ledger channel add FILE`",
        )

    @cached_property
    def _by_name(self) -> dict[str, tuple[Channel, ...]]:
        grouped: dict[str, tuple[Channel, ...]] = {}
        for channel in sorted(self.channels, key=lambda channel: channel.version):
            grouped[channel.name] = (*grouped.get(channel.name, ()), channel)
        return grouped

    @cached_property
    def _by_fingerprint(self) -> dict[str, Channel]:
        return {channel.fingerprint: channel for channel in reversed(self.channels)}


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
