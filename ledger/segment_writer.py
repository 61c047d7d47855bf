"""Sorted rows that come in parts, cut into segments as if they had come as one table.

Segments are encoded in a thread while the next part is judged, and wait as staged files, synced: nothing of
a call that is refused in its last part is an object.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from contracts.schema import SegmentSchema
from ledger import durable, segments
from ledger.objects import Store
from ledger.pages import entries_root, page_leaves
from ledger.segments import WrittenSegment

Staged = tuple[WrittenSegment, list[Path]]


class SegmentWriter:
    """Takes rows in canonical order. Use it in a `with`: what was not finished leaves no file behind.

    Without `objects` nothing is written and only `roots` are made; `rows` are those of each.
    """

    def __init__(
        self, schema: SegmentSchema, objects: Store | None, progress: Callable[[int], None] | None = None
    ) -> None:
        self.schema = schema
        self.objects = objects
        self.roots: list[str] = []
        self.rows: list[int] = []
        self._progress = progress
        self._pending: list[pa.Table] = []
        self._staged: list[Staged] = []
        self._writer = ThreadPoolExecutor(1)
        self._busy: Future[None] | None = None

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.shutdown(wait=True, cancel_futures=True)
        for _, paths in self._staged:
            for path in paths:
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def add(self, rows: pa.Table) -> None:
        """More rows; every key is greater than all before."""
        if rows.num_rows:
            self._pending.append(rows)
        waiting = sum(table.num_rows for table in self._pending)
        if waiting < segments.SEGMENT_ROWS:
            return
        table = self._joined()
        whole = waiting - waiting % segments.SEGMENT_ROWS
        for start in range(0, whole, segments.SEGMENT_ROWS):
            self._write(table.slice(start, segments.SEGMENT_ROWS))
        self._pending = [table.slice(whole)] if whole < waiting else []

    def flush(self) -> None:
        """Starts the last segment, which has what is left."""
        if self._pending:
            self._write(self._joined())
            self._pending = []

    def finish(self) -> list[WrittenSegment]:
        """Makes every segment an object; all of them are durable when this returns."""
        self.flush()
        self._wait()
        for written, paths in self._staged:
            assert self.objects is not None, "only what is stored was staged"
            segments.put(self.objects, written, paths)
        return [written for written, _ in self._staged]

    def _joined(self) -> pa.Table:
        if len(self._pending) == 1:
            return self._pending[0]
        return pa.concat_tables(self._pending)  # as chunks: labels are joined only where a row group needs it

    def _write(self, table: pa.Table) -> None:
        self._wait()  # so that no more than one segment is in the making
        self._busy = self._writer.submit(self._stage, table)

    def _wait(self) -> None:
        if self._busy is not None:
            self._busy.result()
            self._busy = None

    def _stage(self, table: pa.Table) -> None:
        self.rows.append(table.num_rows)
        if self.objects is None:
            self.roots.append(entries_root(page_leaves(table, self.schema)))
            return
        made = segments.encode(table, self.schema, progress=self._progress)
        paths: list[Path] = []
        self._staged.append((made.written, paths))
        for data in made.contents:
            paths.append(self.objects.stage())
            with durable.storage("writing a segment", paths[-1]):
                durable.create(paths[-1], data)
        self.roots.append(made.written.root)
