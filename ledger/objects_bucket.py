"""Objects in a bucket, or in the memory of this process: the same names below one prefix.

The service need not refuse to overwrite: an object's name is the digest of its bytes, so writing it twice
writes the same, and what is found under a name is compared before it counts as stored. A read follows a
write at once, as S3 promises. What a request may cost in time is bounded: see `bucket_requests`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import obstore
from obstore.store import MemoryStore

from contracts.digest import blake3_digest, sha256_digest
from contracts.errors import MalformedError, StorageError
from ledger import durable
from ledger.bucket_files import Ranged, Stream
from ledger.bucket_requests import asking, connected, memory, new_memory
from ledger.object_names import PUBLISHED
from ledger.objects import CHUNK, STAGING, Staging, Store, accept, addressed, file_digest, is_name, named

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import S3Store

PART = 8 << 20  # bytes of a part of a large upload
PARTS = 4  # that are on the way at once
PAGE = 1000  # names in an answer to a listing


@dataclass(frozen=True)
class Bucket(Store):
    """The objects at an address; it holds no connection and no key, so it can be pickled."""

    url: str
    beside: Staging

    @classmethod
    def new_memory(cls) -> Bucket:
        """A new empty store in the memory of this process."""
        return cls(new_memory(), Staging(Path(STAGING)))

    def __reduce__(self) -> tuple[type[Bucket], tuple[str, Staging]]:
        if self.url.startswith("memory:"):
            raise StorageError(
                "objects in memory belong to one process", code="memory", where=self.url,
                next_step="keep them in a folder or a bucket to read them from several",
            )  # fmt: skip
        return type(self), (self.url, self.beside)

    @property
    def stage_at(self) -> Staging:
        """See Store: on this machine, since nothing half-written belongs into a bucket."""
        return self.beside

    @property
    def far(self) -> bool:
        """See Objects."""
        return True

    def where(self, name: str) -> str:
        """See Objects."""
        return f"{self.url}/{name}"

    def exists(self, name: str) -> bool:
        """See Objects."""
        try:
            self._head(name)
        except StorageError as error:
            if error.code == "missing-object":
                return False
            raise
        return True

    def size(self, name: str) -> int:
        """See Objects."""
        return int(self._head(name)["size"])

    def modified(self, name: str) -> float:
        """See Store."""
        return float(self._head(name)["last_modified"].timestamp())

    def open(self, name: str) -> BinaryIO:
        """See Objects: one request, whose answer is taken as it comes."""
        self._check(name)
        stream = Stream(self._store, name, self.where(name))
        return cast("BinaryIO", io.BufferedReader(stream, CHUNK))

    def ranged(self, name: str) -> BinaryIO:
        """See Objects: a request for its end, then one for every read elsewhere."""
        self._check(name)
        return cast("BinaryIO", Ranged(self._store, name, self.where(name)))

    def put(self, name: str, source: bytes | Path) -> None:
        """See Store."""
        wanted = addressed(name, self.url)
        algorithm = wanted.partition(":")[0]
        try:
            if isinstance(source, bytes):
                found = sha256_digest(source) if algorithm == "sha256" else blake3_digest(source)
            else:
                with durable.storage("reading a staged file", source):
                    found = file_digest(source, algorithm)
            named(name, wanted, found)
            durable.crash_point("object-staged")
            if self.exists(name):
                accept(name, self, wanted)
            with asking("writing an object", self.where(name)):
                obstore.put(self._store, name, source, chunk_size=PART, max_concurrency=PARTS)
            durable.crash_point("object-named")
        finally:
            if isinstance(source, Path):
                with suppress(OSError):
                    source.unlink(missing_ok=True)

    def publish(self, name: str, data: bytes) -> None:
        """See Store."""
        if PUBLISHED.fullmatch(name) is None:
            raise MalformedError("not a file of the published log", got=name[:120], where=self.url)
        with asking("publishing the log", self.where(name)):
            obstore.put(self._store, name, data, use_multipart=False)
        durable.crash_point("published " + name)

    def remove(self, name: str) -> None:
        """See Store."""
        self._check(name)
        with (
            suppress(FileNotFoundError),
            asking("removing an object", self.where(name), missing_is_ours=False),
        ):
            obstore.delete(self._store, name)

    def names(self, prefix: str = "") -> Iterator[str]:
        """See Store: a request for every thousand."""
        with asking("listing objects", self.where(prefix)):
            answers = iter(obstore.list(self._store, prefix or None, chunk_size=PAGE))
        while True:
            with asking("listing objects", self.where(prefix)):
                answer = next(answers, None)
            if answer is None:
                return
            yield from (item["path"] for item in answer)

    @property
    def _store(self) -> S3Store | MemoryStore:
        return memory(self.url) if self.url.startswith("memory:") else connected(self.url)

    def _head(self, name: str) -> ObjectMeta:
        self._check(name)
        with asking("looking at an object", self.where(name)):
            return obstore.head(self._store, name)

    def _check(self, name: str) -> None:
        if not is_name(name):
            raise MalformedError("not an object name", got=repr(name[:120]), where=self.url)
