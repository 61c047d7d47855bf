"""The draws: pinned values, the counter stream recomputed by hand, and independence of batches."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from audits.statistics import draws

SEED = 20260928
MASK = (1 << 64) - 1


def philox_block(counter: int, key: tuple[int, int]) -> list[int]:
    """Philox-4x64-10 of one 256-bit counter, as in the paper."""
    words = [(counter >> (64 * i)) & MASK for i in range(4)]
    keys = list(key)
    for _ in range(10):
        first, second = words[0] * 0xD2E7470EE14C6C93, words[2] * 0xCA5A826395121157
        words = [
            (second >> 64) ^ words[1] ^ keys[0],
            second & MASK,
            (first >> 64) ^ words[3] ^ keys[1],
            first & MASK,
        ]
        keys = [(keys[0] + 0x9E3779B97F4A7C15) & MASK, (keys[1] + 0xBB67AE8584CAA73B) & MASK]
    return words


def by_hand(seed: int, stream: int, clusters: int, replicate: int) -> list[int]:
    """The same draws in Python integers; numpy steps its counter before the first block."""
    blocks = -(-clusters // 4)
    first = replicate * blocks + 1
    values = [u for i in range(blocks) for u in philox_block(first + i, (seed, stream))]
    return [(u * clusters) >> 64 for u in values[:clusters]]


class TestValidation:
    @pytest.mark.parametrize("clusters", [0, -1, 1 << 31])
    def test_clusters(self, clusters: int) -> None:
        with pytest.raises(ValueError, match="clusters"):
            draws.draws(SEED, 0, clusters, 0, 1)

    def test_seed_and_stream(self) -> None:
        for seed, stream in ((-1, 0), (1 << 64, 0), (0, -1), (0, 1 << 64)):
            with pytest.raises(ValueError, match="64-bit"):
                draws.draws(seed, stream, 5, 0, 1)

    def test_replicates(self) -> None:
        with pytest.raises(ValueError, match="upwards"):
            draws.draws(SEED, 0, 5, 3, 2)


class TestPinned:
    def test_stream_0(self) -> None:
        assert draws.draws(SEED, 0, 100, 0, 1)[0, :10].tolist() == [53, 44, 27, 93, 90, 77, 51, 13, 76, 33]
        assert draws.draws(SEED, 0, 100, 1, 2)[0, :10].tolist() == [18, 54, 48, 21, 2, 59, 58, 7, 11, 56]
        assert draws.draws(SEED, 0, 100, 9999, 10_000)[0, -5:].tolist() == [81, 74, 65, 19, 26]

    def test_a_year(self) -> None:
        found = draws.draws(SEED, 2019, 42, 0, 1)[0, :10].tolist()
        assert found == [1, 25, 22, 7, 16, 38, 34, 6, 17, 6]


class TestTheory:
    @pytest.mark.parametrize(
        ("clusters", "stream"), [(1, 0), (3, 7), (4, 0), (101, draws.PERMUTATION_STREAM)]
    )
    def test_the_counter_stream_by_hand(self, clusters: int, stream: int) -> None:
        found = draws.draws(SEED, stream, clusters, 5, 8)
        assert found.tolist() == [by_hand(SEED, stream, clusters, b) for b in (5, 6, 7)]

    @pytest.mark.parametrize("clusters", [2, 1000, (1 << 31) - 1])
    def test_the_product_is_128_bits_wide(self, clusters: int) -> None:
        u = np.concatenate([draws.raw(SEED, 3, 400, 0, 5).ravel(), np.array([0, MASK], dtype=np.uint64)])
        assert draws.scaled(u, clusters).tolist() == [(x * clusters) >> 64 for x in u.tolist()]


class TestScipy:
    def test_every_cluster_is_as_likely(self) -> None:
        found = draws.counts(SEED, 0, 37, 0, 3000).sum(axis=0)
        assert stats.chisquare(found).pvalue > 1e-4


class TestItself:
    def test_any_batch_can_be_made_alone(self) -> None:
        whole = draws.draws(SEED, 0, 50, 0, 200)
        for size in (1, 7, 60):
            parts = [draws.draws(SEED, 0, 50, i, min(i + size, 200)) for i in range(0, 200, size)]
            assert np.array_equal(np.concatenate(parts), whole)

    def test_counts_are_the_draws_counted(self) -> None:
        drawn = draws.draws(SEED, 5, 23, 10, 40)
        want = [np.bincount(row, minlength=23).tolist() for row in drawn]
        assert draws.counts(SEED, 5, 23, 10, 40).tolist() == want

    @pytest.mark.parametrize("clusters", [1, 5, 8, 15, 16, 17, 63, 64, 65, 101, 254, 255, 256, 257])
    def test_chunks_and_bins_have_no_edges(self, monkeypatch: pytest.MonkeyPatch, clusters: int) -> None:
        wanted = [by_hand(SEED, 9, clusters, b) for b in range(3, 12)]
        monkeypatch.setattr(draws, "_CHUNK", 64)
        monkeypatch.setattr(draws, "_BINS", 33)
        assert draws.draws(SEED, 9, clusters, 3, 12).tolist() == wanted
        counted = [np.bincount(row, minlength=clusters).tolist() for row in wanted]
        assert draws.counts(SEED, 9, clusters, 3, 12).tolist() == counted
        classes = np.arange(clusters, dtype=np.uint16)
        assert draws.class_counts(classes, clusters, SEED, 9, 3, 12).tolist() == counted

    def test_counts_are_as_wide_as_they_have_to_be(self, monkeypatch: pytest.MonkeyPatch) -> None:
        narrow = draws.counts(SEED, 5, 70, 0, 600)
        monkeypatch.setattr(draws, "_BYTE", 4)
        wide = draws.counts(SEED, 5, 70, 0, 600)
        assert (narrow.dtype, wide.dtype) == (np.uint8, np.int64)
        assert np.array_equal(narrow, wide)

    @pytest.mark.parametrize("clusters", [1, 2, 3, 255, 256, 4097, (1 << 30) - 1, 1 << 30, (1 << 31) - 1])
    def test_values_at_the_edge_of_a_cluster(self, clusters: int) -> None:
        edges = [(k << 64) // clusters for k in {0, 1, clusters // 3, clusters // 2, clusters - 1, clusters}]
        near = {edge + step for edge in edges for step in range(-3, 4)}
        u = sorted(value for value in near if 0 <= value <= MASK)
        found = draws.scaled(np.array(u, dtype=np.uint64), clusters)
        assert found.tolist() == [(x * clusters) >> 64 for x in u]

    def test_seeds_and_streams_differ(self) -> None:
        rows = {draws.draws(seed, stream, 30, 0, 1).tobytes() for seed in (1, 2) for stream in (0, 1)}
        assert len(rows) == 4


class TestDegenerate:
    def test_one_cluster(self) -> None:
        assert draws.counts(SEED, 0, 1, 0, 3).tolist() == [[1], [1], [1]]

    def test_no_replicates(self) -> None:
        assert draws.draws(SEED, 0, 9, 4, 4).shape == (0, 9)

    def test_a_batch_is_never_empty(self) -> None:
        assert draws.batch_size(1 << 30) == 1
        assert draws.batch_size(0) >= 1
