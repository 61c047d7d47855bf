"""Elliptic curve keys: every curve model signing takes, both ways, and each refusal by name."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from contracts.errors import MalformedError, SignatureError, StorageError, UsageError
from ledger.ec_keys import EcPublicKey, EcSigningKey
from ledger.keys import SigningKey
from tests.ledger.oms_bundles import new_key, private_pem, public_pem, save

CURVES = [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()]


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.name)
def test_what_is_signed_verifies_with_the_loaded_public_key(curve: ec.EllipticCurve, tmp_path: Path) -> None:
    private, public = save(tmp_path, "k", new_key(curve))
    key, known = EcSigningKey.load(f"file:{private}"), EcPublicKey.load(public)
    assert key.public == known
    signature = key.sign(b"bytes")
    known.verify(signature, b"bytes")
    for wrong in (b"other", b""):
        with pytest.raises(SignatureError):
            known.verify(signature, wrong)
    for broken in (b"", b"\0" * 70, signature[:-1], signature + b"\0"):
        with pytest.raises(SignatureError):
            known.verify(broken, b"bytes")
    assert EcPublicKey.from_der(known.to_der()) == known
    assert known.to_pem() == public.read_bytes()
    assert known.hint == hashlib.sha256(public.read_bytes()).hexdigest()
    assert known.id == hashlib.sha256(known.der).hexdigest()
    assert known.id[:16] in repr(key)


def test_a_key_of_another_kind_is_refused_by_name(tmp_path: Path) -> None:
    SigningKey.generate().save(tmp_path / "ed.pem")
    with pytest.raises(UsageError, match="ed25519"):
        EcSigningKey.load(tmp_path / "ed.pem")
    (tmp_path / "ed.pub").write_bytes(SigningKey.generate().public.to_pem())
    with pytest.raises(UsageError, match="ed25519"):
        EcPublicKey.load(tmp_path / "ed.pub")
    other = new_key(ec.SECP256K1())
    private, public = save(tmp_path, "koblitz", other)
    for load, path in ((EcSigningKey.load, private), (EcPublicKey.load, public)):
        with pytest.raises(UsageError, match="secp256k1"):
            load(path)
    big = rsa.generate_private_key(65537, 2048).public_key()
    (tmp_path / "rsa.pub").write_bytes(
        big.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    with pytest.raises(UsageError, match="rsa"):
        EcPublicKey.load(tmp_path / "rsa.pub")
    (tmp_path / "cert.pem").write_text("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n")
    with pytest.raises(UsageError, match="by certificate are not supported"):
        EcPublicKey.load(tmp_path / "cert.pem")
    (tmp_path / "noise.pem").write_text("noise")
    with pytest.raises(UsageError, match="not a public key"):
        EcPublicKey.load(tmp_path / "noise.pem")


def test_a_private_key_comes_from_its_owner_alone_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = new_key()
    private, public = save(tmp_path, "k", made)
    private.chmod(0o644)
    with pytest.raises(StorageError, match="mode 644"):
        EcSigningKey.load(private)
    with pytest.raises(UsageError, match="EC_KEY is not set"):
        EcSigningKey.load("env:EC_KEY")
    monkeypatch.setenv("EC_KEY", private_pem(made).decode())
    assert EcSigningKey.load("env:EC_KEY").public == EcPublicKey.load(public)


def test_a_key_in_der_has_one_spelling() -> None:
    made = new_key().public_key()
    numbers = made.public_numbers()
    whole = made.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    point = made.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint)
    assert EcPublicKey.from_der(whole).der == whole
    short = bytes.fromhex("3039301306072a8648ce3d020106082a8648ce3d030107032200") + point
    for data in (short, whole[:-1], b"", whole[:-32] + (numbers.y ^ 1).to_bytes(32, "big"),
                 SigningKey.generate().public.to_der()):  # fmt: skip
        with pytest.raises(MalformedError):
            EcPublicKey.from_der(data)


def test_the_pem_of_openssl_s_own_form_is_read(tmp_path: Path) -> None:
    made = new_key()
    path = tmp_path / "sec1.pem"
    path.write_bytes(
        made.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    path.chmod(0o600)
    assert EcSigningKey.load(path).public.to_pem() == public_pem(made)
