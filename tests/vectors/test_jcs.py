"""RFC 8785 against the author's pairs and the number table of its appendix B."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path

import pytest

from contracts.canonical import canonical, parse, parse_canonical
from contracts.errors import MalformedError

VECTORS = Path(__file__).parents[2].parent / "shared" / "vectors"
pytestmark = pytest.mark.skipif(not VECTORS.is_dir(), reason="the shared vectors are not beside the checkout")


def cases(name: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads((VECTORS / name).read_text())["cases"]
    return found


def test_pairs_of_the_author() -> None:
    pairs = cases("jcs_cyberphone.json")
    assert len(pairs) == 6
    for case in pairs:
        wanted = base64.b64decode(case["output_b64"])
        assert canonical(parse(base64.b64decode(case["input_b64"]))) == wanted, case["name"]
        assert canonical(parse_canonical(wanted)) == wanted


def test_numbers_of_appendix_b() -> None:
    numbers = cases("jcs_numbers.json")
    assert len(numbers) == 26
    for case in numbers:
        (number,) = struct.unpack(">d", bytes.fromhex(case["ieee754_be_hex"]))
        if case["want"] is None:
            with pytest.raises(MalformedError):
                canonical(number)
        else:
            assert canonical(number) == case["want"].encode()
            assert parse_canonical(case["want"].encode()) == number
