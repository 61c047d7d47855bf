"""Whether stored predictions still meet their contract: the same models judge them that admitted them.

Entries come in segment order and are judged by whole queries: those of the last query wait for the next
rows. Of each pair little is kept, and once all segments were read the pairs are judged together.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from contracts.channel import ChannelBook
from contracts.jev_stored import Located, StoredPairs, Stretch, judge_stretch, judge_together, located
from contracts.order import labelled
from ledger.problems import Problems
from ledger.verify_contract import Part, tell


@dataclass
class PredictionsContract:
    """Judges the parts of prediction segments, and of those of the scorer's labels, as they come."""

    found: Problems
    book: ChannelBook
    _roots: dict[str, str] = field(default_factory=dict)
    _order: dict[str, int] = field(default_factory=dict)
    _waiting: list[Stretch] = field(default_factory=list)
    _pairs: list[StoredPairs] = field(default_factory=list)
    _positives: list[Located] = field(default_factory=list)
    _labels: list[pa.ChunkedArray] = field(default_factory=list)

    def feed(self, part: Part) -> None:
        """Takes the next entries of a call and judges every query that has ended."""
        stretch = self._stretch(part)
        last = _last_query(part.table)
        if last == 0 and self._waiting and _query(self._waiting[-1].table, -1) == _query(part.table, 0):
            self._waiting.append(stretch)
            return
        ended = [*self._waiting, *([_cut(stretch, 0, last)] if last else [])]
        self._waiting = [_cut(stretch, last, part.table.num_rows)]
        self._judge(ended)

    def feed_positives(self, part: Part) -> None:
        """Takes labels that only the scorer may see."""
        self._positives.append(located([self._stretch(part)], self._order))
        self._labels.append(part.table.column("label"))

    def finish(self) -> None:
        """Judges what waits: nothing more comes of this call."""
        waiting, self._waiting = self._waiting, []
        self._judge(waiting)

    def judge_together(self) -> None:
        """Judges all pairs as groups, once every segment was read whole."""
        findings = judge_together(list(self._order), self._pairs, self._positives, self._labels)
        tell(self.found, findings, self._roots)

    def _stretch(self, part: Part) -> Stretch:
        self._order.setdefault(part.where, len(self._order))
        self._roots[part.where] = part.root
        return Stretch(part.where, part.start, part.table)

    def _judge(self, stretches: list[Stretch]) -> None:
        if stretches:
            pairs, findings = judge_stretch(stretches, self.book, self._order)
            self._pairs.append(pairs)
            tell(self.found, findings, self._roots)


def _cut(stretch: Stretch, start: int, stop: int) -> Stretch:
    """Rows [start, stop) of a stretch."""
    return Stretch(stretch.name, stretch.start + start, stretch.table.slice(start, stop - start))


def _last_query(table: pa.Table) -> int:
    """The first row of the last query."""
    codes = labelled(table.column("query_id")).codes
    others = np.flatnonzero(codes != codes[-1])
    return int(others[-1]) + 1 if len(others) else 0


def _query(table: pa.Table, row: int) -> object:
    return table.column("query_id")[row].as_py()
