"""What a report is made from: a record as it was signed, and what can be read again of the rows behind it.

The record alone carries every number. Where its entries are gone or unreadable the figures of single rows
are left out, and `missing` says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from audits.record import PARTS
from contracts.errors import CannotAnswerError, LedgerError, MalformedError, TamperError, UsageError
from ledger import envelope as envelopes
from ledger.identify import EventFound, identify
from ledger.index_rows import RecordRow
from ledger.object_names import record_name
from ledger.reading import Reading, reading
from ledger.show import AUDITS, read_record
from ledger.snapshot import Snapshot, open_snapshot
from ledger.statement import Statement
from ledger.statement import parse as parse_statement

if TYPE_CHECKING:
    from audits.points import PairPoints, SeriesPoints
    from contracts.channel import Channel
    from ledger.home import Home
    from ledger.keys import PublicKey

JEV = "jev"
SHAPES: Mapping[str, type] = {"limits": list}  # of those parts of a result that are no objects


@dataclass(frozen=True)
class Signed:
    """A record's place in the log: its digest, its event, and its envelope as it was stored.

    `trusted`: the key of this log signed it. `revoked` says when and why, None where it stands.
    """

    record: str
    event: int
    envelope: bytes
    signers: tuple[str, ...]
    trusted: bool = True
    revoked: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Subject:
    """A statement with what stands behind it; `signed` is None where nothing was signed.

    `channels` by role, as far as this ledger has their specifications.
    """

    statement: Statement
    signed: Signed | None
    channels: Mapping[str, Channel]
    pair: PairPoints | None = None
    series: tuple[SeriesPoints, ...] | None = None
    missing: str | None = None

    @property
    def result(self) -> Mapping[str, Any]:
        """The seven parts that a re-run has to give again."""
        return _part(self.statement.predicate, "result")

    @property
    def environment(self) -> Mapping[str, Any]:
        """Where and with what it was computed."""
        return _part(self.statement.predicate, "environment")

    @property
    def audit(self) -> str:
        """The kind of audit."""
        return str(self.statement.predicate.get("audit"))

    @property
    def named(self) -> Mapping[str, Mapping[str, Any]]:
        """Every channel by its role: name, version and fingerprint, in the order of the design."""
        named = self.environment["channels"]
        roles = [arm["role"] for arm in self.result["design"].get("arms", ())]
        return {role: named[role] for role in dict.fromkeys([*roles, *named]) if role in named}

    @property
    def names(self) -> dict[str, str]:
        """What to call each arm, as the audit did: its channel, with a view source other than its own."""
        arms = {arm["role"]: arm["view_source"] for arm in self.result["design"].get("arms", ())}
        named = self.named
        return {
            role: named[role]["name"] if source == "own" else f"{named[role]['name']}:{source}"
            for role, source in arms.items()
            if role in named
        }


def logged(home: Home, text: str, *, key: PublicKey | None, trust_first: bool) -> Subject:
    """The record that an id prefix or an event number means, with its rows where they can be read."""
    with reading(home, key=key, trust_first=trust_first) as opened:
        row = _row(opened, text)
        opened.confirm(row.event)
        record = read_record(opened, row)
        data = opened.objects.read_checked(record_name(row.record), limit=envelopes.MAX_ENVELOPE)
        signed = Signed(
            row.record,
            row.event,
            data,
            _signers(data),
            record.trusted,
            opened.revocation(row.record, *AUDITS),
        )
    size = _size(record.statement)
    try:
        snapshot = open_snapshot(home, at=size, key=key, trust_first=trust_first)
    except LedgerError as error:
        return _checked(Subject(record.statement, signed, {}, missing=str(error)))
    return subject(snapshot, record.statement, signed)


def unsigned(snapshot: Snapshot, statement: Statement) -> Subject:
    """A result that nobody signed, read as a stored one would be."""
    return subject(snapshot, parse_statement(statement.to_bytes()), None)


def subject(snapshot: Snapshot, statement: Statement, signed: Signed | None) -> Subject:
    """A statement with channels and rows of the ledger at its head.

    TamperError where the rows give another result than the statement states.
    """
    plain = _checked(Subject(statement, signed, {}))
    found = {role: snapshot.book.by_fingerprint(named["fingerprint"]) for role, named in plain.named.items()}
    channels = {role: channel for role, channel in found.items() if channel is not None}
    pair, series, missing = None, None, None
    try:
        pair, series = _points(snapshot, plain)
    except TamperError as error:
        if error.kind == "record":
            raise
        missing = str(error)
    except LedgerError as error:
        missing = str(error)
    return Subject(statement, signed, channels, pair, series, missing)


def _points(snapshot: Snapshot, plain: Subject) -> tuple[PairPoints | None, tuple[SeriesPoints, ...] | None]:
    from audits import points

    result = plain.result
    pair, series = None, None
    if plain.audit == JEV and result["tables"].get("counts"):
        series = points.prediction_points(snapshot, result)
    elif points.is_pair(result) and result["flow"]["complete"]:
        pair = points.pair_points(snapshot, result)
    else:
        return None, None
    if pair is None and series is None:
        raise CannotAnswerError("another version computed them by a method that this one does not know")
    return pair, series


def _row(opened: Reading, text: str) -> RecordRow:
    """The record an id means; the number of an event means the record that event logged."""
    found = identify(opened.index, text, opened.size)
    if isinstance(found, EventFound):
        rows = [row for row in opened.index.records(opened.size) if row.event == found.event]
        if rows:
            return rows[0]
    if not isinstance(found, RecordRow):
        raise UsageError(
            "not an audit", code="not-an-audit", got=text[:80],
            expected="the id of an audit record or the number of its event",
            next_step="see `ledger log`",
        )  # fmt: skip
    return found


def _signers(data: bytes) -> tuple[str, ...]:
    return tuple(s.keyid or "unnamed key" for s in envelopes.parse(data).signatures)


def _size(statement: Statement) -> int:
    size = statement.subjects[0].name.rpartition("@")[2]
    if not (size.isascii() and size.isdigit() and len(size) < 19 and int(size)):
        raise MalformedError("the record names no head", expected="ORIGIN@SIZE", got=size[:80])
    return int(size)


def _checked(found: Subject) -> Subject:
    """The same subject where its statement has the parts that a report reads."""
    wrong = [part for part in PARTS if not isinstance(found.result.get(part), SHAPES.get(part, Mapping))]
    if not isinstance(found.environment.get("channels"), Mapping):
        wrong.append("channels")
    if wrong:
        raise MalformedError(
            "a record that this version cannot show", expected=", ".join(PARTS), got=f"no {', '.join(wrong)}"
        )
    return found


def _part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    if not isinstance(found, Mapping):
        raise MalformedError(f"{name} of an audit record is not an object")
    return found
