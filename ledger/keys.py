"""Ed25519 keys: where they come from, how they are kept, and the two operations on raw bytes.

A private key is named by a URI: `file:PATH` (or a bare path) or `env:VARIABLE`, both holding PKCS #8
PEM, encrypted iff LEDGER_KEY_PASSWORD is to open it. Other key types are refused by name.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from contracts.errors import MalformedError, SignatureError, StorageError, UsageError
from ledger import durable
from ledger.vkey import is_vkey, parse_vkey

PASSWORD_VARIABLE = "LEDGER_KEY_PASSWORD"  # noqa: S105 (the name of a variable)
RAW = 32
MAX_PEM = 64 * 1024
_PRIVATE = b"PRIVATE KEY-----"
_EXPECTED = "an ed25519 key as pkcs #8 pem"


class Verifying(Protocol):
    """A public key of whatever type: what it is, and whether a signature is by it."""

    def to_der(self) -> bytes:
        """The SubjectPublicKeyInfo in DER."""
        ...

    def verify(self, signature: bytes, data: bytes) -> None:
        """Return when `signature` is this key's over `data`; SignatureError otherwise."""
        ...


class Signing(Protocol):
    """A private key of whatever type."""

    @property
    def public(self) -> Verifying:
        """Its public part."""
        ...

    def sign(self, data: bytes) -> bytes:
        """A signature over `data`."""
        ...


@dataclass(frozen=True)
class PublicKey:
    """An Ed25519 public key; `raw` is its 32 bytes (RFC 8032)."""

    raw: bytes

    @classmethod
    def load(cls, source: str | Path) -> PublicKey:
        """A key from a PEM file (`PUBLIC KEY`), or from the text of a C2SP verifier key."""
        if isinstance(source, str) and is_vkey(source):
            return cls(parse_vkey(source).public)
        path = Path(str(source).removeprefix("file:")).expanduser()
        return cls.from_pem(read_pem(path, private=False), where=str(path))

    @classmethod
    def from_pem(cls, pem: bytes, *, where: str | None = None) -> PublicKey:
        """A key from the bytes of a PEM; UsageError on anything but an Ed25519 public key."""
        if _PRIVATE in pem:
            raise UsageError(
                "not a public key but a private one", code="key", where=where,
                next_step=f"get the public one: openssl pkey -in {where or 'FILE'} -pubout -out KEY.pub.pem",
            )  # fmt: skip
        try:
            key = serialization.load_pem_public_key(pem)
        except (ValueError, UnsupportedAlgorithm) as error:
            raise UsageError(
                "not a public key", code="key", expected="an ed25519 public key as pem", where=where
            ) from error
        if not isinstance(key, Ed25519PublicKey):
            raise wrong_type(key, where)
        return cls(key.public_bytes_raw())

    def verify(self, signature: bytes, data: bytes) -> None:
        """Return when `signature` is this key's over `data`; SignatureError otherwise."""
        try:
            _public(self.raw).verify(signature, data)
        except InvalidSignature as error:
            raise SignatureError("signature does not match the bytes") from error

    def to_der(self) -> bytes:
        """The SubjectPublicKeyInfo in DER."""
        return _public(self.raw).public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def to_pem(self) -> bytes:
        """The SubjectPublicKeyInfo in PEM, as `load` reads it."""
        return _public(self.raw).public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )


