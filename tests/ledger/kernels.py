"""Kernels that the workers of any engine can import, and the tasks they are given."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


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
