"""Numbers beside bars: rows of a table, at 80 columns for a terminal and as Markdown for a page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from case import Bar, Measured
from kept import Result, Results

BEGIN, END = "<!-- table -->", "<!-- end -->"
FROM, TO = 10_000_000, 50_000_000  # between which growth is judged
PAGE = 118  # columns of a line of text
GROWTH = 6.0  # times as long, at most, for five times as many entries
MEMORY_GROWTH = 1.2
MEMORY_OF = ("audit",)  # cases whose memory must not follow the number of entries
MET, NOT_MET, NOT_JUDGED, NOT_MEASURED = "met", "NOT MET", "", "absent"


@dataclass(frozen=True)
class Row:
    """A bar at a size: its number, what was wanted, and whether that is so."""

    name: str
    size: str
    value: float | None
    bar: Bar
    note: str = ""

    @property
    def verdict(self) -> str:
        """A bar without a number is never met; one stated for another size is not judged."""
        if self.value is None:
            return NOT_MEASURED
        if self.note:
            return NOT_JUDGED
        return MET if self.bar.met(self.value) else NOT_MET

    @property
    def number(self) -> str:
        return "-" if self.value is None else f"{figure(self.value)}{self._unit}"

    @property
    def wanted(self) -> str:
        if self.bar.at_most is not None:
            return f"<= {figure(self.bar.at_most)}{self._unit}"
        return f">= {figure(self.bar.at_least or 0.0)}{self._unit}"

    @property
    def _unit(self) -> str:
        return self.bar.unit if self.bar.unit in ("", "x") else f" {self.bar.unit}"


def rows(results: Results, bars: Mapping[str, Sequence[Bar]]) -> Iterator[Row]:
    """Every bar of every suite and size that ran, then growth."""
    for result in results.results:
        yield from rows_of(result, bars[result.suite])
    yield from growths(results.results)


def rows_of(result: Result, bars: Sequence[Bar]) -> Iterator[Row]:
    """The bars of one suite at one size."""
    found = result.found()
    for bar in _stated(bars, result.entries):
        absent = [name for name in bar.needs if name not in found]
        value = None if absent else bar.value(found)
        stated = "" if bar.of in (None, result.entries) else f"stated for {size(bar.of or 0)}"
        why = "; ".join(dict.fromkeys(result.missing.get(name, "not run") for name in absent))
        yield Row(bar.name + _fewer(found, bar, result), size(result.entries), value, bar, why or stated)


def _stated(bars: Sequence[Bar], entries: int) -> Iterator[Bar]:
    """Of bars with one name that which is stated for this size, else the one for the largest."""
    for name in dict.fromkeys(bar.name for bar in bars):
        same = [bar for bar in bars if bar.name == name]
        here = [bar for bar in same if bar.of in (None, entries)]
        yield here[0] if here else max(same, key=lambda bar: bar.of or 0)


def _fewer(found: Mapping[str, Measured], bar: Bar, result: Result) -> str:
    """Says of a rate on how many entries it was measured, where those are fewer."""
    given = [found[name].entries or result.entries for name in bar.needs if name in found]
    fewest = min(given, default=result.entries)
    return f" (that on {size(_nearly(fewest))})" if 0 < fewest <= 0.95 * result.entries else ""


def _nearly(entries: int) -> int:
    """Two digits of it: files hold whole trajectories, a little less than was asked for."""
    return int(float(f"{entries:.2g}"))


def growths(results: Sequence[Result]) -> Iterator[Row]:
    """How time grows from the smallest size of a suite to each larger one, and memory where it must not."""
    for suite in dict.fromkeys(result.suite for result in results):
        small, *larger = sorted((r for r in results if r.suite == suite), key=lambda r: r.entries)
        for large in larger:
            yield from _between(small, large)


def _between(small: Result, large: Result) -> Iterator[Row]:
    before, after = small.found(), large.found()
    sizes = f"{size(small.entries)} to {size(large.entries)}"
    note = "" if (small.entries, large.entries) == (FROM, TO) else f"stated for {size(FROM)} to {size(TO)}"
    for name, one in before.items():
        if not one.grows or name not in after:
            continue
        time = Bar(name, _nothing, (name,), at_most=GROWTH, unit="x")
        yield Row(f"time from {sizes}: {name}", "", after[name].seconds / one.seconds, time, note)
        if name in MEMORY_OF:
            memory = Bar(name, _nothing, (name,), at_most=MEMORY_GROWTH, unit="x")
            yield Row(f"memory from {sizes}: {name}", "", after[name].megabytes / one.megabytes, memory, note)


def _nothing(_found: Mapping[str, Measured]) -> float:
    raise AssertionError("growth is of two sizes, not of one")


def terminal(rows: Iterable[Row]) -> str:
    """The bars at 80 columns."""
    lines = [f"{'':<42}{'entries':>8}{'measured':>10}{'bar':>12} verdict"]
    for row in rows:
        *first, last = textwrap.wrap(row.name, 41)
        lines += first
        lines.append(f"{last:<42}{row.size:>8}{row.number:>10}{row.wanted:>12} {row.verdict}".rstrip())
        if row.value is None:
            lines += textwrap.wrap(row.note, 76, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


def times(result: Result) -> str:
    """What a suite measured, at 80 columns."""
    label = f"{result.suite}, {size(result.entries)} entries"
    lines = [f"{label:<36}{'runs':>5}{'seconds':>10}{'cpu s':>9}{'entries/s':>12}{'MB':>8}"]
    for name, one in result.found().items():
        *first, last = textwrap.wrap(name, 35)
        lines += first
        cells = _cells(one)
        lines.append(
            f"{last:<36}{cells[0]:>5}{cells[1]:>10}{cells[2]:>9}{cells[3]:>12}{cells[4]:>8}".rstrip()
        )
    lines += [line for name, why in result.missing.items() for line in textwrap.wrap(f"{name}: {why}", 79)]
    return "\n".join(lines)


def _cells(one: Measured) -> tuple[str, str, str, str, str]:
    """Runs, seconds, processor seconds, entries a second and megabytes; a fact stands under seconds."""
    if one.value is not None:
        return "", figure(one.value), "", "", ""
    rate = "" if one.entries is None else f"{one.rate:,.0f}"
    return str(one.runs), f"{one.seconds:.2f}", f"{one.processor:.2f}", rate, f"{one.megabytes:,.0f}"


def markdown(results: Results, bars: Mapping[str, Sequence[Bar]]) -> str:
    """Both tables with the day, the machine and the versions, for a page."""
    largest = max((result.entries for result in results.results), default=0)
    named = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    lines = [
        *textwrap.wrap(
            f"Measured on {results.date} with up to {size(largest)} entries, on {results.machine}. "
            f"Versions: {named}.",
            PAGE,
        ),
        "",
        "| what | entries | measured | bar | |",
        "|---|---:|---:|---:|---|",
    ]
    for row in rows(results, bars):
        said = f"not measured ({row.note})" if row.value is None else row.verdict.lower() or row.note
        lines.append(f"| {row.name} | {row.size} | {row.number} | {row.wanted} | {said} |")
    lines += ["", "| case | entries | runs | seconds | cpu s | entries/s | peak MB |", "|---|" + "---:|" * 6]
    for result in results.results:
        for name, one in result.found().items():
            runs, seconds, processor, rate, megabytes = _cells(one)
            entries = size(_entries(one, result))
            if one.value is not None:
                lines.append(f"| {name}: {seconds} | {entries} | | | | | |")
                continue
            lines.append(f"| {name} | {entries} | {runs} | {seconds} | {processor} | {rate} | {megabytes} |")
    return "\n".join(lines) + "\n"


def _entries(one: Measured, result: Result) -> int:
    """What the suite was asked for, unless a case was given clearly less."""
    given = one.entries or result.entries
    return result.entries if given > 0.95 * result.entries else _nearly(given)


def put(page: Path, text: str) -> None:
    """Between the marks of a page that has them; else the file holds nothing but the text."""
    before, found, rest = (page.read_text(encoding="utf-8") if page.exists() else "").partition(BEGIN)
    if found:
        text = f"{before}{BEGIN}\n\n{text}\n{END}{rest.partition(END)[2]}"
    page.write_text(text, encoding="utf-8")


def figure(value: float) -> str:
    """Three digits, without an exponent where that can be."""
    if value and abs(value) < 0.001:
        return f"{value:.1g}"
    if abs(value) >= 1_000_000:
        return f"{value / 1_000_000:,.4g}M"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def size(entries: int) -> str:
    """10M, 250k: the nearest, since files hold whole trajectories."""
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if entries >= unit * 0.95:
            return f"{entries / unit:.3g}{letter}"
    return str(entries) if entries else ""
