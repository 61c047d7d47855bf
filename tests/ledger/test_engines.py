"""Engines in one process and in a pool: the same results in the same order, and what becomes of failures."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.errors import ContractError, LedgerError, StorageError, TamperError, UsageError
from contracts.threads import AT_A_TIME
from ledger import engines, range_tasks, segments
from ledger.engine_pool import PAYS, Pool, _undisturbed
from ledger.engines import INLINE, THREADS, Inline, engine, share
from tests.ledger import engine_cases as cases
from tests.ledger import kernels
from tests.ledger.homes import Place

EXPECTED = [number for task in kernels.TASKS for number in range(task.start, task.stop)]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    made = Pool(2, always=True)
    yield made
    made.close()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Segments of at most 150 entries, so that calls are cut inside trajectories."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(segments, "SEGMENT_ROWS", 150)
    return cases.filled(tmp_path)


class TestChoice:
    def test_names(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engines, "cores", lambda: 4)
        assert engine("inline") is engine(None, 1) is engine("pool", 1) is INLINE
        assert [type(engine(*given)) for given in ((None, None), ("pool", None), (None, 3))] == [Pool] * 3
        monkeypatch.setattr(engines, "cores", lambda: 2)
        assert engine() is INLINE
        assert [type(engine(*given)) for given in (("pool", None), (None, 2))] == [Pool] * 2
        monkeypatch.setattr(engines, "cores", lambda: 1)
        assert engine() is engine("pool") is INLINE

    @pytest.mark.parametrize(
        "given", [("dask", None), ("pool:3", None), ("inline", 2), ("spark:local[2]", 2)]
    )
    def test_refused(self, given: tuple[str, int | None]) -> None:
        with pytest.raises(UsageError):
            engine(*given)

    def test_work_is_cut_where_it_pays(self) -> None:
        assert share(0, 8) == share(1, 8) == 1
        assert share(engines.TASK_ENTRIES * 3, 8) == 3
        assert share(80 * engines.TASK_ENTRIES, 8) == 8 * engines.TASKS_PER_WORKER
        assert share(10**11, 8) * engines.MOST_ENTRIES >= 10**11
        assert INLINE.pieces(10**9) == 1
        by_itself, asked = Pool(2), Pool(2, always=True)
        assert (by_itself.pieces(PAYS - 1), by_itself.pieces(PAYS)) == (1, 2)
        assert asked.pieces(1) == 2


class TestPool:
    def test_results_come_in_the_order_of_tasks_from_other_processes(self, pool: Pool) -> None:
        found = list(pool.map(kernels.numbers, kernels.TASKS))
        assert [number for number, _ in found] == EXPECTED
        assert found == [(n, p) for n, p in found if p != os.getpid()]
        assert [n for n, _ in Inline().map(kernels.numbers, kernels.TASKS)] == EXPECTED

    def test_one_task_is_done_here(self, pool: Pool) -> None:
        assert {process for _, process in pool.map(kernels.numbers, [kernels.Count(0, 9)])} == {os.getpid()}
        assert list(pool.map(kernels.numbers, [])) == []

    def test_an_error_of_ours_comes_back_as_itself(self) -> None:
        made = Pool(2, always=True)
        with pytest.raises(TamperError) as caught:
            list(made.map(kernels.Failing(7, cases.TAMPERED), kernels.TASKS))
        assert caught.value.as_dict() == cases.TAMPERED.as_dict()
        assert (caught.value.kind, caught.value.exit_code, str(caught.value)) == (
            "data", 4, str(cases.TAMPERED),
        )  # fmt: skip

    def test_anything_else_is_told_with_its_task(self) -> None:
        made = Pool(2, always=True)
        with pytest.raises(StorageError, match="unexpected ZeroDivisionError") as caught:
            list(made.map(kernels.Failing(7, ZeroDivisionError("by 0")), kernels.TASKS))
        assert (caught.value.code, caught.value.where) == ("engine-task", "numbers 6 to 8")

    def test_where_no_process_can_be_started(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Poor:
            def Event(self) -> None:
                raise OSError("no semaphores")

        monkeypatch.setattr(multiprocessing, "get_context", lambda kind: Poor())
        with pytest.raises(StorageError, match="cannot be started") as caught:
            list(Pool(2, always=True).map(kernels.numbers, kernels.TASKS))
        assert caught.value.code == "no-engine"

    def test_a_worker_that_dies_is_replaced_once(self, tmp_path: Path) -> None:
        made = Pool(2, always=True)
        assert list(made.map(kernels.Dying(7, tmp_path / "mark"), kernels.TASKS)) == EXPECTED
        assert (tmp_path / "mark").exists()
        with pytest.raises(StorageError, match="ended before its work was done") as caught:
            list(made.map(kernels.Dying(7), kernels.TASKS))
        assert caught.value.code == "engine-task"
        assert (caught.value.where or "").startswith("numbers ")
        made.close()

    @pytest.mark.parametrize(
        ("guard", "body", "said"),
        [
            ("if True:", "", "it starts workers itself"),
            ("if True:", '1 / (__name__ == "__main__")', "failed there"),
            ('if __name__ == "__main__":', "", None),
        ],
        ids=["unguarded", "failing", "guarded"],
    )
    def test_a_program_is_told_what_its_main_module_lacks(
        self, tmp_path: Path, guard: str, body: str, said: str | None
    ) -> None:
        lines = [
            "from ledger.engine_pool import Pool", "from tests.ledger import kernels", body, guard,
            "    print(len(list(Pool(2, always=True).map(kernels.numbers, kernels.TASKS))))",
        ]  # fmt: skip
        (tmp_path / "program.py").write_text("\n".join(lines))
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        done = subprocess.run(
            [sys.executable, tmp_path / "program.py"],
            capture_output=True, text=True, timeout=120, check=False, env=environment,
        )  # fmt: skip
        if said is None:
            assert (done.returncode, done.stdout, done.stderr) == (0, f"{len(EXPECTED)}\n", "")
            return
        assert (done.returncode, done.stdout) == (1, "")
        told = done.stderr.splitlines()
        assert said in told[-1]
        assert str(tmp_path / "program.py") in told[-1]
        assert 'if __name__ == "__main__":' in told[-1]
        assert "During handling" not in done.stderr
        if not body:  # what fails there by itself is shown
            assert done.stderr.count("Traceback") == 1
            assert len(told) < 20

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    @pytest.mark.parametrize("broken", [False, True])
    def test_a_signal_waits_while_processes_are_started_and_is_never_lost(
        self, number: signal.Signals, broken: bool
    ) -> None:
        def raising(number: int, _frame: object) -> None:
            raise KeyboardInterrupt(number)

        def start() -> None:
            with _undisturbed():
                os.kill(os.getpid(), number)
                reached.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
                if broken:
                    raise OSError("no more processes")

        before = {each: signal.signal(each, raising) for each in (signal.SIGINT, signal.SIGTERM)}
        reached: list[set[int]] = []
        try:
            with pytest.raises(KeyboardInterrupt):
                start()
            assert [signal.getsignal(each) for each in before] == [raising, raising]
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
        assert [signal.SIGINT in mask for mask in reached] == [True]
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())

    def test_nobody_goes_on_when_nobody_takes_results(self) -> None:
        before = {child.pid for child in multiprocessing.active_children()}
        results = Pool(2, always=True).map(kernels.numbers, kernels.TASKS)
        next(results)
        results.close()  # type: ignore[attr-defined]
        for _ in range(200):
            if {child.pid for child in multiprocessing.active_children()} <= before:
                return
            time.sleep(0.05)
        raise AssertionError("a worker is still there")

    def test_audits_and_verification_are_the_same(
        self, pool: Pool, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        expected = cases.audited(place, INLINE)
        assert cases.audited(place, pool) == expected
        monkeypatch.setattr(range_tasks, "RANGE_ENTRIES", 60)
        assert cases.audited(place, INLINE) == expected
        assert cases.verified(place, pool) == cases.verified(place, INLINE) == ((), (), 0)
        cases.damaged(place)
        found = cases.verified(place, INLINE)
        assert found[2] > 0
        assert cases.verified(place, pool) == found
        with pytest.raises(TamperError) as here:
            cases.audited(place, INLINE)
        with pytest.raises(TamperError) as there:
            cases.audited(place, pool)
        assert here.value.as_dict() == there.value.as_dict()


class TestThreads:
    def test_results_come_in_the_order_of_tasks_from_this_process(self) -> None:
        assert list(THREADS.map(kernels.numbers, kernels.TASKS)) == [(n, os.getpid()) for n in EXPECTED]
        assert list(THREADS.map(kernels.numbers, [])) == []

    def test_there_are_no_more_tasks_under_way_than_threads(self) -> None:
        under_way, most, lock = 0, 0, threading.Lock()

        def kernel(task: kernels.Count) -> Iterator[int]:
            nonlocal under_way, most
            with lock:
                under_way += 1
                most = max(most, under_way)
            time.sleep(0.002)
            with lock:
                under_way -= 1
            yield task.start

        assert list(THREADS.map(kernel, kernels.TASKS)) == [task.start for task in kernels.TASKS]
        assert 1 <= most <= AT_A_TIME

    @pytest.mark.parametrize("error", [cases.TAMPERED, ZeroDivisionError("by 0")])
    def test_an_error_is_raised_in_its_turn_and_the_threads_go_on(self, error: Exception) -> None:
        found: list[int] = []
        with pytest.raises(type(error)) as caught:
            found.extend(THREADS.map(kernels.Failing(7, error), kernels.TASKS))
        assert caught.value is error
        assert [number for number, _ in THREADS.map(kernels.numbers, kernels.TASKS)] == EXPECTED

    def test_nothing_is_begun_when_nobody_takes_results(self) -> None:
        begun: list[int] = []

        def kernel(task: kernels.Count) -> Iterator[int]:
            begun.append(task.start)
            yield task.start

        results = THREADS.map(kernel, kernels.TASKS)
        next(results)
        results.close()  # type: ignore[attr-defined]
        so_far = len(begun)
        assert so_far <= AT_A_TIME + 1
        time.sleep(0.02)
        assert len(begun) == so_far

    def test_audits_are_the_same(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        expected = cases.audited(place, INLINE)
        for entries in (1, 60, 1000):
            monkeypatch.setattr(engines, "THREAD_ENTRIES", entries)
            assert cases.audited(place, INLINE) == expected
        cases.damaged(place)
        with pytest.raises(TamperError) as cut:
            cases.audited(place, INLINE)
        monkeypatch.setattr(engines, "THREAD_ENTRIES", 1 << 19)
        with pytest.raises(TamperError) as whole:
            cases.audited(place, INLINE)
        assert cut.value.as_dict() == whole.value.as_dict()


@pytest.mark.parametrize("kind", [LedgerError, ContractError, StorageError])
def test_errors_keep_their_parts_between_processes(kind: type[LedgerError]) -> None:
    error = kind("what", code="some", expected=3, got=4, where="there", next_step="go on")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.as_dict(), again.args) == (kind, error.as_dict(), error.args)
