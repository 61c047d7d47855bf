"""Processes beside this one, each with its own interpreter: started at the first work that pays for them.

Each imports what a kernel needs, which takes about a second of a core; PAYS entries take longer than that.
Workers are spawned rather than forked, since the Arrow of this process has threads that a fork would lose.
What starts them is imported with the first of them: a pool that is never used costs nothing.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from threading import Thread
from typing import TYPE_CHECKING, Any

from contracts.errors import LedgerError, StorageError
from ledger.engines import Kernel, Result, Task, cores, failed, share

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.synchronize import Event

PAYS = 1 << 21  # entries
AHEAD = 4  # tasks handed out for each worker: none waits for work, and few results wait to be taken
ATTEMPTS = 2


class Pool:
    """Some worker processes; with `always` they are used for any amount of work, else where it pays.

    A worker that dies takes the pool with it: the tasks not done are tried once more in a new one.
    """

    def __init__(self, workers: int, *, always: bool = False) -> None:
        self._workers = workers
        self._always = always
        self._executor: ProcessPoolExecutor | None = None
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
                self._stop = context.Event()
                self._executor = ProcessPoolExecutor(
                    self._workers, mp_context=context, initializer=_ready, initargs=(self._stop, threads)
                )
            except (ImportError, OSError) as error:  # a machine without shared semaphores
                raise StorageError(
                    "worker processes cannot be started here", code="no-engine", got=error,
                    next_step="use --workers 1",
                ) from error  # fmt: skip
        return self._executor


def _lost(task: object) -> StorageError:
    return StorageError(
        "a worker process ended before its work was done, twice",
        code="engine-task", where=str(task), next_step="see whether memory ran out, or use --workers 1",
    )  # fmt: skip


# What a worker keeps between tasks: when to stop, and the kernel it was sent last.
_stopped: Event | None = None
_kernel: tuple[bytes, Any] = (b"", None)


def _ready(stop: Event, threads: int) -> None:
    """Make a worker: it leaves Ctrl-C to the process that started it, and ends with that process."""
    global _stopped  # noqa: PLW0603 (a worker has no other place to keep it)
    _stopped = stop
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
