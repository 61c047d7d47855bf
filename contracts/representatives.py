"""Few rows that show whatever the contract could find in many: sorted entries repeat one pattern.

Most transitions of a ledger differ in nothing that a rule compares but numbers and digests: the same sides,
cells, candidates, target and kinds, row by row. Where one of them is as the contract wants it, so are all.
`Speakers` picks one transition of each pattern that was not found whole before. What is not said within a
transition is decided here: numbers by the interval their rules leave (`edges` has rows to prove it with),
names one by one, digests by their first byte and by where they are absent, `success` by trajectory, and
whether a digest of candidates stands for one set.

The answer is one-sided. Rows are given only where a contract without findings about them has none about any
row; else None, and whoever asks judges every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contracts.channel import Channel, ChannelBook
from contracts.digest import CODES, WIDTH, unpack
from contracts.labels import ABSENT, Codes, Labels, Mask
from contracts.look_alikes import twins
from contracts.order import Ints, bound, labelled, pack, ranks
from contracts.pandera_config import failures
from contracts.row_models import MAX_ENERGY, MAX_INT16, MAX_INT32, MAX_LABEL_BYTES, Label
from contracts.schema import TRANSPORT, TYPES

WORTH = 4  # rows to each one that speaks for them: where fewer, judging all of them costs little more,
FEW = 1 << 12  # but for so many rows anything is cheap
LENGTHS = 64  # of transitions: each takes a pass of its own
# The least and the greatest of each number that rules leave: every one of them is an interval.
EDGES = {
    "step": (0, MAX_INT32),
    "energy": (-MAX_ENERGY, MAX_ENERGY),
    "position": (0, MAX_INT16),
    "label_mass": (0.0, 1.0),
}
_TEXT = tuple(column.name for column in TRANSPORT.columns if column.type == "text")
_WITHIN = tuple(name for name in _TEXT if name != "trajectory_id")  # compared in a transition
_NAMES = ("trajectory_id", "acquisition_id", "candidate", "target", "target_type", "step_kind")
_DIGESTS = tuple(column.name for column in TRANSPORT.columns if column.type == "digest" and not column.key)
_OWN_VIEWS = ("own", "before", "after")
_PLAIN = r"\A[!-~]+\z"  # what no rule about names minds, if it is not too long
_SETS = 63  # candidates whose sets fit an integer
_ODD = np.random.Generator(np.random.Philox(1)).integers(0, 2**63, 4096, np.uint64) * 2 + 1


@dataclass(frozen=True)
class Speaking:
    """The rows that speak for all, whole transitions, and what stands for their patterns."""

    rows: pa.Table
    patterns: frozenset[bytes]


class Speakers:
    """Finds rows that speak for others. What was found whole once, `learn` keeps: it is not asked again."""

    def __init__(self, book: ChannelBook) -> None:
        self._book = book
        self._whole: set[bytes] = set()

    def of(self, tables: Sequence[pa.Table]) -> Speaking | None:
        """Rows that speak for all of `tables`, maybe none; None where too many or nobody does.

        Each table is judged alone, as whole trajectories; its channel is coded and all other digests plain.
        """
        tables = [table for table in tables if table.num_rows]
        if not tables or not all(_as_expected(table.schema) for table in tables):
            return None
        return _Rows(tables, self._book).speaking(self._whole)

    def learn(self, asked: Speaking) -> None:
        """The contract found nothing in these rows."""
        self._whole |= asked.patterns


def edges(rows: pa.Table) -> pa.Table:
    """Two rows with the numbers at the edges of what rules leave, else like the first of `rows`."""
    table = rows.take(pa.array([0, 0]))
    for name, both in EDGES.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pa.array(both, table.schema.field(at).type))
    return table


def _as_expected(schema: pa.Schema) -> bool:
    """Whether every column has the type that entries are read with; what a file says otherwise is judged."""
    kinds = {"text": pa.dictionary(pa.int32(), pa.string())}
    wanted = [
        pa.dictionary(pa.int32(), TYPES["digest"])
        if column.name == "channel"
        else kinds.get(column.type, TYPES[column.type])
        for column in TRANSPORT.columns
    ]
    return bool(tuple(schema.names) == TRANSPORT.names and schema.types == wanted)


class _Rows:
    """The rows of some tables, whose transitions are runs."""

    def __init__(self, tables: Sequence[pa.Table], book: ChannelBook) -> None:
        self.table = pa.concat_tables(tables)
        self.book = book
        self.begins = np.cumsum([0, *(table.num_rows for table in tables)])[:-1]
        self.text = {name: labelled(self.table.column(name)) for name in _WITHIN}
        self.trajectory = ranks(self.table.column("trajectory_id"))
        self.channel = labelled(self.table.column("channel"))
        self.layout = self.table.column("layout").to_numpy()

    def speaking(self, whole: set[bytes]) -> Speaking | None:
        required = (column.name for column in TRANSPORT.columns if not column.nullable)
        if any(self.table.column(name).null_count for name in required):
            return None
        if min(self.trajectory.codes.min(), self.text["candidate"].codes.min()) < 0:
            return None  # a null among the labels is no value either
        channels = self._channels()
        if channels is None or not self._digests(channels) or not self._numbers() or not self._names():
            return None
        starts = self._starts()
        if starts is None or not self._one_success() or not self._one_set(starts):
            return None
        return self._chosen(starts, whole)

    def _channels(self) -> list[Channel] | None:
        """The channels by their codes, where all are registered."""
        found: list[Channel] = []
        for value in self.channel.values.to_pylist():
            channel = self.book.by_fingerprint(unpack(value)) if value[0] in CODES.values() else None
            if channel is None:
                return None
            found.append(channel)
        return found

    def _digests(self, channels: Sequence[Channel]) -> bool:
        """Whether digests are of known kinds, and no file can lack one in some of the rows it is asked of."""
        shows = np.array([channel.needs_view for channel in channels], np.bool_)[self.channel.codes]
        for name in _DIGESTS:
            column = self.table.column(name)
            if not all(_known_kind(chunk) for chunk in column.chunks):
                return False
            if name != "response_hash" and column.null_count not in (0, len(column)):
                if name != "view_hash":
                    return False
                lacking = int(np.count_nonzero(_absent(column)[shows]))
                if lacking not in (0, int(np.count_nonzero(shows))):
                    return False
        return True

    def _numbers(self) -> bool:
        """Whether every number lies between the edges; a NaN does not."""
        for name, (low, high) in EDGES.items():
            column = self.table.column(name)
            if column.null_count:
                column = column.drop_null()
            if len(column):
                values = column.to_numpy()
                if not (values.min() >= low and values.max() <= high):
                    return False
        return True

    def _names(self) -> bool:
        """Whether names are as names should be where representatives may not have them all."""
        if any(view not in _OWN_VIEWS for view in self.text["view_source"].values.to_pylist()):
            return False  # a donor is another transition
        if any(twins(self._labels(name).values) for name in _NAMES):
            return False
        names = self.trajectory.values
        longest = pc.max(pc.binary_length(names)).as_py()
        if longest <= MAX_LABEL_BYTES and pc.all(pc.match_substring_regex(names, _PLAIN)).as_py():
            return True
        return not failures(Label, pl.DataFrame({"value": pl.from_arrow(names)}))

    def _labels(self, name: str) -> Labels:
        return self.trajectory if name == "trajectory_id" else self.text[name]

    def _starts(self) -> Ints | None:
        """Where transitions begin, None where one may go on behind another one."""
        trajectory, step = self.trajectory.codes, self.table.column("step").to_numpy()
        new = np.ones(len(step), np.bool_)
        new[1:] = (trajectory[1:] != trajectory[:-1]) | (step[1:] != step[:-1])
        new[self.begins] = True
        starts = np.flatnonzero(new)
        first, number = trajectory[starts], step[starts]
        ascends = np.zeros(len(starts), np.bool_)
        ascends[1:] = (first[1:] > first[:-1]) | ((first[1:] == first[:-1]) & (number[1:] > number[:-1]))
        ascends[np.searchsorted(starts, self.begins)] = True
        return starts if ascends.all() else None

    def _one_success(self) -> bool:
        """Whether every trajectory has one `success`, or none."""
        column = self.table.column("success")
        if column.null_count == len(column):
            return True
        said = pc.fill_null(column.cast(pa.int8()), ABSENT).to_numpy()
        changes = np.flatnonzero(said[1:] != said[:-1]) + 1
        codes = self.trajectory.codes
        apart = (codes[changes] != codes[changes - 1]) | np.isin(changes, self.begins)
        return bool(apart.all())

    def _one_set(self, starts: Ints) -> bool:
        """Whether a digest of candidates stands for one set of them."""
        candidate = self.text["candidate"]
        if len(candidate.values) > _SETS:
            return False
        single = np.left_shift(np.int64(1), candidate.codes.astype(np.int64))
        sets, number = np.unique(np.bitwise_or.reduceat(single, starts), return_inverse=True)
        if len(sets) == 1:
            return True
        hashes = labelled(self.table.column("candidates_hash"))
        of_row = np.repeat(number, np.diff(starts, append=len(single)))
        used = np.unique(hashes.codes.astype(np.int64) * len(sets) + of_row)
        digest = used[used >= 0] // len(sets)
        return bool(np.all(digest[1:] != digest[:-1]))

    def _chosen(self, starts: Ints, whole: set[bytes]) -> Speaking | None:
        """One transition of each pattern that is not known to be whole."""
        lengths = np.diff(starts, append=self.table.num_rows)
        patterns = self._patterns()
        sizes = np.unique(lengths)
        if len(sizes) > LENGTHS:
            return None
        chosen: list[Ints] = []
        for size in sizes.tolist():
            at = starts[lengths == size]
            rows = patterns[at[:, None] + np.arange(size)] if len(sizes) > 1 else patterns
            first = _first_of_each(rows.reshape(-1, size))
            if first is None:
                return None
            chosen += [np.arange(start, start + size) for start in at[first].tolist()]
            if sum(len(each) for each in chosen) > max(FEW, self.table.num_rows // WORTH):
                return None
        told = {self._told(rows): rows for rows in chosen}
        asked = [rows for key, rows in told.items() if key not in whole]
        rows = self.table.take(pa.array(np.concatenate(asked))) if asked else self.table.slice(0, 0)
        return Speaking(rows, frozenset(told))

    def _patterns(self) -> Ints:
        """One integer a row for all that is compared within a transition but numbers and digests."""
        parts: list[tuple[NDArray[np.integer], int]] = []
        for each in (self.channel, *self.text.values()):
            if len(each.values) and (each.codes == ABSENT).any():
                parts.append((each.codes + np.int32(1), bound(each) + 1))
            elif len(each.values) > 1:
                parts.append((each.codes, bound(each)))
        low = int(self.layout.min())
        parts.append((self.layout.astype(np.int32) - np.int32(low), int(self.layout.max()) - low + 1))
        return pack(parts)[0]

    def _told(self, rows: Ints) -> bytes:
        """What stands for a pattern anywhere: its values, row by row."""
        columns: list[object] = [self.layout[rows].tolist()]
        for each in (self.channel, *self.text.values()):
            codes: Codes = each.codes[rows]
            used, place = np.unique(codes, return_inverse=True)
            values = [None if code < 0 else each.values[code].as_py() for code in used.tolist()]
            columns.append((values, place.tolist()))
        return blake2b(repr(columns).encode("utf-8", "surrogatepass"), digest_size=32).digest()


def _first_of_each(rows: Ints) -> NDArray[np.intp] | None:
    """The first of each distinct row of a matrix; None where a sum that should tell them apart does not."""
    width = rows.shape[1]
    odd = _ODD if width <= len(_ODD) else np.resize(_ODD, width)
    sums = rows.view(np.uint64) @ odd[:width]
    _, first, number = np.unique(sums, return_index=True, return_inverse=True)
    return first if np.array_equal(rows, rows[first[number]]) else None


def _absent(column: pa.ChunkedArray) -> Mask:
    mask: Mask = column.is_null().to_numpy()
    return mask


def _known_kind(array: pa.Array) -> bool:
    """Whether every digest that is there says by its first byte what it is."""
    if array.null_count == len(array):
        return True
    start = array.offset * WIDTH
    bytes_of = np.frombuffer(array.buffers()[1], np.uint8)[start : start + len(array) * WIDTH : WIDTH]
    known = np.zeros(len(bytes_of), np.bool_)
    for code in CODES.values():
        known |= bytes_of == code
    if array.null_count:
        known |= array.is_null().to_numpy(zero_copy_only=False)
    return bool(known.all())
