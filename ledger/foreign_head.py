"""A signed head that came in a file: whose log it is, and whether somebody we trust signed it.

There is no home here. What is trusted is a public key the caller brings, the pin of that log on this
machine, or (by the caller's explicit wish) the keys the file itself names.
"""

from __future__ import annotations

from contracts.errors import UnknownKeyError, VerificationError
from ledger import notes, pin
from ledger.head_keys import HeadKeys
from ledger.keys import PublicKey, key_id
from ledger.notes import TreeHead, UnverifiedNoteError
from ledger.vkey import VerifierKey, parse_vkey


def claimed(checkpoint: bytes) -> TreeHead:
    """The head a checkpoint states, believed by nobody yet."""
    try:
        notes.verify(checkpoint, [])
    except UnverifiedNoteError as error:
        return TreeHead.parse(error.unverified.text)
    raise AssertionError("a note without trusted keys cannot be verified")


def verify(checkpoint: bytes, key: PublicKey | None) -> TreeHead:
    """The head in a checkpoint, signed by `key`, else by the pinned key of its log.

    VerificationError `no-pin` where neither is there. What the pin says does not matter beside `key`.
    """
    head = claimed(checkpoint)
    if key is not None:
        vkey = VerifierKey(head.origin, key.raw)
    else:
        known = pin.load(head.origin)
        if known is None:
            raise unvouched(head.origin)
        vkey = parse_vkey(known.vkey)
    try:
        return notes.verify_head(checkpoint, [vkey], head.origin)
    except UnverifiedNoteError as error:
        raise UnknownKeyError(
            "the head is not signed by the trusted key",
            expected=key_id(PublicKey(vkey.public))[:16],
            got=error.got,
            where=f"head of size {head.size}",
        ) from error


def vouch(keys: HeadKeys, key: PublicKey | None, *, trust_first: bool) -> None:
    """Returns when `key`, the pin of the log, or the caller's wish vouches for the keys of a log's heads."""
    known = pin.load(keys.origin)
    if key is not None:
        if not keys.named(key.raw):
            raise UnknownKeyError(
                "the key is not one that signs the heads of this log",
                expected=key_id(PublicKey(keys.newest.public))[:16],
                got=key_id(key)[:16],
            )
    elif known is not None:
        vkey = keys.at(known.head.size)
        if known.vkey != str(vkey):
            raise UnknownKeyError(
                "the log names another key for its heads than the pinned one",
                next_step="where the key was rotated since, name the one that signed it with --key",
            )
    elif not trust_first:
        raise unvouched(keys.origin)


def unvouched(origin: str) -> VerificationError:
    """That there is neither a key nor a pin."""
    return VerificationError(
        f"nothing on this machine vouches for the log {ascii(origin[:80])[1:-1]}: it has no pin here",
        code="no-pin",
        next_step="give its public key with --key",
    )
