"""Accepting a model signature somebody made elsewhere: it verifies, and the files are those it lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from contracts.errors import LedgerError, MalformedError, StorageError, UsageError
from ledger import model_checkpoint, oms
from ledger.ec_keys import EcPublicKey
from ledger.model_checkpoint import FILE, FOLDER, Digested, Progress
from ledger.oms_kept import FilesDifferError, KeptSignature, compare


@dataclass(frozen=True)
class Accepted:
    """A checkpoint whose signature holds: its digests, what the claim says of the bundle, the bundle."""

    found: Digested
    signature: KeptSignature
    bundle: bytes


def accept(
    path: Path, file: Path, key: EcPublicKey, *, follow: bool = False, progress: Progress | None = None
) -> Accepted:
    """Digest a checkpoint that the bundle in `file` signs with `key`; nothing is digested for a broken one.

    Paths the bundle ignores, and the bundle itself where it lies in the folder, are left out.
    FilesDifferError names every file that is missing, additional or changed; otherwise as `oms.verify` and
    `model_checkpoint.digest`.
    """
    data = read_bundle(file)
    try:
        model = oms.verify(data, key)
    except LedgerError as error:
        error.where = error.where or str(file)
        raise
    signed = FILE if model.resources[0].name == oms.WHOLE else FOLDER
    if path.exists() and signed != (FILE if path.is_file() else FOLDER):
        raise UsageError(
            f"the signature is of a {signed}", code="file-or-folder", where=path, expected=f"that {signed}"
        )
    own = _within(file, path)
    ignoring = replace(model, ignored=(*model.ignored, *((own,) if own else ())))
    found = model_checkpoint.digest(path, follow=follow, leave_out=ignoring.leaves_out, progress=progress)
    try:
        compare(model, found.digests)
    except FilesDifferError as error:
        error.where = str(path)
        raise
    return Accepted(found, KeptSignature.of(data, key, model, tuple(sorted(set(ignoring.ignored)))), data)


def read_bundle(file: Path) -> bytes:
    """The bytes of a bundle, which are not many; StorageError where they cannot be read."""
    try:
        with file.open("rb") as opened:
            data = opened.read(oms.MAX_BUNDLE + 1)
    except OSError as error:
        raise StorageError("cannot be read", where=file, got=error.strerror) from error
    if len(data) > oms.MAX_BUNDLE:
        raise MalformedError("bundle too long", expected=f"at most {oms.MAX_BUNDLE} bytes", where=file)
    return data


def _within(file: Path, folder: Path) -> str | None:
    """The path of a file below a folder, None where it is elsewhere."""
    try:
        return file.resolve().relative_to(folder.resolve()).as_posix() if folder.is_dir() else None
    except ValueError:
        return None
