"""The draws every interval rests on: method `philox-cluster-v1`.

Replicate b of C clusters uses the first C of the S raw 64-bit outputs of Philox-4x64-10 that start at
counter b*S/4 under the key [seed, stream], where S is C rounded up to a multiple of 4 (a counter step gives
4 outputs). Output u draws cluster floor(u*C / 2^64). Only numpy's raw counter stream is used, never one of
its distributions (those change between releases), and any run of replicates can be made on its own.

Source: STATISTICS rule 5; Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

METHOD: Final = "philox-cluster-v1"
SEED: Final = 20260928
PERMUTATION_STREAM: Final = 1 << 63
"""The stream of permutations; 0 is that of every audit but JEV, which uses the year."""
_BATCH_CELLS: Final = 1 << 20  # clusters times replicates worked on at once: 8 MB an array
_BATCH_MOST: Final = 1024  # replicates worked on at once however few the clusters


def raw(seed: int, stream: int, clusters: int, start: int, stop: int) -> npt.NDArray[np.uint64]:
    """The 64-bit values of replicates [start, stop): uint64[stop - start, clusters]."""
    if not 1 <= clusters < 1 << 31:
        raise ValueError(f"draws need 1 to 2^31 - 1 clusters, got {clusters}")
    if not (0 <= seed < 1 << 64 and 0 <= stream < 1 << 64):
        raise ValueError("seed and stream are 64-bit unsigned integers")
    if not 0 <= start <= stop:
        raise ValueError(f"replicates are counted upwards from 0, got [{start}, {stop})")
    width = -(-clusters // 4) * 4
    key = np.array([seed, stream], dtype=np.uint64)
    values = np.random.Philox(counter=start * width // 4, key=key).random_raw((stop - start) * width)
    return np.asarray(values, dtype=np.uint64).reshape(stop - start, width)[:, :clusters]


def draws(seed: int, stream: int, clusters: int, start: int, stop: int) -> npt.NDArray[np.int32]:
    """The clusters drawn by replicates [start, stop), with repetition: int32[stop - start, clusters]."""
    values = raw(seed, stream, clusters, start, stop)
    # floor(u*C / 2^64) with u in two 32-bit halves; no intermediate passes 2^63 because C < 2^31
    size, half = np.uint64(clusters), np.uint64(32)
    high = (values >> half) * size
    high += ((values & np.uint64(0xFFFFFFFF)) * size) >> half
    high >>= half
    return high.astype(np.int32)


def counts(seed: int, stream: int, clusters: int, start: int, stop: int) -> npt.NDArray[np.int64]:
    """How often replicates [start, stop) draw each cluster: int64[stop - start, clusters]; rows sum to C."""
    drawn = draws(seed, stream, clusters, start, stop)
    place = drawn + np.arange(stop - start, dtype=np.int64)[:, None] * clusters
    flat = np.bincount(place.ravel(), minlength=(stop - start) * clusters)
    return flat.astype(np.int64, copy=False).reshape(stop - start, clusters)


def batch_size(clusters: int) -> int:
    """How many replicates to make at once so that memory stays bounded; no result depends on it."""
    return max(1, min(_BATCH_MOST, _BATCH_CELLS // max(clusters, 1)))
