"""The draws every interval rests on: method `philox-cluster-v1`.

Replicate b of C clusters uses the first C of the S raw 64-bit outputs of Philox-4x64-10 that start at
counter b*S/4 under the key [seed, stream], where S is C rounded up to a multiple of 4 (a counter step gives
4 outputs). Output u draws cluster floor(u*C / 2^64). Only numpy's raw counter stream is used, never one of
its distributions (those change between releases), and any run of replicates can be made on its own.

Source: STATISTICS rule 5; Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
"""

from __future__ import annotations

import sys
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
_LOW_WORD = 0 if sys.byteorder == "little" else 1


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


def counts(seed: int, stream: int, clusters: int, start: int, stop: int) -> npt.NDArray[np.int64]:
    """How often replicates [start, stop) draw each cluster: int64[stop - start, clusters]; rows sum to C."""
    check(seed, stream, clusters, start, stop)
    found = np.empty((stop - start, clusters), dtype=np.int64)
    for first, drawn in _rows(seed, stream, clusters, start, stop):
        # one count over several replicates, each with bins of its own
        np.add(drawn, np.arange(0, drawn.size, clusters)[:, None], out=drawn)
        tally = np.bincount(drawn.ravel(), minlength=drawn.size)
        found[first : first + len(drawn)] = tally.reshape(drawn.shape)
    return found


def class_counts(
    classes: npt.NDArray[np.uint16], number: int, seed: int, stream: int, start: int, stop: int
) -> npt.NDArray[np.int64]:
    """How often replicates [start, stop) draw each of `number` classes: int64[stop - start, number].

    `classes` has the class of each cluster, so there are as many clusters as it is long.
    """
    check(seed, stream, len(classes), start, stop)
    found = np.zeros((stop - start, number), dtype=np.int64)
    room = np.empty(_CHUNK, dtype=np.uint64)
    labels = np.empty(_CHUNK, dtype=np.uint16)
    for row, replicate in enumerate(range(start, stop)):
        generator, _ = _generator(seed, stream, len(classes), replicate, replicate + 1)
        for begin in range(0, len(classes), _CHUNK):
            size = min(_CHUNK, len(classes) - begin)
            drawn = _scaled(generator.random_raw(size), len(classes), room[:size])
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


def _rows(
    seed: int, stream: int, clusters: int, start: int, stop: int
) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Some replicates at a time, the place of the first and what they draw: int64[few, clusters].

    What is drawn stands in one place that the next step writes to again.
    """
    generator, width = _generator(seed, stream, clusters, start, stop)
    few = max(1, min(_CHUNK // width, stop - start))
    room = np.empty(few * width, dtype=np.uint64)
    for first in range(0, stop - start, few):
        size = min(few, stop - start - first) * width
        for begin in range(0, size, _CHUNK):
            part = room[begin : min(begin + _CHUNK, size)]
            _scaled(generator.random_raw(len(part)), clusters, part)
        yield first, room[:size].view(np.int64).reshape(-1, width)[:, :clusters]


def scaled(values: npt.NDArray[np.uint64], clusters: int) -> npt.NDArray[np.int64]:
    """floor(u*C / 2^64) for each value u, with C < 2^31."""
    return _scaled(values, clusters, np.empty(len(values), dtype=np.uint64))


def _scaled(
    values: npt.NDArray[np.uint64], clusters: int, room: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """The same by 32-bit halves u = h*2^32 + l, in `room`: floor((h*C + floor(l*C / 2^32)) / 2^32).

    No product passes 2^63. The second term is below C, so the lower half matters only where the low word of
    h*C is within C of its end: one value in 2^32 / C, looked at one by one.
    """
    size, half = np.uint64(clusters), np.uint64(32)
    np.right_shift(values, half, out=room)
    np.multiply(room, size, out=room)
    close = np.flatnonzero(room.view(np.uint32)[_LOW_WORD::2] >= np.uint32((1 << 32) - clusters))
    if len(close):
        room[close] += ((values[close] & np.uint64(0xFFFFFFFF)) * size) >> half
    np.right_shift(room, half, out=room)
    return room.view(np.int64)
