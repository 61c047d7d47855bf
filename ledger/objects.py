"""The object store: immutable files whose name is the digest of their bytes, and the published log.

Names are those of `object_names`. An object comes into being whole: staged beside the store, synced,
renamed, the directory synced. Symbolic links are never followed below the root.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from blake3 import blake3

from contracts.digest import blake3_digest, sha256_digest
from contracts.errors import MalformedError, StorageError, TamperError
from ledger import durable
from ledger.object_names import ADDRESSED, PUBLISHED, digest_in

CHUNK = 1 << 20
STAGING = "staging"


def file_digest(path: Path, algorithm: str) -> str:
    """The digest of a file's bytes, read in chunks."""
    with path.open("rb") as file:
        return stream_digest(file, algorithm)


def stream_digest(file: BinaryIO, algorithm: str) -> str:
    """The digest of what an open file has to give, read in chunks."""
    hasher = blake3() if algorithm == "blake3" else hashlib.sha256()
    while chunk := file.read(CHUNK):
        hasher.update(chunk)
    return f"{algorithm}:{hasher.hexdigest()}"


@dataclass(frozen=True)
class Objects:
    """One directory of objects; makes nothing until something is put."""

    root: Path

    def path(self, name: str) -> Path:
        """The file of a valid name; raises on any other name and on symbolic links on the way."""
        if ADDRESSED.fullmatch(name) is None and PUBLISHED.fullmatch(name) is None:
            raise MalformedError("not an object name", got=repr(name[:120]), where=self.root)
        path = self.root
        for part in name.split("/"):
            path = path / part
            if path.is_symlink():
                raise TamperError(
                    "an object is a symbolic link", kind="data", where=path, expected="a regular file"
                )
        return path

    def exists(self, name: str) -> bool:
        """Whether a regular file stands under that name."""
        return self.path(name).is_file()

    def open(self, name: str) -> BinaryIO:
        """An object for reading; raises StorageError `missing-object` when it is not there."""
        path = self.path(name)
        try:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError as error:
            raise StorageError("an object is missing", code="missing-object", where=path) from error
        except OSError as error:
            raise durable.storage_error(error, "reading an object", path) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise TamperError("an object is not a regular file", kind="data", where=path)
        return os.fdopen(descriptor, "rb")

    def read(self, name: str, *, limit: int | None = None) -> bytes:
        """The bytes of an object as they stand; more than `limit` of them is a MalformedError."""
        with self.open(name) as file, durable.storage("reading an object", self.root / name):
            data = file.read() if limit is None else file.read(limit + 1)
        if limit is not None and len(data) > limit:
            raise MalformedError("object too long", expected=f"at most {limit} bytes", where=self.root / name)
        return data

    def read_checked(self, name: str, *, limit: int | None = None) -> bytes:
        """The bytes of a content-addressed object, which must have the digest in its name."""
        data = self.read(name, limit=limit)
        wanted = digest_in(name)
        if wanted is None:
            raise MalformedError("not a content-addressed object", got=name)
        found = sha256_digest(data) if wanted.startswith("sha256:") else blake3_digest(data)
        if found != wanted:
            raise TamperError(
                "object changed since it was written", kind="data", expected=wanted, got=found,
                where=self.root / name,
            )  # fmt: skip
        return data

    def staging(self) -> Path:
        """The directory for files that are not objects yet; on the same file system as the store."""
        path = self.root / STAGING
        with durable.storage("making the staging directory", path):
            path.mkdir(parents=True, exist_ok=True)
        return path

    def stage(self, suffix: str = "") -> Path:
        """A fresh path in the staging directory; nothing is created."""
        return self.staging() / durable.temporary_name(suffix)

    def put(self, name: str, source: bytes | Path) -> None:
        """Stores bytes, or a staged file (which is consumed), under the digest of its content.

        The same content twice is accepted. Content that does not have the digest in its name, or a file
        already there with other content, raises TamperError; nothing is left behind in either case.
        """
        wanted = digest_in(name)
        if wanted is None:
            raise MalformedError("not a content-addressed object", got=name, where=self.root)
        target = self.path(name)
        staged = self.stage() if isinstance(source, bytes) else source
        try:
            with durable.storage("writing an object", target):
                if isinstance(source, bytes):
                    durable.create(staged, source)
                else:
                    durable.sync(staged)
                found = file_digest(staged, wanted.partition(":")[0])
                if found != wanted:
                    raise TamperError(
                        "bytes to store are not what their name says", kind="data", expected=wanted, got=found
                    )
                durable.crash_point("object-staged")
                durable.make_directories(target.parent, self.root)
                if target.exists():
                    self._accept(target, wanted)
                else:
                    durable.replace(staged, target)
                durable.crash_point("object-named")
        finally:
            with suppress(OSError):
                staged.unlink(missing_ok=True)

    def publish(self, name: str, data: bytes) -> None:
        """Stores a file of the published log, over an older version of it."""
        if PUBLISHED.fullmatch(name) is None:
            raise MalformedError("not a file of the published log", got=name, where=self.root)
        target = self.path(name)
        staged = self.stage()
        try:
            with durable.storage("publishing the log", target):
                durable.create(staged, data)
                durable.make_directories(target.parent, self.root)
                durable.replace(staged, target)
        finally:
            with suppress(OSError):
                staged.unlink(missing_ok=True)
        durable.crash_point("published " + name)

    def remove(self, name: str) -> None:
        """Removes one file: an orphan, or a partial tile that a longer one replaced."""
        path = self.path(name)
        with durable.storage("removing an object", path):
            path.unlink(missing_ok=True)

    def list(self, prefix: str = "") -> Iterator[str]:
        """The names of all objects below a folder, in order; strays are left out."""
        for name in self._walk(self.root / prefix if prefix else self.root):
            if ADDRESSED.fullmatch(name) or PUBLISHED.fullmatch(name):
                yield name

    def strays(self) -> Iterator[str]:
        """Files and links below the root that are no objects; what is being staged is left out."""
        for name in self._walk(self.root):
            link = (self.root / name).is_symlink()
            if link or not (ADDRESSED.fullmatch(name) or PUBLISHED.fullmatch(name)):
                yield name

    def staged(self) -> Iterator[Path]:
        """Files in the staging directory, finished or not."""
        directory = self.root / STAGING
        if directory.is_dir():
            yield from sorted(path for path in directory.iterdir() if not path.is_dir())

    def _walk(self, directory: Path) -> Iterator[str]:
        try:
            found = sorted(os.scandir(directory), key=lambda item: item.name)
        except FileNotFoundError:
            return
        except OSError as error:
            raise durable.storage_error(error, "listing objects", directory) from error
        for item in found:
            path = Path(item.path)
            if item.is_dir(follow_symlinks=False):
                if path != self.root / STAGING:
                    yield from self._walk(path)
            else:
                yield path.relative_to(self.root).as_posix()

    def _accept(self, target: Path, wanted: str) -> None:
        """An object that is there already: the same bytes, whose age starts again."""
        found = file_digest(target, wanted.partition(":")[0])
        if found != wanted:
            raise TamperError(
                "a stored object changed", kind="data", expected=wanted, got=found, where=target,
                next_step="run `ledger verify`, or `ledger repair` when no event names it",
            )  # fmt: skip
        # A process that died between rename and directory sync may have left the name undurable.
        durable.sync(target.parent)
        with suppress(PermissionError):  # somebody else's file: a commit still looks whether it is there
            os.utime(target)
