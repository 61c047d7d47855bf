"""The one writer: a lock the system lets go of when its process ends, with a note on who holds it."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from contracts.errors import StorageError
from ledger import clock, durable

WAIT = 5.0
_PAUSE = 0.05
_MAX_NOTE = 4096


@contextmanager
def hold(path: Path, wait: float = WAIT) -> Iterator[None]:
    """Keeps every other writer of `path` out for the length of the block.

    Waits up to `wait` seconds for one who is at work, then raises StorageError `locked` naming it. The
    lock belongs to the open file, so a process that dies never leaves it behind; only its note may stay.
    """
    with durable.storage("locking the ledger", path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
    try:
        _acquire(descriptor, path, wait)
        note = {"pid": os.getpid(), "host": socket.gethostname(), "since": clock.wall()}
        with durable.storage("locking the ledger", path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(note).encode(), 0)
        try:
            yield
        finally:
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, wait: float) -> None:
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StorageError(
                    f"another writer is at work ({_holder(descriptor)})", code="locked", where=path.parent,
                    expected=f"it to finish within {wait:g} seconds",
                    next_step="run the command again when it is done; the lock ends with its process",
                ) from None  # fmt: skip
            time.sleep(_PAUSE)
        except OSError as error:
            raise durable.storage_error(error, "locking the ledger", path) from error
        else:
            return


def _holder(descriptor: int) -> str:
    """What the holder wrote about itself: an unverified note, good enough for a message."""
    try:
        note = json.loads(os.pread(descriptor, _MAX_NOTE, 0))
        host = ascii(str(note["host"]))[1:-1][:60]
        return f"process {int(note['pid'])} on {host} since {clock.check(note['since'])}"
    except (ValueError, KeyError, TypeError):
        return "it left no note"
