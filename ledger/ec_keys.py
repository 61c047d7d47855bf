"""Elliptic curve keys, as OpenSSF Model Signing takes them; whatever a ledger itself signs is Ed25519.

The curves are P-256, P-384 and P-521, each with the SHA-2 of its size (FIPS 186-5). Files and URIs are as in
`ledger.keys`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from contracts.errors import MalformedError, SignatureError, UsageError
from ledger.keys import key_id, load_private, read_pem, wrong_type

EXPECTED = "an elliptic curve key (P-256, P-384 or P-521) as pem"
_HASHES: dict[str, type[hashes.HashAlgorithm]] = {
    "secp256r1": hashes.SHA256,
    "secp384r1": hashes.SHA384,
    "secp521r1": hashes.SHA512,
}


@dataclass(frozen=True)
class EcPublicKey:
    """A public key by its SubjectPublicKeyInfo in DER, in the one spelling that `to_der` gives."""

    der: bytes

    @classmethod
    def load(cls, path: str | Path) -> EcPublicKey:
        """A key from a PEM file (`PUBLIC KEY`); UsageError on a certificate or a key of another type."""
        file = Path(str(path).removeprefix("file:")).expanduser()
        pem = read_pem(file, private=False)
        if b"BEGIN CERTIFICATE" in pem:
            raise UsageError(
                "a certificate, where a public key is wanted", code="key-type", where=file, expected=EXPECTED,
                next_step="signatures by certificate are not supported",
            )  # fmt: skip
        try:
            return cls.of(serialization.load_pem_public_key(pem), str(file))
        except (ValueError, UnsupportedAlgorithm) as error:
            raise UsageError("not a public key", code="key", expected=EXPECTED, where=file) from error

    @classmethod
    def from_der(cls, der: bytes) -> EcPublicKey:
        """A key from the bytes that `to_der` gives; MalformedError on any others."""
        try:
            key = cls.of(serialization.load_der_public_key(der), None)
        except (ValueError, UnsupportedAlgorithm, UsageError) as error:
            raise MalformedError("not an elliptic curve public key", expected=EXPECTED) from error
        if key.der != der:
            raise MalformedError("a public key in another spelling than its own")
        return key

    @classmethod
    def of(cls, key: object, where: str | None) -> EcPublicKey:
        """A key of the cryptography library; UsageError where its type or curve is another."""
        if not isinstance(key, ec.EllipticCurvePublicKey):
            raise wrong_type(key, where, EXPECTED)
        if key.curve.name not in _HASHES:
            raise UsageError(
                "a key on another curve", code="key-type", where=where, expected=EXPECTED, got=key.curve.name
            )
        return cls(
            key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        )

    @property
    def id(self) -> str:
        """Hex SHA-256 of the key in DER, as ledgers identify keys."""
        return key_id(self)

    @property
    def hint(self) -> str:
        """Hex SHA-256 of the key in PEM, as model signing identifies keys."""
        return hashlib.sha256(self.to_pem()).hexdigest()

    def to_der(self) -> bytes:
        """The SubjectPublicKeyInfo in DER."""
        return self.der

    def to_pem(self) -> bytes:
        """The SubjectPublicKeyInfo in PEM."""
        return self._key.public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def verify(self, signature: bytes, data: bytes) -> None:
        """Return when `signature` (ECDSA in DER) is this key's over `data`; SignatureError otherwise."""
        key = self._key
        try:
            key.verify(signature, data, ec.ECDSA(_HASHES[key.curve.name]()))
        except InvalidSignature as error:
            raise SignatureError("signature does not match the bytes") from error

    @property
    def _key(self) -> ec.EllipticCurvePublicKey:
        key = serialization.load_der_public_key(self.der)
        assert isinstance(key, ec.EllipticCurvePublicKey), "nothing else is ever held"
        return key


@dataclass(frozen=True, repr=False)
class EcSigningKey:
    """A private key; it prints as its public part."""

    _private: ec.EllipticCurvePrivateKey

    def __repr__(self) -> str:
        return f"EcSigningKey(public={self.public.id[:16]})"

    @classmethod
    def load(cls, uri: str | Path) -> EcSigningKey:
        """The key a URI names; UsageError on one of another type or curve."""
        key, where = load_private(uri, EXPECTED)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise wrong_type(key, where, EXPECTED)
        EcPublicKey.of(key.public_key(), where)
        return cls(key)

    @property
    def public(self) -> EcPublicKey:
        """Its public part."""
        return EcPublicKey.of(self._private.public_key(), None)

    def sign(self, data: bytes) -> bytes:
        """An ECDSA signature over `data` in DER; another one each time."""
        return self._private.sign(data, ec.ECDSA(_HASHES[self._private.curve.name]()))
