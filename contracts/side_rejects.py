"""Rows of refused sides and conflicts as rejects: every one, with what was wanted and what was there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from contracts.findings import Level, rejects_schema
from contracts.labels import Labels
from contracts.order import Ints, Keys
from contracts.refusals import ENDPOINTS

_CODED = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True)
class Origin:
    """Where the rows of a call came from, in canonical order: file index and row; files by name."""

    files: tuple[str, ...]
    file: Ints
    row: Ints

    def name(self, row: int) -> str:
        """The file of one row."""
        number = int(self.file[row])
        return self.files[number] if 0 <= number < len(self.files) else f"file {number + 1}"


class Rejects:
    """Builds the reject tables of one call."""

    def __init__(self, keys: Keys, origin: Origin, channels: Sequence[str]) -> None:
        self._keys, self._origin = keys, origin
        self._channels = pa.array(channels, pa.string())

    def rows(
        self,
        at: Ints,
        level: Level,
        code: str,
        *,
        column: str | None = None,
        wanted: str | Labels | None = None,
        got: Labels | None = None,
    ) -> pa.Table:
        """Rows by canonical position; Labels have one for each of them."""
        keys, names = self._keys, self._names
        return self._table(
            file=_coded(np.searchsorted(names[0], self._origin.file[at]).astype(np.int32), names[1]),
            row=pa.array(self._origin.row[at]),
            level=_same(level, len(at)),
            code=_same(code, len(at)),
            column=_same(column, len(at)),
            trajectory_id=keys.trajectory.at(at),
            step=pa.array(keys.step[at].astype(np.int64)),
            endpoint=keys.endpoint.at(at),
            view_source=keys.view_source.at(at),
            channel=_coded(keys.channel.codes[at], self._channels),
            layout=pa.array(keys.layout[at].astype(np.int64)),
            acquisition_id=keys.acquisition.at(at),
            candidate=keys.candidate.at(at),
            wanted=wanted.array if isinstance(wanted, Labels) else _same(wanted, len(at)),
            got=_same(None, len(at)) if got is None else got.array,
        )

    def absent(self, code: str, at: Ints, endpoint: Ints, layout: Ints, candidate: Ints) -> pa.Table:
        """Cells that have no row; `at` is any row of the side of each."""
        keys, count = self._keys, len(at)
        return self._table(
            file=_same(None, count),
            row=pa.nulls(count, pa.int64()),
            level=_same("side", count),
            code=_same(code, count),
            column=_same(None, count),
            trajectory_id=keys.trajectory.at(at),
            step=pa.array(keys.step[at].astype(np.int64)),
            endpoint=_coded(endpoint.astype(np.int32), pa.array(ENDPOINTS)),
            view_source=keys.view_source.at(at),
            channel=_coded(keys.channel.codes[at], self._channels),
            layout=pa.array(layout),
            acquisition_id=keys.acquisition.at(at),
            candidate=_coded(candidate.astype(np.int32), keys.candidate.values),
            wanted=_same("one score", count),
            got=_same("no row", count),
        )

    @cached_property
    def _names(self) -> tuple[Ints, pa.Array]:
        used = np.unique(self._origin.file)
        names = [
            self._origin.files[n] if 0 <= n < len(self._origin.files) else f"file {n + 1}"
            for n in used.tolist()
        ]
        return used, pa.array(names, pa.string())

    @staticmethod
    def _table(**columns: pa.Array) -> pa.Table:
        schema = rejects_schema()
        return pa.table([columns[name] for name in schema.names], schema=schema)


def _coded(codes: np.ndarray[tuple[int], np.dtype[np.int32]], values: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes), values)


def _same(text: str | None, count: int) -> pa.Array:
    if text is None:
        return pa.nulls(count, _CODED)
    return _coded(np.zeros(count, dtype=np.int32), pa.array([text]))
