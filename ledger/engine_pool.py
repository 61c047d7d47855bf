"""Processes beside this one, each with its own interpreter: started at the first work that pays for them.

Each imports what a kernel needs, which takes about a second of a core; PAYS entries take longer than that.
Workers are spawned rather than forked, since the Arrow of this process has threads that a fork would lose.
What starts them is imported with the first of them: a pool that is never used costs nothing.

A worker imports the main module of the program that started it, as every spawned process does. Where that
module starts workers itself when it is imported, the worker ends with UNGUARDED, and the program is told.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Any

from contracts.errors import LedgerError, StorageError, UsageError
from ledger.engines import Kernel, Result, Task, cores, failed, share

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.process import BaseProcess
    from multiprocessing.synchronize import Event
    from types import FrameType

PAYS = 1 << 21  # entries
AHEAD = 4  # tasks handed out for each worker: none waits for work, and few results wait to be taken
ATTEMPTS = 2
UNGUARDED = 79  # the exit code of a worker whose main module starts workers when it is imported
STARTED_BY = "LEDGER_POOL"  # in a worker's environment: the process that started it


class Pool:
    """Some worker processes; with `always` they are used for any amount of work, else where it pays.

    A worker that dies takes the pool with it: the tasks not done are tried once more in a new one.
    """

    def __init__(self, workers: int, *, always: bool = False) -> None:
        self._workers = workers
        self._always = always
        self._executor: ProcessPoolExecutor | None = None
        self._processes: Mapping[int, BaseProcess] = {}
        self._ready: Event | None = None
        self._stop: Event | None = None

    def pieces(self, entries: int) -> int:
        """See Engine."""
        if self._always:
            return max(share(entries, self._workers), self._workers)
        return share(entries, self._workers) if entries >= PAYS else 1

    def map(self, kernel: Kernel[Task, Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """See Engine; a single task is done here."""
        if len(tasks) < 2:
            for task in tasks:
                yield from kernel(task)
            return
        from concurrent.futures.process import BrokenProcessPool

        _require_guard()
        shared = pickle.dumps(kernel, protocol=pickle.HIGHEST_PROTOCOL)
        done = 0
        try:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    for results in self._results(shared, tasks[done:]):
                        done += 1
                        yield from results
                except BrokenProcessPool as error:
                    self.close()
                    self._require_main()
                    if attempt == ATTEMPTS:
                        raise _lost(tasks[done]) from error
                else:
                    return
        except BaseException:
            self.close()  # whoever takes no more results wants no more work
            raise

    def close(self) -> None:
        """See Engine: workers end with the range they are at."""
        if self._executor is not None:
            assert self._stop is not None, "made together"
            self._stop.set()
            # Waited for: the interpreter would wait at its end, and may then find the pool half closed.
            self._executor.shutdown(wait=True, cancel_futures=True)
        self._executor = self._stop = None

    def _results(self, kernel: bytes, tasks: Sequence[Task]) -> Iterator[list[Any]]:
        """The results of each task, in order."""
        executor = self._started()
        running: deque[Future[list[Any]]] = deque()
        waiting = iter(tasks)
        for task in waiting:
            with _undisturbed():  # it starts a worker where all are busy
                running.append(executor.submit(_work, kernel, task))
            if len(running) >= AHEAD * self._workers:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()

    def _started(self) -> ProcessPoolExecutor:
        if self._executor is None:
            from concurrent.futures import ProcessPoolExecutor
            from multiprocessing import get_context

            context = get_context("spawn")
            threads = max(1, cores() // self._workers)
            try:
                self._stop, self._ready = context.Event(), context.Event()
                self._executor = ProcessPoolExecutor(
                    self._workers,
                    mp_context=context,
                    initializer=_begin,
                    initargs=(self._stop, self._ready, threads),
                )
            except (ImportError, OSError) as error:  # a machine without shared semaphores
                raise StorageError(
                    "worker processes cannot be started here", code="no-engine", got=error,
                    next_step="use --workers 1",
                ) from error  # fmt: skip
            self._processes = self._executor._processes
        return self._executor

    def _require_main(self) -> None:
        """UsageError where workers ended because of the main module that they import."""
        codes = {process.exitcode for process in self._processes.values()}
        assert self._ready is not None, "made with the processes"
        where = getattr(sys.modules["__main__"], "__file__", "the main module")
        if UNGUARDED in codes:
            raise _unguarded(where) from None
        if 1 in codes and not self._ready.is_set():
            raise UsageError(
                "worker processes import the main module, which failed there", code="main-module",
                where=where, next_step='put what it does below `if __name__ == "__main__":`',
            ) from None  # fmt: skip


def _require_guard() -> None:
    """Ends a worker that is still importing the main module, which is then no place to start others from."""
    from multiprocessing import current_process

    if getattr(current_process(), "_inheriting", False):
        if os.environ.get(STARTED_BY) == str(os.getppid()):
            sys.exit(UNGUARDED)
        raise _unguarded("the main module")


def _unguarded(where: str) -> UsageError:
    return UsageError(
        "worker processes import the main module, and it starts workers itself", code="main-module",
        where=where, expected='its calls below a line `if __name__ == "__main__":`',
        next_step="see docs/scale.md, or use one process",
    )  # fmt: skip


@contextmanager
def _undisturbed() -> Iterator[None]:
    """While processes are started: they never hear of Ctrl-C, and this one does afterwards.

    A blocked signal is blocked in a process that is started meanwhile, before it has imported anything.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    heard: list[signal.Signals] = []
    handlers = {}
    if current_thread() is main_thread():  # another thread of this process may still take a signal
        for number in (signal.SIGINT, signal.SIGTERM):
            if callable(handler := signal.getsignal(number)):
                handlers[number] = handler
                signal.signal(number, lambda number, _frame: heard.append(signal.Signals(number)))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.environ[STARTED_BY] = str(os.getpid())
    try:
        yield
    finally:
        del os.environ[STARTED_BY]
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        try:
            _put_back(handlers)
        except BaseException:  # a signal that another thread of this process took may be heard only here
            _put_back(handlers)
            raise
        for number in heard:  # whatever else went wrong meanwhile
            handlers[number](number, None)


