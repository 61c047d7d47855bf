"""The set level of the contract: which rows of a call become entries, and which sides are refused by name.

1. Rows whose key the ledger has: the same content is skipped, other content refuses the call.
2. Rows left are grouped into sides, and each side is judged (`sides`).
3. What contradicts itself about a transition refuses all its sides in the call (`transitions`).
4. Rows of whole, uncontradicted sides are admitted in canonical order; the rest is refused, also in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.channel import Channel, ChannelBook
from contracts.conflict_findings import Conflicts, report_conflicts
from contracts.conflicts import Known, known
from contracts.digest import unpack
from contracts.donors import donors, strange_views
from contracts.errors import ContractError
from contracts.findings import Findings
from contracts.labels import ABSENT, Codes, Labels, Mask
from contracts.order import Ints, Keys, column, keys, permuted, ranks
from contracts.records import tie_order
from contracts.refusals import SIDES, RefusedSide, refused_sides
from contracts.rows import OK, RowResult
from contracts.schema import REFUSED, TRANSPORT
from contracts.side_faults import row_faults, side_faults
from contracts.side_findings import reject, report
from contracts.side_models import CELL_MISSING
from contracts.side_rejects import Origin, Rejects
from contracts.side_sentences import Scene
from contracts.side_table import side_table
from contracts.sides import Rows, Sides, count_sides, judge_sides
from contracts.transitions import Said, judge_transitions

ORIGIN = ("source_file", "source_row")


@dataclass(frozen=True)
class Admission:
    """What became of the rows of one call.

    `admitted` has the columns of TRANSPORT, `refused` those of REFUSED, both with `source_file` and
    `source_row`, in canonical order (equal keys among the refused by content), text and digests coded as
    they came. `sides` is a SIDES table of the refused sides in the order of their keys; it stays a table
    since a bad file can have hundreds of thousands, and `refused_sides` makes values of it when asked.
    `skipped` rows were entries already. `counts` says how many rows, sides and transitions were judged
    and refused. `hint` is the next step where sides lack cells. Where `refuses_call`, write nothing.
    """

    admitted: pa.Table
    refused: pa.Table
    sides: pa.Table
    skipped: int
    findings: Findings
    counts: Mapping[str, int]
    strict: bool
    hint: str | None

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
) -> Admission:
    """Judge the rows of one call as a set.

    `existing` holds the entries of the transitions concerned (canonical columns; an optional text column
    `source` says where each came from). `files` names the files that `source_file` counts. `known_sets`
    maps a candidates digest to the `candidate_set_digest` it stands for anywhere in the ledger. With
    findings at row level the sides are not judged: a rule that could not run has not passed.
    """
    findings = Findings()
    findings.merge(rows.findings)
    table = rows.table.slice(0, 0) if rows.findings.refuses_call else rows.table
    return _Judgement(table, book, existing, tuple(files), findings).admission(strict, known_sets or {})


class _Judgement:
    """One call's rows on their way through the set rules, in canonical order behind their entries'."""

    def __init__(
        self,
        table: pa.Table,
        book: ChannelBook,
        existing: pa.Table | None,
        files: tuple[str, ...],
        findings: Findings,
    ) -> None:
        self.table = table.unify_dictionaries().combine_chunks()
        self.existing = None if existing is None or not existing.num_rows else existing
        self.files, self.findings = files, findings
        self.keys: Keys = keys(self._inputs)
        fingerprints = [unpack(packed) for packed in self.keys.channel.values.to_pylist()]
        self.channels = [_registered(book, fingerprint) for fingerprint in fingerprints]
        self.names = tuple(
            channel.name if len(book.versions(channel.name)) == 1 else channel.reference
            for channel in self.channels
        )

    @property
    def _inputs(self) -> list[pa.Table]:
        return [self.table] if self.existing is None else [self.existing, self.table]

    @property
    def _held(self) -> int:
        return 0 if self.existing is None else self.existing.num_rows

    def admission(self, strict: bool, known_sets: Mapping[str, str]) -> Admission:
        rows, skipped = self._against_the_ledger()
        layouts = _by_channel([channel.layouts or 0 for channel in self.channels])
        labels = _by_channel([len(channel.labels or ()) for channel in self.channels])
        sides = count_sides(rows, layouts, labels)
        given = donors(rows, sides)
        strange = np.zeros(len(sides), dtype=np.bool_)
        if given.named.any():
            strange = strange_views(rows, sides, given, self._sorted("view_hash"))
        of_side = judge_sides(rows, sides, labels, given.itself, strange)
        said = self._said()
        of_transition = judge_transitions(rows, sides, said, known_sets)
        transition = self.keys.transition[sides.first]
        refused = np.zeros(len(sides), dtype=np.bool_)
        for mask in of_side.values():
            refused |= mask
        for mask in of_transition.values():
            refused |= mask[transition] & sides.judged
        wanted = np.flatnonzero(refused)
        scene = Scene(
            rows=rows,
            sides=sides,
            kind=row_faults(rows, sides) if len(wanted) else np.zeros(len(self.keys), dtype=np.int8),
            status=self._status,
            channels=self.names,
            layouts=layouts,
            labels=labels,
            origin=self._origin,
        )
        if len(wanted):
            report(self.findings, scene, said, of_side, of_transition)
            reject(self.findings, scene, said, of_side, of_transition)
        at = np.flatnonzero(rows.fresh & refused[sides.side])
        at = at[self._content_order(at)]
        refused_rows = self._take(at, REFUSED.names)
        faults = side_faults(rows, sides, wanted, scene.kind)
        number = np.cumsum(refused) - 1
        return Admission(
            admitted=self._take(np.flatnonzero(rows.fresh & ~refused[sides.side]), TRANSPORT.names),
            refused=refused_rows,
            sides=side_table(
                rows,
                sides,
                faults,
                refused_rows,
                number[sides.side[at]],
                self._status,
                of_side,
                of_transition,
            )
            if len(wanted)
            else SIDES.empty_table(),
            skipped=skipped,
            findings=self.findings,
            counts=_counts(rows, sides, transition, refused, at, skipped),
            strict=strict,
            hint=self._hint(of_side[CELL_MISSING]),
        )

    def _against_the_ledger(self) -> tuple[Rows, int]:
        """The rows with what each is, and how many repeat an entry; conflicts become findings."""
        count = len(self.keys)
        held = np.zeros(count, dtype=np.bool_)
        failed = self._status.codes != ABSENT
        ok = [value == OK for value in self._status.values.to_pylist()]
        failed &= ~np.array([*ok, True], dtype=np.bool_)[self._status.codes]
        if self.existing is None:
            return Rows(self.keys, ~held, held, failed), 0
        held = self.keys.positions(np.arange(count)) < self._held
        found = known(self.keys, held, self.table, self.existing)
        fresh = ~held
        fresh[found.skipped] = False
        fresh[found.conflicts] = False
        rows = Rows(self.keys, fresh, held, failed)
        if len(found.conflicts):
            self._conflicts(found)
        return rows, len(found.skipped)

    def _conflicts(self, found: Known) -> None:
        assert self.existing is not None
        ours = self.table.take(pa.array(self.keys.positions(found.conflicts) - self._held))
        theirs = self.existing.take(pa.array(self.keys.positions(found.against)))
        rejects = Rejects(self.keys, self._origin, self.names)
        both = Conflicts(found, ours, theirs)
        report_conflicts(self.findings, both, self.keys, self._origin, self.names, rejects)

    @cached_property
    def _status(self) -> Labels:
        """The status of every row in canonical order, absent for entries."""
        if "status" not in self.table.column_names:
            return Labels(np.full(len(self.keys), ABSENT, dtype=np.int32), pa.array([], pa.string()))
        own = ranks(self.table.column("status"))
        codes = np.append(np.full(self._held, ABSENT, dtype=np.int32), own.codes)
        return permuted(Labels(codes, own.values), self.keys.order)

    @cached_property
    def _origin(self) -> Origin:
        """File and row of every row in canonical order, -1 for entries."""
        file, row = (
            np.append(np.full(self._held, -1), self.table.column(name).to_numpy()).astype(np.int64)
            for name in ORIGIN
        )
        every = np.arange(len(self.keys))
        return Origin(self.files, file[self.keys.positions(every)], row[self.keys.positions(every)])

    def _sorted(self, name: str) -> Labels:
        return permuted(ranks(column(self._inputs, name)), self.keys.order)

    def _said(self) -> Said:
        success = [pc.fill_null(table.column("success").cast(pa.int8()), ABSENT) for table in self._inputs]
        codes: Codes = np.concatenate([each.to_numpy() for each in success]).astype(np.int32)
        values = pa.array([False, True]) if (codes != ABSENT).any() else pa.array([], pa.bool_())
        return Said(
            target=self._sorted("target"),
            target_type=self._sorted("target_type"),
            step_kind=self._sorted("step_kind"),
            success=permuted(Labels(codes, values), self.keys.order),
            candidates_hash=self._sorted("candidates_hash"),
        )

    def _content_order(self, at: Ints) -> Ints:
        """The order of some rows with those of equal key by content, so that input order is forgotten."""
        order = np.arange(len(at))
        repeat = self.keys.repeat[at]
        if repeat.any():
            tied = repeat.copy()
            tied[:-1] |= repeat[1:]
            rows = np.flatnonzero(tied)
            content = tie_order(self._take(at[rows], REFUSED.names))
            run = np.cumsum(~repeat)[rows]
            order[rows] = rows[content[np.argsort(run[content], kind="stable")]]
        return order

    def _take(self, at: Ints, names: tuple[str, ...]) -> pa.Table:
        """Rows of the call by canonical position."""
        table = self.table.select([*names, *ORIGIN])
        if self.keys.order is None and len(at) == table.num_rows:
            return table
        return table.take(pa.array(self.keys.positions(at) - self._held))

    def _hint(self, missing: Mask) -> str | None:
        if not missing.any():
            return None
        files = " ".join(self.files) or "A"
        return (
            "separate calls must each bring whole sides; where other files hold the missing cells, give all "
            f"in one call: ledger ingest {files} B …"
        )


def _registered(book: ChannelBook, fingerprint: str) -> Channel:
    channel = book.by_fingerprint(fingerprint)
    assert channel is not None, "rows carry registered channels only"
    return channel


def _by_channel(values: list[int]) -> Ints:
    return np.array(values or [0], dtype=np.int64)


def _counts(
    rows: Rows, sides: Sides, transition: Codes, refused: Mask, at: Ints, skipped: int
) -> Mapping[str, int]:
    fresh = int(rows.fresh.sum())
    return {
        "rows": int((~rows.held).sum()),
        "admitted_rows": fresh - len(at),
        "refused_rows": len(at),
        "skipped_rows": skipped,
        "sides": int(sides.judged.sum()),
        "refused_sides": int(refused.sum()),
        "transitions": len(np.unique(transition[sides.judged])),
        "refused_transitions": len(np.unique(transition[refused])),
    }
