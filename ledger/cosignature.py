"""Cosignatures of witnesses under a signed head (C2SP tlog-cosignature, Ed25519).

A witness signs `cosignature/v1`, the time, and the text of the head, and puts the time before its signature.
It says that it saw this head, and no other history of the same log before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from contracts.errors import MalformedError
from ledger.keys import PublicKey, SigningKey
from ledger.notes import Note, Signature
from ledger.vkey import COSIGNATURE, VerifierKey

TIME = 8
LAST = 1 << 63


@dataclass(frozen=True)
class Cosigned:
    """A witness whose cosignature verified, and the seconds since 1970 it stated."""

    witness: VerifierKey
    time: int


def message(text: str, time: int) -> bytes:
    """The bytes a witness signs for a note's text."""
    return f"cosignature/v1\ntime {time}\n{text}".encode()


def cosign(text: str, name: str, key: SigningKey, time: int) -> Signature:
    """The signature line of a witness under a note's text."""
    if not 0 <= time < LAST:
        raise AssertionError("a time before 1970 or beyond 63 bits")
    witness = VerifierKey(name, key.public.raw, COSIGNATURE)
    return Signature(name, witness.id, time.to_bytes(TIME, "big") + key.sign(message(text, time)))


def cosigned(note: Note, witnesses: Iterable[VerifierKey]) -> tuple[Cosigned, ...]:
    """The witnesses who cosigned a note, each counted once, in their order.

    SignatureError: a known witness's signature does not match. MalformedError: it is no cosignature. Lines
    of others mean nothing.
    """
    found: list[Cosigned] = []
    for witness in witnesses:
        for line in note.others:
            if (line.name, line.id) != (witness.name, witness.id):
                continue
            if len(line.signature) != TIME + 64:
                raise MalformedError(
                    f"malformed cosignature by {witness.name}", expected=TIME + 64, got=len(line.signature)
                )
            time = int.from_bytes(line.signature[:TIME], "big")
            PublicKey(witness.public).verify(line.signature[TIME:], message(note.text, time))
            found.append(Cosigned(witness, time))
            break
    return tuple(found)
