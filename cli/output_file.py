"""Files a command writes: replaced as a whole, so that nobody reads half of one."""

from __future__ import annotations

from pathlib import Path

from ledger import durable


def write_whole(path: Path, data: bytes, doing: str) -> None:
    """Put `data` at `path`; a device or pipe is written to. StorageError says what was being done."""
    with durable.storage(doing, path):
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        staged = path.with_name(durable.temporary_name(".part"))
        durable.create(staged, data)
        durable.replace(staged, path)
