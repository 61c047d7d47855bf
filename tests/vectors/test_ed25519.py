"""Ed25519 edge cases of C2SP/CCTV: what the library accepts today is what the ledger relies on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts.errors import SignatureError
from ledger.keys import PublicKey

VECTORS = Path(__file__).parents[2].parent / "shared" / "vectors" / "ed25519_cctv.json"
pytestmark = pytest.mark.skipif(
    not VECTORS.is_file(), reason="the shared vectors are not beside the checkout"
)


def accepted(case: dict[str, str]) -> bool:
    try:
        PublicKey(bytes.fromhex(case["key"])).verify(bytes.fromhex(case["sig"]), case["msg"].encode())
    except SignatureError:
        return False
    return True


def test_no_signature_with_a_malleable_part_is_accepted() -> None:
    cases = json.loads(VECTORS.read_text())
    assert len(cases) == 914
    passed = [case for case in cases if accepted(case)]
    assert len(passed) == 208
    flags = {flag for case in passed for flag in case["flags"] or []}
    assert not flags & {"non_canonical_R", "low_order_residue"}


def test_plain_signatures_are_accepted() -> None:
    plain = [case for case in json.loads(VECTORS.read_text()) if not case["flags"]]
    assert plain
    assert all(accepted(case) for case in plain)
