"""Objects in a directory of this machine, the form every home begins with.

An object comes into being whole: staged beside the store, synced, renamed, the directory synced. Symbolic
links are never followed below the root.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from contracts.errors import MalformedError, StorageError, TamperError
from ledger import durable
from ledger.object_names import PUBLISHED
from ledger.objects import STAGING, Staging, Store, accept, addressed, file_digest, is_name, named


@dataclass(frozen=True)
class Folder(Store):
    """One directory of objects."""

    root: Path

    def __reduce__(self) -> tuple[type[Folder], tuple[Path]]:
        """Another process may work in another directory: what is pickled names the same folder there."""
        return Folder, (self.root.absolute(),)

    @property
    def stage_at(self) -> Staging:
        """On the same file system as the objects, so that a rename makes one."""
        return Staging(self.root / STAGING)

    def where(self, name: str) -> str:
        """See Objects."""
        return str(self.root / name)

    def path(self, name: str) -> Path:
        """The file of a valid name; raises on any other name and on symbolic links on the way."""
        if not is_name(name):
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

    def size(self, name: str) -> int:
        """See Objects."""
        path = self.path(name)
        with durable.storage("looking at an object", path):
            return path.stat().st_size

    def open(self, name: str) -> BinaryIO:
        """See Objects; TamperError for what is not a regular file."""
        path = self.path(name)
        try:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError as error:
            raise StorageError(
                "an object is missing", code="missing-object", where=path, next_step=self.when_missing
            ) from error
        except OSError as error:
            raise durable.storage_error(error, "reading an object", path) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise TamperError("an object is not a regular file", kind="data", where=path)
        return os.fdopen(descriptor, "rb")

    def put(self, name: str, source: bytes | Path) -> None:
        """See Store."""
        wanted = addressed(name, self.root)
        target = self.path(name)
        staged = self.stage() if isinstance(source, bytes) else source
        try:
            with durable.storage("writing an object", target):
                if isinstance(source, bytes):
                    durable.create(staged, source)
                else:
                    durable.sync(staged)
                named(name, wanted, file_digest(staged, wanted.partition(":")[0]))
                durable.crash_point("object-staged")
                durable.make_directories(target.parent, self.root)
                if target.exists():
                    self._accept(name, target, wanted)
                else:
                    durable.replace(staged, target)
                durable.crash_point("object-named")
        finally:
            with suppress(OSError):
                staged.unlink(missing_ok=True)

    def publish(self, name: str, data: bytes) -> None:
        """See Store."""
        if PUBLISHED.fullmatch(name) is None:
            raise MalformedError("not a file of the published log", got=name[:120], where=self.root)
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
        """See Store."""
        path = self.path(name)
        with durable.storage("removing an object", path):
            path.unlink(missing_ok=True)

    def names(self, prefix: str = "") -> Iterator[str]:
        """See Store: files and links."""
        return self._walk(self.root / prefix if prefix else self.root)

    def strays(self) -> Iterator[str]:
        """Files that are no objects, and links of whatever name."""
        for name in self.names():
            if (self.root / name).is_symlink() or not is_name(name):
                yield name

    def modified(self, name: str) -> float:
        """See Store."""
        with durable.storage("looking at an object", self.root / name):
            return (self.root / name).lstat().st_mtime

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

    def _accept(self, name: str, target: Path, wanted: str) -> None:
        """An object that is there already: the same bytes, whose age starts again."""
        accept(name, self, wanted)
        # A process that died between rename and directory sync may have left the name undurable.
        durable.sync(target.parent)
        with suppress(PermissionError):  # somebody else's file: a commit still looks whether it is there
            os.utime(target)
