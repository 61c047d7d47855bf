"""The set level of the contract: which rows of a call become entries, and which sides are refused by name.

1. Rows whose key the ledger has: the same content is skipped, other content refuses the call.
2. Rows left are grouped into sides, and each side is judged (`sides`).
3. What contradicts itself about a transition refuses all its sides in the call (`transitions`).
4. Rows of whole, uncontradicted sides are admitted in canonical order; the rest is refused, also in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from contracts.advice import next_step
from contracts.channel import Channel, ChannelBook
from contracts.digest import unpack
from contracts.donors import donors, strange_views
from contracts.errors import ContractError
from contracts.findings import Findings
from contracts.order import Ints
from contracts.ordered import Ordered
from contracts.refusals import SIDES, RefusedSide, refused_sides
from contracts.rows import RowResult
from contracts.schema import REFUSED, TRANSPORT
from contracts.sides import Rows, count_sides, judge_sides
from contracts.transitions import bindings, judge_transitions


@dataclass(frozen=True)
class Admission:
    """What became of the rows of one call.

    `admitted` has the columns of TRANSPORT, `refused` those of REFUSED, both with `source_file` and
    `source_row`, in canonical order (equal keys among the refused by content), text and digests coded as
    they came. `sides` is a SIDES table of the refused sides in the order of their keys; it stays a table
    since a bad file can have hundreds of thousands, and `refused_sides` makes values of it when asked.
    `skipped` rows were entries already. `counts` says how many rows, sides and transitions were judged
    and refused. `hint` is the next step where anything was found. Where `refuses_call`, write nothing.
    `bindings` is what `transitions.bindings` says of the rows, None unless it was asked for.
    """

    admitted: pa.Table
    refused: pa.Table
    sides: pa.Table
    skipped: int
    findings: Findings
    counts: Mapping[str, int]
    strict: bool
    hint: str | None
    bindings: pa.Table | None = None

    @cached_property
    def refused_sides(self) -> tuple[RefusedSide, ...]:
        """The refused sides as values; iterate `refusals.refused_sides(sides)` where there may be many."""
        return tuple(refused_sides(self.sides))

    @property
    def refuses_call(self) -> bool:
        """Whether the call as a whole is refused: a fault of a row or file, or with `strict` any at all."""
        return self.findings.refuses_call or (self.strict and self.findings.total > 0)

    def error(self) -> ContractError | None:
        """The error to raise where the call is refused, else None."""
        return self.findings.error(strict=self.strict)


def judge(
    rows: RowResult,
    book: ChannelBook,
    existing: pa.Table | None = None,
    strict: bool = False,
    *,
    files: Sequence[str] = (),
    known_sets: Mapping[str, str] | None = None,
    part: bool = False,
) -> Admission:
    """Judge the rows of one call as a set.

    `existing` holds the entries of the transitions concerned (canonical columns; an optional text column
    `source` says where each came from). `files` names the files that `source_file` counts. `known_sets`
    maps a candidates digest to the `candidate_set_digest` it stands for anywhere in the ledger. Where the
    rows are but a `part` of the call, the admission tells their `bindings` too. With findings at row level
    the sides are not judged: a rule that could not run has not passed.
    """
    findings = Findings()
    findings.merge(rows.findings)
    table = rows.table.slice(0, 0) if rows.findings.refuses_call else rows.table
    return _Judgement(Ordered(table, existing, tuple(files)), book, findings).admission(
        strict, known_sets or {}, part
    )


class _Judgement:
    """One call's rows on their way through the set rules."""

    def __init__(self, ordered: Ordered, book: ChannelBook, findings: Findings) -> None:
        self.ordered, self.keys, self.findings = ordered, ordered.keys, findings
        channels = [_registered(book, packed) for packed in ordered.keys.channel.values.to_pylist()]
        self.names = tuple(c.name if len(book.versions(c.name)) == 1 else c.reference for c in channels)
        self.layouts = np.array([c.layouts or 0 for c in channels] or [0], dtype=np.int64)
        self.labels = np.array([len(c.labels or ()) for c in channels] or [0], dtype=np.int64)

    def admission(self, strict: bool, known_sets: Mapping[str, str], part: bool) -> Admission:
        with self.ordered.ahead():
            rows, skipped = self._against_the_ledger()
            outcome = self._sides(rows, known_sets, part) if rows.fresh.any() else self._nothing()
        return Admission(
            admitted=self.ordered.take(outcome.admitted, TRANSPORT.names),
            refused=outcome.refused,
            sides=outcome.sides,
            skipped=skipped,
            findings=self.findings,
            counts={
                "rows": int((~rows.held).sum()),
                "skipped_rows": skipped,
                "admitted_rows": len(outcome.admitted),
                "refused_rows": outcome.refused.num_rows,
                **outcome.counts,
            },
            strict=strict,
            hint=next_step(self.findings, self.ordered.files),
            bindings=outcome.bindings,
        )

    def _against_the_ledger(self) -> tuple[Rows, int]:
        """The rows with what each is, and how many repeat an entry; conflicts become findings."""
        ordered, held = self.ordered, self.ordered.held
        fresh = ~held
        if ordered.existing is None:
            return Rows(self.keys, fresh, held, ordered.failed), 0
        from contracts.conflicts import known

        found = known(self.keys, held, ordered.table, ordered.existing)
        fresh[found.skipped] = False
        fresh[found.conflicts] = False
        if len(found.conflicts):
            from contracts.conflict_findings import report_conflicts

            report_conflicts(self.findings, found, ordered, self.names)
        return Rows(self.keys, fresh, held, ordered.failed), len(found.skipped)

    def _sides(self, rows: Rows, known_sets: Mapping[str, str], part: bool) -> _Outcome:
        ordered = self.ordered
        sides = count_sides(rows, self.layouts, self.labels)
        given = donors(rows, sides)
        strange = np.zeros(len(sides), dtype=np.bool_)
        if given.named.any():
            strange = strange_views(rows, sides, given, ordered.view)
        of_side = judge_sides(rows, sides, self.labels, given.itself, strange)
        of_transition = judge_transitions(rows, sides, ordered.said, known_sets)
        transition = self.keys.transition[sides.first]
        refused = np.zeros(len(sides), dtype=np.bool_)
        for mask in of_side.values():
            refused |= mask
        for mask in of_transition.values():
            refused |= mask[transition] & sides.judged
        counts = {
            "sides": int(sides.judged.sum()),
            "refused_sides": int(refused.sum()),
            "transitions": len(np.unique(transition[sides.judged])),
            "refused_transitions": len(np.unique(transition[refused])),
        }
        bound = bindings(rows, sides, ordered.said.candidates_hash) if part else None
        if not refused.any():
            return replace(
                self._nothing(), admitted=np.flatnonzero(rows.fresh), counts=counts, bindings=bound
            )
        from contracts.refused_rows import Refusing  # its sentences are imported where something is refused

        refusing = Refusing(ordered, rows, sides, self.names, self.layouts, self.labels)
        refusing.tell(self.findings, of_side, of_transition)
        table, named = refusing.tables(refused, of_side, of_transition)
        admitted = np.flatnonzero(rows.fresh & ~refused[sides.side])
        return _Outcome(admitted, table, named, counts, bound)

    def _nothing(self) -> _Outcome:
        nowhere: Ints = np.empty(0, dtype=np.int64)
        refused = self.ordered.take(nowhere, REFUSED.names)
        none = dict.fromkeys(("sides", "refused_sides", "transitions", "refused_transitions"), 0)
        return _Outcome(nowhere, refused, SIDES.empty_table(), none)


@dataclass(frozen=True)
class _Outcome:
    """Rows to admit, refused rows and sides, and how many sides and transitions there were."""

    admitted: Ints
    refused: pa.Table
    sides: pa.Table
    counts: Mapping[str, int]
    bindings: pa.Table | None = None


def _registered(book: ChannelBook, packed: bytes) -> Channel:
    channel = book.by_fingerprint(unpack(packed))
    assert channel is not None, "rows carry registered channels only"
    return channel
