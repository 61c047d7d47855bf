"""The object store: immutable files whose name is the digest of their bytes, and the published log.

Names are those of `object_names`. `Objects` is what a reader needs and `Store` what a writer needs besides;
a folder (`objects_folder`), a bucket (`objects_bucket`) and a bundle are the places they stand in.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from blake3 import blake3

from contracts.digest import blake3_digest, sha256_digest
from contracts.errors import MalformedError, TamperError
from ledger import durable
from ledger.object_names import ADDRESSED, PUBLISHED, digest_in

CHUNK = 1 << 20
STAGING = "staging"
AHEAD = 16  # short objects asked for at once


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


def is_name(name: str) -> bool:
    """Whether an object or a file of the published log may be called that."""
    return bool(ADDRESSED.fullmatch(name) or PUBLISHED.fullmatch(name))


@dataclass(frozen=True)
class Staging:
    """A directory of this machine for files that are not objects yet; made when first asked for."""

    root: Path

    def folder(self) -> Path:
        """The directory itself."""
        with durable.storage("making the staging directory", self.root):
            self.root.mkdir(parents=True, exist_ok=True)
        return self.root

    def fresh(self, suffix: str = "") -> Path:
        """A path in it that nobody uses; nothing is created."""
        return self.folder() / durable.temporary_name(suffix)

    def files(self) -> Iterator[Path]:
        """What stands in it, finished or not."""
        if self.root.is_dir():
            yield from sorted(path for path in self.root.iterdir() if not path.is_dir())


MISSING_STEP = "see what else is missing: ledger verify"


class Objects(ABC):
    """Objects that can be read. Every method raises MalformedError for what is no name of an object."""

    # Next steps for whoever meets an object that is not as the log says, but does not look for such things.
    when_changed = "see what else changed: ledger verify"
    when_missing = MISSING_STEP

    @property
    def far(self) -> bool:
        """Whether a read is a request to another machine, so that few and long ones are cheaper."""
        return False

    @abstractmethod
    def where(self, name: str) -> str:
        """Where an object stands, for a message."""

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Whether an object stands under that name."""

    @abstractmethod
    def size(self, name: str) -> int:
        """How many bytes an object has."""

    @abstractmethod
    def open(self, name: str) -> BinaryIO:
        """An object to be read from start to end; raises StorageError `missing-object` where it is gone."""

    def ranged(self, name: str) -> BinaryIO:
        """An object to be read in places: as `open`, and it can seek."""
        return self.open(name)

    def read(self, name: str, *, limit: int | None = None) -> bytes:
        """The bytes of an object as they stand; more than `limit` of them is a MalformedError."""
        with self.open(name) as file, durable.storage("reading an object", self.where(name)):
            data = file.read() if limit is None else file.read(limit + 1)
        if limit is not None and len(data) > limit:
            raise MalformedError("object too long", expected=f"at most {limit} bytes", where=self.where(name))
        return data

    def read_each(self, names: Iterable[str], limit: int) -> Iterator[Callable[[], bytes]]:
        """Short objects in order, each as a call that reads it or raises as `read` does.

        Far ones are asked for some ahead, since a request waits far longer than it takes.
        """
        calls = (partial(self.read, name, limit=limit) for name in names)
        return _ahead(calls) if self.far else calls

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
                where=self.where(name), next_step=self.when_changed,
            )  # fmt: skip
        return data


class Store(Objects):
    """Objects that can be written too. It makes nothing until something is put.

    A store can be pickled and opened again elsewhere, unless it lives in the memory of one process.
    """

    @property
    @abstractmethod
    def stage_at(self) -> Staging:
        """Where files wait that become objects."""

    def staging(self) -> Path:
        """The directory for files that are not objects yet."""
        return self.stage_at.folder()

    def stage(self, suffix: str = "") -> Path:
        """A fresh path in the staging directory; nothing is created."""
        return self.stage_at.fresh(suffix)

    def staged(self) -> Iterator[Path]:
        """Files in the staging directory, finished or not."""
        return self.stage_at.files()

    @abstractmethod
    def put(self, name: str, source: bytes | Path) -> None:
        """Stores bytes, or a staged file (which is consumed), under the digest of its content.

        The same content twice is accepted, and its age starts again. Content that does not have the digest
        in its name, or other content already there, raises TamperError; nothing is left behind then.
        """

    @abstractmethod
    def publish(self, name: str, data: bytes) -> None:
        """Stores a file of the published log, over an older version of it."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Removes one object: an orphan, or a partial tile that a longer one replaced."""

    @abstractmethod
    def names(self, prefix: str = "") -> Iterator[str]:
        """Whatever stands below a folder, in order; what is being staged is left out."""

    def list(self, prefix: str = "") -> Iterator[str]:
        """The names of all objects below a folder, in order."""
        return filter(is_name, self.names(prefix))

    def strays(self) -> Iterator[str]:
        """What stands among the objects and is none."""
        return (name for name in self.names() if not is_name(name))

    @abstractmethod
    def modified(self, name: str) -> float:
        """When an object was put, in seconds since 1970 by the clock of the place it stands in."""


def _ahead(calls: Iterable[Callable[[], bytes]]) -> Iterator[Callable[[], bytes]]:
    """The same calls, already under way when their turn comes."""
    with ThreadPoolExecutor(AHEAD) as pool:
        begun: deque[Future[bytes]] = deque()
        for call in calls:
            begun.append(pool.submit(call))
            if len(begun) >= AHEAD:
                yield begun.popleft().result
        while begun:
            yield begun.popleft().result


def named(name: str, wanted: str, found: str) -> None:
    """Raises TamperError unless bytes about to be stored have the digest in their name."""
    if found != wanted:
        raise TamperError(
            "bytes to store are not what their name says", kind="data", expected=wanted, got=found, where=name
        )


def addressed(name: str, where: object) -> str:
    """The digest in a name; MalformedError for one that is not content-addressed."""
    wanted = digest_in(name)
    if wanted is None:
        raise MalformedError("not a content-addressed object", got=name[:120], where=where)
    return wanted


def accept(name: str, store: Store, wanted: str) -> None:
    """Raises TamperError unless the object that already has a name has its content too."""
    with store.open(name) as file, durable.storage("reading an object", store.where(name)):
        found = stream_digest(file, wanted.partition(":")[0])
    if found != wanted:
        raise TamperError(
            "a stored object changed", kind="data", expected=wanted, got=found, where=store.where(name),
            next_step="run `ledger verify`, or `ledger repair` when no event names it",
        )  # fmt: skip
