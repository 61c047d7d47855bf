"""The contract of predictions as pandera models: one probability, one pair, one group of pairs.

As for scores, a check is named by the code of the finding it becomes, frames hold numbers and codes only,
and null passes except where a check is about null.
"""

from __future__ import annotations

import pandera.polars as pp
import polars as pl
from pandera.api.polars.types import PolarsData

from contracts.jev_request import Mode
from contracts.jev_source import ARMS, MASS_KINDS
from contracts.jev_state import Intervention
from contracts.pandera_config import N_FAILURE_CASES
from contracts.row_models import MAX_INT32

INTERVENTIONS = tuple(item.value for item in Intervention)
MODES = tuple(item.value for item in Mode)


def _holds(data: PolarsData, expression: pl.Expr) -> pl.LazyFrame:
    return data.lazyframe.select(expression)


class InterventionName(pp.DataFrameModel):
    """What was added between the arms."""

    value: pl.String = pp.Field(nullable=True)

    @pp.check("value", error="intervention-unknown", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _known(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("value").is_in(INTERVENTIONS))


class ModeName(pp.DataFrameModel):
    """How much of the schema the evaluator saw."""

    value: pl.String = pp.Field(nullable=True)

    @pp.check("value", error="mode-unknown", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _known(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("value").is_in(MODES))


class ArmName(pp.DataFrameModel):
    """The side of a pair that an entry belongs to."""

    value: pl.String = pp.Field(nullable=True)

    @pp.check("value", error="arm-unknown", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _known(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("value").is_in(ARMS))


class MassKind(pp.DataFrameModel):
    """How the label mass of an entry is known."""

    value: pl.String = pp.Field(nullable=True)

    @pp.check("value", error="mass-kind-unknown", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _known(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("value").is_in(MASS_KINDS))


class StoredEntry(pp.DataFrameModel):
    """One stored probability beside the other entries of its pair.

    `differs` marks another evidence hash than the pair has, or another label mass than its arm has;
    `misplaced` a label position that contradicts the pair's others.
    """

    probability: pl.Float64 = pp.Field(nullable=True)
    label_position: pl.Int64 = pp.Field(nullable=True)
    has_mass: pl.Boolean
    has_kind: pl.Boolean
    differs: pl.Boolean
    misplaced: pl.Boolean

    @pp.check("probability", error="probability-range", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _number(cls, data: PolarsData) -> pl.LazyFrame:
        # Every other number outside [0, 1] is found by the model of probabilities.
        return _holds(data, ~pl.col("probability").is_nan())

    @pp.check("label_position", error="position-range", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _placed(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("label_position") >= 0)

    @pp.dataframe_check(error="mass-half-known", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _mass(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("has_mass") == pl.col("has_kind"))

    @pp.check("differs", error="pair-disagrees", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _agrees(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, ~pl.col("differs"))

    @pp.check("misplaced", error="label-misplaced", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _in_place(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, ~pl.col("misplaced"))

    class Config:
        strict = True


class PairRow(pp.DataFrameModel):
    """One line: its numbers, its text as codes (-1 for none), and where a channel or acquisition is due."""

    year: pl.Int64 = pp.Field(nullable=True)
    query_id: pl.Int32
    scenario: pl.Int32
    channel: pl.Int32
    acquisition_id: pl.Int32
    channel_due: pl.Boolean
    before_label_mass: pl.Float64 = pp.Field(nullable=True)
    after_label_mass: pl.Float64 = pp.Field(nullable=True)

    @pp.check("query_id", "scenario", "acquisition_id", error="null", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _named(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col(data.key) >= 0)

    @pp.dataframe_check(error="channel-missing", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _channelled(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, ~pl.col("channel_due") | (pl.col("channel") >= 0))

    @pp.check("year", error="year-range", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _year(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("year").is_between(0, MAX_INT32))

    @pp.check(
        "before_label_mass", "after_label_mass", error="label-mass-range", n_failure_cases=N_FAILURE_CASES
    )
    @classmethod
    def _mass(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, (pl.col(data.key) >= 0) & (pl.col(data.key) <= 1))

    class Config:
        strict = True


class Probability(pp.DataFrameModel):
    """One probability of one label in one arm."""

    probability: pl.Float64 = pp.Field(nullable=True)

    @pp.check("probability", error="probability-range", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _unit(cls, data: PolarsData) -> pl.LazyFrame:
        # NaN compares above every number in polars, so the upper bound refuses it too.
        return _holds(data, (pl.col("probability") >= 0) & (pl.col("probability") <= 1))

    class Config:
        strict = True


class PairSet(pp.DataFrameModel):
    """One pair as counts: labels of each arm, and how many stand in one arm alone.

    `repeats` counts further lines of the same pair in its group, `strangers` positive labels that are no
    target, `zeros` base labels without any probability in one arm, where a preference has no meaning.
    `lacking` counts scenarios of the group that the pair's query does not have.
    """

    repeats: pl.Int64
    expands: pl.Boolean
    base: pl.Int64
    lost: pl.Int64
    gained: pl.Int64
    strangers: pl.Int64
    zeros: pl.Int64
    lacking: pl.Int64

    @pp.check("repeats", error="pair-duplicate", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _once(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("repeats") == 0)

    @pp.check("lost", error="label-lost", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _kept(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("lost") == 0)

    @pp.dataframe_check(error="label-gained", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _same(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("expands") | (pl.col("gained") == 0))

    @pp.dataframe_check(error="nothing-expanded", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _expanded(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, ~pl.col("expands") | (pl.col("gained") > 0))

    @pp.dataframe_check(error="no-preference", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _preference(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, ~pl.col("expands") | ((pl.col("base") >= 2) & (pl.col("zeros") < 2)))

    @pp.check("strangers", error="positive-no-target", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _targets(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("strangers") == 0)

    @pp.check("lacking", error="scenario-missing", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _complete(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("lacking") == 0)

    class Config:
        strict = True
