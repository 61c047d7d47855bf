"""The Merkle tree: roots against the definition, and proofs that hold until one bit changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256

import pytest

from contracts.errors import MalformedError, VerificationError
from ledger.tree import (
    EMPTY_ROOT,
    Coordinate,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    leaves_reader,
    node_hash,
    prefix_roots,
    root,
    verify_consistency,
    verify_inclusion,
)

LEAVES = [leaf_hash(str(i).encode()) for i in range(300)]
READ = leaves_reader(LEAVES)


def defined_root(leaves: Sequence[bytes]) -> bytes:
    """RFC 6962, 2.1, word for word and slow."""
    if len(leaves) < 2:
        return leaves[0] if leaves else sha256(b"").digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return sha256(b"\x01" + defined_root(leaves[:split]) + defined_root(leaves[split:])).digest()


def flipped(data: bytes, bit: int) -> bytes:
    return bytes(byte ^ (1 << bit % 8 if i == bit // 8 else 0) for i, byte in enumerate(data))


def damaged(hashes: Sequence[bytes], bit: int) -> Iterator[list[bytes]]:
    """Every list with one bit of one hash flipped, then with a hash lost, repeated, or added."""
    for i, found in enumerate(hashes):
        yield [*hashes[:i], flipped(found, bit), *hashes[i + 1 :]]
    yield [*hashes, LEAVES[0]]
    if hashes:
        yield list(hashes[:-1])
        yield list(hashes[1:])
        yield [hashes[0], *hashes]


def refused(check: Callable[[], None]) -> bool:
    try:
        check()
    except VerificationError:
        return True
    return False


def attack_inclusion(index: int, size: int, bit: int) -> None:
    proof, top, leaf = inclusion_proof(index, size, READ), root(LEAVES[:size]), LEAVES[index]
    verify_inclusion(leaf, index, size, proof, top)
    assert all(refused(lambda p=p: verify_inclusion(leaf, index, size, p, top)) for p in damaged(proof, bit))
    assert refused(lambda: verify_inclusion(flipped(leaf, bit), index, size, proof, top))
    assert refused(lambda: verify_inclusion(leaf, index, size, proof, flipped(top, bit)))
    assert refused(lambda: verify_inclusion(leaf, index + 1, size, proof, top))
    assert refused(lambda: verify_inclusion(leaf, size, size, proof, top))


def attack_consistency(old: int, new: int, bit: int) -> None:
    proof, before, after = consistency_proof(old, new, READ), root(LEAVES[:old]), root(LEAVES[:new])
    verify_consistency(old, before, new, after, proof)
    assert all(
        refused(lambda p=p: verify_consistency(old, before, new, after, p)) for p in damaged(proof, bit)
    )
    assert refused(lambda: verify_consistency(old, flipped(before, bit), new, after, proof))
    if old:  # nothing binds the new root to an empty old tree
        assert refused(lambda: verify_consistency(old, before, new, flipped(after, bit), proof))
    if old != new:
        assert refused(lambda: verify_consistency(new, after, old, before, proof))


def test_roots_follow_the_definition() -> None:
    assert root([]) == EMPTY_ROOT
    assert root(LEAVES[:1]) == LEAVES[0]
    assert root(LEAVES[:3]) == node_hash(node_hash(LEAVES[0], LEAVES[1]), LEAVES[2])
    for size in [*range(35), 255, 256, 257]:
        assert root(LEAVES[:size]) == defined_root(LEAVES[:size])


def test_the_roots_of_all_prefixes_come_in_one_pass() -> None:
    for sizes in (list(range(301)), [0, 0, 1, 256, 256, 299], []):
        assert prefix_roots(LEAVES, sizes) == [root(LEAVES[:size]) for size in sizes]


def test_leaf_and_node_are_separated() -> None:
    assert leaf_hash(b"") == sha256(b"\x00").digest()
    assert leaf_hash(LEAVES[0] + LEAVES[1]) != node_hash(LEAVES[0], LEAVES[1])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 13, 100, 255, 256, 257])
def test_a_proof_holds_and_breaks_with_any_hash(size: int) -> None:
    for index in {0, 1, size // 2, size - 2, size - 1} & set(range(size)):
        attack_inclusion(index, size, bit=(size * 31 + index) % 256)
    for old in {0, 1, 2, size // 2, size - 1, size} & set(range(size + 1)):
        attack_consistency(old, size, bit=(size * 37 + old) % 256)


def test_every_proof_of_every_size_up_to_a_hundred() -> None:
    for size in range(1, 101):
        assert root(LEAVES[:size]) == defined_root(LEAVES[:size])
        for index in range(size):
            attack_inclusion(index, size, bit=(size * 31 + index) % 256)
        for old in range(size + 1):
            attack_consistency(old, size, bit=(size * 37 + old) % 256)


@pytest.mark.sweep
def test_every_bit_of_a_hash_counts() -> None:
    for bit in range(256):
        attack_inclusion(5, 13, bit)
        attack_consistency(6, 13, bit)


def test_a_proof_reads_once_and_only_stored_hashes() -> None:
    batches: list[list[Coordinate]] = []

    def read(coordinates: Sequence[Coordinate]) -> Sequence[bytes]:
        batches.append(list(coordinates))
        return READ(coordinates)

    size = 257
    for proof in (inclusion_proof(3, size, read), consistency_proof(100, size, read)):
        assert len(proof) <= 9
    assert len(batches) == 2
    for level, index in (coordinate for batch in batches for coordinate in batch):
        assert (index + 1) << level <= size  # a full subtree, so it can be stored for good


def test_impossible_positions_and_hashes_are_malformed() -> None:
    for index, size in ((0, 0), (-1, 3), (3, 3)):
        with pytest.raises(MalformedError, match="no such leaf"):
            inclusion_proof(index, size, READ)
    for old, new in ((-1, 3), (4, 3)):
        with pytest.raises(MalformedError, match="no such pair"):
            consistency_proof(old, new, READ)
    with pytest.raises(MalformedError, match="not a sha-256 hash; expected 32 bytes, got 31"):
        verify_inclusion(LEAVES[0][1:], 0, 1, [], LEAVES[0])
    with pytest.raises(MalformedError, match="not a sha-256 hash"):
        verify_consistency(1, LEAVES[0], 2, root(LEAVES[:2]), [b""])


def test_the_empty_tree_is_a_prefix_of_all_but_only_by_its_own_root() -> None:
    verify_consistency(0, EMPTY_ROOT, 0, EMPTY_ROOT, [])
    verify_consistency(0, EMPTY_ROOT, 5, root(LEAVES[:5]), [])
    assert refused(lambda: verify_consistency(0, LEAVES[0], 5, root(LEAVES[:5]), []))
    assert refused(lambda: verify_consistency(0, LEAVES[0], 0, LEAVES[0], []))
