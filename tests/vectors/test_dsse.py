"""Envelopes against the example of the DSSE protocol, whose key is of a kind we do not sign with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from ledger.envelope import pae, parse

VECTORS = Path(__file__).parents[2].parent / "shared" / "vectors" / "dsse_protocol.json"
pytestmark = pytest.mark.skipif(
    not VECTORS.is_file(), reason="the shared vectors are not beside the checkout"
)


def test_the_protocols_example() -> None:
    case = json.loads(VECTORS.read_text())
    envelope = parse(json.dumps(case["envelope"]).encode())
    assert envelope.payload == case["payload_utf8"].encode()
    assert pae(case["payload_type"], envelope.payload) == case["pae_utf8"].encode()
    (signature,) = envelope.signatures
    assert signature.keyid is None
    key = ec.EllipticCurvePublicNumbers(
        int(case["key"]["X"]), int(case["key"]["Y"]), ec.SECP256R1()
    ).public_key()
    r, s = (int.from_bytes(signature.sig[i : i + 32], "big") for i in (0, 32))
    message = pae(envelope.payload_type, envelope.payload)
    key.verify(
        encode_dss_signature(r, s), message, ec.ECDSA(hashes.SHA256())
    )  # raises when it does not match
