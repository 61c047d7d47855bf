"""Content digests: their text form, their 33-byte binary form, and how bytes become one.

Text is `blake3:` or `sha256:` and 64 lower-case hex digits. Binary is the multihash code of the
function (0x1e for BLAKE3, 0x12 for SHA-256) and the 32 bytes, so columns of either have one width.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from blake3 import blake3

from contracts.errors import MalformedError

WIDTH = 33
CODES = {"blake3": 0x1E, "sha256": 0x12}
NAMES = {code: name for name, code in CODES.items()}
PATTERN = re.compile(r"(blake3|sha256):([0-9a-f]{64})", re.ASCII)


def blake3_digest(data: bytes | memoryview) -> str:
    """The `blake3:` digest of some bytes."""
    return "blake3:" + blake3(data).hexdigest()


def sha256_digest(data: bytes | memoryview) -> str:
    """The `sha256:` digest of some bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def blake3_stream(chunks: Iterable[bytes]) -> str:
    """The `blake3:` digest of bytes that arrive in chunks."""
    hasher = blake3()
    for chunk in chunks:
        hasher.update(chunk)
    return "blake3:" + hasher.hexdigest()


def is_digest(text: str) -> bool:
    """Whether `text` is a digest in text form, whole and nothing else."""
    return PATTERN.fullmatch(text) is not None


def pack(text: str) -> bytes:
    """Text form to the 33-byte form; raises MalformedError on anything else."""
    match = PATTERN.fullmatch(text)
    if match is None:
        raise MalformedError(
            "not a digest", expected="blake3: or sha256: and 64 lower-case hex", got=text[:80]
        )
    return bytes([CODES[match[1]]]) + bytes.fromhex(match[2])


def unpack(data: bytes) -> str:
    """The 33-byte form to text; raises MalformedError on an unknown code or width."""
    if len(data) != WIDTH or data[0] not in NAMES:
        raise MalformedError("not a packed digest", expected=f"{WIDTH} bytes with code 0x1e or 0x12")
    return f"{NAMES[data[0]]}:{data[1:].hex()}"
