"""`make bench`: every case as a whole process, interleaved, medians, ratios and bars in one table.

Cases take turns, so a machine that is busy for a minute slows all of them and not one. Exit code 1 when a
bar is not met. Add a module with `cases(folder, entries)` and `BARS` to SUITES to add to the table.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ingest_bench
import jev_bench
import read_bench
from case import Bar, Case, Measured

HERE = Path(__file__).resolve().parent
SUITES = {"ingest": ingest_bench, "read": read_bench, "jev": jev_bench}


def measure(case: Case, report: Path) -> Measured:
    """One run of one case; a failing command ends the benchmark with what it said."""
    if case.prepare is not None:
        case.prepare()
    runner = [sys.executable, "-S", str(HERE / "measure.py"), str(report), *case.command]
    done = subprocess.run(runner, env=dict(case.environment), stderr=subprocess.PIPE, check=True)
    numbers = json.loads(report.read_text())
    if code := numbers.pop("exit"):
        sys.exit(f"{case.name}: exit {code}\n{done.stderr.decode(errors='replace')}")
    return Measured(**numbers)


def medians(cases: Sequence[Case], repeats: int, report: Path) -> dict[str, Measured]:
    """Every case `repeats` times in turn: the median time and the largest size of each."""
    runs: dict[str, list[Measured]] = {case.name: [] for case in cases}
    for turn in range(repeats):
        for case in cases:
            print(f"\r{turn + 1}/{repeats} {case.name:<60}", end="", file=sys.stderr, flush=True)
            runs[case.name].append(measure(case, report))
    print(f"\r{'':<70}\r", end="", file=sys.stderr)
    return {name: _median(done) for name, done in runs.items()}


def _median(runs: Sequence[Measured]) -> Measured:
    return Measured(
        statistics.median(run.seconds for run in runs),
        statistics.median(run.processor for run in runs),
        max(run.megabytes for run in runs),
    )


def machine() -> str:
    """What the numbers were measured on."""
    import pyarrow

    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        names = [line for line in information.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return (
        f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, load {load:.1f} before; {platform.system()}, "
        f"Python {platform.python_version()}, pyarrow {pyarrow.__version__}"
    )


def report(cases: Sequence[Case], found: Mapping[str, Measured], bars: Sequence[Bar]) -> bool:
    """Prints both tables; whether every bar is met."""
    print(f"{'case':<44}{'seconds':>9}{'cpu s':>8}{'entries/s':>12}{'peak MB':>9}")
    for case in cases:
        one = found[case.name]
        rate = f"{case.entries / one.seconds:,.0f}" if case.entries else ""
        print(f"{case.name:<44}{one.seconds:>9.2f}{one.processor:>8.2f}{rate:>12}{one.megabytes:>9.0f}")
    print(f"\n{'bar':<56}{'value':>9}   wanted")
    met = True
    for bar in bars:
        value = bar.value(found)
        wanted = f"at most {bar.at_most:g}" if bar.at_most is not None else f"at least {bar.at_least:g}"
        ok = bar.met(value)
        met = met and ok
        print(f"{bar.name:<56}{value:>8.2f}{bar.unit:<3}{wanted}{'' if ok else '   NOT MET'}")
    return met


def main() -> None:
    """Runs the suites asked for, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(SUITES)}; all by default")
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    given = parser.parse_args()
    unknown = set(given.suites) - SUITES.keys()
    if unknown:
        parser.error(f"no such suite: {', '.join(sorted(unknown))}")
    chosen = [SUITES[name] for name in given.suites or SUITES]
    print(machine())
    with tempfile.TemporaryDirectory(prefix="ledger-bench-") as folder:
        cases: list[Case] = []
        for suite in chosen:
            place = Path(folder) / suite.__name__
            place.mkdir()
            cases += suite.cases(place, given.entries)
        found = medians(cases, given.repeats, Path(folder) / "measured.json")
    print(f"{given.entries:,} entries, medians of {given.repeats} whole processes, interleaved\n")
    bars = [bar for suite in chosen for bar in suite.BARS]
    met = report(cases, found, bars)
    if given.json is not None:
        numbers = {name: vars(one) for name, one in found.items()}
        given.json.write_text(json.dumps({"machine": machine(), "cases": numbers}, indent=2) + "\n")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
