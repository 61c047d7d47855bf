"""The last signed head somebody trusted, kept outside the home: what the log may never fall behind.

A pin is `<config>/<origin>.pin`, canonical JSON with the origin, the verifier key that signs its
heads and the note itself. Whoever rewrites a home cannot rewrite the pins of those who saw it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from contracts.canonical import canonical, parse_canonical
from contracts.errors import LedgerError, MalformedError, TamperError
from ledger import durable
from ledger.notes import TreeHead, verify_head
from ledger.tree import root

MAX_PIN = 512 * 1024
FIELDS = {"origin", "vkey", "note"}


@dataclass(frozen=True)
class Pin:
    """A head of the log `origin` in a note that `vkey` signed; holding one means it was checked."""

    origin: str
    vkey: str
    note: bytes

    def __post_init__(self) -> None:
        self.head  # noqa: B018 (verifies the note, so that no unchecked pin exists)

    @cached_property
    def head(self) -> TreeHead:
        """The verified tree head; raises like `notes.verify_head` when the pin is made."""
        return verify_head(self.note, [self.vkey], self.origin)


def config_dir() -> Path:
    """Where keys and pins live: `$XDG_CONFIG_HOME/ledger`, else `~/.config/ledger`."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    # The base directory specification says to ignore a relative one.
    folder = Path(configured) if Path(configured).is_absolute() else Path("~/.config").expanduser()
    return folder / "ledger"


def config_file(origin: str, suffix: str) -> Path:
    """The file for an origin in the configuration folder; a slash in the origin makes no folder."""
    return config_dir() / f"{quote(origin, safe='')}{suffix}"


def load(origin: str) -> Pin | None:
    """The pin of a log, or None where this user has none; MalformedError when it is damaged."""
    path = config_file(origin, ".pin")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_PIN + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise durable.storage_error(error, "reading the pin", path) from error
    try:
        return _decode(data, origin)
    except LedgerError as error:
        raise MalformedError(
            f"the pin is damaged ({error})",
            code="pin",
            where=path,
            next_step="restore it from a backup, or remove it and verify with `--key`",
        ) from error


def store(pin: Pin) -> None:
    """Put a pin in the place of the last one, durably; the caller has compared the two."""
    path = config_file(pin.origin, ".pin")
    fields = {"origin": pin.origin, "vkey": pin.vkey, "note": pin.note.decode()}
    staged = path.with_name(durable.temporary_name(".pin-new"))
    with durable.storage("writing the pin", path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        durable.create(staged, canonical(fields), mode=0o600)
        try:
            durable.replace(staged, path)
        except OSError:
            staged.unlink(missing_ok=True)
            raise


def check(pin: Pin, head: TreeHead, leaves: Sequence[bytes]) -> None:
    """Return when the log of `head` still holds everything the pin saw; `leaves` are all its leaf hashes.

    TamperError `rolled-back-head` when the pin is ahead, or is of a tree the log did not grow from.
    """
    advice = "restore the newest copy of the home; a log never shrinks"
    if pin.head.size > head.size:
        raise TamperError(
            "the log is shorter than when it was last trusted",
            kind="rolled-back-head",
            expected=f"at least {pin.head.size} events",
            got=head.size,
            where=config_file(pin.origin, ".pin"),
            next_step=advice,
        )
    if len(leaves) < pin.head.size:
        raise AssertionError("leaf hashes up to the head are the caller's to bring")
    if root(leaves[: pin.head.size]) != pin.head.root:
        raise TamperError(
            f"the first {pin.head.size} events are not those that were trusted",
            kind="rolled-back-head",
            where=config_file(pin.origin, ".pin"),
            next_step=advice,
        )


def _decode(data: bytes, origin: str) -> Pin:
    fields = parse_canonical(data, limit=MAX_PIN)
    if not isinstance(fields, dict) or set(fields) != FIELDS:
        raise MalformedError("not a pin", expected=f"an object with {', '.join(sorted(FIELDS))}")
    values = {key: value for key, value in fields.items() if isinstance(value, str)}
    if len(values) < len(FIELDS) or values["origin"] != origin:
        raise MalformedError("the pin of another log", expected=origin)
    return Pin(origin, values["vkey"], values["note"].encode())
