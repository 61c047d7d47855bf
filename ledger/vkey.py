"""The text form of a public key that signs notes (C2SP signed-note): `<name>+<id>+<base64>`.

The id is the first four bytes of SHA-256(name || "\\n" || type || public key). Type 0x01 is Ed25519 over
the note itself; 0x04 is Ed25519 over the note and a time, as witnesses sign (C2SP tlog-cosignature).
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from hashlib import sha256

from contracts.errors import MalformedError

ED25519 = b"\x01"
COSIGNATURE = b"\x04"
RAW = 32
MAX_NAME = 255
_SHAPE = re.compile(r"([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)")
_EXPECTED = "NAME+8 hex+base64 of an ed25519 key"


@dataclass(frozen=True)
class VerifierKey:
    """A name, the raw 32 bytes of the Ed25519 key that signs under it, and what it signs (`type`)."""

    name: str
    public: bytes
    type: bytes = ED25519

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise MalformedError(
                "not a key name",
                expected="text without spaces, plus or control characters",
                got=ascii(self.name[:80]),
            )
        if len(self.public) != RAW:
            raise MalformedError("not an ed25519 public key", expected=f"{RAW} bytes", got=len(self.public))

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{base64.b64encode(self.type + self.public).decode()}"

    @property
    def id(self) -> bytes:
        """The four bytes that stand before a signature of this key."""
        return sha256(self.name.encode() + b"\n" + self.type + self.public).digest()[:4]


def is_name(text: str) -> bool:
    """Whether `text` can name a key and a log: neither spaces, plus nor control characters, and UTF-8."""
    return (
        0 < len(text) <= MAX_NAME
        and text.isprintable()
        and "+" not in text
        and not any(letter.isspace() for letter in text)
    )


def is_vkey(text: str) -> bool:
    """Whether `text` has the outer shape of a verifier key, so that it cannot be meant as a path."""
    return _SHAPE.fullmatch(text) is not None


def parse_vkey(text: str, signs: bytes = ED25519) -> VerifierKey:
    """The key a text stands for; MalformedError when the id is not its own, or it is of another type."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise MalformedError("not a verifier key", expected=_EXPECTED)
    data = decode_base64(match[3])
    if data[:1] != signs:
        raise MalformedError(
            "a verifier key of another type", expected=_EXPECTED, got=f"type {data[:1].hex()}"
        )
    key = VerifierKey(match[1], data[1:], signs)
    if key.id.hex() != match[2]:
        raise MalformedError("the id of a verifier key is not its own", expected=key.id.hex(), got=match[2])
    return key


def decode_base64(text: str) -> bytes:
    """Standard base64 in its one canonical spelling: padded, no other letters, no stray bits."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise MalformedError("not base64") from error
    if base64.b64encode(data).decode() != text:
        raise MalformedError("base64 is not in its canonical spelling")
    return data
