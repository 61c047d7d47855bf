"""Files a command writes: replaced as a whole, so that nobody reads half of one."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from contracts.errors import StorageError, UsageError
from ledger import durable


def write_whole(path: Path, data: bytes, doing: str) -> None:
    """Put `data` at `path`; a device or pipe is written to. StorageError says what was being done."""
    with durable.storage(doing, path):
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        staged = path.with_name(durable.temporary_name(".part"))
        durable.create(staged, data)
        durable.replace(staged, path)


def require_place(path: Path, what: str, endings: Collection[str], inputs: Iterable[Path]) -> None:
    """Refuses, before any work, a file that could not be written in the end, or that the command reads."""
    if path.suffix not in endings:
        raise UsageError(f"unknown kind of {what} file", expected=", ".join(endings), got=path.name)
    fault = None
    if not path.parent.is_dir():
        fault = "no such folder"
    elif path.is_dir():
        fault = "it is a folder"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        fault = "no permission to write there"
    if fault is not None:
        raise StorageError(f"the {what} file cannot be written: {fault}", code="output", where=path)
    for read in inputs:
        with suppress(OSError):
            if path.samefile(read):
                raise UsageError(f"the {what} file is one of the files that are read", where=path)
