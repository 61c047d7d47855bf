"""The bytes of an input, taken in once: hashed, held still, and decoded from where they were hashed.

A path is opened exactly once, so a pipe works as well as a file, and what is decoded is what was hashed
even when somebody rewrites the file meanwhile. Small inputs stay in memory; larger ones go to an unnamed
temporary file in the staging directory, which leaves nothing behind however the process ends. What other
processes are to decode goes to a file with a name instead.
"""

from __future__ import annotations

import mmap
import tempfile
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import IO

import pyarrow as pa
from blake3 import blake3

from contracts.errors import StorageError, UsageError
from ledger import durable

IN_MEMORY = 64 * 1024 * 1024
CHUNK = 8 * 1024 * 1024


@dataclass(frozen=True)
class Staged:
    """One input: the name it was asked for by, the BLAKE3 of its bytes, the bytes, and their file, if any."""

    name: str
    digest: str
    data: pa.Buffer
    file: Path | None = None
    mapping: mmap.mmap | None = field(default=None, repr=False)

    @property
    def view(self) -> memoryview:
        return memoryview(self.data)

    def let_go(self) -> None:
        """Lets the system have the memory of what was read of a mapped file; it is read again when asked."""
        if self.mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
            self.mapping.madvise(mmap.MADV_DONTNEED)


def stage(path: str | Path, staging: Path | None = None, named: Path | None = None) -> Staged:
    """Read a file or pipe to its end. `staging` is where large inputs wait, by default the system's place.

    With `named` a large one waits in that file, which the caller removes.

    StorageError when the path is absent, no file, unreadable, or when staging it fails; UsageError for a name
    that is not UTF-8, which could not be recorded.
    """
    name = _text(path)
    hasher = blake3(max_threads=blake3.AUTO)
    held = bytearray()
    spilled: IO[bytes] | None = None
    where = (staging if named is None else named.parent) or tempfile.gettempdir()
    try:
        with FileIO(path) as source:
            while chunk := source.read(CHUNK):
                hasher.update(chunk)
                held += chunk
                if len(held) > IN_MEMORY:
                    with durable.storage(f"staging {name}", where):
                        spilled = spilled or _opened(staging, named)
                        durable.write_all(spilled.fileno(), memoryview(held))
                    held.clear()
    except FileNotFoundError as error:
        raise StorageError(
            "no such file", code="no-such-file", where=name, expected="a file to take in",
            next_step="see whether the path is right; ledger ingest --template transport prints such a file",
        ) from error  # fmt: skip
    except IsADirectoryError as error:
        raise StorageError(
            "a folder cannot be read as a file", code="unreadable", where=name, expected="a file",
            next_step="name the files in it",
        ) from error  # fmt: skip
    except OSError as error:
        raise StorageError(
            f"cannot be read: {error.strerror or error}", code="unreadable", where=name
        ) from error
    mapping = None
    if spilled is not None:
        with durable.storage(f"staging {name}", where):
            mapping = _mapped(spilled, held)
    data = pa.py_buffer(held if mapping is None else mapping)
    return Staged(name, "blake3:" + hasher.hexdigest(), data, named if mapping is not None else None, mapping)


def staged_again(name: str, digest: str, file: Path) -> Staged:
    """An input that was staged under a name, as another process sees it."""
    try:
        with file.open("rb") as opened:
            mapping = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise StorageError(
            f"a staged input cannot be read: {error.strerror or error}", code="unreadable", where=file
        ) from error
    return Staged(name, digest, pa.py_buffer(mapping), file, mapping)


def _text(path: str | Path) -> str:
    name = str(path)
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UsageError(
            "the name of a file is not UTF-8", code="not-utf-8",
            where=name.encode("utf-8", "backslashreplace").decode(), next_step="rename it, or link to it",
        ) from None  # fmt: skip
    return name


def _opened(staging: Path | None, named: Path | None) -> IO[bytes]:
    if named is not None:
        return named.open("x+b", buffering=0)
    return tempfile.TemporaryFile(dir=staging, buffering=0)


def _mapped(spilled: IO[bytes], rest: bytearray) -> mmap.mmap:
    with spilled:
        durable.write_all(spilled.fileno(), memoryview(rest))
        # The mapping keeps the unnamed file alive after it is closed.
        return mmap.mmap(spilled.fileno(), 0, access=mmap.ACCESS_READ)
