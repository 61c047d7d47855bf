"""A model checkpoint: a file or folder of weights, digested whole, as the statement that attests it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from blake3 import blake3

from contracts.canonical import canonical
from contracts.digest import blake3_digest
from contracts.errors import StorageError, UsageError
from contracts.findings import shown
from ledger import durable, weights
from ledger.attestations import MODEL, STACK, TYPES
from ledger.oms_kept import MEMBER, KeptSignature
from ledger.statement import Statement, Subject
from ledger.weights import Weights

CHUNK = 4 * 1024 * 1024
MAX_FILES = 100_000
FILE, FOLDER = "file", "folder"
# How far symbolic links were followed: none was met, to files only, or into folders.
NO_LINKS, LINKED_FILES, LINKED_FOLDERS = "none", "files", "folders"
Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class WeightsFile:
    """One file by its path below the checkpoint: size, digests in hex, and what its header says."""

    name: str
    bytes: int
    blake3: str
    sha256: str
    header: Weights | None


@dataclass(frozen=True)
class Digested:
    """A digested checkpoint: what the path was, its files ascending by name, how far links were followed.

    `ignored` are paths below it that were left out.
    """

    of: str
    files: tuple[WeightsFile, ...]
    symlinks: str = NO_LINKS
    ignored: tuple[str, ...] = ()

    @property
    def digests(self) -> dict[str, dict[str, str]]:
        """Digests in hex by algorithm, by the name of the file."""
        return {file.name: {"blake3": file.blake3, "sha256": file.sha256} for file in self.files}


def digest(
    path: Path,
    *,
    follow: bool = False,
    leave_out: Callable[[str], bool] = lambda _: False,
    progress: Progress | None = None,
) -> Digested:
    """Every file of a checkpoint, digested by several threads, but those whose path below it is left out.

    A symbolic link is refused unless `follow`; then the file behind it counts. StorageError where a file
    cannot be read or changed while it was; UsageError where there is none.
    """
    walk = _Walk(path, follow, leave_out)
    found = dict(sorted(walk.files()))
    if not found:
        raise UsageError("no file to attest", code="empty-checkpoint", where=path)
    total, done = sum(file.stat().st_size for file in found.values()), 0
    counting = Lock()

    def read(count: int) -> None:
        nonlocal done
        with counting:
            done += count
            if progress is not None:
                progress("bytes", done, total)

    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        files = tuple(pool.map(lambda item: _digest(item[0], item[1], read), found.items()))
    return Digested(FILE if path.is_file() else FOLDER, files, walk.symlinks, tuple(sorted(walk.left_out)))


def statement(name: str, found: Digested, signature: KeptSignature | None = None) -> Statement:
    """What is signed about a checkpoint; `digest` names all of it at once.

    It is the BLAKE3 of the canonical JSON of {path: sha256 hex}, so it depends on names and bytes alone. The
    first subject has it, then comes the model of a `signature` that was accepted, then the files.
    """
    files = found.files
    headers = {file.name: file.header.as_json() for file in files if file.header is not None}
    dtypes: dict[str, int] = {}
    for file in files:
        for dtype, count in (file.header.dtypes if file.header else {}).items():
            dtypes[dtype] = dtypes.get(dtype, 0) + count
    whole = blake3_digest(canonical({file.name: file.sha256 for file in files}))
    subjects = (
        Subject(name, {"blake3": whole.partition(":")[2]}),
        *(() if signature is None else (signature.as_subject,)),
        *(Subject(file.name, {"blake3": file.blake3, "sha256": file.sha256}) for file in files),
    )
    predicate = {
        "name": name,
        "digest": whole,
        "of": found.of,
        "symlinks": found.symlinks,
        "bytes": sum(file.bytes for file in files),
        "files": len(files),
        "tensors": sum(file.header.tensors for file in files if file.header),
        "dtypes": dict(sorted(dtypes.items())),
        "headers": headers,
        **({} if signature is None else {MEMBER: signature.as_json()}),
    }
    return Statement(subjects, TYPES[MODEL], predicate)


def stack(
    name: str, *, provider: str, model: str, revision: str | None, system_fingerprint: str | None,
    period: tuple[str, str],
) -> Statement:  # fmt: skip
    """A claim about a hosted model: what its provider called it, and when. Nothing of it is a proof."""
    from ledger import clock

    for moment in period:
        clock.check(moment)
    if period[0] > period[1]:
        raise UsageError("a period that ends before it begins", code="window", expected=f"after {period[0]}")
    claim = {
        "name": name,
        "provider": provider,
        "model": model,
        "revision": revision,
        "system_fingerprint": system_fingerprint,
        "period": {"start": period[0], "end": period[1]},
        "claim": "as the provider names it; no weights were seen",
    }
    whole = blake3_digest(canonical(claim)).partition(":")[2]
    return Statement((Subject(name, {"blake3": whole}),), TYPES[STACK], claim)


@dataclass
class _Walk:
    """The way through the files of a checkpoint: what was met on it besides."""

    path: Path
    follow: bool
    leave_out: Callable[[str], bool]
    symlinks: str = NO_LINKS
    left_out: list[str] = field(default_factory=list)

    def files(self) -> Iterator[tuple[str, Path]]:
        """The files with their names in the checkpoint."""
        self._link(self.path)
        if self.path.is_file():
            yield self.path.name, self.path
            return
        if not self.path.is_dir():
            raise StorageError("no such file or folder", code="missing-file", where=self.path)
        count = 0
        seen = {self.path.resolve()}
        folders = [self.path]
        while folders:
            folder = folders.pop()
            with durable.storage("listing the checkpoint", folder):
                items = sorted(folder.iterdir())
            for item in items:
                name = item.relative_to(self.path).as_posix()
                if self.leave_out(name):
                    self.left_out.append(name)
                    continue
                self._link(item)
                if item.is_dir():
                    if item.resolve() in seen:
                        raise UsageError("links lead to a folder twice", code="link-loop", where=item)
                    seen.add(item.resolve())
                    folders.append(item)
                elif item.is_file():
                    count += 1
                    if count > MAX_FILES:
                        raise UsageError(
                            "too many files", code="too-many", expected=MAX_FILES, where=self.path
                        )
                    yield name, item
                else:
                    raise UsageError("neither a file nor a folder", code="special-file", where=item)

    def _link(self, item: Path) -> None:
        if not item.is_symlink():
            return
        if not self.follow:
            raise UsageError(
                "a symbolic link in the checkpoint", code="symlink", where=item, expected="regular files",
                next_step="attest the files themselves, or give --follow-symlinks",
            )  # fmt: skip
        if item.is_dir() and item != self.path:
            self.symlinks = LINKED_FOLDERS
        elif self.symlinks == NO_LINKS:
            self.symlinks = LINKED_FILES


def _digest(name: str, path: Path, read: Callable[[int], None]) -> WeightsFile:
    fast, slow, size = blake3(), hashlib.sha256(), 0
    with durable.storage("reading the checkpoint", path):
        before = path.stat()
        with path.open("rb") as file:
            # no further than it was long: a file that grows would have no end
            while size <= before.st_size and (chunk := file.read(CHUNK)):
                fast.update(chunk)
                slow.update(chunk)
                size += len(chunk)
                read(len(chunk))
        header = weights.read(path)
        after = path.stat()
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or size != after.st_size:
        raise StorageError(
            "a file changed while it was digested", code="changed", where=shown(str(path), 200),
            next_step="attest the checkpoint when nothing writes to it",
        )  # fmt: skip
    return WeightsFile(name, size, fast.hexdigest(), slow.hexdigest(), header)
