"""What has been measured so far, in a file that is written again after every run of a case."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from case import Measured


@dataclass(frozen=True)
class Run:
    """One run of one case."""

    seconds: float
    processor: float
    megabytes: float


@dataclass
class Kept:
    """The runs of one case."""

    runs: list[Run] = field(default_factory=list)
    entries: int | None = None
    grows: bool = False

    def measured(self) -> Measured:
        """The median of the times and the most memory."""
        return Measured(
            statistics.median(run.seconds for run in self.runs),
            statistics.median(run.processor for run in self.runs),
            max(run.megabytes for run in self.runs),
            len(self.runs),
            self.entries,
            self.grows,
        )


@dataclass
class Result:
    """One suite at one size; `done` when nothing of it is left to run."""

    suite: str
    entries: int
    cases: dict[str, Kept] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    failed: bool = False
    done: bool = False

    def found(self) -> Mapping[str, Measured]:
        """Everything that was measured, by name."""
        times = {name: kept.measured() for name, kept in self.cases.items() if kept.runs}
        return times | {name: Measured(value=value) for name, value in self.facts.items()}


@dataclass
class Results:
    """All of them, with the day, the machine and the versions; `finished` when nothing asked for is left."""

    date: str
    machine: str
    versions: dict[str, str]
    results: list[Result] = field(default_factory=list)
    finished: bool = False

    def of(self, suite: str, entries: int) -> Result | None:
        """What is kept of a suite at a size."""
        return next((r for r in self.results if (r.suite, r.entries) == (suite, entries)), None)

    def start(self, suite: str, entries: int) -> Result:
        """A new result in place of one that was interrupted."""
        self.results = [r for r in self.results if (r.suite, r.entries) != (suite, entries)]
        self.results.append(Result(suite, entries))
        return self.results[-1]

    def write(self, path: Path | None) -> None:
        """Whole or not at all, so that an interrupted benchmark leaves what it had."""
        if path is None:
            return
        fresh = path.with_name(path.name + ".new")
        fresh.write_text(json.dumps(asdict(self), indent=1) + "\n")
        os.replace(fresh, path)


def read(path: Path) -> Results:
    """What `write` wrote."""
    stored: dict[str, Any] = json.loads(path.read_text())
    results = [
        Result(**{**one, "cases": {name: _kept(kept) for name, kept in one["cases"].items()}})
        for one in stored.pop("results")
    ]
    return Results(**stored, results=results)


def _kept(stored: Mapping[str, Any]) -> Kept:
    return Kept(**{**stored, "runs": [Run(**run) for run in stored["runs"]]})
