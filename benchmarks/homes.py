"""Homes for the benchmarks: empty with channels, or filled in this process before anything is measured."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from case import Home
from data import channel_specs


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
    """Ingests the files of each call."""
    from ledger import home
    from ledger.ingest import ingest

    with _configured(made):
        inner = home.read(made.folder / ".ledger")
        for files in calls:
            ingest(inner, files, key=home.signing_key(inner))


def copied(template: Home, folder: Path) -> Home:
    """The same home elsewhere, over whatever was there."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template.folder, folder)
    return Home(folder)
