"""Whether a call is under way that has files in a staging directory, however long it takes.

A call holds a lock on a mark of its own, which the system lets go of when its process ends, whatever ends
it. Where a place has no locks, the files of the call are kept young instead.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from ledger import durable

SUFFIX = ".underway"
RENEWED = 600.0  # seconds: several times before `repair` calls a file old


@contextmanager
def underway(staging: Path | None) -> Iterator[None]:
    """Keeps a mark in a staging directory for the length of the block; None: a call that stages nothing."""
    if staging is None:
        yield
        return
    mark = staging / durable.temporary_name(SUFFIX)
    with durable.storage("writing a staged file", mark):
        descriptor = os.open(mark, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        with _held(descriptor) if _locked(descriptor) else _kept_young(staging):
            yield
    finally:
        with suppress(OSError):
            mark.unlink(missing_ok=True)
        os.close(descriptor)


def any_underway(staged: Iterable[Path]) -> bool:
    """Whether one of some staged files is the mark of a call that is not over, on this machine or another."""
    return any(_is_held(path) for path in staged if path.name.endswith(SUFFIX))


def _is_held(mark: Path) -> bool:
    try:
        descriptor = os.open(mark, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False  # it is over by now, or was never a mark
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # no locks here: the age of the files tells
    finally:
        os.close(descriptor)
    return False


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # also where somebody looks whether it is held, in this very moment
        return False
    return True


@contextmanager
def _held(descriptor: int) -> Iterator[None]:
    """Lets go of a lock in the end, even where a worker was forked that has the file open too."""
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def _kept_young(staging: Path) -> Iterator[None]:
    """Renews the age of all files of this process while the block lasts; the names tell whose they are."""
    over = Event()

    def renew() -> None:
        while not over.wait(RENEWED):
            for path in staging.glob(f"{os.getpid()}-*"):
                with suppress(OSError):
                    os.utime(path)

    renewing = Thread(target=renew, daemon=True)
    renewing.start()
    try:
        yield
    finally:
        over.set()
        renewing.join()