@dataclass(frozen=True, repr=False)
class SigningKey:
    """An Ed25519 private key; it prints as its public part."""

    _seed: bytes

    def __repr__(self) -> str:
        return f"SigningKey(public={key_id(self.public)[:16]})"

    @classmethod
    def generate(cls) -> SigningKey:
        """A new key from the system's randomness."""
        return cls(Ed25519PrivateKey.generate().private_bytes_raw())

    @classmethod
    def load(cls, uri: str | Path) -> SigningKey:
        """The key a URI names.

        StorageError: no such file, or others may read it. UsageError: not an Ed25519 key, a variable
        that is not set, a password missing or wrong.
        """
        key, where = load_private(uri, _EXPECTED)
        return cls(_seed(key, where))

    @property
    def public(self) -> PublicKey:
        return PublicKey(Ed25519PrivateKey.from_private_bytes(self._seed).public_key().public_bytes_raw())

    def sign(self, data: bytes) -> bytes:
        """The 64-byte signature over `data`; the same bytes give the same signature."""
        return Ed25519PrivateKey.from_private_bytes(self._seed).sign(data)

    def save(self, path: Path) -> None:
        """Write a new file only its owner can read, and sync it; a file that is there is never replaced.

        Encrypted when LEDGER_KEY_PASSWORD is set. The folder is made when missing, for its owner only.
        """
        password = _password()
        protection: serialization.KeySerializationEncryption = (
            serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        )
        pem = Ed25519PrivateKey.from_private_bytes(self._seed).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection
        )
        with durable.storage("writing the key", path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                durable.create(path, pem, mode=0o600)
            except FileExistsError as error:
                raise StorageError(
                    "a key is already there", code="key-exists", where=path, next_step="choose another path"
                ) from error
            durable.sync(path.parent)


def key_id(public: Verifying) -> str:
    """The identifier of a key in envelopes: hex SHA-256 of its DER SubjectPublicKeyInfo."""
    return hashlib.sha256(public.to_der()).hexdigest()


def _public(raw: bytes) -> Ed25519PublicKey:
    try:
        return Ed25519PublicKey.from_public_bytes(raw)
    except ValueError as error:
        raise MalformedError("not an ed25519 public key", expected=f"{RAW} bytes", got=len(raw)) from error


def _password() -> bytes | None:
    return os.environ.get(PASSWORD_VARIABLE, "").encode("utf-8", "surrogateescape") or None


def load_private(uri: str | Path, expected: str) -> tuple[object, str]:
    """The private key of any type that a URI names, and where it came from.

    StorageError: no such file, or others may read it. UsageError: a variable that is not set, no private key
    in PEM, a password missing or wrong.
    """
    text = str(uri)
    if text.startswith("env:"):
        variable = text.removeprefix("env:")
        pem = os.environ.get(variable, "").encode("utf-8", "surrogateescape")
        if not pem:
            raise UsageError(f"environment variable {variable} is not set", code="key", expected=expected)
        return _private(pem, text, expected), text
    path = Path(text.removeprefix("file:")).expanduser()
    return _private(read_pem(path, private=True), str(path), expected), str(path)


def _private(pem: bytes, where: str, expected: str) -> object:
    password = _password()
    try:
        return serialization.load_pem_private_key(pem, password)
    except TypeError as error:  # a password for a plain key, or none for an encrypted one
        if password is not None:
            return _plain(pem, where, expected)
        raise UsageError(
            "the key is encrypted", code="key-password", where=where, next_step=f"set {PASSWORD_VARIABLE}"
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        if password is not None and b"ENCRYPTED" in pem:
            raise UsageError(
                f"{PASSWORD_VARIABLE} does not open the key", code="key-password", where=where
            ) from error
        raise UsageError("not a private key", code="key", expected=expected, where=where) from error


def _plain(pem: bytes, where: str, expected: str) -> object:
    """A key without password, though one is set for others."""
    try:
        return serialization.load_pem_private_key(pem, None)
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        raise UsageError("not a private key", code="key", expected=expected, where=where) from error


def _seed(key: object, where: str) -> bytes:
    if not isinstance(key, Ed25519PrivateKey):
        raise wrong_type(key, where)
    return key.private_bytes_raw()


def wrong_type(key: object, where: str | None, expected: str = "ed25519") -> UsageError:
    """The refusal of a key of another type."""
    kind = type(key).__name__.removesuffix("PrivateKey").removesuffix("PublicKey").lower()
    return UsageError("a key of the wrong type", code="key-type", expected=expected, got=kind, where=where)


def read_pem(path: Path, *, private: bool) -> bytes:
    """The bytes of a key file; a private one must be readable by its owner only."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if private and mode & 0o077:
                raise StorageError(
                    "others may read the private key",
                    code="key-mode",
                    expected="mode 600",
                    got=f"mode {mode:o}",
                    where=path,
                    next_step=f"run `chmod 600 {path}`, and make a new key if it may have been read",
                )
            return file.read(MAX_PEM)
    except OSError as error:
        raise StorageError(
            f"cannot read the key ({error.strerror})", code="key-missing", where=path
        ) from error
    except ValueError as error:  # no file has a NUL in its name
        raise StorageError(
            "cannot read the key (no file has such a name)", code="key-missing", where=repr(str(path))[:120]
        ) from error
