"""OpenSSF Model Signing (OMS) 1.0: a signed list of a model's files, in a sigstore bundle, by an EC key.

The bundle is JSON: a hint at the key and a DSSE envelope. Its payload is an in-toto statement with one
subject, the model, whose `sha256` is taken over the digests of the files in the order of the list. What this
reader does not check, it refuses: certificates, transparency logs, shards, and the format before 1.0.
Source: the package `model-signing` 1.1.1, its signatures of method `files`.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from contracts.canonical import canonical, parse
from contracts.errors import MalformedError, TamperError, UnknownKeyError, UsageError
from ledger import envelope, statement
from ledger.ec_keys import EcPublicKey, EcSigningKey
from ledger.fields import Fields
from ledger.statement import Statement, Subject

MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
PREDICATE = "https://model_signing/signature/v1.0"
MAX_BUNDLE = 32 * 1024 * 1024  # some hundred thousand files
WHOLE = "."  # the name of the only file where the model is a file and no folder
HASHES = ("sha256", "blake3")
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_BY_CERTIFICATE = ("certificate", "x509CertificateChain")
_LOGGED = ("tlogEntries", "timestampVerificationData")
_SUPPORTED = "a bundle made by `model_signing sign key`"


@dataclass(frozen=True)
class Resource:
    """A file of a model: its POSIX path in it, and its digest in hex by the hash of the whole list."""

    name: str
    digest: str


@dataclass(frozen=True)
class SignedModel:
    """What a bundle says of a model. `ignored` are paths in it that were left out, with all below them."""

    name: str
    hash: str
    resources: tuple[Resource, ...]
    ignored: tuple[str, ...] = ()
    symlinks: bool = False

    @property
    def digest(self) -> str:
        """The digest of the bundle's subject: SHA-256 over the digests of the files, in their order."""
        hasher = hashlib.sha256()
        for resource in self.resources:
            hasher.update(bytes.fromhex(resource.digest))
        return f"sha256:{hasher.hexdigest()}"

    def leaves_out(self, name: str) -> bool:
        """Whether a path is one of the ignored ones, or below one."""
        return any(name == path or name.startswith(f"{path}/") for path in self.ignored)


