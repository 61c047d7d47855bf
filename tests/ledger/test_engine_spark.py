"""Spark on two threads of this machine: the same bytes as in one process, and what becomes of failures.

Needs the extra `spark` and Java; a start of Spark takes seconds, so all of it is one application.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.errors import StorageError, TamperError
from ledger import segments
from ledger.engine_spark import Spark
from ledger.engines import INLINE, engine
from tests.ledger import engine_cases as cases
from tests.ledger import kernels
from tests.ledger.homes import Place

EXPECTED = [number for task in kernels.TASKS for number in range(task.start, task.stop)]


@pytest.fixture(scope="module")
def spark() -> Iterator[Spark]:
    """Two threads that try a task twice."""
    try:
        made = engine("spark:local[2,2]")
    except StorageError as error:
        pytest.skip(f"no Spark: {error}")
    assert isinstance(made, Spark)
    yield made
    made.close()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(segments, "SEGMENT_ROWS", 150)
    return cases.filled(tmp_path)


def test_results_come_in_the_order_of_tasks(spark: Spark) -> None:
    found = list(spark.map(kernels.numbers, kernels.TASKS))
    assert [number for number, _ in found] == EXPECTED
    assert list(spark.map(kernels.numbers, [])) == []
    assert spark.pieces(1) == 2


def test_an_error_of_ours_comes_back_as_itself(spark: Spark) -> None:
    for error in (cases.TAMPERED, cases.UNREADABLE):
        with pytest.raises(type(error)) as caught:
            list(spark.map(kernels.Failing(7, error), kernels.TASKS))
        assert caught.value.as_dict() == error.as_dict()


def test_anything_else_is_told_with_its_task(spark: Spark) -> None:
    with pytest.raises(StorageError, match="unexpected ZeroDivisionError") as caught:
        list(spark.map(kernels.Failing(7, ZeroDivisionError("by 0")), kernels.TASKS))
    assert (caught.value.code, caught.value.where) == ("engine-task", "numbers 6 to 8")


def test_a_worker_that_dies_is_tried_again(spark: Spark, tmp_path: Path) -> None:
    assert list(spark.map(kernels.Dying(7, tmp_path / "mark"), kernels.TASKS)) == EXPECTED
    assert (tmp_path / "mark").exists()
    with pytest.raises(StorageError, match="Spark gave up") as caught:
        list(spark.map(kernels.Dying(7), kernels.TASKS))
    assert (caught.value.code, caught.value.where) == ("engine-task", "numbers 6 to 8")


def test_audits_and_verification_are_the_same(spark: Spark, place: Place) -> None:
    before = sorted(path for path in place.home.path.rglob("*") if path.is_file())
    assert cases.audited(place, spark) == cases.audited(place, INLINE)
    assert cases.verified(place, spark) == cases.verified(place, INLINE) == ((), (), 0)
    assert sorted(path for path in place.home.path.rglob("*") if path.is_file()) == before
    cases.damaged(place)
    assert cases.verified(place, spark) == cases.verified(place, INLINE)
    with pytest.raises(TamperError) as here:
        cases.audited(place, INLINE)
    with pytest.raises(TamperError) as there:
        cases.audited(place, spark)
    assert here.value.as_dict() == there.value.as_dict()
