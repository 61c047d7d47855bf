"""Which Python the peers run in, and what is installed there.

An environment of their own, because what they bring would change what is measured: pyarrow imports pandas
into every process as soon as it is installed, the product's processes too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from case import ROOT, Case

OWN = ROOT / ".venv" / "bench" / "bin" / "python"
SCRIPT = str(Path(__file__).resolve().parent / "peers.py")
LISTED = (
    "import json; from importlib.metadata import distributions as d; "
    "print(json.dumps({x.metadata['Name'].lower().replace('_', '-'): x.version for x in d()}))"
)


def python() -> str:
    """LEDGER_BENCH_PYTHON, else the environment that `make bench-peers` made, else this one."""
    return os.environ.get("LEDGER_BENCH_PYTHON") or (str(OWN) if OWN.exists() else sys.executable)


@cache
def versions() -> Mapping[str, str]:
    """Every distribution installed for the peers."""
    listed = subprocess.run([python(), "-c", LISTED], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(listed.stdout)
    return found


def peer(name: str, distribution: str | None, *words: str, **more: object) -> Case:
    """A case of peers.py, `missing` where its distribution is not installed."""
    missing = None if distribution is None or distribution in versions() else f"{distribution}: not installed"
    command = [python(), SCRIPT, *words]
    return Case(name, command, **{"missing": missing, **more})  # type: ignore[arg-type]
