"""Signed envelopes (DSSE 1.0): a payload, its type, and signatures over both.

The payload is kept as the bytes that were signed and never serialised again. `keyid` is a hint, may
be absent, and decides nothing: a signature counts for the key it verifies under.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from contracts.canonical import canonical
from contracts.canonical import parse as parse_json
from contracts.errors import MalformedError, SignatureError, UnknownKeyError
from ledger.keys import Signing, Verifying, key_id

MAX_ENVELOPE = 64 * 1024 * 1024
MAX_SIGNATURES = 64


@dataclass(frozen=True)
class EnvelopeSignature:
    """One signature and the key it claims to be by, where it claims one."""

    sig: bytes
    keyid: str | None = None


@dataclass(frozen=True)
class Envelope:
    """A payload with its type and signatures; nothing is verified yet."""

    payload_type: str
    payload: bytes
    signatures: tuple[EnvelopeSignature, ...]

    def to_bytes(self) -> bytes:
        """Canonical JSON with standard base64, as the records of a ledger are stored."""
        signatures = [
            {"sig": _encode(s.sig), **({} if s.keyid is None else {"keyid": s.keyid})}
            for s in self.signatures
        ]
        return canonical(
            {"payload": _encode(self.payload), "payloadType": self.payload_type, "signatures": signatures}
        )


def pae(payload_type: str, payload: bytes) -> bytes:
    """The pre-authentication encoding: the bytes a signature is over."""
    encoded = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(encoded), encoded, len(payload), payload)


def sign(payload: bytes, payload_type: str, keys: Sequence[Signing]) -> Envelope:
    """An envelope signed by every key, in their order, each under its `key_id`."""
    message = pae(payload_type, payload)
    return Envelope(
        payload_type, payload, tuple(EnvelopeSignature(key.sign(message), key_id(key.public)) for key in keys)
    )


def parse(data: bytes) -> Envelope:
    """The envelope in JSON of any layout and order; MalformedError where it is none.

    Members the protocol does not know are ignored, as it asks for.
    """
    return of_json(parse_json(data, limit=MAX_ENVELOPE))


def of_json(fields: object) -> Envelope:
    """The envelope in a JSON value, as it stands in files of other formats."""
    if not isinstance(fields, dict):
        raise MalformedError("not an envelope", expected="a json object")
    payload_type, signatures = _text(fields, "payloadType"), fields.get("signatures")
    if not payload_type:
        raise MalformedError("envelope without a payload type")
    if not isinstance(signatures, list) or not 1 <= len(signatures) <= MAX_SIGNATURES:
        raise MalformedError("envelope without signatures", expected=f"a list of 1 to {MAX_SIGNATURES}")
    return Envelope(payload_type, _decode(_text(fields, "payload")), tuple(map(_signature, signatures)))


def verify(envelope: Envelope, keys: Iterable[Verifying], threshold: int = 1) -> bytes:
    """The payload, once at least `threshold` different keys of `keys` have signed it.

    SignatureError: a signature that names a trusted key, or names none, matches no bytes of ours.
    UnknownKeyError: the signatures are by others, or by too few trusted keys.
    """
    if threshold < 1:
        raise AssertionError("an envelope nobody signed proves nothing")
    trusted = {key_id(key): key for key in keys}
    message = pae(envelope.payload_type, envelope.payload)
    signed_by: set[str] = set()
    broken = False
    for signature in envelope.signatures:
        matching = _signer(signature, trusted, message)
        if matching is not None:
            signed_by.add(matching)
        elif signature.keyid is None or signature.keyid in trusted:
            broken = True
    if len(signed_by) >= threshold:
        return envelope.payload
    if broken:
        raise SignatureError("envelope signature does not match the payload")
    wanted = f"{threshold} trusted key{'s' if threshold > 1 else ''}"
    raise UnknownKeyError(
        "envelope is not signed by enough trusted keys", expected=wanted, got=len(signed_by)
    )


def _signer(signature: EnvelopeSignature, trusted: dict[str, Verifying], message: bytes) -> str | None:
    """The id of the trusted key a signature verifies under; the named one is tried first."""
    hinted = [signature.keyid] if signature.keyid in trusted else []
    for name in [*hinted, *(other for other in trusted if other not in hinted)]:
        try:
            trusted[str(name)].verify(signature.sig, message)
        except SignatureError:
            continue
        return name
    return None


def _signature(value: object) -> EnvelopeSignature:
    if not isinstance(value, dict):
        raise MalformedError("malformed envelope signature", expected="a json object")
    # Some writers spell "no hint" as null or as an empty text.
    keyid = _text(value, "keyid") if value.get("keyid") is not None else ""
    return EnvelopeSignature(_decode(_text(value, "sig")), keyid or None)


def _text(fields: Mapping[str, object], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise MalformedError(f"envelope member {key} is not text", got=type(value).__name__)
    return value


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode(text: str) -> bytes:
    """Base64 with padding, of the standard or the URL-safe alphabet, in its canonical spelling."""
    standard = text.replace("-", "+").replace("_", "/")
    try:
        data = base64.b64decode(standard, validate=True)
    except (binascii.Error, ValueError) as error:
        raise MalformedError("envelope holds what is not base64") from error
    if base64.b64encode(data).decode() != standard or (standard != text and set(text) & set("+/")):
        raise MalformedError("envelope holds base64 that is not in its canonical spelling")
    return data
