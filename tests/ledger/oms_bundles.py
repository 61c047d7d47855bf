"""Model signatures as another program would write them: with the cryptography library, none of our code."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Change = Callable[[dict[str, Any]], None]
TYPE = "application/vnd.in-toto+json"
HASHES = {"secp256r1": hashes.SHA256(), "secp384r1": hashes.SHA384(), "secp521r1": hashes.SHA512()}


def new_key(curve: ec.EllipticCurve | None = None) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(curve or ec.SECP256R1())


def public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def save(folder: Path, name: str, key: ec.EllipticCurvePrivateKey) -> tuple[Path, Path]:
    """The files of a key pair: private with mode 0600, public."""
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    private.write_bytes(private_pem(key))
    private.chmod(0o600)
    public.write_bytes(public_pem(key))
    return private, public


def statement(files: Mapping[str, bytes], name: str = "model", **serialization_: Any) -> dict[str, Any]:
    """The statement about some files by their contents, in the order given."""
    resources = [
        {"name": file, "algorithm": "sha256", "digest": hashlib.sha256(data).hexdigest()}
        for file, data in files.items()
    ]
    root = hashlib.sha256(b"".join(bytes.fromhex(r["digest"]) for r in resources)).hexdigest()
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": root}}],
        "predicateType": "https://model_signing/signature/v1.0",
        "predicate": {
            "serialization": {"method": "files", "hash_type": "sha256", "allow_symlinks": False}
            | serialization_,
            "resources": resources,
        },
    }


def signed(payload: bytes, key: ec.EllipticCurvePrivateKey, type_: str = TYPE) -> dict[str, Any]:
    """The bundle around a payload."""
    pae = b"DSSEv1 %d %s %d %s" % (len(type_), type_.encode(), len(payload), payload)
    signature = key.sign(pae, ec.ECDSA(HASHES[key.curve.name]))
    return {
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {
            "publicKey": {"hint": hashlib.sha256(public_pem(key)).hexdigest()},
            "tlogEntries": [],
        },
        "dsseEnvelope": {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": type_,
            "signatures": [{"sig": base64.b64encode(signature).decode(), "keyid": ""}],
        },
    }


def bundle(
    files: Mapping[str, bytes],
    key: ec.EllipticCurvePrivateKey,
    *,
    stated: Change | None = None,
    outer: Change | None = None,
    **serialization_: Any,
) -> bytes:
    """The bytes of a bundle; `stated` changes the statement before it is signed, `outer` the bundle after."""
    body = statement(files, **serialization_)
    if stated is not None:
        stated(body)
    made = signed(json.dumps(body, indent=2).encode(), key)
    if outer is not None:
        outer(made)
    return json.dumps(made).encode()
