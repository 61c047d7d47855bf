"""Where work on pieces of a ledger is done: in this process, in processes beside it, or on a cluster.

A kernel is a function of one task that gives its results one by one; both can be pickled. An engine gives
the results of all tasks in the order of the tasks, so whoever joins them cannot tell where they were made.
Kernels only read and count: they compute no float that depends on how the work was cut.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Protocol, TypeVar

from contracts.errors import LedgerError, StorageError, UsageError
from contracts.threads import AT_A_TIME, for_ranges

Task = TypeVar("Task")
Result = TypeVar("Result")
# From a task to its results, in order.
Kernel = Callable[[Task], Iterable[Result]]

TASK_ENTRIES = 1 << 20  # of a task at least: below, opening files weighs more than reading them
MOST_ENTRIES = 1 << 22  # of a task at most: a worker holds its results until it is done
# Cores from which a pool is used unasked. Two are busy with the threads of one process already: 10 million
# entries were audited in 10.3 seconds by one and in 12.8 by two, and taken in in 25.5 and 25.9.
WORTHWHILE = 3
THREAD_ENTRIES = 1 << 19  # of a task of a thread: two of them are in memory at a time
MOST_PER_CORE = 4  # workers, whatever was asked for: more only wait for each other, and each takes memory
TASKS_PER_WORKER = 8  # so that a slow task at the end keeps nobody waiting for long
NAMES = "inline | pool | spark[:MASTER]"


class Engine(Protocol):
    """Does the tasks of a kernel; close it when no more come."""

    def pieces(self, entries: int) -> int:
        """Into how many tasks so many entries should be cut; 1 where cutting them does not pay."""
        ...

    def map(self, kernel: Kernel[Task, Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """The results of all tasks in order. `str` of a task names it to people.

        A LedgerError of a kernel is raised here as it is; StorageError `engine-task` names a task that
        could not be done.
        """
        ...

    def close(self) -> None:
        """Let go of workers; what they are at is given up."""
        ...


class Inline:
    """This process: one task after the other, their results as they come."""

    def pieces(self, entries: int) -> int:
        """Always one: nothing is done at the same time."""
        return 1

    def map(self, kernel: Kernel[Task, Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """See Engine."""
        for task in tasks:
            yield from kernel(task)

    def close(self) -> None:
        """There is nothing to let go of."""


class Threads:
    """This process still, a few tasks at a time: what reads and counts whole columns lets others run."""

    def pieces(self, entries: int) -> int:
        """As many as keep every thread busy to the end."""
        return max(1, entries // THREAD_ENTRIES)

    def map(self, kernel: Kernel[Task, Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """See Engine; the results of only a few tasks are waiting at any time."""
        if len(tasks) < 2:
            yield from INLINE.map(kernel, tasks)
            return
        waiting: deque[Future[list[Result]]] = deque()
        try:
            for task in tasks:
                waiting.append(for_ranges().submit(lambda task: list(kernel(task)), task))
                if len(waiting) > AT_A_TIME:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            wait([future for future in waiting if not future.cancel()])

    def close(self) -> None:
        """The threads stay for whoever comes next."""


INLINE = Inline()
THREADS = Threads()
# Told the phase, how much of it is done, and of how much (None: unknown).
Progress = Callable[[str, int, int | None], None]


def silent(_phase: str, _done: int, _total: int | None) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True)
class Means:
    """How a reader has its work done: by which engine, and who is told how far it is."""

    engine: Engine = INLINE
    progress: Progress = silent


HERE = Means()


def beside(engine: Engine) -> Engine:
    """The same engine, but threads in the place of one task after the other."""
    return THREADS if engine is INLINE else engine


@dataclass(frozen=True)
class Missing:
    """An engine that could not be had, for work that may not need one: the first question raises why."""

    error: LedgerError

    def pieces(self, entries: int) -> int:
        """Raises the error."""
        raise self.error

    def map(self, kernel: Kernel[Task, Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """Raises the error."""
        raise self.error

    def close(self) -> None:
        """There is nothing to let go of."""


def share(entries: int, workers: int) -> int:
    """Into how many tasks entries are cut for some workers: neither tiny ones nor few long ones."""
    few = min(-(-entries // TASK_ENTRIES), workers * TASKS_PER_WORKER)
    return max(1, few, -(-entries // MOST_ENTRIES))


def failed(task: object, error: Exception) -> StorageError:
    """The end of a task by something that is none of our errors."""
    return StorageError(
        f"a task failed, unexpected {type(error).__name__}: {str(error)[:200]}",
        code="engine-task", where=str(task),
        next_step="try --engine inline, and check the ledger with: ledger verify",
    )  # fmt: skip


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def engine(name: str | None = None, workers: int | None = None) -> Engine:
    """The engine of a name, by default a pool of `workers` (by default all cores, if they are three) where
    that pays.

    With `workers` or `pool` said, the pool is used for any amount of work. UsageError for an unknown name
    and (`missing-extra`) where the engine's packages are not installed, StorageError `no-engine` where
    something else that it needs is not there.
    """
    kind, _, master = ("" if name is None else name).partition(":")
    if kind == "spark":
        from ledger.engine_spark import Spark

        if workers is not None:
            raise UsageError("spark has workers of its own", where="--workers", expected="no number")
        return Spark(master or None)
    if master or (kind not in ("inline", "pool") and name is not None):
        raise UsageError("unknown engine", expected=NAMES, got=str(name)[:80], where="--engine")
    if kind == "inline" or workers == 1:
        if workers not in (None, 1):
            raise UsageError("one process is one worker", where="--workers", expected="--engine pool")
        return INLINE
    asked = workers is not None or kind == "pool"
    count = cores() if workers is None else min(workers, MOST_PER_CORE * cores())
    if count == 1 or (not asked and count < WORTHWHILE):
        return INLINE
    from ledger.engine_pool import Pool

    return Pool(count, always=asked)
