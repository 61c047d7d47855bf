"""Text that fits a column: names break where they are joined, and no line ends in spaces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.measure import Measurement

_PIECES = re.compile(r"[^/@_-]*[/@_-]+|[^/@_-]+")
_ENDS = re.compile(r" +$", re.MULTILINE)


class Bare:
    """A stream whose lines are written without the spaces at their ends."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(_ENDS.sub("", text))

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


class Folded:
    """A cell of a table: words stay whole, one wider than its column breaks after `/`, `-`, `@` or `_`."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        lines = [part for line in self.text.split("\n") for part in folded(line, options.max_width)]
        yield Text("\n".join(lines), overflow="fold")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        from rich.measure import Measurement
        from rich.text import Text

        return Measurement.get(console, options, Text(self.text))


def folded(line: str, width: int) -> Iterator[str]:
    """The lines of at most `width` columns that a line is broken into; a single piece may be wider."""
    from rich.cells import cell_len

    if cell_len(line) <= width:
        yield line
        return
    filled = ""
    for word in line.split(" "):
        joined = f"{filled} {word}" if filled else word
        if cell_len(joined) <= width:
            filled = joined
            continue
        if filled:
            yield filled
        filled = ""
        for piece in _PIECES.findall(word):
            if filled and cell_len(filled + piece) > width:
                yield filled
                filled = ""
            filled += piece
    yield filled
