"""How results look: tables that fit 80 columns for people, one JSON object for programs.

Standard output carries results only; progress and warnings go to standard error. Nothing is coloured
when the output is piped or NO_COLOR is set. Only a terminal gets lines that are cut; a pipe gets all of them.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ledger.node import Node

WIDTH = 80
LISTED = 200  # rows of a list: laying out thousands takes a minute, and nobody reads them on a screen
KEY_ID = 64  # hexadecimal digits
SHOW_PROGRESS_AFTER = 2.0  # seconds
RATE_AFTER = 1.0  # seconds of a phase: what comes all at once has no rate
# Facts whose numbers name something, and so stay as they are typed; all others count.
NAMING = frozenset(
    {
        "event",
        "first",
        "index",
        "last",
        "layout",
        "position",
        "row",
        "seed",
        "size",
        "step",
        "version",
        "year",
    }
)


class Advance(Protocol):
    """Reports how far a phase of long work has come."""

    def __call__(self, phase: str, done: int, total: int | None) -> None: ...


def console(*, stderr: bool = False) -> Console:
    """A console that is at least 80 columns wide, and exactly 80 where nobody watches."""
    from rich.console import Console

    from cli.folding import Bare

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDTH
    file: Any = stream if stderr else Bare(stream)
    return Console(file=file, width=width, highlight=False, soft_wrap=False, markup=False, emoji=False)


def say(*lines: str, stderr: bool = False) -> None:
    """Plain lines, never wrapped: an id must stay whole to be copied."""
    stream = sys.stderr if stderr else sys.stdout
    for line in lines:
        stream.write(line.rstrip(" ") + "\n")


def emit_json(value: object) -> None:
    """One JSON object on standard output, keys in the order given."""
    plain = (getattr(sys.stdout, "encoding", None) or "utf-8").lower() != "utf-8"  # JSON is UTF-8 or ASCII
    json.dump(value, sys.stdout, ensure_ascii=plain, allow_nan=False, indent=2)
    sys.stdout.write("\n")


def table(
    columns: Sequence[str | tuple[str, str]], rows: Sequence[Sequence[object]], *, title: str | None = None
) -> Table:
    """A table of text; a column is a heading or (heading, 'left' | 'right' | 'whole'), None shows as a dash.

    A column that is 'whole' is never folded: the others make room for its ids.
    """
    from rich.table import Table

    from cli.folding import Folded

    made = Table(
        box=None,
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        padding=(0, 2, 0, 0),
        pad_edge=False,
    )
    for column in columns:
        heading, justify = (column, "left") if isinstance(column, str) else column
        made.add_column(
            Folded(heading) if justify == "left" else heading,
            justify="right" if justify == "right" else "left",
            overflow="fold",
            no_wrap=justify == "whole",
        )
    for row in rows:
        texts = ["-" if cell is None else str(cell) for cell in row]
        left = [isinstance(column, str) or column[1] == "left" for column in columns]
        made.add_row(*(Folded(text) if at else text for text, at in zip(texts, left, strict=True)))
    return made


def listed(columns: Sequence[str | tuple[str, str]], rows: Sequence[Sequence[object]], what: str) -> None:
    """A table of the newest LISTED rows, and a word about the others; `what` is one row, as `channel`."""
    console().print(table(columns, rows[-LISTED:]))
    if len(rows) > LISTED:
        say(f"the newest {LISTED} of {plural(len(rows), what)}; all of them: --json")


def pairs(values: Mapping[str, object] | Sequence[tuple[str, object]]) -> None:
    """Name and value per line, the values aligned."""
    items = list(values.items()) if isinstance(values, Mapping) else list(values)
    width = max((len(name) for name, _ in items), default=0)
    for name, value in items:
        say(f"{name.ljust(width)}  {'-' if value is None else value}")


def wrapped(line: str, indent: str = "  ") -> list[str]:
    """A sentence as lines of at most 80 columns, the later ones indented further; words stay whole."""
    return textwrap.wrap(
        printable(line),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def tell(*lines: str, stderr: bool = False) -> None:
    """Lines for people, each folded where it is wider than 80 columns; words, and so ids, stay whole."""
    for line in lines:
        say(*wrapped(line, ""), stderr=stderr)


def printable(text: str) -> str:
    """Foreign text fit for a terminal: control characters escaped, so that no value can forge output."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def clip(line: str) -> str:
    """A line cut, with a mark, to a terminal's width of at least 80 columns; in a pipe it stays whole."""
    line = printable(line)
    if not sys.stdout.isatty():
        return line
    width = max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
    return line if len(line) <= width else line[: width - 1] + "…"


