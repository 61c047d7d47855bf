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

    @property
    def segment_files(self) -> list[Path]:
        """Everything kept of its segments: entries, page leaves and the rows they came from."""
        return sorted((self.folder / ".ledger" / "objects" / "segments").iterdir())


@dataclass(frozen=True)
class Case:
    """One command. `prepare` runs before every measurement and is not measured; exit code must be 0.

    `entries` is how many the command deals with, for a rate. `missing` says why it cannot be measured here.
    `grows`: its time at a large size is held against that at a small one.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=lambda: {**os.environ, "PYTHONPATH": str(ROOT)})
    prepare: Callable[[], None] | None = None
    entries: int | None = None
    missing: str | None = None
    grows: bool = False


@dataclass(frozen=True)
class Fact:
    """A number that is no time, found once after the cases of its suite have run: bytes, a difference."""

    name: str
    find: Callable[[], float]
    missing: str | None = None


@dataclass(frozen=True)
class Measured:
    """The median wall-clock and processor seconds of some runs, and the most megabytes held at once.

    `value` is the number of a fact, which has no times.
    """

    seconds: float = 0.0
    processor: float = 0.0
    megabytes: float = 0.0
    runs: int = 1
    entries: int | None = None
    grows: bool = False
    value: float | None = None

    @property
    def rate(self) -> float:
        """Entries per second."""
        assert self.entries is not None, "only cases that deal with entries are compared by rate"
        return self.entries / self.seconds


@dataclass(frozen=True)
class Bar:
    """A number the cases give, by name, and what it must be at most (or at least).

    `of` is the number of entries the bar is stated for, None for any: at other sizes the number is shown and
    not judged.
    """

    name: str
    value: Callable[[Mapping[str, Measured]], float]
    needs: tuple[str, ...]
    at_most: float | None = None
    at_least: float | None = None
    unit: str = ""
    of: int | None = None

    def met(self, value: float) -> bool:
        """Whether the value is within the bar."""
        return (self.at_most is None or value <= self.at_most) and (
            self.at_least is None or value >= self.at_least
        )


def seconds(case: str, at_most: float, of: int | None = None) -> Bar:
    """A whole process takes at most so many seconds."""
    return Bar(f"{case}: seconds", lambda on: on[case].seconds, (case,), at_most=at_most, unit="s", of=of)


def megabytes(case: str, at_most: float, of: int | None = None) -> Bar:
    """All processes of a command together never hold more than so many megabytes."""
    return Bar(
        f"{case}: peak memory", lambda on: on[case].megabytes, (case,), at_most=at_most, unit="MB", of=of
    )


def times(
    name: str,
    slow: str,
    fast: str,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    of: int | None = None,
) -> Bar:
    """How many times as long `slow` takes as `fast`."""
    return Bar(name, lambda on: on[slow].seconds / on[fast].seconds, (slow, fast), at_most, at_least, "x", of)


def faster(name: str, fast: str, slow: str, at_least: float, of: int | None = None) -> Bar:
    """How many times the entries per second of `slow` those of `fast` are, whatever number each was given."""
    return Bar(name, lambda on: on[fast].rate / on[slow].rate, (fast, slow), None, at_least, "x", of)


def faster_than(case: str, at_least: float, of: int | None = None) -> Bar:
    """A whole process deals with at least so many entries a second."""
    return Bar(f"{case}: entries/s", lambda on: on[case].rate, (case,), at_least=at_least, of=of)


def growth(name: str, of_case: str, than: str, at_most: float, of: int | None = None) -> Bar:
    """How much more memory one case takes than another."""
    return Bar(
        name,
        lambda on: on[of_case].megabytes / on[than].megabytes,
        (of_case, than),
        at_most=at_most,
        unit="x",
        of=of,
    )


def share(name: str, fact: str, than: str, at_most: float, of: int | None = None) -> Bar:
    """One fact as a multiple of another."""
    return Bar(
        name, lambda on: _value(on[fact]) / _value(on[than]), (fact, than), at_most=at_most, unit="x", of=of
    )


def fact(name: str, at_most: float, unit: str = "", of: int | None = None) -> Bar:
    """A fact itself is at most so much."""
    return Bar(name, lambda on: _value(on[name]), (name,), at_most=at_most, unit=unit, of=of)


def _value(found: Measured) -> float:
    assert found.value is not None, "a fact has a value"
    return found.value
