"""`make bench`: every case as a whole process, in turn, medians beside bars in one table.

Cases of a suite take turns, so a machine that is busy for a minute slows all of them and not one. A case is
run five times where it takes less than half a minute, three times below two minutes, else once. Numbers are
kept after every run where --json says; --resume goes on from a benchmark that was interrupted. Exit code 1
when a bar is not met or a command fails; a page is written only by a benchmark that came to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import audit_bench
import checksum_bench
import homes
import ingest_bench
import jev_bench
import kept
import read_bench
import statistics_bench
import table
from case import Bar, Case, Fact
from kept import Kept, Result, Results, Run
from machine import machine, versions

HERE = Path(__file__).resolve().parent
# These run at every size asked for, the others at their own.
SIZED: dict[str, ModuleType] = {"ingest": ingest_bench, "read": read_bench, "audit": audit_bench}
FIXED: dict[str, ModuleType] = {"jev": jev_bench, "statistics": statistics_bench, "checksum": checksum_bench}
SUITES = SIZED | FIXED
BARS: Mapping[str, Sequence[Bar]] = {name: module.BARS for name, module in SUITES.items()}
PAIRS = 1_000_000  # of predictions
OFTEN, SOMETIMES = (5, 30.0), (3, 120.0)  # so many runs of what takes less than so many seconds


class FailedError(Exception):
    """A command that had to succeed did not."""


def plan(suites: Sequence[str], sizes: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Suites with their sizes, the largest last. Suites that are not named fit the largest size asked for."""
    largest = max(sizes)
    named = suites or [
        name
        for name in SUITES
        if (name != "statistics" or largest >= 1_000_000) and (name != "checksum" or largest >= 10_000_000)
    ]
    if "jev" in named:
        yield "jev", min(largest, PAIRS)
    if "statistics" in named:
        yield "statistics", 0
    for size in sorted(sizes):
        yield from ((name, size) for name in SIZED if name in named)
    if "checksum" in named:
        yield "checksum", checksum_bench.ENTRIES if largest >= 10_000_000 else largest


def runs_for(seconds: float, asked: int | None) -> int:
    """How often a case is run that took so long the first time."""
    if asked is not None:
        return asked
    return next((runs for runs, below in (OFTEN, SOMETIMES) if seconds < below), 1)


def measure(case: Case, report: Path) -> Run:
    """One run of one case."""
    if case.prepare is not None:
        case.prepare()
    os.sync()  # what the case before left to be written is not written while this one runs
    runner = [sys.executable, "-S", str(HERE / "measure.py"), str(report), *case.command]
    done = subprocess.run(runner, env=dict(case.environment), stderr=subprocess.PIPE, check=True)
    numbers = json.loads(report.read_text())
    if code := numbers.pop("exit"):
        raise FailedError(f"exit {code}: {done.stderr.decode(errors='replace').strip()[-500:]}")
    return Run(**numbers)


def run(suite: str, size: int, folder: Path, results: Results, given: argparse.Namespace) -> Result:
    """Every case of a suite in turn, as often as it is to be run, then the facts."""
    result = results.start(suite, size)
    say(f"{suite} {table.size(size)}: making what it runs on")
    place = folder / f"{suite}{size}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    made = SUITES[suite].cases(place, size)
    cases = [one for one in made if isinstance(one, Case)]
    result.missing |= {one.name: one.missing for one in made if one.missing is not None}
    wanted = {case.name: 1 for case in cases if case.missing is None}
    for turn in range(1, 1 + max(given.repeats or 0, OFTEN[0])):
        for case in cases:
            if turn > wanted.get(case.name, 0):
                continue
            say(f"{suite} {table.size(size)}: {case.name}, run {turn}")
            one = result.cases.setdefault(case.name, Kept([], case.entries, case.grows))
            try:
                one.runs.append(measure(case, place / "measured.json"))
            except FailedError as error:
                print(f"{case.name}: {error}", file=sys.stderr)
                result.failed, result.missing[case.name], wanted[case.name] = True, str(error), 0
                continue
            wanted[case.name] = runs_for(one.runs[0].seconds, given.repeats)
            results.write(given.json)
    for fact in made:
        if isinstance(fact, Fact) and fact.missing is None:
            result.facts[fact.name] = fact.find()
    say("")
    result.done = True
    results.write(given.json)
    shutil.rmtree(place, ignore_errors=True)
    return result


def say(what: str) -> None:
    """Where the benchmark is, on the line it was before."""
    if sys.stderr.isatty():
        print(f"\r{what:<78.78}", end="" if what else "\r", file=sys.stderr, flush=True)


def options() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(SUITES)}; those that fit by default")
    parser.add_argument("--entries", type=int, nargs="+", default=[1_000_000], help="one size or several")
    parser.add_argument("--repeats", type=int, help="runs of every case (default: by how long it takes)")
    parser.add_argument(
        "--folder", type=Path, help="where data and homes are made (default: a temporary one)"
    )
    parser.add_argument(
        "--homes", type=Path, help="keep filled homes here for other runs, and take them from here"
    )
    parser.add_argument("--json", type=Path, help="keep the numbers in this file")
    parser.add_argument(
        "--resume", action="store_true", help="go on with an interrupted run that --json holds"
    )
    parser.add_argument("--markdown", type=Path, help="put the table between the marks of this page")
    given = parser.parse_args()
    if unknown := set(given.suites) - SUITES.keys():
        parser.error(f"no such suite: {', '.join(sorted(unknown))}")
    if given.resume and given.json is None:
        parser.error("--resume needs --json")
    return given


def main() -> None:
    """Runs the suites asked for, the larger sizes last, and says of each what it found as soon as it has."""
    given = options()
    homes.keep_in = given.homes and given.homes.resolve()
    if given.folder is not None:
        given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ledger-bench-", dir=given.folder) as temporary:
        folder = Path(temporary)
        results = Results(f"{datetime.now(UTC):%Y-%m-%d}", machine(folder), versions())
        if given.resume and given.json.exists() and not (before := kept.read(given.json)).finished:
            results = before
        print(results.machine, "\n", flush=True)
        size_before = 0
        try:
            for suite, size in plan(given.suites, given.entries):
                if size != size_before:
                    shutil.rmtree(folder / f"home{size_before}", ignore_errors=True)
                size_before = size
                done = results.of(suite, size)
                if done is None or not done.done:
                    done = run(suite, size, folder, results, given)
                print(
                    f"{table.times(done)}\n\n{table.terminal(table.rows_of(done, BARS[suite]))}\n", flush=True
                )
            results.finished = True
            results.write(given.json)
        except KeyboardInterrupt:
            say("")
            print("interrupted; what was measured is kept" if given.json else "interrupted", file=sys.stderr)
            sys.exit(130)
    grown = list(table.growths(results.results))
    if grown:
        print(table.terminal(grown), "\n")
    rows = list(table.rows(results, BARS))
    if given.markdown is not None:
        table.put(given.markdown, table.markdown(results, BARS))
    failed = [row.name for row in rows if row.verdict == table.NOT_MET]
    failed += [name for one in results.results if one.failed for name in one.missing]
    met = sum(row.verdict == table.MET for row in rows)
    print(f"{met} bars met, {len(failed)} not; the others are stated for another size or not measured")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
