"""Runs a command and writes its wall-clock seconds, processor seconds, peak memory and exit code as JSON.

A process of its own, since a child starts with the resident size of whoever forked it: measured from a
process that had just made a million rows, every command would seem to hold a million rows.

Peak memory is the largest resident size of one process, as the kernel counted it, or what all processes of
the command held together where that is more: looked at twenty times a second, pages of files that they share
counted for the first of them only (Linux; elsewhere the first number alone).

    measure.py REPORT COMMAND…
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

BETWEEN_LOOKS = 0.05  # seconds


def main(report: Path, command: list[str]) -> None:
    """Standard error of the command is passed on, its output is not kept."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    together = Together(process.pid)
    together.start()
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - start
    together.done.set()
    per_megabyte = 1024**2 if sys.platform == "darwin" else 1024
    numbers = {
        "seconds": elapsed,
        "processor": usage.ru_utime + usage.ru_stime,
        "megabytes": max(usage.ru_maxrss / per_megabyte, together.most / 1024**2),
        "exit": os.waitstatus_to_exitcode(status),
    }
    report.write_text(json.dumps(numbers))


class Together(threading.Thread):
    """Looks at a process and its descendants until told to stop; `most` bytes were held at once."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.root, self.most, self.done = root, 0, threading.Event()

    def run(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        while not self.done.wait(BETWEEN_LOOKS):
            held = sum(
                resident - (shared if at else 0) for at, (resident, shared) in enumerate(self._sizes())
            )
            self.most = max(self.most, held * page)

    def _sizes(self) -> list[tuple[int, int]]:
        """Resident and shared pages of each process, the command itself first."""
        waiting, found = [self.root], []
        while waiting:
            process = waiting.pop(0)
            try:
                resident, shared = Path(f"/proc/{process}/statm").read_text().split()[1:3]
                tasks = list(Path(f"/proc/{process}/task").iterdir())
                waiting += [int(child) for task in tasks for child in (task / "children").read_text().split()]
            except OSError:  # it has ended meanwhile, or there is no /proc
                continue
            found.append((int(resident), int(shared)))
        return found


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
