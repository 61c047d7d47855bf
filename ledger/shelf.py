"""What the processes of one call hand each other: tables in files of the staging directory.

All files of a call begin with its name. One of them is empty and says that the call goes on: a worker that
does not see it cannot reach the directory, or comes too late, and leaves nothing behind. However the call
ends, its files are removed; those of a call that was killed are left to `ledger repair`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

from contracts.errors import StorageError
from ledger import durable

ALIGNED = 64  # bytes, as Arrow likes its buffers to begin: then a mapped table is used where it lies
UNREACHABLE = "staging-unreachable"


@dataclass(frozen=True)
class Place:
    """A table in a file."""

    path: Path
    start: int
    length: int

    def table(self) -> pa.Table:
        """The rows, mapped rather than read; they stay readable after the file has lost its name."""
        with durable.storage("reading a staged file", self.path), pa.memory_map(str(self.path)) as file:
            file.seek(self.start)
            data = file.read_buffer(self.length)
        with pa.ipc.open_stream(data) as reader:
            return reader.read_all()


@dataclass(frozen=True)
class Shelf:
    """The files of one call; both parts can be pickled, and name the same files anywhere."""

    folder: Path
    name: str

    def fresh(self) -> Path:
        """A path that nobody uses; nothing is created."""
        return self.folder / f"{self.name}.{durable.temporary_name()}"

    def begin(self) -> None:
        """Says that the call goes on, before there are tasks."""
        with durable.storage("writing a staged file", self._mark):
            self._mark.touch()

    def require(self) -> None:
        """Returns where the call is under way and its files can be reached; StorageError where not."""
        if not self._mark.exists():
            raise StorageError(
                "a worker does not see the files that wait to become objects", code=UNREACHABLE,
                where=self.folder, expected="one directory for all workers, under the same path",
                next_step="put the home (for a dry run: TMPDIR) on a disk that all machines share, "
                "or use --engine pool",
            )  # fmt: skip

    def put(self, tables: Sequence[pa.Table]) -> list[Place]:
        """Sets tables aside in one file."""
        self.require()
        path = self.fresh()
        places = []
        with (
            self.kept(path),
            durable.storage("writing a staged file", path),
            pa.OSFile(str(path), "wb") as file,
        ):
            for table in tables:
                file.write(bytes(-file.tell() % ALIGNED))
                start = file.tell()
                with pa.ipc.new_stream(file, table.schema) as writer:
                    writer.write_table(table)
                places.append(Place(path, start, file.tell() - start))
        return places

    @contextmanager
    def kept(self, *paths: Path) -> Iterator[None]:
        """Removes what is written to some paths where that fails, or the call is over when it is done."""
        try:
            yield
            self.require()
        except BaseException:
            for path in paths:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
            raise

    def clear(self) -> None:
        """Removes every file of the call."""
        with suppress(OSError):
            self._mark.unlink(missing_ok=True)
        for path in self.folder.glob(f"{self.name}.*"):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    @property
    def _mark(self) -> Path:
        return self.folder / self.name


@contextmanager
def shelf(staging: Path | None) -> Iterator[Shelf]:
    """The files of a call in the staging directory, by default in the system's place for temporary files."""
    made = Shelf(Path(os.path.abspath(staging or tempfile.gettempdir())), f"{durable.temporary_name()}.call")
    try:
        yield made
    finally:
        made.clear()
