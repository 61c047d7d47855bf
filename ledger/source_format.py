"""What format a score file is in, told by its first bytes before its name is believed."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import PurePath

from contracts.errors import ContractError, StorageError
from ledger.staging import Staged

_HEAD = 4096


class Format(StrEnum):
    PARQUET = "Parquet"
    ARROW_FILE = "Arrow IPC file"
    ARROW_STREAM = "Arrow IPC stream"
    CSV = "CSV"
    JSON_LINES = "JSON Lines"


PARQUET_MAGIC = b"PAR1"
ARROW_MAGIC = b"ARROW1\x00\x00"
_STREAM_MAGIC = b"\xff\xff\xff\xff"
_STREAM_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_BINARY_NAMES = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".arrow": "Arrow",
    ".ipc": "Arrow",
    ".arrows": "Arrow",
    ".feather": "Feather",
}
_JSON_NAMES = (".jsonl", ".ndjson", ".json")
_FOREIGN = (
    (b"PARE", "an encrypted Parquet file", "write it without encryption"),
    (b"FEA1", "a Feather file of version 1", "write it as version 2, which is Arrow IPC"),
    (b"\x1f\x8b", "compressed with gzip", "decompress it first, for example with `gunzip`"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "decompress it first, for example with `unzstd`"),
    (b"BZh", "compressed with bzip2", "decompress it first, for example with `bunzip2`"),
    (b"\xfd7zXZ", "compressed with xz", "decompress it first, for example with `unxz`"),
    (b"PK\x03\x04", "a zip archive or a spreadsheet", "export the sheet as CSV"),
    (b"SQLite format 3", "an SQLite database", "export the table as CSV or Parquet"),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
)
_FORMATS = "Parquet, Arrow IPC or Feather, CSV, or JSON Lines"


def detect(staged: Staged) -> Format:
    """The format of an input; ContractError for one that is empty, foreign or misnamed.

    StorageError where a binary file's end is missing or its name promises a format its bytes have not.
    """
    head = bytes(staged.view[:_HEAD])
    name = PurePath(staged.name)
    if not head:
        raise ContractError("the file is empty", code="empty-file", where=staged.name, expected=_FORMATS)
    if head.startswith(PARQUET_MAGIC):
        if bytes(staged.view[-4:]) != PARQUET_MAGIC or len(staged.view) < 12:
            raise truncated(staged, Format.PARQUET)
        return Format.PARQUET
    if head.startswith(ARROW_MAGIC):
        if bytes(staged.view[-6:]) != ARROW_MAGIC[:6]:
            raise truncated(staged, Format.ARROW_FILE)
        return Format.ARROW_FILE
    if head.startswith(_STREAM_MAGIC):
        # A stream cut between two batches reads without complaint, so the optional end mark is asked for.
        if bytes(staged.view[-8:]) != _STREAM_END:
            raise truncated(staged, Format.ARROW_STREAM)
        return Format.ARROW_STREAM
    for magic, what, step in _FOREIGN:
        if head.startswith(magic):
            raise ContractError(
                f"the file is {what}",
                code="unsupported-format",
                expected=_FORMATS,
                where=staged.name,
                next_step=step,
            )
    return _text_format(staged.name, name.suffix.lower(), head.removeprefix(b"\xef\xbb\xbf"))


def _text_format(name: str, suffix: str, head: bytes) -> Format:
    first = head.lstrip()[:1]
    promised = _BINARY_NAMES.get(suffix)
    if promised and _looks_like_text(head):
        is_json = first == b"{"
        raise ContractError(
            f"named {suffix} but holds {'JSON Lines' if is_json else 'CSV or other'} text",
            code="misnamed",
            expected=f"{promised} bytes",
            where=name,
            next_step=f"rename it to {'.jsonl' if is_json else '.csv'} or write it as {promised}",
        )
    if promised:
        raise StorageError(f"not a {promised} file, its first bytes are not", code="unreadable", where=name)
    if not _looks_like_text(head.partition(b"\n")[0]):
        raise StorageError("not a score file", code="unreadable", expected=_FORMATS, where=name)
    if first == b"{" or (suffix in _JSON_NAMES and first != b"["):
        return Format.JSON_LINES
    if first == b"[" and suffix in _JSON_NAMES:
        raise ContractError(
            "the file is a JSON array",
            code="unsupported-format",
            expected="JSON Lines, one object on each line",
            where=name,
            next_step="convert it, for example with `jq -c '.[]'`",
        )
    return Format.CSV


def _looks_like_text(head: bytes) -> bool:
    return re.search(rb"[\x00-\x08\x0e-\x1f]", head) is None


def truncated(staged: Staged, kind: Format) -> StorageError:
    """A binary file whose end is not there."""
    return StorageError(
        f"truncated {kind} file: its end is missing",
        code="truncated",
        where=staged.name,
        got=f"{len(staged.view):,} bytes",
        next_step="copy or write it again",
    )
