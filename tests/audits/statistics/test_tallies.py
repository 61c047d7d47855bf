"""Counting draws on several threads, by class, and in machine code: always the same whole numbers."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import numpy as np
import pytest

from audits.statistics import compiled, draws, philox_vectors, tallies
from audits.statistics.cohort import Cohort
from audits.statistics.moments import Mean
from audits.statistics.order import Median, Ordered
from audits.statistics.vectors import Vector

SEED = 20260928
needs_numba = pytest.mark.skipif(
    importlib.util.find_spec("numba") is None, reason="numba (the extra `fast`) is not installed"
)


@pytest.fixture
def kernels() -> compiled.Kernels:
    made = compiled.kernels()
    assert made is not None, "an installed numba draws as numpy does"
    return made


@pytest.fixture
def without_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    compiled.kernels.cache_clear()
    yield
    monkeypatch.undo()
    compiled.kernels.cache_clear()


class TestItself:
    @pytest.mark.parametrize("clusters", [1, 3, 4, 50, (1 << 15) + 3])
    def test_classes_count_what_clusters_count(self, clusters: int) -> None:
        classes = np.random.default_rng(1).integers(0, 9, clusters).astype(np.uint16)
        each = draws.counts(SEED, 7, clusters, 2, 6)
        wanted = [np.bincount(classes, weights=row, minlength=9).tolist() for row in each]
        assert draws.class_counts(classes, 9, SEED, 7, 2, 6).tolist() == wanted

    @pytest.mark.parametrize("workers", [None, 1, 2, 3])
    @pytest.mark.parametrize("step", [1, 7, 777])
    def test_threads_and_batches_change_nothing(self, workers: int | None, step: int) -> None:
        found = np.concatenate([*tallies.of_clusters(SEED, 0, 41, 60, step, np.asarray, workers)])
        assert np.array_equal(found, draws.counts(SEED, 0, 41, 0, 60))
        classes = (np.arange(41) % 5).astype(np.uint16)
        found = np.concatenate([*tallies.of_classes(classes, 5, SEED, 0, 60, step, workers)])
        assert np.array_equal(found, draws.class_counts(classes, 5, SEED, 0, 0, 60))

    @pytest.mark.parametrize("workers", [1, 2])
    @pytest.mark.parametrize("batch", [1, 7, 777])
    def test_estimates_do_not_depend_on_threads_or_batches(self, workers: int, batch: int) -> None:
        draw = np.random.default_rng(3)
        cluster = np.sort(np.append(np.arange(30), draw.integers(0, 30, 90))).astype(np.int32)
        vector = Vector(draw.integers(-(1 << 61), 1 << 61, 120), 9)

        def estimates(workers: int, batch: int | None) -> object:
            cohort = Cohort(cluster, 30, resamples=200, workers=workers)
            statistics = {"mean": Mean(vector), "median": Median(Ordered(cohort, vector))}
            return cohort.evaluate(statistics, batch=batch)

        assert estimates(workers, batch) == estimates(1, None)

    def test_what_is_left_early_is_left_clean(self) -> None:
        made = tallies.of_clusters(SEED, 0, 5, 1000, 1, np.asarray, 2)
        next(made)
        made.close()

    def test_a_fault_in_a_thread_is_raised(self) -> None:
        with pytest.raises(ValueError, match="64-bit"):
            list(tallies.of_clusters(-1, 0, 5, 10, 1, np.asarray, 2))


class TestCompiled:
    @needs_numba
    @pytest.mark.parametrize("clusters", [1, 2, 3, 4, 5, 63, 64, 65, 101, 127, 128, 129, (1 << 16) + 1])
    @pytest.mark.parametrize("key", [(SEED, 0), (0, draws.PERMUTATION_STREAM), ((1 << 64) - 1, 2019)])
    def test_the_same_integers_as_numpy(
        self, kernels: compiled.Kernels, clusters: int, key: tuple[int, int]
    ) -> None:
        found = compiled.counts(kernels, *key, clusters, 3, 6)
        assert np.array_equal(found, draws.counts(*key, clusters, 3, 6))
        classes = (np.arange(clusters) % 11).astype(np.uint16)
        by_class = compiled.class_counts(kernels, classes, 11, *key, 3, 6)
        assert np.array_equal(by_class, draws.class_counts(classes, 11, *key, 3, 6))

    @needs_numba
    def test_an_audit_gives_the_same_bits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cohort = Cohort(np.arange(5000, dtype=np.int32), 5000, resamples=40)
        means = {"x": Mean(Vector(np.random.default_rng(2).integers(-9, 9, 5000) << 50, 7))}
        wanted = cohort.evaluate(means)
        monkeypatch.setattr(compiled, "WORTHWHILE", 1)
        assert cohort.evaluate(means) == wanted

    @needs_numba
    def test_a_count_beyond_a_byte_is_noticed(self, kernels: compiled.Kernels) -> None:
        found = np.zeros((3, 9), dtype=np.uint8)
        found[1] = 255
        assert kernels.each(found, *map(np.uint64, (SEED, 0, 0))) == 1

    def test_a_step_of_the_machine_code_holds_each_place_once(self) -> None:
        assert sorted(philox_vectors.places().tolist()) == [*range(64)]

    def test_a_count_beyond_a_byte_is_made_by_numpy(self) -> None:
        full = compiled.Kernels(each=lambda *_: 1, of_class=lambda *_: None)
        found = compiled.counts(full, SEED, 0, 9, 0, 4)
        assert np.array_equal(found, draws.counts(SEED, 0, 9, 0, 4))

    @pytest.mark.usefixtures("without_compiler")
    def test_other_draws_than_numpys_are_never_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("numba", reason="numba (the extra `fast`) is not installed")
        wrong = compiled.Kernels(each=lambda *_: 0, of_class=lambda *_: None)
        monkeypatch.setattr(compiled, "_compile", lambda _: wrong)
        assert compiled.kernels() is None

    @pytest.mark.usefixtures("without_compiler")
    def test_without_numba_there_are_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
        assert compiled.kernels() is None

    def test_little_work_imports_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def never() -> None:
            raise AssertionError("not for so little")

        monkeypatch.setattr(compiled, "kernels", never)
        assert len([*tallies.of_clusters(SEED, 0, 10, 30, 10, np.asarray)]) == 3
