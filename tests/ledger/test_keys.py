"""Keys: made, kept for their owner only, named by a URI, and refused when they are something else."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from contracts.errors import MalformedError, SignatureError, StorageError, UsageError
from ledger.keys import PublicKey, SigningKey, key_id
from ledger.vkey import VerifierKey

PEM, PKCS8, PLAIN = (
    serialization.Encoding.PEM,
    serialization.PrivateFormat.PKCS8,
    serialization.NoEncryption(),
)


def plain(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def test_a_key_is_saved_for_its_owner_only_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LEDGER_KEY_PASSWORD", raising=False)
    key, path = SigningKey.generate(), tmp_path / "new" / "folder" / "a.pem"
    previous = os.umask(0)
    try:
        key.save(path)
    finally:
        os.umask(previous)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for uri in (path, str(path), f"file:{path}", f"file://{path}"):
        assert SigningKey.load(uri) == key
    monkeypatch.setenv("A_KEY", path.read_text())
    assert SigningKey.load("env:A_KEY") == key
    monkeypatch.setenv("HOME", str(tmp_path))
    assert SigningKey.load("~/new/folder/a.pem") == key


def test_an_existing_file_is_never_replaced(tmp_path: Path) -> None:
    path = plain(tmp_path / "a.pem", b"mine")
    (tmp_path / "b.pem").symlink_to(path)
    for target in (path, tmp_path / "b.pem"):
        with pytest.raises(StorageError) as caught:
            SigningKey.generate().save(target)
        assert caught.value.code == "key-exists"
    assert path.read_bytes() == b"mine"


def test_a_place_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    plain(tmp_path / "file", b"")
    with pytest.raises(StorageError, match="writing the key failed"):
        SigningKey.generate().save(tmp_path / "file" / "a.pem")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602])
def test_a_key_others_may_read_is_refused_with_advice(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a.pem"
    SigningKey.generate().save(path)
    path.chmod(mode)
    with pytest.raises(StorageError) as caught:
        SigningKey.load(path)
    assert caught.value.code == "key-mode"
    assert f"chmod 600 {path}" in str(caught.value)
    path.chmod(0o400)
    SigningKey.load(path)


def test_a_password_protects_and_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, path = SigningKey.generate(), tmp_path / "a.pem"
    monkeypatch.setenv("LEDGER_KEY_PASSWORD", "open sesame")
    key.save(path)
    assert b"ENCRYPTED" in path.read_bytes()
    assert SigningKey.load(path) == key
    monkeypatch.setenv("LEDGER_KEY_PASSWORD", "wrong")
    with pytest.raises(UsageError, match="LEDGER_KEY_PASSWORD does not open the key"):
        SigningKey.load(path)
    monkeypatch.delenv("LEDGER_KEY_PASSWORD")
    with pytest.raises(UsageError, match="the key is encrypted; set LEDGER_KEY_PASSWORD"):
        SigningKey.load(path)
    other = tmp_path / "plain.pem"
    key.save(other)
    monkeypatch.setenv("LEDGER_KEY_PASSWORD", "for another key")
    assert SigningKey.load(other) == key


def test_keys_of_other_types_are_refused_by_name(tmp_path: Path) -> None:
    for key, kind in (
        (ec.generate_private_key(ec.SECP256R1()), "got ec"),
        (rsa.generate_private_key(65537, 2048), "got rsa"),
    ):
        private = plain(tmp_path / "private", key.private_bytes(PEM, PKCS8, PLAIN))
        with pytest.raises(UsageError, match=kind):
            SigningKey.load(private)
        public = key.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        with pytest.raises(UsageError, match=kind):
            PublicKey.load(plain(tmp_path / "public", public))


def test_what_is_no_key_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = SigningKey.generate()
    for junk in (
        b"",
        b"junk",
        key.public.to_pem(),
        b"-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n",
    ):
        with pytest.raises(UsageError, match="not a private key"):
            SigningKey.load(plain(tmp_path / "junk", junk))
        if junk != key.public.to_pem():
            with pytest.raises(UsageError, match="not a public key"):
                PublicKey.load(tmp_path / "junk")
    monkeypatch.setenv("LEDGER_KEY_PASSWORD", "x")
    with pytest.raises(UsageError, match="not a private key"):
        SigningKey.load(plain(tmp_path / "junk", b"junk"))
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(UsageError, match="NO_SUCH_KEY is not set"):
        SigningKey.load("env:NO_SUCH_KEY")
    for load in (SigningKey.load, PublicKey.load):
        for path in (tmp_path / "absent", tmp_path):
            with pytest.raises(StorageError, match="cannot read the key"):
                load(path)


def test_a_public_key_is_read_from_pem_or_verifier_key(tmp_path: Path) -> None:
    public = SigningKey.generate().public
    path = tmp_path / "public.pem"
    path.write_bytes(public.to_pem())
    assert PublicKey.load(path) == PublicKey.load(f"file:{path}") == public
    assert PublicKey.load(str(VerifierKey("a/log", public.raw))) == public
    assert PublicKey.from_pem(public.to_pem()) == public
    with pytest.raises(MalformedError, match="32 bytes"):
        PublicKey(b"short").to_pem()


def test_the_key_id_is_the_hash_of_the_subject_public_key_info() -> None:
    private = Ed25519PrivateKey.generate()
    public = PublicKey(private.public_key().public_bytes_raw())
    der = private.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    assert key_id(public) == hashlib.sha256(der).hexdigest()


def test_signatures_hold_until_a_bit_changes() -> None:
    key = SigningKey.generate()
    signature = key.sign(b"data")
    assert len(signature) == 64
    assert key.sign(b"data") == signature
    key.public.verify(signature, b"data")
    for i in range(64):
        changed = bytes([*signature[:i], signature[i] ^ 1, *signature[i + 1 :]])
        with pytest.raises(SignatureError):
            key.public.verify(changed, b"data")
    for public, signed, data in (
        (SigningKey.generate().public, signature, b"data"),
        (key.public, signature, b"dato"),
        (key.public, b"", b"data"),
        (key.public, signature + b"\x00", b"data"),
    ):
        with pytest.raises(SignatureError):
            public.verify(signed, data)


def test_a_private_key_never_prints() -> None:
    key = SigningKey.generate()
    assert key_id(key.public)[:16] in repr(key)
    assert repr(key._seed) not in repr(key)
    assert key._seed.hex() not in repr([key])


def test_a_name_no_file_can_have_is_a_missing_key(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        PublicKey.load(f"{tmp_path}/a\x00b")
    assert caught.value.code == "key-missing"
    assert "\x00" not in str(caught.value)
