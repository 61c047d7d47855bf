"""Signed notes (C2SP signed-note) and the tree head inside them (C2SP tlog-checkpoint).

A note is a text ending in a newline, an empty line, and one signature line per key. Holding a `Note`
or a `TreeHead` from `verify` means a trusted key signed it; a text nobody vouched for is reachable
only from inside UnverifiedNoteError.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass

from contracts.errors import MalformedError, SignatureError, UnknownKeyError
from ledger.keys import PublicKey, SigningKey
from ledger.tree import HASH
from ledger.vkey import VerifierKey, decode_base64, parse_vkey

MAX_NOTE = 256 * 1024
MAX_SIGNATURES = 100
DASH = "\u2014 "
_SIZE = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


@dataclass(frozen=True)
class Signature:
    """One signature line: who claims to have signed, the four bytes of the key's id, the signature."""

    name: str
    id: bytes
    signature: bytes

    def __str__(self) -> str:
        return f"{DASH}{self.name} {base64.b64encode(self.id + self.signature).decode()}\n"


@dataclass(frozen=True)
class Note:
    """A text and the signatures under it: by trusted keys, checked, and by others, ignored."""

    text: str
    signatures: tuple[Signature, ...]
    others: tuple[Signature, ...]


class UnverifiedNoteError(UnknownKeyError):
    """No signature by a trusted key; `unverified` holds what nobody vouched for."""

    def __init__(self, note: Note) -> None:
        names = ", ".join(signature.name for signature in note.others[:3])
        super().__init__("note is signed by no trusted key", got=f"signatures by {names}")
        self.unverified = note


@dataclass(frozen=True)
class TreeHead:
    """The size and root of the log called `origin`; `extensions` are opaque lines after them."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = (self.origin, str(self.size), base64.b64encode(self.root).decode(), *self.extensions)
        return "".join(f"{line}\n" for line in lines)

    @classmethod
    def parse(cls, text: str) -> TreeHead:
        """The tree head a note's text states; MalformedError when it is another text."""
        lines = text.split("\n")
        if len(lines) < 4 or lines.pop() != "" or "" in lines:
            raise MalformedError("not a tree head", expected="lines with origin, size and root")
        origin, size, root, *extensions = lines
        if not _SIZE.fullmatch(size):
            raise MalformedError("not a tree size", got=ascii(size[:40]))
        found = decode_base64(root)
        if len(found) != HASH:
            raise MalformedError("not a root hash", expected=f"{HASH} bytes", got=len(found))
        return cls(origin, int(size), found, tuple(extensions))


def sign(text: str, name: str, key: SigningKey) -> bytes:
    """The note of `text` with one signature by `key` under `name`."""
    _check_text(text)
    signer = VerifierKey(name, key.public.raw)
    return f"{text}\n{Signature(name, signer.id, key.sign(text.encode()))}".encode()


def verify(data: bytes, vkeys: Iterable[str | VerifierKey]) -> Note:
    """The note in `data`, signed by at least one of the verifier keys.

    Signatures of other keys are kept apart and mean nothing. MalformedError: the bytes are no note.
    SignatureError: a trusted key's signature does not match. UnverifiedNoteError: no trusted key signed.
    """
    text, signatures = _split(data)
    keys = [parse_vkey(key) if isinstance(key, str) else key for key in vkeys]
    trusted: list[Signature] = []
    others: list[Signature] = []
    for line in signatures:
        claimed = [key for key in keys if (key.name, key.id) == (line.name, line.id)]
        for key in claimed:
            try:
                PublicKey(key.public).verify(line.signature, text.encode())
            except SignatureError as error:
                raise SignatureError(f"signature by {key.name} does not match the note") from error
        (trusted if claimed else others).append(line)
    note = Note(text, tuple(trusted), tuple(others))
    if not trusted:
        raise UnverifiedNoteError(note)
    return note


def sign_head(head: TreeHead, key: SigningKey) -> bytes:
    """The note of a tree head, signed under its origin."""
    return sign(str(head), head.origin, key)


def verify_head(data: bytes, vkeys: Iterable[str | VerifierKey], origin: str) -> TreeHead:
    """The tree head of the log `origin` in a note signed by a trusted key; errors as `verify`."""
    head = TreeHead.parse(verify(data, vkeys).text)
    if head.origin != origin:
        raise UnknownKeyError(
            "a trusted key signed the head of another log", expected=origin, got=ascii(head.origin[:80])
        )
    return head


def _split(data: bytes) -> tuple[str, list[Signature]]:
    """Text and signature lines of a note, without looking at any key."""
    if len(data) > MAX_NOTE:
        raise MalformedError("note too long", expected=f"at most {MAX_NOTE} bytes", got=len(data))
    try:
        whole = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError(f"note is not utf-8 (byte {error.start})") from error
    text, separator, block = whole.rpartition("\n\n")
    if not separator or not block.endswith("\n"):
        raise MalformedError("not a signed note", expected="a text, an empty line and signature lines")
    _check_text(text + "\n")
    lines = block.removesuffix("\n").split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise MalformedError("too many signatures", expected=f"at most {MAX_SIGNATURES}", got=len(lines))
    return text + "\n", [_signature(line) for line in lines]


def _signature(line: str) -> Signature:
    name, space, encoded = line.removeprefix(DASH).partition(" ")
    # Looser than for our own names: a stranger's line is to be ignored, not judged.
    named = name and "+" not in name and not any(letter.isspace() for letter in name)
    if not line.startswith(DASH) or not space or not named:
        raise MalformedError("malformed signature line", expected="a dash, a key name and base64")
    data = decode_base64(encoded)
    if len(data) < 5:
        raise MalformedError("malformed signature line", expected="a key id and a signature")
    return Signature(name, data[:4], data[4:])


def _check_text(text: str) -> None:
    if not text.endswith("\n") or any(ord(letter) < 0x20 and letter != "\n" for letter in text):
        raise MalformedError("not a note text", expected="lines without control characters")
