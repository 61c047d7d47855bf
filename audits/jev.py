"""Does one answer depend on what else a request asks? The audit of before/after pairs of predictions.

Flips, ties, changed actions and accuracies by year and by series (channel, intervention, mode), paired
differences between the series, and which flips outlive a change of precision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from audits import limits
from audits.design import SEED
from audits.jev_design import AUDIT, RESAMPLES, JevDesign
from audits.jev_estimates import PRIMARY, Judged, Progress, Skipped, estimates, judge
from audits.jev_flow import flow, provenance, shortfall
from audits.jev_limits import CLAIMED_MASS, JEV, NO_EVENTS, PRECISION, few_queries, not_compared
from audits.jev_precision import diagnosis
from audits.jev_series import Series, series_of, years_of
from audits.jev_tables import claimed, tables
from audits.record import AuditResult, Head, SegmentSubject, estimate_fields
from audits.statistics.estimate import Estimate, Reason
from audits.statistics.jev import THRESHOLD
from contracts.channel import Channel
from contracts.errors import CannotAnswerError
from ledger.snapshot import UNDECLARED, Level, Predictions, PredictionScope, Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "ledger.audit.jev.v1"
# Below the first a percentile interval carries no verdict; below the second it is known to be too short.
FEWEST, FEW = 10, 20


@dataclass(frozen=True)
class JevResult:
    """The result of the audit.

    `audit` is the record's content, `judged` what the pairs of each series and year show, with the exact
    values per query that the estimates summarise; `queries` are the ids their codes stand for.
    """

    audit: AuditResult
    judged: tuple[Judged, ...]
    queries: pa.Array

    @property
    def result(self) -> Mapping[str, Any]:
        """The seven parts that a re-run has to give again."""
        return self.audit.result

    @property
    def estimates(self) -> Mapping[str, Any]:
        """Every estimate as the record holds it, by its id."""
        found: Mapping[str, Any] = self.result["estimates"]
        return found

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        from audits.jev_sentence import sentence

        return sentence(self.result)

    def to_arrow(self) -> pa.Table:
        """One row per query of each series: series, year, query_id, then every outcome.

        A value is the query's mean over targets, variants and scenarios, rounded once to float64; an outcome
        that a series does not have is null. Sorted by series, year and query (UTF-8 bytes).
        """
        import pyarrow as pa

        names = dict.fromkeys(name for each in self.judged for name in each.vectors)
        outcomes = {name: pa.float64() for name in names}
        keys = {"series": pa.string(), "year": pa.int32(), "query_id": pa.string()}
        tables = [pa.schema(keys | outcomes).empty_table()]
        for each in self.judged:
            count = len(each.queries)
            columns = {
                "series": pa.array([each.series.label] * count, pa.string()),
                "year": pa.array([each.part.year] * count, pa.int32()),
                "query_id": self.queries.take(pa.array(each.queries)),
            }
            for name in names:
                vector = each.vectors.get(name)
                columns[name] = pa.nulls(count, pa.float64()) if vector is None else pa.array(vector.floats())
            tables.append(pa.table(columns))
        return pa.concat_tables(tables)

    def _repr_html_(self) -> str:
        """A notebook's view: what came in, the sentence, and every estimate."""
        from audits.results import notebook_view

        flow = self.result["flow"]
        came = f"{flow['complete']:,} of {flow['pairs']:,} pairs complete, {flow['queries']:,} queries"
        return notebook_view(self.audit.audit, came, self.sentence, self.estimates)


