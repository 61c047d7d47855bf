"""The read side of the catalog: plain SQL that both databases understand, at the newest head or an older one.

`at=SIZE` shows the catalog as it was when a head of that size was signed; UsageError when none was.
Nothing here checks a signature: see `ledger.heads`. Queries are short, so a reader never keeps a writer
waiting, and a view stays consistent because it is bounded by a size and rows never change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from contracts.channel import Channel, ChannelBook
from contracts.errors import TamperError, UsageError
from ledger import guards
from ledger.catalog_file import REBUILD
from ledger.connection import Place, Result, failure, open_readonly
from ledger.derive import Row
from ledger.event_types import ScopeRows
from ledger.home import Home
from ledger.index_rows import (
    AcquisitionRow,
    AttestationRow,
    ChannelRow,
    EventRow,
    HeadRow,
    PlanRow,
    RecordRow,
    RefusalRow,
    RevocationRow,
    SegmentRow,
    read_plan,
    read_refusal,
    read_refused,
    read_segment,
    read_spec,
)
from ledger.refusals import RefusedRow
from migrations.append_only import TABLES

__all__ = [
    "AcquisitionRow",
    "AttestationRow",
    "ChannelRow",
    "EventRow",
    "HeadRow",
    "Index",
    "PlanRow",
    "RecordRow",
    "RefusalRow",
    "RefusedRow",
    "RevocationRow",
    "SegmentRow",
]

CHUNK = 1000
_NEAREST = 3
_FEW = 500

_SEGMENT = (
    "event, kind, schema_id, contract, file, size, root, rows, leaves, rows_file, sources, channels, "
    "acquisitions, first_trajectory, first_step, last_trajectory, last_step, trajectories"
)
_REFUSED = (
    "event, ordinal, trajectory_id, step, view_source, channel, acquisition_id, reason, faults, rows, "
    "absent, duplicated, failed, unknown, digest, step_kind, target, target_type, success"
)


class Index:
    """An open catalog; `size` is that of its newest head at the moment of opening."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._connection = open_readonly(place)
        try:
            self.size = self.head().size
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(cls, home: Home) -> Index:
        """The catalog of a home."""
        return cls(home.catalog)

    def close(self) -> None:
        """Lets go of the catalog."""
        self._connection.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def head(self, at: int | None = None) -> HeadRow:
        """The newest signed head, or the one of that size."""
        if at is None:
            found = self._rows("SELECT size, root, note FROM head ORDER BY size DESC LIMIT 1")
            if not found:
                raise TamperError(
                    "the catalog has no head", kind="catalog", where=self.place, next_step=REBUILD
                )
        else:
            found = self._rows("SELECT size, root, note FROM head WHERE size = ?", at)
            if not found:
                raise self._no_head(at)
        size, root, note = found[0]
        return HeadRow(size, "sha256:" + bytes(root).hex(), bytes(note))

    def heads(self, above: int = 0) -> tuple[int, ...]:
        """The sizes at which heads were signed, those larger than `above`, ascending."""
        found = self._rows("SELECT size FROM head WHERE size > ? ORDER BY size", above)
        return tuple(size for (size,) in found)

    def event_count(self) -> int:
        """How many events are stored, those past the newest head included."""
        return int(self._rows("SELECT coalesce(max(leaf_index) + 1, 0) FROM event")[0][0])

    def events(self, start: int = 0, stop: int | None = None) -> Iterator[EventRow]:
        """The events from `start` up to, not including, `stop` (the newest head's size)."""
        stop = self.size if stop is None else stop
        for low in range(start, stop, CHUNK):
            found = self._rows(
                "SELECT leaf_index, type, time, data, leaf_hash FROM event "
                "WHERE leaf_index >= ? AND leaf_index < ? ORDER BY leaf_index", low, min(low + CHUNK, stop),
            )  # fmt: skip
            yield from (self._event(row) for row in found)

    def events_of(self, types: Collection[str]) -> tuple[EventRow, ...]:
        """The events of some types, in the order of the log."""
        columns, marks = "leaf_index, type, time, data, leaf_hash", ", ".join("?" * len(types))
        found = self._rows(
            f"SELECT {columns} FROM event WHERE leaf_index < ? AND type IN ({marks}) ORDER BY leaf_index",  # noqa: S608
            self.size, *types,
        )  # fmt: skip
        return tuple(self._event(row) for row in found)

    def times(self, kind: str) -> dict[int, str]:
        """The time of every event of one type, by its leaf index."""
        return dict(self._rows("SELECT leaf_index, time FROM event WHERE type = ?", kind))

    def leaves(self, size: int | None = None) -> list[bytes]:
        """The stored leaf hashes of the first `size` events."""
        found = self._rows(
            "SELECT leaf_hash FROM event WHERE leaf_index < ? ORDER BY leaf_index",
            self.size if size is None else size,
        )
        return [leaf for (leaf,) in found]

    def channel_rows(self, at: int | None = None) -> tuple[ChannelRow, ...]:
        """The registered channels with their events, in the order of registration."""
        found = self._rows(
            "SELECT event, name, version, fingerprint, spec FROM channel WHERE event < ? ORDER BY event",
            self._limit(at),
        )
        return tuple(
            ChannelRow(event, Channel(name, version, read_spec(spec, name), fingerprint))
            for event, name, version, fingerprint, spec in found
        )

    def channels(self, at: int | None = None) -> ChannelBook:
        """The registered channels; fingerprints as stored, not recomputed."""
        return ChannelBook(tuple(row.channel for row in self.channel_rows(at)))

    def acquisitions(self, at: int | None = None) -> tuple[AcquisitionRow, ...]:
        """The acquisitions, in the order of their first sight."""
        found = self._rows(
            "SELECT event, id, kind, supersedes FROM acquisition WHERE event < ? ORDER BY event",
            self._limit(at),
        )
        return tuple(AcquisitionRow(*row) for row in found)

    def segments(
        self,
        at: int | None = None,
        *,
        kind: str | None = None,
        channels: Collection[str | None] | None = None,
        acquisitions: Collection[str] | None = None,
        trajectories: tuple[str, str] | None = None,
    ) -> tuple[SegmentRow, ...]:
        """The segments in the order of the log.

        Those with at least one row of one of the `channels` (fingerprints; None: undeclared) within
        `acquisitions`, whose range of trajectories meets the inclusive range `trajectories`.
        """
        where, values = ["event < ?"], [self._limit(at)]  # type: tuple[list[str], list[object]]
        if kind is not None:
            where.append("kind = ?")
            values.append(kind)
        if trajectories is not None:
            where.append("first_trajectory <= ? AND last_trajectory >= ?")
            values += reversed(trajectories)
        found = self._rows(
            f"SELECT {_SEGMENT} FROM segment WHERE {' AND '.join(where)} ORDER BY event",  # noqa: S608
            *values,
        )
        scopes = self._scopes([row[0] for row in found])
        rows = (read_segment(row, scopes.get(row[0], ())) for row in found)
        if channels is None and acquisitions is None:
            return tuple(rows)
        return tuple(
            row for row in rows
            if any(
                (channels is None or part.channel in channels)
                and (acquisitions is None or part.acquisition in acquisitions)
                for part in row.scope
            )
        )  # fmt: skip

    def segments_by_root(self, prefix: str, at: int | None = None) -> tuple[SegmentRow, ...]:
        """The segments whose entries root starts with these hex digits."""
        low = f"sha256:{prefix}"
        found = self._rows(
            f"SELECT {_SEGMENT} FROM segment WHERE root >= ? AND root < ? AND event < ? ORDER BY event",  # noqa: S608
            low, low + "g", self._limit(at),
        )  # fmt: skip
        scopes = self._scopes([row[0] for row in found])
        return tuple(read_segment(row, scopes.get(row[0], ())) for row in found)

    def refusals(self, at: int | None = None) -> tuple[RefusalRow, ...]:
        """The refusals in the order of the log."""
        found = self._rows(
            "SELECT event, schema_id, file, size, root, rows, leaves, rows_file, sides, side_index, sources "
            "FROM refusal WHERE event < ? ORDER BY event", self._limit(at),
        )  # fmt: skip
        return tuple(read_refusal(row) for row in found)

    def refused_sides(
        self, at: int | None = None, *, channels: Collection[str] | None = None
    ) -> tuple[RefusedRow, ...]:
        """The refused sides of some channels (fingerprints), or all, in the order of the log."""
        where, values = ["event < ?"], [self._limit(at)]  # type: tuple[list[str], list[object]]
        if channels is not None and len(channels) <= _FEW:
            where.append(f"channel IN ({', '.join('?' * len(channels))})" if channels else "1 = 0")
            values += channels
        found = self._rows(
            f"SELECT {_REFUSED} FROM refused_side WHERE {' AND '.join(where)} ORDER BY event, ordinal",  # noqa: S608
            *values,
        )
        rows = (read_refused(row) for row in found)
        return tuple(row for row in rows if channels is None or row.channel in channels)

    def refused_counts(self, at: int | None = None) -> tuple[tuple[str, str, int], ...]:
        """How many refused sides each (channel fingerprint, acquisition) has."""
        found = self._rows(
            "SELECT channel, acquisition_id, count(*) FROM refused_side WHERE event < ? "
            "GROUP BY channel, acquisition_id ORDER BY min(event)", self._limit(at),
        )  # fmt: skip
        return tuple(tuple(row) for row in found)

    def records(self, at: int | None = None) -> tuple[RecordRow, ...]:
        """The logged audits in the order of the log."""
        found = self._rows(
            "SELECT event, kind, record, result, design FROM record WHERE event < ? ORDER BY event",
            self._limit(at),
        )
        return tuple(RecordRow(*row) for row in found)

    def plans(self, at: int | None = None) -> tuple[PlanRow, ...]:
        """The plans in the order of the log."""
        found = self._rows(
            "SELECT event, id, digest, plan FROM plan WHERE event < ? ORDER BY event", self._limit(at)
        )
        return tuple(read_plan(*row) for row in found)

    def attestations(self, at: int | None = None) -> tuple[AttestationRow, ...]:
        """The logged attestations in the order of the log."""
        found = self._rows(
            "SELECT event, kind, subject, statement FROM attestation WHERE event < ? ORDER BY event",
            self._limit(at),
        )
        return tuple(AttestationRow(*row) for row in found)

    def revocations(self, at: int | None = None) -> tuple[RevocationRow, ...]:
        """The revocations in the order of the log."""
        found = self._rows(
            "SELECT r.event, r.target_kind, r.target_id, r.reason, e.time FROM revocation AS r "
            "JOIN event AS e ON e.leaf_index = r.event WHERE r.event < ? ORDER BY r.event", self._limit(at),
        )  # fmt: skip
        return tuple(RevocationRow(*row) for row in found)

    def table_rows(self, table: str, start: int, stop: int) -> list[Row]:
        """The stored rows of a derived table for the events from `start` up to `stop`, see `derive.rows`."""
        order = ", ".join(TABLES[table][0])
        cursor = self._execute(
            f"SELECT * FROM {table} WHERE event >= ? AND event < ? ORDER BY {order}",  # noqa: S608
            (start, stop),
        )
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def wrong_guards(self) -> tuple[tuple[str, str], ...]:
        """What keeps rows from being changed and is not as a migration made it: its name, what is wrong."""
        if isinstance(self.place, Path):
            return guards.wrong_in_file(self._connection)
        return guards.wrong_on_server(self._connection)

    def _limit(self, at: int | None) -> int:
        return self.size if at is None else self.head(at).size

    def _no_head(self, at: int) -> UsageError:
        sizes = self.heads()
        near = sorted(sorted(sizes, key=lambda size: abs(size - at))[:_NEAREST])
        return UsageError(
            f"no head was signed at size {at}", code="no-head",
            expected="one of the sizes of signed heads, nearest " + ", ".join(map(str, near)),
        )  # fmt: skip

    def _scopes(self, events: Sequence[int]) -> dict[int, tuple[ScopeRows, ...]]:
        if not events:
            return {}
        found = self._rows(
            "SELECT event, channel, acquisition, rows FROM segment_scope "
            "WHERE event >= ? AND event <= ? ORDER BY event, ordinal", min(events), max(events),
        )  # fmt: skip
        parts: dict[int, list[ScopeRows]] = {}
        for event, channel, acquisition, rows in found:
            parts.setdefault(event, []).append(ScopeRows(channel, acquisition, rows))
        return {event: tuple(scope) for event, scope in parts.items()}

    def _event(self, row: Sequence[Any]) -> EventRow:
        """A row of the event table; SQLite gives a cell whatever type somebody wrote into it."""
        index, kind, time, data, leaf = row
        if not (isinstance(data, bytes) and isinstance(leaf, bytes)):
            raise TamperError(
                "an event is stored as something else than bytes", kind="catalog", where=f"event {index}"
            )
        return EventRow(index, kind, time, data, leaf)

    def _rows(self, statement: str, *values: object) -> list[Any]:
        cursor = self._execute(statement, values)
        try:
            return cursor.fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise failure(error, self.place) from error

    def _execute(self, statement: str, values: Sequence[object]) -> Result:
        try:
            return self._connection.execute(statement, tuple(values))
        except sqlite3.Error as error:
            raise failure(error, self.place) from error
