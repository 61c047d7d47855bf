"""Envelopes and statements: the bytes that came are the bytes verified, whatever their wrapping."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib import dsse
from securesystemslib.exceptions import VerificationError as TheirVerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey

from contracts.errors import MalformedError, SignatureError, UnknownKeyError
from ledger.envelope import MAX_SIGNATURES, Envelope, EnvelopeSignature, pae, parse, sign, verify
from ledger.keys import SigningKey, key_id
from ledger.statement import AUDIT, PAYLOAD_TYPE, STATEMENT_TYPE, Statement, Subject
from ledger.statement import parse as parse_statement

KEY, OTHER, THIRD = (SigningKey(letter * 32) for letter in (b"1", b"2", b"3"))
PAYLOAD = b'{"a": 1}'
ENVELOPE = sign(PAYLOAD, PAYLOAD_TYPE, [KEY])
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


def fields(envelope: Envelope = ENVELOPE) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(envelope.to_bytes())
    return found


def edited(**changes: object) -> bytes:
    return json.dumps({**fields(), **changes}).encode()


def signature(sig: bytes = b"", **more: object) -> dict[str, object]:
    return {"sig": base64.b64encode(sig or ENVELOPE.signatures[0].sig).decode(), **more}


# Round trips


@given(st.binary(max_size=200), texts, st.lists(st.sampled_from([KEY, OTHER]), min_size=1, max_size=3))
def test_a_signed_envelope_comes_back(payload: bytes, payload_type: str, keys: list[SigningKey]) -> None:
    envelope = sign(payload, payload_type, keys)
    data = envelope.to_bytes()
    assert parse(data) == envelope
    assert parse(data).to_bytes() == data
    assert verify(parse(data), [key.public for key in keys], threshold=len(set(map(id, keys)))) == payload


@given(st.binary(max_size=100))
def test_arbitrary_bytes_are_no_envelope(data: bytes) -> None:
    with pytest.raises(MalformedError):
        parse(data)


def test_the_encoding_to_sign_counts_bytes_not_letters() -> None:
    assert pae("é", b"\xc3\xa9\n") == b"DSSEv1 2 \xc3\xa9 3 \xc3\xa9\n"
    assert pae("ab", b"c") != pae("a", b"bc")


# What may change, and what may not


def reordered(data: bytes) -> bytes:
    found = json.loads(data)
    return json.dumps({key: found[key] for key in reversed(found)}).encode()


def without_keyid(data: bytes) -> bytes:
    found = json.loads(data)
    del found["signatures"][0]["keyid"]
    return json.dumps(found).encode()


def with_keyid(keyid: object) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        found = json.loads(data)
        found["signatures"][0]["keyid"] = keyid
        return json.dumps(found).encode()

    return change


def url_safe(data: bytes) -> bytes:
    found = json.loads(data)
    found["payload"] = found["payload"].replace("+", "-").replace("/", "_")
    found["signatures"][0]["sig"] = found["signatures"][0]["sig"].replace("+", "-").replace("/", "_")
    return json.dumps(found).encode()


@pytest.mark.parametrize(
    "change",
    [
        lambda data: json.dumps(json.loads(data), indent=4).encode(),
        reordered,
        without_keyid,
        with_keyid(None),
        with_keyid(""),
        with_keyid("a name of their own"),
        with_keyid(key_id(OTHER.public)),
        url_safe,
        lambda data: data.replace(b"{", b'{"extra":[1],', 1),
    ],
)
def test_wrapping_does_not_matter(change: Callable[[bytes], bytes]) -> None:
    payload = bytes(range(256))
    data = change(sign(payload, PAYLOAD_TYPE, [KEY]).to_bytes())
    assert verify(parse(data), [OTHER.public, KEY.public]) == payload


def test_every_flipped_bit_of_payload_type_or_signature_is_refused() -> None:
    def refused(envelope: Envelope) -> None:
        with pytest.raises(SignatureError):
            verify(envelope, [KEY.public])

    (sig,) = ENVELOPE.signatures
    for i in range(len(PAYLOAD) * 8):
        changed = bytearray(PAYLOAD)
        changed[i // 8] ^= 1 << i % 8
        refused(Envelope(PAYLOAD_TYPE, bytes(changed), ENVELOPE.signatures))
    for i in range(len(sig.sig) * 8):
        changed = bytearray(sig.sig)
        changed[i // 8] ^= 1 << i % 8
        refused(Envelope(PAYLOAD_TYPE, PAYLOAD, (EnvelopeSignature(bytes(changed), sig.keyid),)))
    refused(Envelope(PAYLOAD_TYPE + "x", PAYLOAD, ENVELOPE.signatures))
    # The same bytes cut elsewhere between type and payload.
    refused(Envelope(PAYLOAD_TYPE[:-1], PAYLOAD_TYPE[-1:].encode() + PAYLOAD, ENVELOPE.signatures))


def test_the_payload_is_not_read_again_as_json() -> None:
    respelt = json.dumps(json.loads(PAYLOAD), separators=(",", ":")).encode()
    assert respelt != PAYLOAD
    with pytest.raises(SignatureError):
        verify(Envelope(PAYLOAD_TYPE, respelt, ENVELOPE.signatures), [KEY.public])


# Who signed


def test_one_key_counts_once_even_under_two_ids() -> None:
    (sig,) = ENVELOPE.signatures
    twice = Envelope(
        PAYLOAD_TYPE, PAYLOAD, (sig, EnvelopeSignature(sig.sig, "another"), EnvelopeSignature(sig.sig))
    )
    assert verify(twice, [KEY.public, OTHER.public]) == PAYLOAD
    with pytest.raises(UnknownKeyError, match="expected 2 trusted keys, got 1"):
        verify(twice, [KEY.public, OTHER.public, KEY.public], threshold=2)
    with pytest.raises(AssertionError):
        verify(twice, [KEY.public], threshold=0)


def test_a_threshold_is_met_by_different_keys_only() -> None:
    both = sign(PAYLOAD, PAYLOAD_TYPE, [KEY, OTHER])
    assert verify(both, [KEY.public, OTHER.public], threshold=2) == PAYLOAD
    with pytest.raises(UnknownKeyError, match="got 1"):
        verify(both, [KEY.public, THIRD.public], threshold=2)


def test_a_strangers_bad_signature_does_not_spoil_ours() -> None:
    (sig,) = ENVELOPE.signatures
    with_junk = Envelope(
        PAYLOAD_TYPE, PAYLOAD, (EnvelopeSignature(b"junk", "x"), EnvelopeSignature(b""), sig)
    )
    assert verify(with_junk, [KEY.public]) == PAYLOAD


def test_unknown_bad_and_malformed_are_three_failures() -> None:
    with pytest.raises(UnknownKeyError):
        verify(ENVELOPE, [OTHER.public])
    with pytest.raises(UnknownKeyError):
        verify(ENVELOPE, [])
    changed = Envelope(PAYLOAD_TYPE, PAYLOAD + b" ", ENVELOPE.signatures)
    with pytest.raises(SignatureError):
        verify(changed, [KEY.public])
    with pytest.raises(SignatureError):
        verify(parse(without_keyid(changed.to_bytes())), [KEY.public])
    with pytest.raises(MalformedError):
        parse(ENVELOPE.to_bytes()[:-1])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[]", "expected a json object"),
        (b"{}", "payloadType is not text"),
        (edited(payloadType=""), "without a payload type"),
        (edited(payloadType=3), "payloadType is not text"),
        (edited(payload=None), "payload is not text"),
        (edited(payload="a"), "not base64"),
        (edited(payload="YQ"), "not base64"),
        (edited(payload="YR=="), "canonical spelling"),
        (edited(payload="YQ==\n"), "not base64"),
        (edited(payload="+-+-"), "canonical spelling"),
        (edited(payload="é"), "not base64"),
        (edited(signatures=[]), "without signatures"),
        (edited(signatures={}), "without signatures"),
        (edited(signatures=[signature()] * (MAX_SIGNATURES + 1)), "without signatures"),
        (edited(signatures=["a"]), "malformed envelope signature"),
        (edited(signatures=[{"keyid": "a"}]), "sig is not text"),
        (edited(signatures=[signature(keyid=1)]), "keyid is not text"),
        (ENVELOPE.to_bytes().replace(b'"payload":', b'"payload":"","payload":'), "repeated key"),
        (b"\xff", "not utf-8"),
    ],
)  # fmt: skip
def test_what_is_no_envelope(data: bytes, message: str) -> None:
    with pytest.raises(MalformedError, match=message):
        parse(data)


# Against another implementation


def their_key(key: SigningKey, keyid: str | None = None) -> SSlibKey:
    return SSlibKey(keyid or key_id(key.public), "ed25519", "ed25519", {"public": key.public.raw.hex()})


def test_securesystemslib_accepts_ours() -> None:
    theirs = dsse.Envelope.from_dict(fields(sign(PAYLOAD, PAYLOAD_TYPE, [KEY, OTHER])))
    assert theirs.payload == PAYLOAD
    assert theirs.pae() == pae(PAYLOAD_TYPE, PAYLOAD)
    assert len(theirs.verify([their_key(KEY), their_key(OTHER)], 2)) == 2
    theirs.payload += b" "
    with pytest.raises(TheirVerificationError):
        theirs.verify([their_key(KEY)], 1)


def test_we_accept_securesystemslib_under_any_key_id() -> None:
    signer = CryptoSigner(Ed25519PrivateKey.from_private_bytes(KEY._seed), their_key(KEY, "theirs"))
    theirs = dsse.Envelope(PAYLOAD, PAYLOAD_TYPE, {})
    theirs.sign(signer)
    data = json.dumps(theirs.to_dict()).encode()
    assert parse(data).signatures[0].keyid == "theirs"
    assert verify(parse(data), [KEY.public]) == PAYLOAD
    with pytest.raises(UnknownKeyError):
        verify(parse(data), [OTHER.public])


def test_a_key_id_is_the_hash_other_tools_compute() -> None:
    assert key_id(KEY.public) == hashlib.sha256(KEY.public.to_der()).hexdigest()


# Statements

STATEMENT = Statement(
    (Subject("tree-head", {"sha256": "ab" * 32}), Subject("s", {"blake3": "01", "sha256": "02"})),
    AUDIT,
    {"audit": "transport", "result": {"n": 3, "x": 0.1, "large": 2.0**60, "none": None}},
)


def test_a_statement_comes_back() -> None:
    data = STATEMENT.to_bytes()
    assert parse_statement(data) == STATEMENT
    assert parse_statement(data).to_bytes() == data
    found = json.loads(data)
    assert found["_type"] == STATEMENT_TYPE == "https://in-toto.io/Statement/v1"
    assert list(found) == sorted(found)
    assert hash(STATEMENT) == hash(parse_statement(data))


@given(
    st.dictionaries(
        texts, st.none() | st.booleans() | texts | st.floats(allow_nan=False, allow_infinity=False)
    )
)
def test_any_predicate_comes_back(predicate: dict[str, object]) -> None:
    statement = Statement((Subject("a", {"sha256": "00"}),), AUDIT, predicate)
    assert parse_statement(statement.to_bytes()) == statement


def test_members_of_later_versions_are_tolerated() -> None:
    found = json.loads(STATEMENT.to_bytes())
    found["later"] = 1
    found["subject"][0]["uri"] = "x"
    assert parse_statement(json.dumps(found, indent=1).encode()) == STATEMENT


def statement_with(change: Callable[[dict[str, Any]], object]) -> bytes:
    found: dict[str, Any] = copy.deepcopy(json.loads(STATEMENT.to_bytes()))
    change(found)
    return json.dumps(found).encode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.update(_type="https://in-toto.io/Statement/v0.1"), "not an in-toto statement"),
        (lambda s: s.pop("_type"), "not an in-toto statement"),
        (lambda s: s.update(subject=[]), "without subjects"),
        (lambda s: s.pop("subject"), "without subjects"),
        (lambda s: s.update(subject=["a"]), "without a digest"),
        (lambda s: s["subject"][0].pop("digest"), "without a digest"),
        (lambda s: s["subject"][0].update(digest={}), "without a digest"),
        (lambda s: s["subject"][0].update(digest={"sha256": "AB"}), "tree-head: subject digest"),
        (lambda s: s["subject"][0].update(digest={"sha256": "abc"}), "subject digest"),
        (lambda s: s["subject"][0].update(digest={"sha256": ""}), "subject digest"),
        (lambda s: s["subject"][0].update(digest={"sha256": 1}), "subject digest"),
        (lambda s: s["subject"][0].update(digest={"": "ab"}), "subject digest"),
        (lambda s: s["subject"][0].update(name=1), "subject name"),
        (lambda s: s.pop("predicateType"), "without a predicate type"),
        (lambda s: s.update(predicateType=""), "without a predicate type"),
        (lambda s: s.update(predicate=[1]), "predicate is not an object"),
        (lambda s: s["predicate"].update(n=2**53 + 1), "predicate.n: integer too large"),
    ],
)
def test_what_is_no_statement(change: Callable[[dict[str, Any]], object], message: str) -> None:
    with pytest.raises(MalformedError, match=message):
        parse_statement(statement_with(change))


@pytest.mark.parametrize("predicate", [{"a": float("nan")}, {"a": {1}}, {"a": 2**53}])
def test_what_cannot_be_stated_is_not_written(predicate: Mapping[str, object]) -> None:
    with pytest.raises(MalformedError):
        Statement(STATEMENT.subjects, AUDIT, predicate).to_bytes()
    with pytest.raises(MalformedError):
        Statement((), AUDIT, {}).to_bytes()