def jev(
    snapshot: Snapshot,
    channels: Sequence[str] | None = None,
    *,
    interventions: Sequence[str] | None = None,
    modes: Sequence[str] | None = None,
    scenarios: Sequence[str] | None = None,
    acquisitions: Sequence[tuple[str | None, str]] = (),
    require: Level = Level.BOUND,
    threshold: float = THRESHOLD,
    label_order: Sequence[str] | None = None,
    precision: tuple[str, str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    progress: Progress | None = None,
) -> JevResult:
    """Audit the pairs of predictions in scope: None leaves a part open, `undeclared` is what files leave out.

    `precision` names two channels whose flips are compared pair by pair; without `channels` they are the
    scope. `acquisitions` are (fingerprint of the channel it restricts or None, id).
    """
    pair = None if precision is None else (_channel(precision[0], snapshot), _channel(precision[1], snapshot))
    named = precision if channels is None else channels
    scope = PredictionScope(
        channels=_ordered(None if named is None else [_declared(name, snapshot) for name in named]),
        interventions=_ordered(_values(interventions)),
        modes=_ordered(_values(modes)),
        scenarios=None if scenarios is None else tuple(sorted(set(scenarios), key=str.encode)),
        acquisitions=tuple(sorted(set(acquisitions), key=lambda pair: (pair[0] or "", pair[1]))),
        require=require,
    )
    order = None if label_order is None else tuple(label_order)
    design = JevDesign(scope, threshold, order, pair, resamples, seed)
    return _run(snapshot, design, progress)


def _channel(name: str, snapshot: Snapshot) -> str:
    return snapshot.book.resolve(name).fingerprint


def _declared(name: str, snapshot: Snapshot) -> str | None:
    return None if name == UNDECLARED else _channel(name, snapshot)


def _values(names: Sequence[str] | None) -> list[str | None] | None:
    return None if names is None else [None if name == UNDECLARED else name for name in names]


def _ordered(values: Sequence[str | None] | None) -> tuple[str | None, ...] | None:
    """Each value once, the absent one first: one question has one design, however it was asked."""
    if values is None:
        return None
    return tuple(sorted(set(values), key=lambda value: (value is not None, (value or "").encode())))


def run(snapshot: Snapshot, design: JevDesign, *, progress: Progress | None = None) -> AuditResult:
    """Run a design, new or read back from a record."""
    return _run(snapshot, design, progress).audit


def _run(snapshot: Snapshot, design: JevDesign, progress: Progress | None) -> JevResult:
    found = snapshot.predictions(design.scope)
    series = series_of(found.groups, snapshot.book)
    short = shortfall(found, series, snapshot.book)
    made: dict[str, Any] = {"estimates": {}, "tables": {}, "verdicts": {}}
    said, judged = list(JEV), list[Judged]()
    if short is None:
        try:
            judged = _judged(found, series, design)
            made, more = _answers(found, judged, design, progress, several=len(series) > 1)
            said += more
        except CannotAnswerError as error:
            short = error
    result = {
        "design": design.as_json(),
        "flow": flow(found, snapshot.book),
        "provenance": provenance(design.scope, found.groups, snapshot.book),
        **made,
        "limits": limits.as_json(said),
    }
    audit = AuditResult(
        audit=AUDIT,
        schema=SCHEMA,
        result=result,
        head=Head(snapshot.origin, snapshot.size, snapshot.root),
        segments=tuple(SegmentSubject.of(row) for row in found.used_segments),
        channels=_channels(snapshot, found),
        shortfall=short,
    )
    return JevResult(audit, tuple(judged), found.queries)


def _judged(found: Predictions, series: Sequence[Series], design: JevDesign) -> list[Judged]:
    """What every series shows in every year."""
    several = len(series) > 1
    judged = [
        judge(each, part, f"{part.year}/{each.label}" if several else str(part.year), design.threshold)
        for each in series
        if each.groups
        for part in years_of(found, each, design.label_order)
    ]
    _require_scenarios(judged, design)
    return judged


def _answers(
    found: Predictions,
    judged: Sequence[Judged],
    design: JevDesign,
    progress: Progress | None,
    *,
    several: bool,
) -> tuple[dict[str, Any], list[limits.Limit]]:
    """Estimates, tables and verdicts, and the limits that come with them."""
    numbers, skipped = estimates(judged, seed=design.seed, resamples=design.resamples, progress=progress)
    shown = tables(judged, found, design.label_order, several=several)
    verdicts: dict[str, Any] = {
        "flips": {each.prefix: "seen" if _flips(each) else "none_seen" for each in judged}
    }
    if design.precision is not None:
        shown["precision"] = diagnosis(judged, design.precision)
        verdicts["precision"] = {
            name: _outlived(row["vanish"], row["both"]) for name, row in shown["precision"].items()
        }
    fields = {
        name: estimate_fields(estimate, primary=".difference." not in name and name.endswith(PRIMARY))
        for name, estimate in numbers.items()
    }
    made = {"estimates": fields, "tables": shown, "verdicts": verdicts}
    return made, _limits(judged, numbers, skipped, found, design)


def _flips(each: Judged) -> int:
    return sum(each.answers.counts.get(name, 0) for name in PRIMARY)


def _outlived(vanish: int, both: int) -> str:
    """What became of the first channel's flips in the second."""
    if not vanish and not both:
        return "no_flips"
    return "all_vanish" if not both else "some_vanish" if vanish else "none_vanish"


def _require_scenarios(judged: Sequence[Judged], design: JevDesign) -> None:
    """Every scenario asked for is in every series, since one that lacks it would be weighted otherwise."""
    for each in judged:
        lacking = [name for name in design.scope.scenarios or () if name not in each.part.scenarios]
        if lacking:
            raise CannotAnswerError(
                f"no predictions of scenario {ascii(lacking[0][:80])[1:-1]}",
                code="scenario-missing",
                expected="every scenario of --scenarios in every series and year",
                where=f"{each.series.label}, {each.part.year}",
            )


def _limits(
    judged: Sequence[Judged],
    numbers: dict[str, Estimate],
    skipped: Sequence[Skipped],
    found: Predictions,
    design: JevDesign,
) -> list[limits.Limit]:
    said: list[limits.Limit] = []
    few = [(each.prefix, len(each.queries)) for each in judged if FEWEST <= len(each.queries) < FEW]
    if few:
        said.append(few_queries(few))
    if any(estimate.reason is Reason.ZERO_EVENTS for estimate in numbers.values()):
        said.append(NO_EVENTS)
    if design.precision is not None:
        said.append(PRECISION)
    if claimed(found):
        said.append(CLAIMED_MASS)
    for why in dict.fromkeys(each.why for each in skipped):
        said.append(not_compared([(each.first, each.second) for each in skipped if each.why == why], why))
    return said


def _channels(snapshot: Snapshot, found: Predictions) -> dict[str, Channel]:
    """The channels in scope by their labels."""
    named = dict.fromkeys(count.group.channel for count in found.groups if count.group.channel is not None)
    channels = [snapshot.book.by_fingerprint(name) for name in named]
    return {
        channel.name if channel.version == 1 else channel.reference: channel
        for channel in channels
        if channel is not None
    }
