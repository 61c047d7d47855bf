"""What a contract found wrong: exact counts by code, a bounded number of examples, every row on demand.

A `Finding` is one sentence for people with its parts for programs. A `Findings` collects them for one
call: it counts every one, keeps the first few of each code, and holds the failing rows as Arrow tables
(`rejects`), so a million failing rows cost some columns of integers and not a million objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from contracts.errors import ContractError
from contracts.schema import TRANSPORT, SegmentSchema

Level = Literal["row", "side", "face", "file"]
KeyValue = str | int | None

EXAMPLES = 100  # findings kept in full for one code
ROWS = 10  # row numbers kept in one finding
SHOWN = 80  # characters of a foreign value in a message
# A fault in a row or between files makes the call as a whole untrustworthy; a side is refused alone.
REFUSING: frozenset[Level] = frozenset({"row", "file"})
ALL: frozenset[Level] = frozenset({"row", "side", "face", "file"})


def shown(value: object, limit: int = SHOWN) -> str:
    """A foreign value fit for one line of a message: control characters escaped, long text cut.

    Line separators, terminal escapes and look-alike spaces would let an id forge a message.
    """
    text = value if isinstance(value, str) else str(value)
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)


@dataclass(frozen=True)
class Finding:
    """One thing a contract refused.

    `code` is a stable kebab-case identifier and `message` one line for people. `key` names the entry,
    side or transition by its columns; `rows` are 1-based data rows of `file`, at most ROWS of them;
    `count` is how many rows (at side level: sides) this finding stands for. `wanted` and `got` are
    values as text, None where the question makes no sense.
    """

    code: str
    level: Level
    message: str
    column: str | None = None
    key: Mapping[str, KeyValue] | None = None
    file: str | None = None
    rows: tuple[int, ...] = ()
    count: int = 1
    wanted: str | None = None
    got: str | None = None

    def __post_init__(self) -> None:
        assert self.count >= 1, "a finding that found nothing"
        assert len(self.rows) <= ROWS, "row numbers of a finding are bounded; all rows go to rejects"


def rejects_schema(schema: SegmentSchema = TRANSPORT) -> pa.Schema:
    """The columns of a rejects table: where, what, and the entry key as far as it could be read.

    Text is dictionary-encoded because codes, files and ids repeat over every failing row. Integer key
    columns are int64, null where the value in the file was no integer; the channel is text as given.
    """
    coded = pa.dictionary(pa.int32(), pa.string())
    keys = [
        pa.field(column.name, pa.int64() if column.type.startswith("int") else coded)
        for column in schema.columns
        if column.key
    ]
    return pa.schema(
        [
            pa.field("file", coded),
            pa.field("row", pa.int64()),
            pa.field("level", coded),
            pa.field("code", coded),
            pa.field("column", coded),
            *keys,
            pa.field("wanted", coded),
            pa.field("got", coded),
        ]
    )


def _about(rejects: pa.Table) -> tuple[str, ...]:
    """What the rows of a rejects table are about, which is told of them together."""
    names = ("code", "column", "wanted") if rejects["level"][0].as_py() == "row" else ("code", "column")
    return tuple(rejects[name][0].as_py() or "" for name in names)


@dataclass
class CodeCount:
    """How often one code was found, at which level."""

    level: Level
    count: int = 0


@dataclass
class Findings:
    """The findings of one call, in the order in which the contracts met them.

    Counts are exact; examples are the first `limit` of each code. Adding is the only way to change it.
    """

    limit: int = EXAMPLES
    _counts: dict[str, CodeCount] = field(default_factory=dict)
    _kept: dict[str, int] = field(default_factory=dict)
    _examples: list[Finding] = field(default_factory=list)
    _rejects: list[pa.Table] = field(default_factory=list)

    def add(self, finding: Finding) -> None:
        """Count a finding, and keep it while its code has fewer than `limit` examples."""
        self.tally(finding.code, finding.level, finding.count)
        kept = self._kept.get(finding.code, 0)
        if kept < self.limit:
            self._kept[finding.code] = kept + 1
            self._examples.append(finding)

    def tally(self, code: str, level: Level, count: int) -> None:
        """Count `count` more findings of a code without an example of them."""
        entry = self._counts.setdefault(code, CodeCount(level))
        assert entry.level == level, f"code {code} is used at two levels"
        entry.count += count

    def reject(self, rows: pa.Table) -> None:
        """Keep failing rows for `--rejects`; `rows` has the columns of `rejects_schema` of its kind."""
        if rows.num_rows:
            self._rejects.append(rows)

    def take_rejects(self) -> list[pa.Table]:
        """The failing rows as they were kept, which are no longer kept here."""
        taken, self._rejects = self._rejects, []
        return taken

    def merge(self, other: Findings) -> None:
        """Take over everything of another collection, behind what is here."""
        added = dict.fromkeys(other._counts, 0)
        for finding in other._examples:
            self.add(finding)
            added[finding.code] += finding.count
        for code, entry in other._counts.items():
            if entry.count > added[code]:
                self.tally(code, entry.level, entry.count - added[code])
        self._rejects.extend(other._rejects)

    @property
    def total(self) -> int:
        """How many were found in all."""
        return sum(entry.count for entry in self._counts.values())

    @property
    def by_code(self) -> Mapping[str, int]:
        """Exact counts, in order of first appearance."""
        return {code: entry.count for code, entry in self._counts.items()}

    def level(self, code: str) -> Level:
        """The level of a code that was found; KeyError where it was not."""
        return self._counts[code].level

    def count_at(self, levels: Iterable[Level]) -> int:
        """How many were found at the given levels."""
        wanted = frozenset(levels)
        return sum(entry.count for entry in self._counts.values() if entry.level in wanted)

    @property
    def examples(self) -> tuple[Finding, ...]:
        """The findings kept in full."""
        return tuple(self._examples)

    @property
    def refuses_call(self) -> bool:
        """Whether something was found that refuses the whole call and not only its side."""
        return self.count_at(REFUSING) > 0

    def rejects(self, schema: SegmentSchema = TRANSPORT) -> pa.Table:
        """Every failing row, as one table of `rejects_schema(schema)`: by code and column, then as found.

        So their order does not depend on how the rows of a call were divided to be judged.
        """
        wanted = rejects_schema(schema)
        if not self._rejects:
            return wanted.empty_table()
        tables = sorted((table.cast(wanted) for table in self._rejects), key=_about)
        return pa.concat_tables(tables).unify_dictionaries()

    def error(self, *, strict: bool = False) -> ContractError | None:
        """The error of a refused call: its first finding with a count of the rest, or None.

        `strict` lets a finding of any level refuse the call.
        """
        levels = ALL if strict else REFUSING
        count = self.count_at(levels)
        if not count:
            return None
        first = next((f for f in self._examples if f.level in levels), None)
        if first is None:
            code = next(code for code, entry in self._counts.items() if entry.level in levels)
            return ContractError(f"{count} findings, first of code {code}", code=code)
        rest = count - first.count
        message = first.message if rest <= 0 else f"{first.message} (and {rest} more)"
        return ContractError(message, code=first.code)
