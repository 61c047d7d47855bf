"""Entry ids: the first hex digits of an entries root and the row below it, `<hex>:<row>`.

An id names content, not a file: the same rows written by another Parquet version keep their ids.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from contracts.errors import UsageError

SHORT = 16
PATTERN = re.compile(r"(?:sha256:)?([0-9a-f]{16,64}):([0-9]{1,19})", re.ASCII)


@dataclass(frozen=True)
class EntryReference:
    """An entry as a person names it: at least 16 hex digits of the root, and the row from 0."""

    prefix: str
    row: int

    def names(self, root: str) -> bool:
        """Whether an entries root in text form begins with the reference's digits."""
        return root.removeprefix("sha256:").startswith(self.prefix)


def entry_id(root: str, row: int) -> str:
    """The id of row `row` under an entries root in text form."""
    return f"{root.removeprefix('sha256:')[:SHORT]}:{row}"


def parse(text: str) -> EntryReference | None:
    """The entry a text names, None when it is no entry id at all; UsageError when it is a broken one."""
    match = PATTERN.fullmatch(text)
    if match is not None:
        return EntryReference(match[1], int(match[2]))
    head, colon, row = text.removeprefix("sha256:").rpartition(":")
    if colon and row.isdecimal() and re.fullmatch(r"[0-9a-f]+", head):
        raise UsageError(
            "not an entry id", code="bad-id", got=text[:80],
            expected=f"at least {SHORT} and at most 64 hex digits, a colon and a row",
        )  # fmt: skip
    return None
