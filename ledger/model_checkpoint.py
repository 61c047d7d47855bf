"""A model checkpoint: a file or folder of weights, digested whole, as the statement that attests it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from blake3 import blake3

from contracts.canonical import canonical
from contracts.digest import blake3_digest
from contracts.errors import StorageError, UsageError
from contracts.findings import shown
from ledger import durable, weights
from ledger.attestations import MODEL, STACK, TYPES
from ledger.statement import Statement, Subject
from ledger.weights import Weights

CHUNK = 4 * 1024 * 1024
MAX_FILES = 100_000
Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class WeightsFile:
    """One file by its path below the checkpoint: size, digests in hex, and what its header says."""

    name: str
    bytes: int
    blake3: str
    sha256: str
    header: Weights | None


def digest(path: Path, *, follow: bool = False, progress: Progress | None = None) -> tuple[WeightsFile, ...]:
    """Every file of a checkpoint, ascending by name, digested by several threads.

    A symbolic link is refused unless `follow`; then the file behind it counts. StorageError where a file
    cannot be read or changed while it was; UsageError where there is none.
    """
    found = dict(sorted(_files(path, follow)))
    if not found:
        raise UsageError("no file to attest", code="empty-checkpoint", where=path)
    total, done = sum(file.stat().st_size for file in found.values()), 0

    def read(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress("bytes", done, total)

    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        return tuple(pool.map(lambda item: _digest(item[0], item[1], read), found.items()))


def statement(name: str, files: tuple[WeightsFile, ...]) -> Statement:
    """What is signed about a checkpoint; `digest` names all of it at once.

    It is the BLAKE3 of the canonical JSON of {path: sha256 hex}, so it depends on names and bytes alone. The
    first subject has it, the files follow.
    """
    headers = {file.name: file.header.as_json() for file in files if file.header is not None}
    dtypes: dict[str, int] = {}
    for file in files:
        for dtype, count in (file.header.dtypes if file.header else {}).items():
            dtypes[dtype] = dtypes.get(dtype, 0) + count
    whole = blake3_digest(canonical({file.name: file.sha256 for file in files}))
    subjects = (
        Subject(name, {"blake3": whole.partition(":")[2]}),
        *(Subject(file.name, {"blake3": file.blake3, "sha256": file.sha256}) for file in files),
    )
    predicate = {
        "name": name,
        "digest": whole,
        "bytes": sum(file.bytes for file in files),
        "files": len(files),
        "tensors": sum(file.header.tensors for file in files if file.header),
        "dtypes": dict(sorted(dtypes.items())),
        "headers": headers,
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


def _files(path: Path, follow: bool) -> Iterator[tuple[str, Path]]:
    """The files of a checkpoint with their names in it."""
    _refuse_link(path, follow)
    if path.is_file():
        yield path.name, path
        return
    if not path.is_dir():
        raise StorageError("no such file or folder", code="missing-file", where=path)
    count = 0
    seen = {path.resolve()}
    folders = [path]
    while folders:
        folder = folders.pop()
        with durable.storage("listing the checkpoint", folder):
            items = sorted(folder.iterdir())
        for item in items:
            _refuse_link(item, follow)
            if item.is_dir():
                if item.resolve() in seen:
                    raise UsageError("a folder that holds itself", code="link-loop", where=item)
                seen.add(item.resolve())
                folders.append(item)
            elif item.is_file():
                count += 1
                if count > MAX_FILES:
                    raise UsageError("too many files", code="too-many", expected=MAX_FILES, where=path)
                yield item.relative_to(path).as_posix(), item
            else:
                raise UsageError("neither a file nor a folder", code="special-file", where=item)


def _refuse_link(path: Path, follow: bool) -> None:
    if path.is_symlink() and not follow:
        raise UsageError(
            "a symbolic link in the checkpoint", code="symlink", where=path, expected="regular files",
            next_step="attest the files themselves, or give --follow-symlinks",
        )  # fmt: skip


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
