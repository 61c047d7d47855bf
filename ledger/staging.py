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

from contracts.errors import StorageError

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

    StorageError when the path is absent, no file, unreadable, or when staging it fails.
    """
    name = str(path)
    hasher = blake3(max_threads=blake3.AUTO)
    held = bytearray()
    spilled: IO[bytes] | None = None
    try:
        with FileIO(path) as source:
            while chunk := source.read(CHUNK):
                hasher.update(chunk)
                held += chunk
                if len(held) > IN_MEMORY:
                    spilled = spilled or _opened(staging, named)
                    spilled.write(held)
                    held.clear()
        mapping = None if spilled is None else _mapped(spilled, held)
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


def _opened(staging: Path | None, named: Path | None) -> IO[bytes]:
    return tempfile.TemporaryFile(dir=staging) if named is None else named.open("x+b")


def _mapped(spilled: IO[bytes], rest: bytearray) -> mmap.mmap:
    with spilled:
        spilled.write(rest)
        spilled.flush()
        # The mapping keeps the unnamed file alive after it is closed.
        return mmap.mmap(spilled.fileno(), 0, access=mmap.ACCESS_READ)
