"""The RFC 6962 Merkle tree over SHA-256: roots, proofs and their checks, on bytes and ints only.

A stored hash has the coordinate (level, index): the root of leaves index * 2^level up to
(index + 1) * 2^level. Proofs first list the coordinates they need, then read them in one batch,
then combine, so one reader may serve memory, files or a database. Failing checks raise
VerificationError, or MalformedError where something is no hash or no size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

from contracts.errors import MalformedError, VerificationError

HASH = 32
EMPTY_ROOT = sha256(b"").digest()
Coordinate = tuple[int, int]
Reader = Callable[[Sequence[Coordinate]], Sequence[bytes]]


def leaf_hash(data: bytes) -> bytes:
    """SHA-256(0x00 || data)."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """SHA-256(0x01 || left || right)."""
    return sha256(b"\x01" + left + right).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """The root over leaf hashes; that of no leaves is SHA-256 of nothing."""
    level = list(leaves)
    if not level:
        return EMPTY_ROOT
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        above = [sha256(b"\x01" + left + right).digest() for left, right in pairs]
        if len(level) % 2:  # the last subtree is not full: it rises unpaired
            above.append(level[-1])
        level = above
    return level[0]


def prefix_roots(leaves: Sequence[bytes], sizes: Sequence[int]) -> list[bytes]:
    """The roots of the trees over the first `size` leaves, for ascending sizes, hashing each leaf once."""
    found: list[bytes] = []
    subtrees: list[tuple[int, bytes]] = []  # (level, root) of the full subtrees of the prefix, left to right
    done = 0
    for size in sizes:
        for leaf in leaves[done:size]:
            level, top = 0, leaf
            while subtrees and subtrees[-1][0] == level:
                level, top = level + 1, node_hash(subtrees.pop()[1], top)
            subtrees.append((level, top))
        done = size
        found.append(_folded([top for _, top in subtrees]))
    return found


def leaves_reader(leaves: Sequence[bytes]) -> Reader:
    """A reader that computes every stored hash from the leaf hashes in memory."""

    def read(coordinates: Sequence[Coordinate]) -> list[bytes]:
        return [root(leaves[index << level : (index + 1) << level]) for level, index in coordinates]

    return read


def inclusion_proof(index: int, size: int, read: Reader) -> list[bytes]:
    """The audit path of leaf `index` in the tree of `size` leaves, lowest sibling first (RFC 6962, 2.1.1)."""
    if not 0 <= index < size:
        raise MalformedError("no such leaf", expected=f"an index below {size}", got=index)
    siblings: list[tuple[int, int]] = []
    low, high = 0, size
    while high - low > 1:
        middle = low + _split(high - low)
        if index < middle:
            siblings.append((middle, high))
            high = middle
        else:
            siblings.append((low, middle))
            low = middle
    return _roots(siblings[::-1], read)


def consistency_proof(old: int, new: int, read: Reader) -> list[bytes]:
    """The proof that the tree of `old` leaves is a prefix of that of `new` (RFC 6962, 2.1.2)."""
    if not 0 <= old <= new:
        raise MalformedError("no such pair of sizes", expected=f"at most {new}", got=old)
    if old in (0, new):
        return []
    ranges: list[tuple[int, int]] = []
    low, high = 0, new
    while high != old:
        middle = low + _split(high - low)
        if old <= middle:
            ranges.append((middle, high))
            high = middle
        else:
            ranges.append((low, middle))
            low = middle
    if low > 0:  # else the old root itself is this subtree, and the verifier has it
        ranges.append((low, high))
    return _roots(ranges[::-1], read)


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> None:
    """Return when `proof` leads from the leaf hash at `index` to `root` (RFC 9162, 2.1.3.2)."""
    _check_hashes([leaf, root, *proof])
    if not 0 <= index < size:
        raise MalformedError("no such leaf", expected=f"an index below {size}", got=index)
    found, node, last = leaf, index, size - 1
    for sibling in proof:
        if last == 0:
            raise _unproved("inclusion proof is too long")
        if node & 1 or node == last:
            found = node_hash(sibling, found)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        node, last = node >> 1, last >> 1
    if last:
        raise _unproved("inclusion proof is too short")
    if found != root:
        raise _unproved("inclusion proof does not lead to the root")


def verify_consistency(old: int, old_root: bytes, new: int, new_root: bytes, proof: Sequence[bytes]) -> None:
    """Return when the tree of `old` leaves is proved a prefix of that of `new` (RFC 9162, 2.1.4.2)."""
    if not 0 <= old <= new:
        raise MalformedError("no such pair of sizes", expected=f"at most {new}", got=old)
    if old in (0, new) and proof:
        raise _unproved("consistency proof is too long")
    if (old == 0 and old_root != EMPTY_ROOT) or (old == new and old_root != new_root):
        raise _unproved("roots contradict each other")
    if old == new:
        return
    _check_hashes([old_root, new_root, *proof])
    if old == 0:
        return
    _follow(old - 1, new - 1, list(proof), old_root, new_root)


def _follow(node: int, last: int, path: list[bytes], old_root: bytes, new_root: bytes) -> None:
    """Climb from the last leaf of the old tree, building both roots from one path."""
    while node & 1:
        node, last = node >> 1, last >> 1
    if node == 0:  # the old tree is a full subtree of the new one
        path.insert(0, old_root)
    if not path:
        raise _unproved("consistency proof is too short")
    first = second = path[0]
    for sibling in path[1:]:
        if last == 0:
            raise _unproved("consistency proof is too long")
        if node & 1 or node == last:
            first, second = node_hash(sibling, first), node_hash(sibling, second)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            second = node_hash(second, sibling)
        node, last = node >> 1, last >> 1
    if last:
        raise _unproved("consistency proof is too short")
    if first != old_root or second != new_root:
        raise _unproved("consistency proof does not lead to both roots")


def _split(size: int) -> int:
    """The largest power of two below `size`: how many leaves hang left."""
    return 1 << (size - 1).bit_length() - 1


def _full_subtrees(low: int, high: int) -> list[Coordinate]:
    """The full subtrees that cover leaves low..high, left to right, for `low` aligned as in a tree."""
    found: list[Coordinate] = []
    while low < high:
        level = (high - low).bit_length() - 1
        found.append((level, low >> level))
        low += 1 << level
    return found


def _roots(ranges: Sequence[tuple[int, int]], read: Reader) -> list[bytes]:
    """The roots over ranges of leaves, from one batch of stored hashes."""
    parts = [_full_subtrees(low, high) for low, high in ranges]
    stored = iter(read([coordinate for part in parts for coordinate in part]))
    found: list[bytes] = []
    for part in parts:
        found.append(_folded([next(stored) for _ in part]))
    return found


def _folded(subtrees: list[bytes]) -> bytes:
    """The root over full subtrees that shrink from left to right."""
    if not subtrees:
        return EMPTY_ROOT
    top = subtrees[-1]
    for left in reversed(subtrees[:-1]):
        top = node_hash(left, top)
    return top


def _check_hashes(hashes: Sequence[bytes]) -> None:
    for found in hashes:
        if len(found) != HASH:
            raise MalformedError("not a sha-256 hash", expected=f"{HASH} bytes", got=len(found))


def _unproved(what: str) -> VerificationError:
    return VerificationError(what, code="bad-proof")
