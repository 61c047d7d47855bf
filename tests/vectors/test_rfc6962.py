"""The Merkle tree against the vectors of transparency-dev/merkle."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import VerificationError
from ledger.tree import (
    EMPTY_ROOT,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    leaves_reader,
    node_hash,
    root,
    verify_consistency,
    verify_inclusion,
)

VECTORS = Path(__file__).parents[2].parent / "shared" / "vectors"
pytestmark = pytest.mark.skipif(not VECTORS.is_dir(), reason="the shared vectors are not beside the checkout")


def load(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((VECTORS / name).read_text())
    return found


def test_roots_and_nodes() -> None:
    case = load("rfc6962_tree.json")
    leaves = [leaf_hash(bytes.fromhex(text)) for text in case["leaf_inputs_hex"]]
    assert [root(leaves[:size]).hex() for size in range(9)] == case["root_hashes_hex"]
    read = leaves_reader(leaves)
    for level, hashes in enumerate(case["node_hashes_hex"]):
        assert [found.hex() for found in read([(level, i) for i in range(len(hashes))])] == hashes


def test_hasher() -> None:
    for case in load("rfc6962_tree.json")["hasher"]:
        found = {
            "empty": lambda _: EMPTY_ROOT,
            "leaf": lambda case: leaf_hash(bytes.fromhex(case["data_hex"])),
            "node": lambda case: node_hash(*map(bytes.fromhex, case["children_hex"])),
        }[case["op"]](case)
        assert found.hex() == case["want_hex"]


def outcome(case: dict[str, Any], kind: str) -> bool:
    """Whether the case is accepted."""
    proof = [base64.b64decode(text) for text in case["proof"] or []]
    try:
        if kind == "inclusion":
            leaf, top = (base64.b64decode(case[key] or "") for key in ("leafHash", "root"))
            verify_inclusion(leaf, case["leafIdx"], case["treeSize"], proof, top)
        else:
            old, new = (base64.b64decode(case[key] or "") for key in ("root1", "root2"))
            verify_consistency(case["size1"], old, case["size2"], new, proof)
    except VerificationError:
        return False
    return True


@pytest.mark.parametrize("kind", ["inclusion", "consistency"])
def test_proof_cases(kind: str) -> None:
    cases = load("rfc6962_proofs_transparency-dev.json")[kind]
    assert len(cases) == 98
    wrong = [case["_file"] for case in cases if outcome(case, kind) == case["wantErr"]]
    assert wrong == []


def test_made_proofs_equal_the_accepted_ones() -> None:
    leaves = [leaf_hash(bytes.fromhex(t)) for t in load("rfc6962_tree.json")["leaf_inputs_hex"]]
    cases, read, made = load("rfc6962_proofs_transparency-dev.json"), leaves_reader(leaves), 0
    for case in cases["inclusion"]:
        if not case["wantErr"] and base64.b64decode(case["leafHash"]) == leaves[case["leafIdx"]]:
            proof = [base64.b64decode(text) for text in case["proof"] or []]
            assert inclusion_proof(case["leafIdx"], case["treeSize"], read) == proof
            made += 1
    for case in cases["consistency"]:
        if not case["wantErr"] and case["size2"] <= len(leaves):
            proof = [base64.b64decode(text) for text in case["proof"] or []]
            assert consistency_proof(case["size1"], case["size2"], read) == proof
            made += 1
    assert made >= 8