def one_line(text: str, below: int = 2) -> list[str]:
    """A sentence that keeps to one line of a terminal; in a pipe it is wrapped, so that nothing is lost."""
    if sys.stdout.isatty():
        return [clip(text)]
    lines = textwrap.wrap(
        printable(text), WIDTH, subsequent_indent=" " * below,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return lines or [""]


def tree(node: Node) -> Iterator[str]:
    """A node and what hangs below it, as lines of at most 80 columns; digests are shortened."""
    yield from _branch(node, "", "")


def _branch(node: Node, first: str, rest: str) -> Iterator[str]:
    facts = [(name, _fact(value, name)) for name, value in node.facts.items()]
    yield clip(f"{first}{node.kind} {_fact(node.id)}")
    bar = "│  " if node.children else "   "
    line = ""
    width = WIDTH - len(rest) - len(bar)
    for name, text in facts:
        part = f"{name} {text}"
        if line and len(line) + 2 + len(part) > width:
            yield from _facts(line, rest + bar, width)
            line = part
        else:
            line = f"{line}, {part}" if line else part
    if line:
        yield from _facts(line, rest + bar, width)
    for number, child in enumerate(node.children):
        last = number == len(node.children) - 1
        yield from _branch(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def _facts(line: str, margin: str, width: int) -> Iterator[str]:
    """Facts beside the branches of a tree; one that is too long goes on below, words and ids whole."""
    parts = textwrap.wrap(
        line, max(width, 20), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    for part in parts or [line]:
        yield margin + part


def _fact(value: object, name: str = "") -> str:
    """A fact in few characters: digests short, lists by their items, objects by their values."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{key} {_fact(item, key)}" for key, item in value.items()) + ")"
    if isinstance(value, (list, tuple)):
        return ", ".join(_fact(item, name) for item in value) or "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) and name not in NAMING else str(value)


def _text(value: str) -> str:
    if len(value) == KEY_ID and not set(value) - set("0123456789abcdef"):
        return value[:16]
    function, mark, digits = value.partition(":")
    digest = mark and function in {"blake3", "sha256"} and len(digits) == 64
    return short(value) if digest else printable(value)


def plural(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun: 1 entry, 2,000 entries."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def short(digest: str | None, digits: int = 12) -> str:
    """A digest for people: its function and first digits."""
    if digest is None:
        return "-"
    name, _, value = digest.partition(":")
    return f"{name}:{value[:digits]}" if value else digest[:digits]


def amount(done: int, total: int | None, speed: float | None) -> str:
    """How far work is, and how fast it goes on: 1,310,720 of 9,999,360, 640,000/s."""
    far = f"{done:,}" if total is None else f"{done:,} of {total:,}"
    return far if not speed else f"{far}, {speed:,.{0 if speed >= 10 else 1}f}/s"


@contextmanager
def progress() -> Iterator[Advance]:
    """A bar on standard error for work that takes longer than two seconds; silent in a pipe."""
    started = time.monotonic()
    bar: Any = None
    tasks: dict[str, Any] = {}
    begun: dict[str, tuple[float, int]] = {}

    def advance(phase: str, done: int, total: int | None) -> None:
        nonlocal bar
        now = time.monotonic()
        since, before = begun.setdefault(phase, (now, done))
        if bar is None:
            if not sys.stderr.isatty() or now - started < SHOW_PROGRESS_AFTER:
                return
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[amount]}"),
                TimeRemainingColumn(compact=True),
                TextColumn("left"),
                console=console(stderr=True),
                transient=True,
            )
            bar.start()
        if phase not in tasks:
            tasks[phase] = bar.add_task(phase, total=total, amount="")
        speed = (done - before) / (now - since) if now - since >= RATE_AFTER else None
        bar.update(tasks[phase], completed=done, total=total, amount=amount(done, total, speed))

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()
