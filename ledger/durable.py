"""Writes that survive a crash: bytes, file, name and directory are made durable in that order.

Every file the ledger writes passes through here, so one place decides what a failed or a short write
means. `crash_point` marks the moments between two durable steps; tests put a function into `hook` to
stop the process exactly there.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from contracts.errors import StorageError

hook: Callable[[str], None] | None = None
steps = 0  # how many crash points this process came to: none as long as nothing was written

FULL = (errno.ENOSPC, errno.EDQUOT)
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


def crash_point(name: str) -> None:
    """A named moment at which a test may stop the process; it is counted otherwise."""
    global steps  # noqa: PLW0603 (one count for the process)
    steps += 1
    if hook is not None:
        hook(name)


def storage_error(error: OSError, doing: str, where: object) -> StorageError:
    """What an operating system failure means to the person who ran the command."""
    reason = (error.strerror or str(error)).lower()
    if error.errno in FULL:
        code, step = "disk-full", "free some space and run the command again: nothing of it was recorded"
    elif error.errno in FORBIDDEN:
        code, step = "read-only", "check who owns the place and whether it can be written"
    elif isinstance(error, FileNotFoundError):
        code, step = "missing-file", None
    else:
        code, step = "io-error", "check the disk; nothing of this call was recorded"
    return StorageError(f"{doing} failed: {reason}", code=code, where=where, next_step=step)


@contextmanager
def storage(doing: str, where: object) -> Iterator[None]:
    """Turns an OSError inside the block into a StorageError that says what was being done, and where."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, doing, where) from error


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Writes every byte, however little the system takes at a time."""
    view = memoryview(data)
    while view:
        written = os.write(descriptor, view)
        if written <= 0:
            raise OSError(errno.EIO, "the system accepted no more bytes")
        view = view[written:]


def create(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Makes a new synced file; an existing one is an error, a half-written one is removed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def sync(path: Path) -> None:
    """Makes the bytes of a file, or the names in a directory, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace(source: Path, target: Path) -> None:
    """Gives a synced file its name, over an older one, and makes the name durable."""
    os.replace(source, target)
    sync(target.parent)


def make_directories(path: Path, stop: Path) -> None:
    """Creates `path` below `stop`, with every new name durable in its parent."""
    if path == stop or path.is_dir():
        return
    make_directories(path.parent, stop)
    path.mkdir(exist_ok=True)
    sync(path.parent)


def temporary_name(suffix: str = "") -> str:
    """A file name nobody else uses, which tells the process that made it."""
    return f"{os.getpid()}-{secrets.token_hex(8)}{suffix}"
