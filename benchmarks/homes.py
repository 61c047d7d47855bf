"""Homes for the benchmarks: empty with channels, or filled before anything is measured.

homes.py HOME FILE [+ FILE]…     one ingest call for the files up to each +
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from case import ROOT, Home
from data import channel_specs, trajectories_of, write

BETWEEN_CALLS = "+"
ENTRIES_PER_CALL = 50_000_000  # one call judges its files as one set
ENTRIES_ON_DISK = 10_000_000  # in files not yet ingested
keep_in: Path | None = None  # where filled homes stay for other runs


@contextmanager
def _configured(home: Home) -> Iterator[None]:
    """This process as one whose keys and pins are those of a home."""
    before = os.environ.get("XDG_CONFIG_HOME")
    os.environ["XDG_CONFIG_HOME"] = str(home.folder / "config")
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_CONFIG_HOME"]
        else:
            os.environ["XDG_CONFIG_HOME"] = before


def new_home(folder: Path) -> Home:
    """A new home with both channels registered."""
    from ledger import channels, home

    made = Home(folder)
    with _configured(made):
        inner = home.init(folder / ".ledger")
        channels.add(inner, home.signing_key(inner), channel_specs(folder / "specs"))
    return made


def fill(made: Home, calls: Sequence[Sequence[Path]]) -> None:
    """Ingests the files of each call, in one process beside this one, which stays small."""
    words: list[str] = []
    for files in calls:
        words += [BETWEEN_CALLS] * bool(words) + [str(path) for path in files]
    paths = (str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    subprocess.run([sys.executable, __file__, str(made.folder), *words], env=environment, check=True)


def filled(folder: Path, entries: int, calls: int = 1) -> Home:
    """A home of so many synthetic entries, its trajectories divided among the calls in order.

    Kept for the suites that ask for the same one; a file is made, ingested and taken away again. With
    `keep_in` set it is made there, and copied.
    """
    if keep_in is not None and folder.parent != keep_in:
        if not (folder / "done").exists():
            copied(filled(keep_in / f"{entries}-{calls}", entries, calls), folder)
        return Home(folder)
    done = folder / "done"
    if done.exists():
        return Home(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    home = new_home(folder)
    total = trajectories_of(entries)
    calls = max(min(calls, total), -(-entries // ENTRIES_PER_CALL))
    edges = [total * part // calls for part in range(calls + 1)]
    paths: list[Path] = []
    made = 0
    for low, high in pairwise(edges):
        paths.append(write(folder / f"part{low}.parquet", entries, trajectories=(low, high)))
        if trajectories_of(ENTRIES_ON_DISK) <= high - made or high == total:
            fill(home, [[path] for path in paths])
            for path in paths:
                path.unlink()
            paths, made = [], high
    done.touch()
    return home


def copied(template: Home, folder: Path) -> Home:
    """The same home elsewhere, over whatever was there."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template.folder, folder)
    return Home(folder)


def main(folder: Path, words: Sequence[str]) -> None:
    """Ingests in this process."""
    from ledger import home
    from ledger.ingest import ingest

    files: list[Path] = []
    with _configured(Home(folder)):
        inner = home.read(folder / ".ledger")
        key = home.signing_key(inner)
        for word in [*words, BETWEEN_CALLS]:
            if word != BETWEEN_CALLS:
                files.append(Path(word))
                continue
            ingest(inner, files, key=key)
            files = []


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
