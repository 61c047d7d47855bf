"""Model signatures: those of another program are read, everything changed or unchecked is refused by name."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.errors import (
    LedgerError,
    MalformedError,
    SignatureError,
    TamperError,
    UnknownKeyError,
    UsageError,
)
from ledger import oms
from ledger.ec_keys import EcPublicKey, EcSigningKey
from ledger.oms import Resource, SignedModel
from tests.ledger.oms_bundles import bundle, new_key, public_pem, signed, statement

FILES = {"a.bin": b"one", "part/b.bin": b"two", "part-c": b"three"}
KEY = new_key()


def public(key: ec.EllipticCurvePrivateKey = KEY) -> EcPublicKey:
    return EcPublicKey.of(key.public_key(), None)


def refused(data: bytes, error: type[LedgerError], match: str, key: EcPublicKey | None = None) -> None:
    with pytest.raises(error, match=match):
        oms.verify(data, key or public())


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()], ids=lambda c: c.name)
def test_a_bundle_of_another_program_is_read(curve: ec.EllipticCurve) -> None:
    key = new_key(curve)
    ignored = [".git", "model.sig", "logs/old"]
    model = oms.verify(bundle(FILES, key, ignore_paths=ignored, allow_symlinks=True), public(key))
    assert (model.name, model.hash, model.symlinks) == ("model", "sha256", True)
    assert {r.name: r.digest for r in model.resources} == {
        name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()
    }
    assert model.digest == "sha256:" + statement(FILES)["subject"][0]["digest"]["sha256"]
    left = [n for n in (".git", ".git/x", ".gitx", "logs", "logs/old/y", "model.sig") if model.leaves_out(n)]
    assert left == [".git", ".git/x", "logs/old/y", "model.sig"]


def test_what_is_written_is_read_back() -> None:
    resources = oms.in_order(Resource(n, hashlib.sha256(d).hexdigest()) for n, d in FILES.items())
    assert [resource.name for resource in resources] == ["a.bin", "part/b.bin", "part-c"]
    model = SignedModel("m", "sha256", resources, (".git",), symlinks=True)
    key = EcSigningKey(KEY)
    data = oms.sign(model, key)
    assert oms.verify(data, key.public) == model
    assert b"ignore_paths" not in base64.b64decode(
        json.loads(oms.sign(SignedModel("m", "sha256", resources), key))["dsseEnvelope"]["payload"]
    )
    with pytest.raises(MalformedError):
        oms.sign(SignedModel("m", "sha256", (Resource("../x", "0" * 64),)), key)


PARTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1, max_size=8
)
NAMES = st.lists(PARTS.filter(lambda part: part not in (".", "..")), min_size=1, max_size=4).map("/".join)


@settings(max_examples=60, deadline=None)
@given(
    names=st.sets(NAMES, min_size=1, max_size=6),
    ignored=st.sets(NAMES, max_size=3),
    name=PARTS,
    links=st.booleans(),
)
def test_any_names_are_written_and_read_back(
    names: set[str], ignored: set[str], name: str, links: bool
) -> None:
    resources = oms.in_order(Resource(n, hashlib.sha256(n.encode()).hexdigest()) for n in names)
    model = SignedModel(name, "sha256", resources, tuple(sorted(ignored)), links)
    assert oms.verify(oms.sign(model, EcSigningKey(KEY)), public()) == model


def test_every_flipped_byte_of_the_payload_and_the_signature_is_refused() -> None:
    made = json.loads(bundle(FILES, KEY))
    envelope = made["dsseEnvelope"]
    payload, signature = (
        base64.b64decode(envelope["payload"]),
        base64.b64decode(envelope["signatures"][0]["sig"]),
    )
    for place in range(0, len(payload), 7):
        changed = payload[:place] + bytes([payload[place] ^ 1]) + payload[place + 1 :]
        envelope["payload"] = base64.b64encode(changed).decode()
        refused(json.dumps(made).encode(), SignatureError, "does not match")
    envelope["payload"] = base64.b64encode(payload).decode()
    for place in range(len(signature)):
        changed = signature[:place] + bytes([signature[place] ^ 1]) + signature[place + 1 :]
        envelope["signatures"][0]["sig"] = base64.b64encode(changed).decode()
        refused(json.dumps(made).encode(), SignatureError, "does not match")


def test_every_cut_and_every_flipped_bit_of_the_file_is_an_error_of_ours() -> None:
    data = bundle({"a": b"x"}, KEY)
    whole = oms.verify(data, public())
    for place in range(0, len(data), 5):
        changed = data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :]
        try:
            found = oms.verify(changed, public())
        except LedgerError:
            continue
        assert found == whole, "only what is not signed and means nothing may differ"
    for size in range(0, len(data), 11):
        refused(data[:size], MalformedError, "json")


def test_another_key_is_told_from_a_broken_signature() -> None:
    data = bundle(FILES, KEY)
    refused(data, UnknownKeyError, "names another key", public(new_key()))
    hintless = bundle(FILES, KEY, outer=lambda made: made["verificationMaterial"]["publicKey"].clear())
    assert oms.verify(hintless, public()).name == "model"
    refused(hintless, SignatureError, "does not match", public(new_key()))
    refused(hintless, SignatureError, "does not match", public(new_key(ec.SECP384R1())))


def outer(**changes: Any) -> Any:
    def change(made: dict[str, Any]) -> None:
        for path, value in changes.items():
            *parents, last = path.split("__")
            inside: Any = made
            for name in parents:
                inside = inside[int(name) if name.isdigit() else name]
            if value is None:
                del inside[last]
            else:
                inside[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (outer(mediaType="application/vnd.dev.sigstore.bundle.v0.2+json"), MalformedError, "another version"),
        (outer(mediaType=None), MalformedError, "mediaType"),
        (outer(more=1), MalformedError, "unknown key"),
        (outer(verificationMaterial__certificate={"rawBytes": "AA=="}), UsageError, "by certificate"),
        (outer(verificationMaterial__x509CertificateChain={}), UsageError, "by certificate"),
        (outer(verificationMaterial__tlogEntries=[{}]), UsageError, "transparency log"),
        (outer(verificationMaterial__timestampVerificationData={"x": 1}), UsageError, "transparency log"),
        (outer(verificationMaterial__publicKey=None), MalformedError, "publicKey"),
        (outer(verificationMaterial__publicKey__hint=7), MalformedError, "hint"),
        (outer(verificationMaterial__odd={}), MalformedError, "unknown key"),
        (outer(messageSignature={}), UsageError, "message digest"),
        (outer(dsseEnvelope=None), MalformedError, "dsseEnvelope"),
        (outer(dsseEnvelope__signatures=[]), MalformedError, "without signatures"),
        (outer(dsseEnvelope__payload="!"), MalformedError, "base64"),
        (outer(dsseEnvelope__payloadType="text/plain"), SignatureError, "does not match"),
    ],
)  # fmt: skip
def test_what_is_around_the_payload_is_read_strictly(change: Any, error: Any, match: str) -> None:
    refused(bundle(FILES, KEY, outer=change), error, match)


def test_a_second_signature_is_refused() -> None:
    def twice(made: dict[str, Any]) -> None:
        made["dsseEnvelope"]["signatures"] *= 2

    refused(bundle(FILES, KEY, outer=twice), MalformedError, "several signatures")


def test_a_payload_of_another_type_is_refused() -> None:
    data = json.dumps(signed(json.dumps(statement(FILES)).encode(), KEY, type_="text/plain")).encode()
    refused(data, MalformedError, "another payload")


def predicate(**changes: Any) -> Any:
    return outer(**{f"predicate__{name}": value for name, value in changes.items()})


def named(*names: str) -> Any:
    """The same digests under other names."""

    def change(stated: dict[str, Any]) -> None:
        for resource, name in zip(stated["predicate"]["resources"], names, strict=False):
            resource["name"] = name

    return change


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (outer(predicateType="https://model_signing/Digests/v0.1"), MalformedError, "another type"),
        (outer(_type="https://in-toto.io/Statement/v0.1"), MalformedError, "in-toto"),
        (outer(subject=[]), MalformedError, "without subjects"),
        (outer(subject__0__digest={"sha512": "00" * 64}), MalformedError, "another digest"),
        (outer(subject__0__name=""), MalformedError, "no name"),
        (outer(subject__0__digest__sha256="0" * 64), TamperError, "does not give the digest"),
        (predicate(serialization__method="shards"), UsageError, "parts of files"),
        (predicate(serialization__hash_type="blake2"), UsageError, "that hash"),
        (predicate(serialization__hash_type="blake3"), MalformedError, "another digest"),
        (predicate(serialization__allow_symlinks="no"), MalformedError, "allow_symlinks"),
        (predicate(serialization__odd=1), MalformedError, "unknown key"),
        (predicate(serialization__ignore_paths=[".."]), MalformedError, "not a path"),
        (predicate(serialization__ignore_paths=["."]), MalformedError, "not a path"),
        (predicate(serialization__ignore_paths=["/etc"]), MalformedError, "not a path"),
        (predicate(serialization__ignore_paths=[7]), MalformedError, "not a path"),
        (predicate(resources=[]), MalformedError, "without files"),
        (predicate(resources__0__digest="AB" * 32), MalformedError, "another digest"),
        (predicate(resources__0__odd=1), MalformedError, "unknown key"),
        (named("../a"), MalformedError, "not a path"),
        (named("part/../a"), MalformedError, "not a path"),
        (named("/a"), MalformedError, "not a path"),
        (named("a//b"), MalformedError, "not a path"),
        (named("./a"), MalformedError, "not a path"),
        (named("a/"), MalformedError, "not a path"),
        (named("a\nb"), MalformedError, "not a path"),
        (named("x", "x"), MalformedError, "listed twice"),
        (named("."), MalformedError, "one file, with other files"),
    ],
)  # fmt: skip
def test_what_is_signed_is_read_strictly(change: Any, error: Any, match: str) -> None:
    refused(bundle(FILES, KEY, stated=change), error, match)


def test_an_added_a_dropped_and_a_swapped_file_change_the_digest() -> None:
    def dropped(stated: dict[str, Any]) -> None:
        del stated["predicate"]["resources"][1]

    def swapped(stated: dict[str, Any]) -> None:
        stated["predicate"]["resources"].reverse()

    def added(stated: dict[str, Any]) -> None:
        stated["predicate"]["resources"].append({"name": "z", "algorithm": "sha256", "digest": "0" * 64})

    for change in (dropped, swapped, added):
        refused(bundle(FILES, KEY, stated=change), TamperError, "does not give the digest")


def test_repeated_keys_are_refused_outside_and_inside() -> None:
    data = bundle(FILES, KEY).decode()
    refused(
        data.replace('{"mediaType"', '{"mediaType": "x", "mediaType"', 1).encode(),
        MalformedError,
        "repeated key",
    )
    body = json.dumps(statement(FILES)).replace('"predicateType"', '"subject": [], "predicateType"', 1)
    refused(json.dumps(signed(body.encode(), KEY)).encode(), MalformedError, "repeated key")


def test_long_bundles_are_bounded_and_read_in_proportion() -> None:
    many = {f"folder-{n // 100:04d}/weights-{n:06d}.safetensors": b"x" for n in range(30_000)}
    data = bundle(many, KEY)
    assert 7_000_000 < len(data) < oms.MAX_BUNDLE
    started = time.process_time()
    assert len(oms.verify(data, public()).resources) == 30_000
    assert time.process_time() - started < 10
    junk = b'{"mediaType": "' + b"x" * 10_000_000 + b'"}'
    started = time.process_time()
    refused(junk, MalformedError, "another version")
    refused(b"[" * 10_000_000, MalformedError, "nested too deeply")
    refused(b" " * (oms.MAX_BUNDLE + 1), MalformedError, "too long")
    assert time.process_time() - started < 5


def test_blake3_lists_are_taken_too() -> None:
    from blake3 import blake3

    def change(stated: dict[str, Any]) -> None:
        inside = stated["predicate"]
        inside["serialization"]["hash_type"] = "blake3"
        for resource, data in zip(inside["resources"], FILES.values(), strict=True):
            resource |= {"algorithm": "blake3", "digest": blake3(data).hexdigest()}
        root = b"".join(bytes.fromhex(resource["digest"]) for resource in inside["resources"])
        stated["subject"][0]["digest"]["sha256"] = hashlib.sha256(root).hexdigest()

    assert oms.verify(bundle(FILES, KEY, stated=change), public()).hash == "blake3"


def test_earlier_writers_put_the_key_itself_beside_the_hint() -> None:
    der = base64.b64encode(public().der).decode()
    change = outer(verificationMaterial__publicKey={"rawBytes": der, "keyDetails": "PKIX_ECDSA_P256_SHA_256"})
    assert oms.verify(bundle(FILES, KEY, outer=change), public()).name == "model"
    assert public_pem(KEY).startswith(b"-----BEGIN PUBLIC KEY")
