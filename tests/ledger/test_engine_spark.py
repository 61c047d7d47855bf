"""Spark on two threads of this machine: the same bytes as in one process, and what becomes of failures.

Needs the extra `spark` and Java; a start of Spark takes seconds, so all of it is one application.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.errors import LedgerError, StorageError, TamperError
from ledger import segments
from ledger.engine_spark import Spark
from ledger.engines import INLINE, engine
from tests.ledger import engine_cases as cases
from tests.ledger import kernels
from tests.ledger.homes import Place, files
from tests.ledger.large_calls import CALLS, divided, exactly, shuffled
from tests.ledger.score_files import place_with_channels, write

EXPECTED = [number for task in kernels.TASKS for number in range(task.start, task.stop)]


@pytest.fixture(scope="module")
def spark() -> Iterator[Spark]:
    """Two threads that try a task twice."""
    try:
        made = engine("spark:local[2,2]")
    except LedgerError as error:
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


@pytest.mark.parametrize(
    "name", ["clean", "a cell is missing", "an id looks like another", "a digest in most rows only"]
)
def test_a_large_call_is_the_same(spark: Spark, tmp_path: Path, name: str) -> None:
    template = place_with_channels(tmp_path)
    made = shuffled(CALLS[name])
    paths = [write(tmp_path / f"{n}.parquet", made[n::2]) for n in range(2)]
    found = []
    for number, engine_ in enumerate((INLINE, spark)):
        place = template.copy(tmp_path / str(number)).use()
        exactly(
            place, [write(tmp_path / "before.parquet", [row for row in CALLS["clean"] if row["step"] == 0])]
        )
        with divided():
            found.append(exactly(place, paths, engine=engine_))
    assert found[1] == found[0]
    assert found[0]["staged"] == []


def test_a_call_whose_worker_dies(spark: Spark, tmp_path: Path) -> None:
    place = place_with_channels(tmp_path)
    before = files(place.home.path)
    path = write(tmp_path / "scores.parquet", CALLS["clean"])
    with divided(), pytest.raises(StorageError) as caught:
        exactly(place, [path], engine=kernels.Ending(spark, "part 2 of the call", None))
    assert (caught.value.code, caught.value.where) == ("engine-task", "part 2 of the call")
    assert files(place.home.path) == before
    with divided():
        told = exactly(place, [path], engine=kernels.Ending(spark, "part 2 of the call", tmp_path / "mark"))
    assert told["admitted"] == len(CALLS["clean"])


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
