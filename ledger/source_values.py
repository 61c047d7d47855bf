"""What every decoder of score files delivers, and the values a text format could not be read as."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contracts.digest import WIDTH
from contracts.errors import ContractError, LedgerError, StorageError
from contracts.findings import SHOWN, shown
from contracts.labels import encode, is_text
from contracts.source_table import INCOMING, STAND_INS, Unread, ValueType
from contracts.text_digests import digest_texts

CODED = pa.dictionary(pa.int32(), pa.string())
TYPES: Mapping[ValueType, pa.DataType] = {
    "text": CODED,
    "digest": CODED,
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "stand-in": pa.dictionary(pa.int32(), pa.binary(WIDTH)),
}
_CODES: Mapping[ValueType, str] = {
    "text": "not-text",
    "digest": "not-text",
    "stand-in": "not-text",
    "integer": "not-an-integer",
    "number": "not-a-number",
    "boolean": "not-a-boolean",
}


@dataclass(frozen=True)
class Decoded:
    """A decoded file: its known columns, all its column names, what could not be read, and row numbers."""

    table: pa.Table
    names: tuple[str, ...]
    unread: tuple[Unread, ...] = ()
    row_numbers: NDArray[np.int64] | None = None


def refuse_repeated(names: Sequence[str], where: str) -> None:
    """ContractError when a column name occurs twice: which of the two was meant cannot be known."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ContractError(
            f"column {', '.join(shown(name, 40) for name in repeated[:8])} occurs more than once",
            code="duplicate-column",
            expected="every column name once",
            where=where,
            next_step="drop or rename one of them",
        )


def not_utf8(name: str, where: str, error: UnicodeDecodeError) -> LedgerError:
    """The error for text in another encoding, or for UTF-8 that ends within a character."""
    if error.reason == "unexpected end of data":
        return StorageError(
            "the file ends within a character", code="truncated", where=f"{name}, {where}",
            next_step="copy or write it again",
        )  # fmt: skip
    return ContractError(
        "the text is not UTF-8",
        code="not-utf-8",
        expected="text in UTF-8",
        got=f"byte 0x{error.object[error.start]:02x}",
        where=f"{name}, {where}",
        next_step="save it as UTF-8, for example with `iconv -f latin1 -t utf-8`",
    )


def arriving(columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """The known columns of one batch: text coded, and texts that stand for digests digested."""
    arrived = {}
    for name, array in columns.items():
        known = INCOMING[name]
        if not is_text(array.type):
            arrived[name] = array
        elif known.type == "stand-in":
            given = columns.get(STAND_INS[name])
            arrived[name] = digest_texts(array, given if given is not None and is_text(given.type) else None)
        elif known.type in ("text", "digest"):
            arrived[name] = encode(array)
        else:
            arrived[name] = array
    return arrived


@dataclass
class Unreads:
    """Collects the unread values of one file, column by column, in row order."""

    _rows: dict[str, list[NDArray[np.int64]]] = field(default_factory=dict)
    _values: dict[str, list[pa.Array]] = field(default_factory=dict)

    def add(self, column: str, rows: NDArray[np.int64], values: pa.Array) -> None:
        """Rows (0-based in the file) of a column and the texts found there."""
        if len(rows):
            self._rows.setdefault(column, []).append(rows)
            self._values.setdefault(column, []).append(values)

    @property
    def found(self) -> tuple[Unread, ...]:
        return tuple(
            Unread(
                column,
                _CODES[INCOMING[column].type],
                np.concatenate(rows),
                pa.concat_arrays(self._values[column]),
            )
            for column, rows in self._rows.items()
        )


def cut(text: str) -> str:
    """A foreign value short enough to keep for every failing row."""
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