def _put_back(handlers: Mapping[signal.Signals, Callable[[int, FrameType | None], Any]]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _lost(task: object) -> StorageError:
    return StorageError(
        "a worker process ended before its work was done, twice",
        code="engine-task", where=str(task), next_step="see whether memory ran out, or use --workers 1",
    )  # fmt: skip


# What a worker keeps between tasks: when to stop, and the kernel it was sent last.
_stopped: Event | None = None
_kernel: tuple[bytes, Any] = (b"", None)


def _begin(stop: Event, ready: Event, threads: int) -> None:
    """Make a worker: it leaves Ctrl-C to the process that started it, and ends with that process."""
    global _stopped  # noqa: PLW0603 (a worker has no other place to keep it)
    _stopped = stop
    ready.set()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    # What Arrow frees goes back to the system at once: kept, it would be most of what a worker holds.
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "0")
    import pyarrow as pa

    pa.set_cpu_count(threads)


def _end_with_parent() -> None:
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent = parent_process()
    assert parent is not None, "a worker was started by somebody"
    wait([parent.sentinel])
    os._exit(1)


def _work(kernel: bytes, task: Any) -> list[Any]:
    """All results of one task; none once nobody wants them."""
    global _kernel  # noqa: PLW0603
    if _kernel[0] != kernel:
        _kernel = kernel, pickle.loads(kernel)  # noqa: S301 (from the process that started this one)
    found: list[Any] = []
    assert _stopped is not None, "set before the first task"
    try:
        for result in _kernel[1](task):
            if _stopped.is_set():
                return []
            found.append(result)
    except LedgerError:
        raise
    except Exception as error:
        raise failed(task, error) from error
    return found