def in_order(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """Files in the order in which model signing lists them: by the parts of their paths."""
    return tuple(sorted(resources, key=lambda resource: PurePosixPath(resource.name).parts))


def verify(data: bytes, key: EcPublicKey) -> SignedModel:
    """The model in the bytes of a bundle that this key signed.

    1. The bundle is JSON of its media type, with a public key's hint, one envelope, and nothing unchecked.
    2. The hint, where there is one, is of this key: UnknownKeyError otherwise.
    3. The one signature is by this key over payload type and payload: SignatureError otherwise.
    4. The statement is about one model, and its digest is that of the list: TamperError otherwise.

    MalformedError for bytes that are no such bundle; UsageError for one of a kind that is not supported.
    """
    signed, hint = _bundle(data)  # 1
    if hint is not None and hint != key.hint:  # 2
        raise UnknownKeyError(
            "the bundle names another key",
            expected=f"the key with hint {key.hint[:16]}",
            got=ascii(hint[:16]),
        )
    payload = envelope.verify(signed, [key])  # 3
    if signed.payload_type != statement.PAYLOAD_TYPE:
        raise MalformedError(
            "bundle of another payload", expected=statement.PAYLOAD_TYPE, got=ascii(signed.payload_type[:80])
        )
    return _model(statement.parse(payload))  # 4


def sign(model: SignedModel, key: EcSigningKey) -> bytes:
    """The bytes of a bundle about a model, which `verify` reads with the key's public part."""
    serialization: dict[str, object] = {
        "method": "files", "hash_type": model.hash, "allow_symlinks": model.symlinks,
    }  # fmt: skip
    if model.ignored:
        serialization["ignore_paths"] = list(model.ignored)
    predicate = {
        "serialization": serialization,
        "resources": [
            {"name": resource.name, "algorithm": model.hash, "digest": resource.digest}
            for resource in model.resources
        ],
    }
    digest = {"sha256": model.digest.removeprefix("sha256:")}
    stated = Statement((Subject(model.name, digest),), PREDICATE, predicate)
    signed = envelope.sign(stated.to_bytes(), statement.PAYLOAD_TYPE, [key]).to_bytes()
    data = canonical(
        {
            "mediaType": MEDIA_TYPE,
            "verificationMaterial": {"publicKey": {"hint": key.public.hint}, "tlogEntries": []},
            "dsseEnvelope": parse(signed, limit=envelope.MAX_ENVELOPE),
        }
    )
    verify(data, key.public)  # nothing is handed out that a reader would refuse
    return data


def _bundle(data: bytes) -> tuple[envelope.Envelope, str | None]:
    """The envelope of a bundle and the hint at its key."""
    fields = Fields.of(parse(data, limit=MAX_BUNDLE), "bundle")
    media_type = fields.text("mediaType")
    if media_type != MEDIA_TYPE:
        raise MalformedError("bundle of another version", expected=MEDIA_TYPE, got=ascii(media_type[:80]))
    material = fields.inside("verificationMaterial")
    for name in _BY_CERTIFICATE:
        if name in material.left:
            raise _unsupported("a signature by certificate (or through sigstore) is not supported", name)
    for name in _LOGGED:
        if material.left.pop(name, None):
            raise _unsupported("entries of a transparency log are not supported", name)
    public = material.inside("publicKey")
    hint = public.left.pop("hint", None) or None
    if hint is not None and not isinstance(hint, str):
        raise public.wrong("hint", "text", hint)
    for name in ("rawBytes", "keyDetails"):  # of earlier writers; the key that counts is the reader's own
        public.left.pop(name, None)
    public.close()
    material.close()
    if "messageSignature" in fields.left:
        raise _unsupported("a signature over a message digest is not supported", "messageSignature")
    signed = envelope.of_json(fields.take("dsseEnvelope"))
    fields.close()
    if len(signed.signatures) != 1:
        raise MalformedError(
            "bundle with several signatures", expected="exactly one", got=len(signed.signatures)
        )
    # The format identifies keys by the hint alone, so that of the envelope is not looked at.
    return replace(signed, signatures=(envelope.EnvelopeSignature(signed.signatures[0].sig),)), hint


def _model(stated: Statement) -> SignedModel:
    if stated.predicate_type != PREDICATE:
        raise MalformedError(
            "statement of another type", expected=PREDICATE, got=ascii(stated.predicate_type[:80])
        )
    if len(stated.subjects) != 1:
        raise MalformedError("statement about several models", expected="one", got=len(stated.subjects))
    (subject,) = stated.subjects
    if not subject.name or set(subject.digest) != {"sha256"}:
        raise MalformedError("the model has no name, or another digest", expected="a name and one sha256")
    predicate = Fields.of(dict(stated.predicate), "predicate")
    hash_, ignored, symlinks = _serialization(predicate.inside("serialization"))
    resources = predicate.list("resources", lambda value: _resource(value, hash_))
    _check_names(resources)
    model = SignedModel(subject.name, hash_, resources, ignored, symlinks)
    wanted = f"sha256:{subject.digest['sha256']}"
    if model.digest != wanted:
        raise TamperError(
            "the list does not give the digest of its model", kind="record", expected=wanted, got=model.digest
        )
    return model


def _serialization(fields: Fields) -> tuple[str, tuple[str, ...], bool]:
    method = fields.text("method")
    if method != "files":
        raise _unsupported("a list of parts of files is not supported", f"method {method[:40]!a}")
    hash_ = fields.text("hash_type")
    if hash_ not in HASHES:
        raise _unsupported("files by that hash are not supported", f"hash_type {hash_[:40]!a}")
    symlinks = fields.take("allow_symlinks")
    if not isinstance(symlinks, bool):
        raise fields.wrong("allow_symlinks", "true or false", symlinks)
    ignored = fields.list("ignore_paths", _path) if "ignore_paths" in fields.left else ()
    fields.close()
    return hash_, ignored, symlinks


def _resource(value: object, hash_: str) -> Resource:
    fields = Fields.of(value, "resource")
    name, algorithm, digest = fields.text("name"), fields.text("algorithm"), fields.text("digest")
    fields.close()
    if algorithm != hash_ or _DIGEST.fullmatch(digest) is None:
        raise MalformedError(
            "resource with another digest than its list says", expected=f"64 hex digits of {hash_}",
            where=ascii(name[:80]),
        )  # fmt: skip
    return Resource(name if name == WHOLE else _path(name), digest)


def _path(value: object) -> str:
    """A relative POSIX path in its one spelling, which leads nowhere but down."""
    path = PurePosixPath(value) if isinstance(value, str) else PurePosixPath()
    if (
        not isinstance(value, str) or path.as_posix() != value or path.is_absolute() or not path.parts
        or ".." in path.parts or any(ord(character) < 0x20 or character == "\x7f" for character in value)
    ):  # fmt: skip
        raise MalformedError(
            "not a path in the model", expected="a relative path without `..`",
            got=ascii(value[:80]) if isinstance(value, str) else type(value).__name__,
        )  # fmt: skip
    return value


def _check_names(resources: Sequence[Resource]) -> None:
    if not resources:
        raise MalformedError("a model without files")
    ((name, times),) = Counter(resource.name for resource in resources).most_common(1)
    if times > 1:
        raise MalformedError("a file is listed twice", got=ascii(name[:80]))
    if len(resources) > 1 and any(resource.name == WHOLE for resource in resources):
        raise MalformedError("a model that is one file, with other files")


def _unsupported(what: str, got: str) -> UsageError:
    return UsageError(what, code="unsupported-signature", expected=_SUPPORTED, got=got)
