"""Objects of a bucket as files: read through from start to end, or in places.

An answer that breaks off is asked for again from where it broke off, a few times; a client tries again by
itself only until the answer begins. What was read is judged by its digest, so two answers may make one.
"""

from __future__ import annotations

import io
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import obstore

from contracts.errors import StorageError
from ledger.bucket_requests import asking

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer
    from obstore.store import MemoryStore, S3Store

READING = "reading an object"
END = 64 * 1024  # bytes asked for with the size: what a reader of Parquet asks for first
TRIES = 3


class Stream(io.RawIOBase):
    """An object from its first byte to its last, in constant memory."""

    def __init__(self, store: S3Store | MemoryStore, name: str, where: str) -> None:
        super().__init__()
        self._store, self._name, self._where = store, name, where
        self._at = 0
        self._left = memoryview(b"")
        self._broken = 0
        self._open()

    def readable(self) -> bool:
        """It can be read, and nothing else."""
        return True

    def readinto(self, target: WriteableBuffer, /) -> int:
        """The next bytes; 0 at the end."""
        while not self._left:
            part = self._next()
            if part is None:
                return 0
            self._left = part
        view = memoryview(target).cast("B")
        count = min(len(view), len(self._left))
        view[:count] = self._left[:count]
        self._left = self._left[count:]
        return count

    def readall(self) -> bytes:
        """All that is left."""
        parts = [bytes(self._left)]
        self._left = memoryview(b"")
        while (part := self._next()) is not None:
            parts.append(bytes(part))
        return b"".join(parts)

    def _open(self) -> None:
        with asking(READING, self._where):
            if self._at:
                answer = obstore.get(self._store, self._name, options={"range": {"offset": self._at}})
            else:
                answer = obstore.get(self._store, self._name)
            self._size = int(answer.meta["size"])
            self._parts: Iterator[ReadableBuffer] = iter(answer.stream(min_chunk_size=1 << 20))

    def _next(self) -> memoryview | None:
        """The bytes that come next, from a new answer where this one broke off."""
        while True:
            try:
                with asking(READING, self._where):
                    part = next(self._parts, None)
            except StorageError as error:
                self._broken += 1
                if error.code != "broken-off" or self._broken >= TRIES:
                    raise
                self._open()
                continue
            if part is None:
                if self._at < self._size:
                    raise StorageError(
                        f"{READING} failed: the answer broke off", code="broken-off", where=self._where,
                        expected=f"{self._size} bytes", got=self._at, next_step="run the command again",
                    )  # fmt: skip
                return None
            view = memoryview(part)
            self._at += len(view)
            return view


class Ranged(io.RawIOBase):
    """An object read in places, each with a request for just those bytes; its end comes with its size."""

    def __init__(self, store: S3Store | MemoryStore, name: str, where: str) -> None:
        super().__init__()
        self._store, self._name, self._where = store, name, where
        self._position = 0
        self._size, self._end, self._version = self._last()

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """Anywhere."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Moves there; nothing is asked for."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(start + offset, 0)
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """All the bytes asked for, fewer only at the end."""
        rest = max(self._size - self._position, 0)
        count = rest if size is None or size < 0 else min(size, rest)
        start, stop = self._position, self._position + count
        self._position = stop
        begin = self._size - len(self._end)
        if count == 0:
            return b""
        if start >= begin:
            return self._end[start - begin : stop - begin]
        return self._range(start, stop)

    def readinto(self, target: WriteableBuffer, /) -> int:
        """As `read`, into a buffer."""
        view = memoryview(target).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def _range(self, start: int, stop: int) -> bytes:
        """Bytes of the object, from memory where an audit that passes over it again asks for them again."""
        kept = (self._where, self._version, start, stop)
        return _kept.get(kept) or _kept.keep(kept, self._ask(start, stop))

    def _ask(self, start: int, stop: int) -> bytes:
        for tried in range(1, TRIES + 1):
            try:
                with asking(READING, self._where):
                    data = bytes(obstore.get_range(self._store, self._name, start=start, end=stop))
            except StorageError as error:
                if error.code != "broken-off" or tried == TRIES:
                    raise
            else:
                return data
        raise AssertionError("the last try returns or raises")

    def _last(self) -> tuple[int, bytes, str]:
        """The size of the object, its last bytes, and what tells it from an object put there since."""
        try:
            with asking(READING, self._where):
                answer = obstore.get(self._store, self._name, options={"range": {"suffix": END}})
                return int(answer.meta["size"]), bytes(answer.bytes()), str(answer.meta)
        except StorageError as error:
            if error.code != "io-error":
                raise
        # A service may have no answer to the end of an object that is empty.
        with asking(READING, self._where):
            answer = obstore.get(self._store, self._name)
            return int(answer.meta["size"]), bytes(answer.bytes())[-END:], str(answer.meta)


class _Recent:
    """The parts of objects read last, up to so many bytes."""

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0
        self._parts: OrderedDict[tuple[object, ...], bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[object, ...]) -> bytes | None:
        with self._lock:
            if key in self._parts:
                self._parts.move_to_end(key)
            return self._parts.get(key)

    def keep(self, key: tuple[object, ...], data: bytes) -> bytes:
        """The same bytes, held from now on."""
        with self._lock:
            self._held += len(data) - len(self._parts.get(key, b""))
            self._parts[key] = data
            while self._held > self._most:
                _, dropped = self._parts.popitem(last=False)
                self._held -= len(dropped)
        return data


_kept = _Recent(32 << 20)
