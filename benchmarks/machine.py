"""What the numbers were measured on, and with which versions."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import sqlite3
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import peer_python

OWN = ("evaluator-ledger", "pyarrow", "numpy", "polars", "numba", "scipy")
PEERS = ("sqlmodel", "adbc-driver-postgresql", "pyiceberg", "duckdb", "pandas", "arch")


def machine(folder: Path) -> str:
    """Processor, cores, memory, the disk that the folder is on, and how busy they were before."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        names = [line for line in information.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, {disk(folder)}, {platform.system()}; "
        f"load {os.getloadavg()[0]:.1f} before"
    )


def disk(folder: Path) -> str:
    """Its kind, as far as the system says."""
    device = folder.stat().st_dev
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if not block.exists():
        return "disk unknown"
    place = block.resolve()
    place = place if (place / "queue").is_dir() else place.parent
    try:
        turns = (place / "queue" / "rotational").read_text().strip() == "1"
    except OSError:
        return "disk unknown"
    if place.name.startswith("vd"):
        return "virtual disk"
    return "hard disk" if turns else "solid state disk"


def versions() -> dict[str, str]:
    """Of the program and of everybody it is compared with; "not installed" where they are missing."""
    found = {"Python": platform.python_version(), "SQLite": sqlite3.sqlite_version}
    for name in OWN:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    # pyarrow imports pandas into every process where it is installed, so it matters where that is
    if importlib.util.find_spec("pandas"):
        found["pandas beside ledger"] = version("pandas")
    found |= {name: peer_python.versions().get(name, "not installed") for name in PEERS}
    return found | {"PostgreSQL": _program(_server()), "b3sum": _program(shutil.which("b3sum"))}


def _server() -> str | None:
    from tests import postgres

    try:
        return str(postgres._programs() / "postgres")
    except postgres.NoServerError:
        return None


def _program(path: str | None) -> str:
    if path is None:
        return "not installed"
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    number = re.search(r"\d+(\.\d+)+", said)
    return number[0] if number else "unknown"
