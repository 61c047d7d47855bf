"""Runs a command and writes its wall-clock seconds, processor seconds, peak memory and exit code as JSON.

A process of its own, since a child starts with the resident size of whoever forked it: measured from a
process that had just made a million rows, every command would seem to hold a million rows.

    measure.py REPORT COMMAND…
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path


def main(report: Path, command: list[str]) -> None:
    """Standard error of the command is passed on, its output is not kept."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - start
    per_megabyte = 1024**2 if sys.platform == "darwin" else 1024
    numbers = {
        "seconds": elapsed,
        "processor": usage.ru_utime + usage.ru_stime,
        "megabytes": usage.ru_maxrss / per_megabyte,
        "exit": os.waitstatus_to_exitcode(status),
    }
    report.write_text(json.dumps(numbers))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
