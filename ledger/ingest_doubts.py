"""What can be said of the files of a call beside the judgement of their rows: doubts, which refuse nothing.

A CSV file may end without a line end and be whole, or be cut inside its last field: nothing tells the two
apart. An option that stands for a column is not used where a file has the column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.receipt import Receipt
from ledger.source_format import Format, detect
from ledger.sources import column_names
from ledger.staging import Staged

_CLOSED = b'\n\r"'  # after a quote too the field is whole


@dataclass(frozen=True)
class Doubts:
    """The files whose last row may be cut, by their places in the call, and what was said in vain."""

    open_ended: tuple[int, ...]
    unused: tuple[str, ...]

    def noted(self, receipt: Receipt) -> tuple[str, ...]:
        """The doubts as warnings, each last row by its number."""
        sources = [(receipt.sources[number].name, receipt.sources[number].rows) for number in self.open_ended]
        cut = (
            f"{name} row {rows:,}, the last, has no line end: its last value may be cut off; compare it with "
            "where it was made, or end the file with a line end"
            for name, rows in sources
        )
        return *cut, *self.unused


def doubts(staged: Sequence[Staged], channel: str | None, acquisition: str | None) -> Doubts:
    """What is doubtful about files that were told apart, given the options that stand for columns."""
    given = {"channel": ("--channel", channel), "acquisition_id": ("--acquisition", acquisition)}
    options = {column: said for column, said in given.items() if said[1] is not None}
    named = [(each, set(column_names(each))) for each in staged] if options else []
    unused = []
    for column, (option, value) in options.items():
        files = [each.name for each, names in named if column in names]
        if files:
            said = f"{option} {value} is not used for {', '.join(files)}"
            unused.append(f"{said}: what the column {column} says was taken")
    return Doubts(tuple(n for n, each in enumerate(staged) if _open_ended(each)), tuple(unused))


def _open_ended(staged: Staged) -> bool:
    return detect(staged) is Format.CSV and bytes(staged.view[-1:]) not in _CLOSED
