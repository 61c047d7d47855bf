"""The row level of the contract: files as they came to one canonical table, or findings.

Every value is judged by the models of `row_models`: text once per distinct label, numbers row by row.
A fault in any row refuses the call, so the table is empty unless there are no findings at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandera.polars as pp
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from contracts.channel import Channel, ChannelBook
from contracts.digest import pack
from contracts.errors import UsageError
from contracts.findings import Findings, shown
from contracts.labels import Labels, Mask, distinct, in_order
from contracts.look_alikes import twins
from contracts.pandera_config import failures
from contracts.raw_rows import PACKED, THREADS, Positions, RawRows, gather
from contracts.row_digests import packed_digests
from contracts.row_faults import RULES, RowFaults
from contracts.row_models import REQUIRED_TEXT, STATUSES, Endpoint, Label, ScoreRow, Status, ViewSource
from contracts.schema import TRANSPORT, TYPES
from contracts.source_table import SourceTable

DEFAULT_VIEW_SOURCE = "own"
OK = "ok"
RESOLVED = 100  # unresolved channel labels that are looked up in full
_NAMED = ("trajectory_id", "acquisition_id", "candidate", "target", "target_type", "step_kind")
_MODELS: Mapping[type[pp.DataFrameModel], tuple[str, ...]] = {
    Label: _NAMED,
    Endpoint: ("endpoint",),
    ViewSource: ("view_source",),
    Status: ("status",),
}
_FRAME_CODES = {
    "null-energy": "energy",
    "energy-with-status": "energy",
    "float32-energy": "energy",
    "layout-out-of-range": "layout",
}


def _in_flight() -> pa.Schema:
    """The canonical table between the files and the segments: text and digests coded, failed readings in."""
    kinds = {"text": pa.dictionary(pa.int32(), pa.string()), "digest": pa.dictionary(pa.int32(), PACKED)}
    columns = [pa.field(c.name, kinds.get(c.type, TYPES[c.type])) for c in TRANSPORT.columns]
    return pa.schema(
        [
            *columns,
            pa.field("status", kinds["text"]),
            pa.field("source_file", pa.int32()),
            pa.field("source_row", pa.int64()),
        ]
    )


IN_FLIGHT = _in_flight()


@dataclass(frozen=True)
class RowResult:
    """The rows of a call in the order of its files, or what is wrong with them.

    `table` has the schema IN_FLIGHT: label dictionaries without repeats, key text sorted by UTF-8 bytes,
    the channel as its fingerprint, `source_file` an index into the files and `source_row` 1-based. `rows`
    counts what was read. `missing_digests` names, for a digest column some scored rows lack, the files;
    `given_digests` those in which scored rows have it. `names` are the labels that must not look alike.
    """

    table: pa.Table
    findings: Findings
    rows: int
    ignored: tuple[str, ...]
    missing_digests: Mapping[str, tuple[str, ...]]
    given_digests: Mapping[str, tuple[str, ...]]
    names: Mapping[str, pa.Array]


@dataclass(frozen=True)
class Elsewhere:
    """What a judgement must know of the other rows of a call that is judged table by table.

    `alike` has, by column, the labels that look like another one anywhere in the call, each with that
    other; `given` has, by digest column, the files that have it in other scored rows. `told` are the
    files and columns of faults of a whole file that were reported with another of its tables.
    """

    alike: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    given: Mapping[str, frozenset[str]] = field(default_factory=dict)
    told: frozenset[tuple[str, str]] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.alike or self.given)


NOTHING_ELSE = Elsewhere()


def canonicalise(
    files: Sequence[SourceTable],
    book: ChannelBook,
    *,
    default_channel: str | None = None,
    default_acquisition: str | None = None,
    elsewhere: Elsewhere = NOTHING_ELSE,
) -> RowResult:
    """Judge every row of the files of one call. A default stands for a column a file does not have."""
    return canonical_rows(gather(files, default_channel, default_acquisition), book, elsewhere)


def canonical_rows(rows: RawRows, book: ChannelBook, elsewhere: Elsewhere = NOTHING_ELSE) -> RowResult:
    """`canonicalise` of rows that are gathered already."""
    return _Judgement(rows, book, elsewhere).result()


class _Judgement:
    """One call's rows on their way through the rules."""

    def __init__(self, rows: RawRows, book: ChannelBook, elsewhere: Elsewhere) -> None:
        self.rows = rows
        self.book = book
        self.elsewhere = elsewhere
        self.findings = Findings()
        self.faults = RowFaults(rows, self.findings)

    def result(self) -> RowResult:
        self._types()
        self._labels()
        self._numbers()
        presence = {name: self._presence(name) for name in self.digests}
        clean = self.findings.total == 0 and not self.rows.faults
        return RowResult(
            table=self._table() if clean else IN_FLIGHT.empty_table(),
            findings=self.findings,
            rows=self.rows.count,
            ignored=tuple(dict.fromkeys(name for file in self.rows.files for name in file.ignored)),
            missing_digests={name: lacking for name, (lacking, _) in presence.items() if lacking},
            given_digests={name: given for name, (_, given) in presence.items() if given},
            names={name: self.rows.text[name].values for name in _NAMED},
        )

    def _types(self) -> None:
        """Columns and values that are not of the type they are declared with."""
        for fault in self.rows.faults:
            if (self.rows.files[fault.file].name, fault.column) not in self.elsewhere.told:
                self.faults.column(fault)
        for index, file in enumerate(self.rows.files):
            for unread in file.unread:
                positions = unread.rows + self.rows.starts[index]
                self.faults.each(unread.code, unread.column, positions, unread.values)

    def _labels(self) -> None:
        """Every distinct label once; the columns of one model share a frame, which costs more than labels."""
        for model, names in _MODELS.items():
            pool = pa.concat_arrays([self.rows.text[name].values for name in names])
            failed = failures(model, pl.DataFrame({"value": pl.from_arrow(pool)})) if len(pool) else ()
            start = 0
            for name in names:
                labels = self.rows.text[name]
                stop = start + len(labels.values)
                for failure in failed:
                    here = failure.rows[(failure.rows >= start) & (failure.rows < stop)] - start
                    if len(here):
                        self.faults.labels(failure.check, name, labels, here)
                start = stop
        for name in _NAMED:
            values = self.rows.text[name].values
            alike = twins(values)
            if known := self.elsewhere.alike.get(name):
                alike = {i: known[text] for i, text in enumerate(values.to_pylist()) if text in known}
            if alike:
                self._twins(name, self.rows.text[name], alike)

    def _twins(self, name: str, labels: Labels, alike: Mapping[int, str]) -> None:
        def tell(label: int) -> str:
            odd = shown(labels.values[label].as_py().encode("ascii", "backslashreplace").decode())
            twin = shown(alike[label])
            return f"{name} '{odd}' looks like '{twin}' and is another; expected one spelling per label"

        self.faults.labels("look-alike", name, labels, np.array(list(alike)), tell=tell)

    @cached_property
    def channels(self) -> tuple[Channel | None, ...]:
        """What each channel label of the rows stands for; a label that stands for none is reported."""
        labels = self.rows.text["channel"]
        names = set(self.book.names)
        found: list[Channel | None] = []
        told: dict[int, str] = {}
        ambiguous: list[int] = []
        unknown: list[int] = []
        for index, text in enumerate(labels.values.to_pylist()):
            found.append(None)
            known = text.startswith("blake3:") or text.partition("@")[0] in names
            if len(told) >= RESOLVED and not known:
                unknown.append(index)  # looking for close names is slow, and so many are never shown
                continue
            try:
                found[index] = self.book.resolve(text)
            except UsageError as error:
                told[index] = str(error)
                (ambiguous if error.code == "ambiguous-channel" else unknown).append(index)
        bare = [i for i, channel in enumerate(found) if channel is not None and channel.layouts is None]
        faults = {"unknown-channel": unknown, "ambiguous-channel": ambiguous, "channel-without-layouts": bare}
        for code, marked in faults.items():
            if marked:
                self.faults.labels(code, "channel", labels, np.array(marked), tell=told.get)
        return tuple(found)

    @cached_property
    def digests(self) -> Mapping[str, tuple[Labels, Mask]]:
        """Every digest column packed, with the rows where it could not be read."""
        return packed_digests(self.rows, self.findings)

    @cached_property
    def scored(self) -> Mask:
        """Rows whose reading went well; a row without a status did."""
        return self._with_status([OK]) | ~(self.rows.text["status"].present | self.rows.unread_in("status"))

    def _with_status(self, wanted: Sequence[str]) -> Mask:
        status = self.rows.text["status"]
        return status.rows_of(np.array([value in wanted for value in status.values.to_pylist()], np.bool_))

    def _by_channel(self, values: Sequence[bool | int], otherwise: bool | int) -> NDArray[np.int64]:
        """One number for each row by its channel label, `otherwise` for rows without a channel."""
        lookup = np.array([*values, otherwise], np.int64)
        by_row: NDArray[np.int64] = lookup[self.rows.text["channel"].codes]
        return by_row

    def _numbers(self) -> None:
        for failure in failures(ScoreRow, self._frame()):
            column = failure.column or _FRAME_CODES[failure.check]
            assert failure.check in RULES, f"{failure.check} of {column} is no rule of a row"
            positions = failure.rows[~self.rows.unread_in(column)[failure.rows]]
            if failure.check == "layout-out-of-range":
                self._layouts_out_of_range(positions)
                continue
            numbers = self.rows.numbers.get(column)
            got = None if numbers is None or failure.check.startswith("null") else numbers.take(positions)
            self.faults.each(failure.check, column, positions, got)

    def _layouts_out_of_range(self, positions: Positions) -> None:
        """Told with the L of the row's channel, 0 or more where it has none."""
        layouts = self.layouts[positions]
        for count in np.unique(layouts):
            these = positions[layouts == count]
            wanted = "0 or more" if count < 0 else f"0 to {count - 1}, the layouts of the channel"
            got = self.rows.numbers["layout"].take(these)
            self.faults.each("layout-out-of-range", "layout", these, got, wanted=wanted)

    @cached_property
    def layouts(self) -> NDArray[np.int64]:
        """L of each row's channel, -1 where it has none."""
        return self._by_channel([c.layouts or -1 if c is not None else -1 for c in self.channels], -1)

    def _frame(self) -> pl.DataFrame:
        single = [c is None or c.float32 for c in self.channels]
        by_row = pl.Series(self.layouts)
        columns = {name: pl.Series(self.rows.text[name].codes) for name in REQUIRED_TEXT}
        numbers = ("step", "layout", "position", "energy", "label_mass")
        return pl.DataFrame(
            {
                **columns,
                **{name: pl.from_arrow(self.rows.numbers[name]) for name in numbers},
                "layouts": by_row.set(by_row < 0, None),
                "ok": self.scored,
                "failed": self._with_status([status for status in STATUSES if status != OK]),
                "in_single": self.rows.float32 & (self._by_channel(single, True) == 0),
            }
        )

    def _presence(self, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The files whose scored rows lack a digest, and those whose rows have it; one with both is refused.

        The view's digest is asked of rows whose channel shows a view, the response's of none.
        """
        if name == "response_hash":
            return (), ()
        labels, bad = self.digests[name]
        asked = self.scored
        code = "missing-digest"
        if name == "view_hash":
            shows = [c is not None and c.needs_view for c in self.channels]
            asked = asked & (self._by_channel(shows, False) == 1)
            code = "view-hash-missing"
        lacking = asked & ~labels.present & ~bad
        without, given = [], []
        for index, file in enumerate(self.rows.files):
            here = slice(int(self.rows.starts[index]), int(self.rows.starts[index + 1]))
            absent, wanted = np.flatnonzero(lacking[here]), int(asked[here].sum())
            if len(absent) < wanted:
                given.append(file.name)
            if not len(absent):
                continue
            if len(absent) == wanted and file.name not in self.elsewhere.given.get(name, ()):
                without.append(file.name)
            else:
                self.faults.each(code, name, absent + here.start)
        return tuple(without), tuple(given)

    def _table(self) -> pa.Table:
        rows = self.rows
        text = {
            **rows.text,
            "view_source": _filled(rows.text["view_source"], DEFAULT_VIEW_SOURCE),
            "status": _filled(rows.text["status"], OK),
            "channel": self._fingerprints(),
        }
        digests = {name: labels for name, (labels, _) in self.digests.items()}
        with ThreadPoolExecutor(THREADS) as pool:  # numpy and Arrow let go of the interpreter
            coded = pool.map(_coded, text.values(), [True] * len(text))
            plain = pool.map(_coded, digests.values(), [False] * len(digests))
        columns: dict[str, pa.Array] = {
            **dict(zip(text, coded, strict=True)),
            **dict(zip(digests, plain, strict=True)),
            **{name: array.cast(IN_FLIGHT.field(name).type) for name, array in rows.numbers.items()},
            "source_file": pa.array(
                np.repeat(np.arange(len(rows.files), dtype=np.int32), np.diff(rows.starts))
            ),
            "source_row": pa.array(rows.row_numbers),
        }
        return pa.table([columns[name] for name in IN_FLIGHT.names], schema=IN_FLIGHT)

    def _fingerprints(self) -> Labels:
        """The channel of each row by fingerprint; two names of one channel become one."""
        packed = [pack(channel.fingerprint) for channel in self.channels if channel is not None]
        assert len(packed) == len(self.channels), "a table is made of registered channels only"
        return distinct(Labels(self.rows.text["channel"].codes, pa.array(packed, PACKED)))


def _coded(labels: Labels, sort: bool) -> pa.DictionaryArray:
    return (in_order(labels) if sort else labels).array


def _filled(labels: Labels, default: str) -> Labels:
    """The column with a value where a row has none."""
    if labels.present.all():
        return labels
    values = labels.values.to_pylist()
    place = values.index(default) if default in values else len(values)
    codes = np.where(labels.present, labels.codes, np.int32(place))
    return Labels(codes, pa.array([*values, *([default] if place == len(values) else [])], pa.string()))
