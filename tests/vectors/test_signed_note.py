"""Signed notes against the example of the specification and the ways it can be spoilt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import VerificationError
from ledger.notes import verify

VECTORS = Path(__file__).parents[2].parent / "shared" / "vectors" / "c2sp_signed_note.json"
pytestmark = pytest.mark.skipif(
    not VECTORS.is_file(), reason="the shared vectors are not beside the checkout"
)


def cases(kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(VECTORS.read_text())[kind]
    return found


def test_the_example_verifies() -> None:
    valid = cases("valid")
    assert len(valid) == 1
    for case in valid:
        assert verify(case["note"].encode(), [case["vkey"]]).text == case["text"]


def test_every_spoilt_one_is_refused() -> None:
    invalid = cases("invalid")
    assert len(invalid) == 11
    for case in invalid:
        with pytest.raises(VerificationError):
            verify(case["note"].encode(), [case["vkey"]])
