"""Transparency log proofs (C2SP tlog-proof): one file that shows, offline, that a log holds an entry.

c2sp.org/tlog-proof@v1
extra <base64>              optional; nothing vouches for it
index <number>
<base64 hash>               the path from the leaf's sibling to the root's child (RFC 6962, 2.1.1)

<the signed checkpoint as it was issued>
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass

from contracts.errors import MalformedError
from ledger import tree
from ledger.notes import MAX_NOTE, TreeHead
from ledger.vkey import decode_base64

HEADER = b"c2sp.org/tlog-proof@v1\n"
MAX_EXTRA = 32 * 1024 * 1024
MAX_PATH = 63  # as many levels as a tree with sizes below 2^63 has
MAX_PROOF = 48 * 1024 * 1024
_INDEX = re.compile(r"index (0|[1-9][0-9]{0,18})", re.ASCII)


@dataclass(frozen=True)
class TlogProof:
    """The place of an entry in a log, the path to the root, the signed head, and what the maker added."""

    index: int
    path: tuple[bytes, ...]
    checkpoint: bytes
    extra: bytes | None = None

    def to_bytes(self) -> bytes:
        """The file; `parse` reads it back."""
        lines = [] if self.extra is None else [f"extra {_text(self.extra)}"]
        lines += [f"index {self.index}", *map(_text, self.path), "", ""]
        return HEADER + "\n".join(lines).encode() + self.checkpoint

    @classmethod
    def parse(cls, data: bytes) -> TlogProof:
        """The proof in a file, nothing of it believed yet; MalformedError where it is none."""
        if not data.startswith(HEADER) or len(data) > MAX_PROOF:
            raise MalformedError("not a tlog-proof", expected=f"{HEADER.decode().strip()} and what follows")
        head, blank, checkpoint = data[len(HEADER) :].partition(b"\n\n")
        if not blank or len(checkpoint) > MAX_NOTE:
            raise MalformedError(
                "tlog-proof without a checkpoint", expected="an empty line and a signed note"
            )
        try:
            lines = head.decode("ascii").split("\n")
        except UnicodeDecodeError as error:
            raise MalformedError("tlog-proof is not ascii before its checkpoint") from error
        extra = _extra(lines.pop(0)) if lines[0].startswith("extra ") else None
        match = _INDEX.fullmatch(lines[0]) if lines else None
        if match is None:
            raise MalformedError("tlog-proof without an index", expected="index NUMBER")
        path = tuple(decode_base64(line) for line in lines[1:])
        if len(path) > MAX_PATH or any(len(found) != tree.HASH for found in path):
            raise MalformedError("not the path of a leaf", expected=f"at most {MAX_PATH} sha-256 hashes")
        return cls(int(match[1]), path, checkpoint, extra)

    def check(self, entry: bytes, head: TreeHead) -> None:
        """Return when the path leads from the entry's bytes to a head whose signature was verified."""
        tree.verify_inclusion(tree.leaf_hash(entry), self.index, head.size, self.path, head.root)


def _extra(line: str) -> bytes:
    found = decode_base64(line.removeprefix("extra "))
    if not found or len(found) > MAX_EXTRA:
        raise MalformedError(
            "extra data of the wrong length", expected=f"1 to {MAX_EXTRA} bytes", got=len(found)
        )
    return found


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
