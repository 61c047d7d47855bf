"""What a benchmark is: commands measured as whole processes, and the bars their numbers are held against."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEDGER = (sys.executable, "-c", "from cli.main import run; run()")


@dataclass(frozen=True)
class Home:
    """A ledger home with its key and pin, and how a command is told of them."""

    folder: Path

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "LEDGER_HOME": str(self.folder / ".ledger"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
        }


@dataclass(frozen=True)
class Case:
    """One command. `prepare` runs before every measurement and is not measured; exit code must be 0."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=lambda: {**os.environ, "PYTHONPATH": str(ROOT)})
    prepare: Callable[[], None] | None = None
    entries: int | None = None


@dataclass(frozen=True)
class Measured:
    """One run: wall-clock and processor seconds, and the largest resident size in megabytes."""

    seconds: float
    processor: float
    megabytes: float


@dataclass(frozen=True)
class Bar:
    """A number the cases give, by name, and what it must be at most (or at least)."""

    name: str
    value: Callable[[Mapping[str, Measured]], float]
    needs: tuple[str, ...]
    at_most: float | None = None
    at_least: float | None = None
    unit: str = ""

    def met(self, value: float) -> bool:
        """Whether the value is within the bar."""
        return (self.at_most is None or value <= self.at_most) and (
            self.at_least is None or value >= self.at_least
        )


def seconds(case: str, at_most: float) -> Bar:
    """A whole process takes at most so many seconds."""
    return Bar(f"{case}: seconds", lambda of: of[case].seconds, (case,), at_most=at_most, unit="s")


def megabytes(case: str, at_most: float) -> Bar:
    """A process never holds more than so many megabytes."""
    return Bar(f"{case}: peak memory", lambda of: of[case].megabytes, (case,), at_most=at_most, unit="MB")


def times(
    name: str, slow: str, fast: str, *, at_most: float | None = None, at_least: float | None = None
) -> Bar:
    """How many times as long `slow` takes as `fast`."""
    return Bar(
        name,
        lambda of: of[slow].seconds / of[fast].seconds,
        (slow, fast),
        at_most=at_most,
        at_least=at_least,
        unit="x",
    )


def growth(name: str, of_case: str, than: str, at_most: float) -> Bar:
    """How much more memory one case takes than another."""
    return Bar(
        name,
        lambda of: of[of_case].megabytes / of[than].megabytes,
        (of_case, than),
        at_most=at_most,
        unit="x",
    )
