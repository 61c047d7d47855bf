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
_BATCH_CELLS: Final = 1 << 22  # clusters times replicates worked on at once: 32 MB an array
_BATCH_MOST: Final = 1024  # replicates worked on at once however few the clusters
_CHUNK = 1 << 15  # values worked on at once: the temporaries stay in the processor's cache


def raw(seed: int, stream: int, clusters: int, start: int, stop: int) -> npt.NDArray[np.uint64]:
    """The 64-bit values of replicates [start, stop): uint64[stop - start, clusters]."""
    generator, width = _generator(seed, stream, clusters, start, stop)
    values = generator.random_raw((stop - start) * width)
    return np.asarray(values, dtype=np.uint64).reshape(stop - start, width)[:, :clusters]


def draws(seed: int, stream: int, clusters: int, start: int, stop: int) -> npt.NDArray[np.int32]:
    """The clusters drawn by replicates [start, stop), with repetition: int32[stop - start, clusters]."""
    return _drawn(seed, stream, clusters, start, stop)[:, :clusters].astype(np.int32)


def counts(seed: int, stream: int, clusters: int, start: int, stop: int) -> npt.NDArray[np.int64]:
    """How often replicates [start, stop) draw each cluster: int64[stop - start, clusters]; rows sum to C."""
    drawn = _drawn(seed, stream, clusters, start, stop)
    found = np.empty((stop - start, clusters), dtype=np.int64)
    for row, values in zip(found, drawn, strict=True):
        row[:] = np.bincount(values[:clusters], minlength=clusters)
    return found


def in_pieces(seed: int, stream: int, clusters: int, replicate: int) -> Iterator[npt.NDArray[np.int64]]:
    """The clusters one replicate draws, a piece at a time that stays in the processor's cache: int64 each."""
    generator, _ = _generator(seed, stream, clusters, replicate, replicate + 1)
    for begin in range(0, clusters, _CHUNK):
        size = min(_CHUNK, clusters - begin)
        yield scaled(generator.random_raw(size), clusters).view(np.int64)


def batch_size(clusters: int) -> int:
    """How many replicates to make at once so that memory stays bounded; no result depends on it."""
    return max(1, min(_BATCH_MOST, _BATCH_CELLS // max(clusters, 1)))


def _generator(seed: int, stream: int, clusters: int, start: int, stop: int) -> tuple[np.random.Philox, int]:
    """The counter stream from the first value of replicate `start` on, and how many values one takes."""
    if not 1 <= clusters < 1 << 31:
        raise ValueError(f"draws need 1 to 2^31 - 1 clusters, got {clusters}")
    if not (0 <= seed < 1 << 64 and 0 <= stream < 1 << 64):
        raise ValueError("seed and stream are 64-bit unsigned integers")
    if not 0 <= start <= stop:
        raise ValueError(f"replicates are counted upwards from 0, got [{start}, {stop})")
    width = -(-clusters // 4) * 4
    key = np.array([seed, stream], dtype=np.uint64)
    return np.random.Philox(counter=start * width // 4, key=key), width


def _drawn(seed: int, stream: int, clusters: int, start: int, stop: int) -> npt.NDArray[np.int64]:
    """The drawn clusters with the unused values that fill up a counter step: int64[stop - start, S]."""
    generator, width = _generator(seed, stream, clusters, start, stop)
    result = np.empty((stop - start) * width, dtype=np.int64)
    for begin in range(0, len(result), _CHUNK):
        part = result[begin : begin + _CHUNK]
        part[:] = scaled(generator.random_raw(len(part)), clusters)
    return result.reshape(stop - start, width)


def scaled(values: npt.NDArray[np.uint64], clusters: int) -> npt.NDArray[np.uint64]:
    """floor(u*C / 2^64) for each value u, with C < 2^31, by 32-bit halves of u; no product passes 2^63."""
    size, half = np.uint64(clusters), np.uint64(32)
    high = values >> half
    high *= size
    low = values & np.uint64(0xFFFFFFFF)
    low *= size
    low >>= half
    high += low
    high >>= half
    return high
