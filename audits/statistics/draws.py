"""The draws every interval rests on: method `philox-cluster-v1`.

Replicate b of C clusters uses the first C of the S raw 64-bit outputs of Philox-4x64-10 that start at
counter b*S/4 under the key [seed, stream], where S is C rounded up to a multiple of 4 (a counter step gives
4 outputs). Output u draws cluster floor(u*C / 2^64). Only numpy's raw counter stream is used, never one of
its distributions (those change between releases), and any run of replicates can be made on its own.

Source: STATISTICS rule 5; Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

METHOD: Final = "philox-cluster-v1"
SEED: Final = 20260928
PERMUTATION_STREAM: Final = 1 << 63
"""The stream of permutations; 0 is that of every audit but JEV, which uses the year."""
CLUSTER_BITS: Final = 31
"""There are fewer than 2^31 clusters."""
_BATCH_CELLS: Final = 1 << 20  # clusters times replicates worked on at once: 8 MB an array, in two threads
_BATCH_FEWEST: Final = 8  # replicates that share one pass over the cluster sums, while memory allows
_BATCH_MOST: Final = 1024  # replicates worked on at once however few the clusters
_CHUNK = 1 << 15  # values worked on at once: the temporaries stay in the processor's cache
_KEPT = 1 << 19  # values in a piece of memory, of which only what is written to is ever there
_BINS = 1 << 13  # counts made at once: they stay in the nearest cache
_BYTE = 255


def raw(seed: int, stream: int, clusters: int, start: int, stop: int) -> npt.NDArray[np.uint64]:
    """The 64-bit values of replicates [start, stop): uint64[stop - start, clusters]."""
    generator, width = _generator(seed, stream, clusters, start, stop)
    values = generator.random_raw((stop - start) * width)
    return np.asarray(values, dtype=np.uint64).reshape(stop - start, width)[:, :clusters]


def draws(seed: int, stream: int, clusters: int, start: int, stop: int) -> npt.NDArray[np.int32]:
    """The clusters drawn by replicates [start, stop), with repetition: int32[stop - start, clusters]."""
    check(seed, stream, clusters, start, stop)
    found = np.empty((stop - start, clusters), dtype=np.int32)
    for first, drawn in _rows(seed, stream, clusters, start, stop):
        found[first : first + len(drawn)] = drawn
    return found


def counts(seed: int, stream: int, clusters: int, start: int, stop: int) -> npt.NDArray[np.integer]:
    """How often replicates [start, stop) draw each cluster, [stop - start, clusters]; rows sum to C.

    A byte a count where no count needs more, else int64: what is written, kept and read again is short.
    """
    check(seed, stream, clusters, start, stop)
    found: npt.NDArray[np.integer] = np.empty((stop - start, clusters), dtype=np.uint8)
    together = max(1, _BINS // clusters)  # replicates that share a count, each with bins of its own
    for first, drawn in _rows(seed, stream, clusters, start, stop, together):
        for place in range(0, len(drawn), together):
            part = drawn[place : place + together]
            tally = np.bincount(part.ravel(), minlength=part.size)
            if clusters > _BYTE and found.dtype == np.uint8 and int(tally.max()) > _BYTE:
                found = found.astype(np.int64)
            found[first + place : first + place + len(part)] = tally.reshape(part.shape)
    return found


def class_counts(
    classes: npt.NDArray[np.uint16], number: int, seed: int, stream: int, start: int, stop: int
) -> npt.NDArray[np.int64]:
    """How often replicates [start, stop) draw each of `number` classes: int64[stop - start, number].

    `classes` has the class of each cluster, so there are as many clusters as it is long.
    """
    check(seed, stream, len(classes), start, stop)
    found = np.zeros((stop - start, number), dtype=np.int64)
    room = _room(2 * _CHUNK).reshape(2, _CHUNK)
    labels = np.empty(_CHUNK, dtype=np.uint16)
    generator, width = _generator(seed, stream, len(classes), start, stop)
    for row in range(stop - start):
        for begin in range(0, len(classes), _CHUNK):
            size = min(_CHUNK, len(classes) - begin)
            values = generator.random_raw(min(_CHUNK, width - begin))[:size]
            drawn = _scaled(values, len(classes), *room[:, :size])
            # no draw is out of bounds; "clip" lets numpy write where it is told without a copy
            found[row] += np.bincount(classes.take(drawn, out=labels[:size], mode="clip"), minlength=number)
    return found


def batch_size(clusters: int) -> int:
    """How many replicates to make at once so that memory stays bounded; no result depends on it."""
    fewest = min(_BATCH_FEWEST, 8 * _BATCH_CELLS // max(clusters, 1))
    return max(1, fewest, min(_BATCH_MOST, _BATCH_CELLS // max(clusters, 1)))


def check(seed: int, stream: int, clusters: int, start: int, stop: int) -> None:
    """ValueError where no such replicates can be drawn."""
    if not 1 <= clusters < 1 << CLUSTER_BITS:
        raise ValueError(f"draws need 1 to 2^{CLUSTER_BITS} - 1 clusters, got {clusters}")
    if not (0 <= seed < 1 << 64 and 0 <= stream < 1 << 64):
        raise ValueError("seed and stream are 64-bit unsigned integers")
    if not 0 <= start <= stop:
        raise ValueError(f"replicates are counted upwards from 0, got [{start}, {stop})")


def _generator(seed: int, stream: int, clusters: int, start: int, stop: int) -> tuple[np.random.Philox, int]:
    """The counter stream from the first value of replicate `start` on, and how many values one takes."""
    check(seed, stream, clusters, start, stop)
    width = -(-clusters // 4) * 4
    key = np.array([seed, stream], dtype=np.uint64)
    return np.random.Philox(counter=start * width // 4, key=key), width


def _room(size: int) -> npt.NDArray[np.uint64]:
    """An array to write to, cut from a piece so large that the allocator keeps smaller ones once it is freed.

    Otherwise memory goes back after each chunk, and the kernel has to clear it for the next.
    """
    return np.empty(max(size, _KEPT), dtype=np.uint64)[:size]


def _rows(
    seed: int, stream: int, clusters: int, start: int, stop: int, together: int = 1
) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Some replicates at a time, the place of the first and what they draw: int64[few, clusters].

    Of `together` ones the k-th draws from clusters numbered from k*C on. What is drawn stands in one place
    that the next step writes to again.
    """
    generator, width = _generator(seed, stream, clusters, start, stop)
    few = max(1, min(_CHUNK // width, stop - start))
    whole, part = few * width, min(few * width, _CHUNK)
    room, spare = np.split(_room(whole + part), [whole])
    offsets = np.repeat(np.arange(few) % together * clusters, clusters if together > 1 else 0)
    for first in range(0, stop - start, few):
        many = min(few, stop - start - first)
        for begin in range(0, many * width, _CHUNK):
            size = min(_CHUNK, many * width - begin)
            _scaled(generator.random_raw(size), clusters, room[begin : begin + size], spare[:size])
        drawn = room[: many * width].view(np.int64).reshape(many, width)[:, :clusters]
        if together > 1:
            numbered = spare[: drawn.size].view(np.int64).reshape(drawn.shape)
            drawn = np.add(drawn, offsets[: drawn.size].reshape(drawn.shape), out=numbered)
        yield first, drawn


def scaled(values: npt.NDArray[np.uint64], clusters: int) -> npt.NDArray[np.int64]:
    """floor(u*C / 2^64) for each value u, with C < 2^31."""
    return _scaled(values, clusters, *np.empty((2, len(values)), dtype=np.uint64))


def _scaled(
    values: npt.NDArray[np.uint64],
    clusters: int,
    room: npt.NDArray[np.uint64],
    spare: npt.NDArray[np.uint64],
) -> npt.NDArray[np.int64]:
    """The same in `room`: with C < 2^s and u = h*2^s + l, floor((h*C + floor(l*C / 2^s)) / 2^(64-s)).

    No product passes 2^64. The second term is below C, so the lower bits matter only where those of h*C that
    are shifted out are within C of their end: one value in 2^(64-s) / C. Whether there is any is seen from
    the largest of them, in `spare`; then they are looked at one by one.
    """
    bits = clusters.bit_length()
    size, low = np.uint64(clusters), np.uint64(bits)
    np.right_shift(values, low, out=room)
    np.multiply(room, size, out=room)
    np.left_shift(room, low, out=spare)
    edge = (1 << 64) - (clusters << bits)
    if len(spare) and int(spare.max()) >= edge:
        close = np.flatnonzero(spare >= np.uint64(edge))
        room[close] += ((values[close] & np.uint64((1 << bits) - 1)) * size) >> low
    np.right_shift(room, np.uint64(64 - bits), out=room)
    return room.view(np.int64)
