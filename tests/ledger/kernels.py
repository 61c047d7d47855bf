"""Kernels that the workers of any engine can import, and the tasks they are given."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ledger.engines import Engine


@dataclass(frozen=True)
class Count:
    """A task: the numbers from `start` to before `stop`."""

    start: int
    stop: int

    def __str__(self) -> str:
        return f"numbers {self.start} to {self.stop}"


TASKS = [Count(start, start + start % 4) for start in range(0, 40, 3)]


def numbers(task: Count) -> Iterator[tuple[int, int]]:
    """Each number of a task with the process that gave it."""
    for number in range(task.start, task.stop):
        yield number, os.getpid()


@dataclass(frozen=True)
class Failing:
    """Raises at one number."""

    at: int
    error: Exception

    def __call__(self, task: Count) -> Iterator[int]:
        """The numbers before it."""
        for number in range(task.start, task.stop):
            if number == self.at:
                raise self.error
            yield number


@dataclass(frozen=True)
class Dying:
    """Kills its process at one number; with `mark` only the first time."""

    at: int
    mark: Path | None = None

    def __call__(self, task: Count) -> Iterator[int]:
        """The numbers that were reached."""
        for number in range(task.start, task.stop):
            if number == self.at and (self.mark is None or not self.mark.exists()):
                if self.mark is not None:
                    self.mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield number


@dataclass(frozen=True)
class EndingAt:
    """A kernel that does not do the task whose name ends so.

    An exception is raised; else its process is killed, once where there is a file to tell that it was.
    """

    kernel: Any
    moment: str
    how: Path | Exception | None

    def __call__(self, task: object) -> Iterator[object]:
        """What the kernel gives of any other task."""
        if str(task).endswith(self.moment):
            if isinstance(self.how, Exception):
                raise self.how
            if self.how is None or not self.how.exists():
                if self.how is not None:
                    self.how.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        yield from self.kernel(task)


@dataclass(frozen=True)
class Ending:
    """An engine whose workers end at a task, see EndingAt."""

    engine: Engine
    moment: str
    how: Path | Exception | None

    def pieces(self, entries: int) -> int:
        """See Engine."""
        return self.engine.pieces(entries)

    def map(self, kernel: Any, tasks: Sequence[Any]) -> Iterator[Any]:
        """See Engine."""
        return self.engine.map(EndingAt(kernel, self.moment, self.how), tasks)

    def close(self) -> None:
        """See Engine."""
        self.engine.close()


@dataclass(frozen=True)
class Blind:
    """A kernel whose worker does not see the files of its call."""

    kernel: Any

    def __call__(self, task: object) -> Iterator[object]:
        """Nothing, since it cannot begin."""
        yield from replace(self.kernel, shelf=replace(self.kernel.shelf, folder=Path("/nowhere")))(task)


@dataclass(frozen=True)
class Apart:
    """An engine whose workers have a disk of their own."""

    engine: Engine

    def pieces(self, entries: int) -> int:
        """See Engine."""
        return self.engine.pieces(entries)

    def close(self) -> None:
        """See Engine."""
        self.engine.close()

    def map(self, kernel: Any, tasks: Sequence[Any]) -> Iterator[Any]:
        """See Engine."""
        return self.engine.map(Blind(kernel), tasks)
